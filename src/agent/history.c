/* history.c - what a run knows, made from its events.
 *
 * The driver journals an event and then gives it to history_note; a resumed run gives it the same
 * events again. There is no second way to change what is known, so there is nothing to keep in
 * step.
 */
#include "agent/edit.h"
#include "agent/run.h"
#include <math.h>
#include <string.h>

enum { MAX_PIECES = 4 }; // of one reply: it and three continuations

void history_begin(History *history, Arena *arena) {
    *history = (History){.arena = arena, .limits = loop_limits_default(), .state = loop_begin()};
    history->last_attempt = &history->attempts;
}

static const char *keep(History *h, const Json *body, const char *key) {
    return arena_string(h->arena, json_text(body, key, NULL));
}

void history_feed(History *h, const Event *event) {
    h->before = h->state;
    h->last = *event;
    Step next = step(&h->limits, h->state, event);
    h->state = next.state;
    h->pending_at = 0;
    h->pending_count = next.action_count;
    memcpy(h->pending, next.actions, sizeof next.actions);
}

bool history_can_go_on(const History *h, const LoopLimits *limits) {
    if (!h->begun || !h->state.done) return true;
    return !step(limits, h->before, &h->last).state.done;
}

/* A finished run goes on when its limits leave more room: the step that ended it is taken again,
 * but for what was carried out then. */
static void revive(History *h) {
    if (!h->state.done || !history_can_go_on(h, &h->limits)) return;
    h->state = h->before;
    Event event = h->last;
    history_feed(h, &event);
    bool kept = h->kept && strcmp(h->kept, h->state.best) == 0;
    if (kept && h->pending[0].kind == ACTION_KEEP_BEST) h->pending_at++;
}

static void read_limits(History *h, const Json *body) {
    const Json *limits = json_object_get(body, "limits");
    if (!limits) return;
    LoopLimits *to = &h->limits;
    to->edits_per_episode = (int)json_int_or(limits, "edits_per_episode", to->edits_per_episode);
    to->fresh_drafts = (int)json_int_or(limits, "fresh_drafts", to->fresh_drafts);
    to->rounds = (int)json_int_or(limits, "rounds", to->rounds);
    to->plateau_rounds = (int)json_int_or(limits, "plateau_rounds", to->plateau_rounds);
}

Json *limits_json(const LoopLimits *limits) {
    return json_pack("{s:i, s:i, s:i, s:i}", "edits_per_episode", limits->edits_per_episode,
                     "fresh_drafts", limits->fresh_drafts, "rounds", limits->rounds,
                     "plateau_rounds", limits->plateau_rounds);
}

/* ---- one function per event ------------------------------------------------------------- */

static bool started(History *h, Journal *journal, const Json *body, bool live, Error *err) {
    (void)journal, (void)live, (void)err;
    read_limits(h, body);
    h->begun = true;
    h->start = keep(h, body, "start");
    h->hint = keep(h, body, "hint");
    h->task_identity = keep(h, json_object_get(body, "task"), "identity");
    history_feed(h, &(Event){.kind = EVENT_STARTED, .source = h->start});
    return true;
}

static bool resumed(History *h, Journal *journal, const Json *body, bool live, Error *err) {
    (void)journal, (void)live, (void)err;
    read_limits(h, body);
    h->stopped = false;
    revive(h);
    return true;
}

static bool prompted(History *h, Journal *journal, const Json *body, bool live, Error *err) {
    (void)journal, (void)live, (void)err;
    h->requests = (int)json_int_or(body, "number", h->requests + 1);
    for (int stage = 0; stage < STAGE_COUNT; stage++)
        if (strcmp(stage_name((Stage)stage), json_text(body, "stage", "")) == 0)
            h->stage_requests[stage] =
                (int)json_int_or(body, "stage_number", h->stage_requests[stage] + 1);
    h->system = keep(h, body, "system");
    h->prompt = keep(h, body, "prompt");
    if (!json_is_true(json_object_get(body, "continues"))) {
        h->reply = NULL;
        h->reply_partial = false;
        h->pieces = 0;
    }
    return true;
}

static bool replied(History *h, Journal *journal, const Json *body, bool live, Error *err) {
    (void)live;
    char *text;
    size_t bytes;
    if (!journal_get_blob(journal, h->arena, json_text(body, "reply", ""), &text, &bytes, err))
        return false;
    if (h->reply) { // joining ends a piece at a zero byte, which no continuation should have
        h->reply = reply_join(h->arena, h->reply, text);
        h->reply_bytes = strlen(h->reply);
    } else {
        h->reply = text;
        h->reply_bytes = bytes;
    }
    h->reply_truncated = json_is_true(json_object_get(body, "truncated"));
    h->system = h->prompt = NULL;
    h->pieces++;
    h->replies++;
    h->reply_partial = h->reply_truncated && h->pieces < MAX_PIECES;
    if (!h->reply_partial) history_feed(h, &(Event){.kind = EVENT_REPLIED});
    return true;
}

static bool model_failed(History *h, Journal *journal, const Json *body, bool live, Error *err) {
    (void)journal, (void)err;
    if (live)
        history_feed(h, &(Event){.kind = EVENT_MODEL_FAILED, .reason = keep(h, body, "reason")});
    return true;
}

static bool applied(History *h, Journal *journal, const Json *body, bool live, Error *err) {
    (void)journal, (void)live, (void)err;
    h->refusal = NULL;
    h->idea = keep(h, body, "idea");
    h->edits += json_text(body, "base", NULL) != NULL;
    history_feed(h, &(Event){.kind = EVENT_EDIT_APPLIED, .source = keep(h, body, "source")});
    return true;
}

static bool refused(History *h, Journal *journal, const Json *body, bool live, Error *err) {
    (void)journal, (void)live, (void)err;
    h->refusal = keep(h, body, "reason");
    Stage stage = h->state.stage;
    int draft = h->state.draft, round = h->state.round;
    history_feed(h, &(Event){.kind = EVENT_EDIT_REFUSED, .reason = h->refusal});
    // A refusal is about an edit that a fresh draft or another round knows nothing of.
    if (h->state.stage != stage || h->state.draft != draft || h->state.round != round)
        h->refusal = NULL;
    return true;
}

static bool judge_started(History *h, Journal *journal, const Json *body, bool live, Error *err) {
    (void)journal, (void)body, (void)live, (void)err;
    h->judging = true;
    h->builds++;
    return true;
}

static VerdictKind verdict_kind(const char *name) {
    for (int kind = 0; kind < VERDICT_KIND_COUNT; kind++)
        if (strcmp(verdict_name((VerdictKind)kind), name) == 0) return (VerdictKind)kind;
    return VERDICT_HARNESS_FAULT;
}

static void remember_attempt(History *h, const Json *body, double objective) {
    Attempt *attempt = arena_new_of(h->arena, Attempt);
    *attempt = (Attempt){.stage = h->state.stage,
                         .draft = h->state.draft,
                         .edit = h->state.edit,
                         .round = h->state.round,
                         .idea = h->idea,
                         .source = keep(h, body, "source"),
                         .verdict = h->verdict,
                         .message = h->message,
                         .objective = objective};
    *h->last_attempt = attempt;
    h->last_attempt = &attempt->next;
}

static bool judged(History *h, Journal *journal, const Json *body, bool live, Error *err) {
    (void)journal, (void)err;
    h->judging = false;
    VerdictKind kind = verdict_kind(json_text(body, "verdict", ""));
    h->verdict = arena_string(h->arena, verdict_name(kind));
    h->message = arena_string(h->arena, json_text(body, "message", ""));
    h->repair = arena_string(h->arena, json_text(body, "repair", ""));
    h->detail = json_owned(h->arena, json_incref(json_object_get(body, "detail")));
    if (kind == VERDICT_HARNESS_FAULT && !live) return true; // tried again by this sitting
    double objective = json_real_or(body, "objective", NAN);
    if (isfinite(objective)) h->objective_kind = keep(h, body, "objective_kind");
    if (kind != VERDICT_HARNESS_FAULT) remember_attempt(h, body, objective);
    h->passed = h->passed || kind == VERDICT_PASS;
    history_feed(h, &(Event){.kind = EVENT_JUDGED, .verdict = kind, .objective = objective});
    return true;
}

static bool best_kept(History *h, Journal *journal, const Json *body, bool live, Error *err) {
    (void)journal, (void)live, (void)err;
    h->kept = keep(h, body, "source");
    h->best_detail = h->detail;
    if (h->pending_at < h->pending_count && h->pending[h->pending_at].kind == ACTION_KEEP_BEST)
        h->pending_at++;
    return true;
}

static bool stopped(History *h, Journal *journal, const Json *body, bool live, Error *err) {
    (void)journal, (void)live, (void)err;
    h->stopped = true;
    h->seconds = json_real_or(body, "seconds", h->seconds);
    return true;
}

bool history_note(History *h, Journal *journal, const char *kind, const Json *body, bool live,
                  Error *err) {
    static const struct {
        const char *kind;
        bool (*note)(History *, Journal *, const Json *, bool, Error *);
    } table[] = {
        {"run.started", started},    {"run.resumed", resumed},         {"prompt.sent", prompted},
        {"reply.received", replied}, {"model.failed", model_failed},   {"edit.applied", applied},
        {"edit.refused", refused},   {"judge.started", judge_started}, {"verdict", judged},
        {"best.kept", best_kept},    {"run.stopped", stopped},
    };
    for (size_t i = 0; i < COUNT_OF(table); i++)
        if (strcmp(table[i].kind, kind) == 0) return table[i].note(h, journal, body, live, err);
    return error_input(err, "the record holds an event '%s' that this cutegen does not know", kind);
}

/* ---- what prompts say of it -------------------------------------------------------------- */

const Attempt *history_attempt(const History *h, const char *source_hash) {
    for (const Attempt *a = h->attempts; a; a = a->next)
        if (a->source && strcmp(a->source, source_hash) == 0) return a;
    return NULL;
}

char *objective_text(Arena *arena, double objective, const char *kind) {
    if (!isfinite(objective)) return arena_string(arena, "not timed");
    if (kind && strcmp(kind, "time_ms") == 0) return arena_printf(arena, "%.4g ms", objective);
    return arena_printf(
        arena, "%.4g us of estimated cost (a model's estimate, not a measured time)", objective);
}

static void say_idea(const Attempt *a, Buf *out) {
    size_t bytes = a->idea ? strlen(a->idea) : 0;
    if (!bytes) return;                 // a record that was edited by hand may hold an empty one
    bytes -= a->idea[bytes - 1] == '.'; // a colon follows
    buf_puts(out, ", ");
    buf_append(out, a->idea, bytes);
}

static void say_outcome(const History *h, Arena *arena, const Attempt *a, Buf *out) {
    if (strcmp(a->verdict, "pass") == 0)
        buf_printf(out, "pass, %s", objective_text(arena, a->objective, h->objective_kind));
    else
        buf_printf(out, "%s: %.300s", a->verdict, a->message);
}

/* Debug: the edits of this episode. Optimise: every round. Draft: how each draft ended. */
static bool belongs(const History *h, const Attempt *a, Stage stage) {
    switch (stage) {
    case STAGE_DEBUG:
        return a->draft == h->state.draft && a->round == h->state.round;
    case STAGE_OPTIMISE:
        return a->round > 0;
    default: { // the last attempt of a draft
        const Attempt *next = a->next;
        return a->draft < h->state.draft && (!next || next->draft != a->draft);
    }
    }
}

char *history_table(const History *h, Arena *arena, Stage stage) {
    Buf out = {0};
    for (const Attempt *a = h->attempts; a; a = a->next) {
        if (!belongs(h, a, stage)) continue;
        if (stage == STAGE_DRAFT)
            buf_printf(&out, "- draft %d, after %d edits", a->draft, a->edit);
        else if (a->stage == STAGE_DEBUG)
            buf_printf(&out, "- edit %d", a->edit);
        else if (a->round > 0)
            buf_printf(&out, "- round %d", a->round);
        else
            buf_puts(&out, a->draft ? "- first version" : "- the given kernel");
        if (stage != STAGE_DRAFT) say_idea(a, &out);
        buf_puts(&out, ": ");
        say_outcome(h, arena, a, &out);
        buf_puts(&out, "\n");
    }
    return buf_take(arena, &out);
}
