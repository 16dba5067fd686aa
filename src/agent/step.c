/* step.c - decides what happens next in a run.
 *
 * A pure function of (limits, state, event): no files, no clock, no model. Everything a run can
 * do is one of five actions, and each but keep_best and stop ends in exactly one event, so a run
 * is a list of events and is tested, resumed and replayed as one. agent.h tells the rules.
 */
#include "agent/agent.h"
#include <math.h>
#include <stdio.h>

LoopLimits loop_limits_default(void) {
    return (LoopLimits){
        .edits_per_episode = 5, .fresh_drafts = 3, .rounds = 10, .plateau_rounds = 4};
}

const char *stop_name(StopReason reason) {
    static const char *const names[STOP_REASON_COUNT] = {
        [STOP_PASSED] = "passed", [STOP_PLATEAU] = "plateau",
        [STOP_ROUNDS] = "rounds", [STOP_NO_KERNEL] = "no_kernel",
        [STOP_MODEL] = "model",   [STOP_INTERRUPTED] = "interrupted",
        [STOP_FAULT] = "fault",
    };
    return names[reason];
}

LoopState loop_begin(void) {
    return (LoopState){.stage = STAGE_DRAFT, .best_objective = NAN};
}

static void copy_hash(char to[65], const char *from) {
    snprintf(to, 65, "%s", from ? from : "");
}

static void act(Step *next, ActionKind kind) {
    Action *action = &next->actions[next->action_count++];
    *action = (Action){.kind = kind, .stage = next->state.stage};
}

static void ask(Step *next, Stage stage) {
    next->state.stage = stage;
    act(next, ACTION_ASK);
}

static void stop(Step *next, StopReason reason) {
    LoopState *s = &next->state;
    s->stage = STAGE_DONE;
    s->done = true;
    s->stop = reason;
    act(next, ACTION_STOP);
    next->actions[next->action_count - 1].stop = reason;
}

static void ask_for_draft(const LoopLimits *limits, Step *next) {
    LoopState *s = &next->state;
    if (s->draft >= limits->fresh_drafts) {
        stop(next, STOP_NO_KERNEL);
        return;
    }
    s->draft++;
    s->edit = 0;
    s->source[0] = s->base[0] = 0;
    ask(next, STAGE_DRAFT);
}

/* `improved` tells about the round that just ended; round 0 is the first pass. */
static void ask_for_round(const LoopLimits *limits, Step *next, bool improved) {
    LoopState *s = &next->state;
    s->stale_rounds = improved ? 0 : s->stale_rounds + 1;
    if (s->round >= limits->rounds) {
        stop(next, limits->rounds > 0 ? STOP_ROUNDS : STOP_PASSED);
        return;
    }
    if (limits->plateau_rounds > 0 && s->stale_rounds >= limits->plateau_rounds) {
        stop(next, STOP_PLATEAU);
        return;
    }
    s->round++;
    s->edit = 0;
    copy_hash(s->source, s->best);
    copy_hash(s->base, s->best);
    ask(next, STAGE_OPTIMISE);
}

/* The episode brought nothing: back to the best kernel, or to an empty page. */
static void give_up_episode(const LoopLimits *limits, Step *next) {
    if (next->state.round > 0)
        ask_for_round(limits, next, false);
    else
        ask_for_draft(limits, next);
}

static void ask_for_repair(const LoopLimits *limits, Step *next) {
    LoopState *s = &next->state;
    if (s->edit >= limits->edits_per_episode) {
        give_up_episode(limits, next);
        return;
    }
    copy_hash(s->base, s->source);
    ask(next, STAGE_DEBUG);
}

static void passed(const LoopLimits *limits, Step *next, double objective) {
    LoopState *s = &next->state;
    bool first = !s->best[0];
    bool improved = first || objective < s->best_objective; // false when either is NAN
    if (improved) {
        copy_hash(s->best, s->source);
        s->best_objective = objective;
        act(next, ACTION_KEEP_BEST);
    }
    if (isnan(s->best_objective))
        stop(next, STOP_PASSED);
    else
        ask_for_round(limits, next, improved);
}

static void judged(const LoopLimits *limits, Step *next, const Event *event) {
    LoopState *s = &next->state;
    if (event->verdict == VERDICT_HARNESS_FAULT) {
        if (++s->faults > 1)
            stop(next, STOP_FAULT);
        else
            act(next, ACTION_JUDGE);
        return;
    }
    s->faults = 0;
    if (event->verdict == VERDICT_PASS) {
        passed(limits, next, event->objective);
        return;
    }
    if (s->stage != STAGE_DEBUG) s->edit = 0; // a debug episode opens
    ask_for_repair(limits, next);
}

static void refused(const LoopLimits *limits, Step *next) {
    LoopState *s = &next->state;
    if (++s->refused < STEP_REFUSALS_PER_EDIT) {
        ask(next, s->stage);
        return;
    }
    s->refused = 0;
    if (s->stage == STAGE_DEBUG) {
        s->edit++;
        ask_for_repair(limits, next);
    } else {
        give_up_episode(limits, next);
    }
}

Step step(const LoopLimits *limits, LoopState state, const Event *event) {
    Step next = {.state = state};
    LoopState *s = &next.state;
    if (s->done) return next;

    switch (event->kind) {
    case EVENT_STARTED:
        copy_hash(s->source, event->source);
        if (s->source[0])
            act(&next, ACTION_JUDGE);
        else
            ask_for_draft(limits, &next);
        break;
    case EVENT_REPLIED:
        act(&next, ACTION_APPLY);
        break;
    case EVENT_EDIT_APPLIED:
        copy_hash(s->source, event->source);
        s->refused = 0;
        if (s->stage == STAGE_DEBUG) s->edit++;
        act(&next, ACTION_JUDGE);
        break;
    case EVENT_EDIT_REFUSED:
        refused(limits, &next);
        break;
    case EVENT_JUDGED:
        judged(limits, &next, event);
        break;
    case EVENT_MODEL_FAILED:
        stop(&next, STOP_MODEL);
        break;
    case EVENT_INTERRUPTED:
        stop(&next, STOP_INTERRUPTED);
        break;
    }
    return next;
}
