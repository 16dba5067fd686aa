/* run.c - the driver: carries out what step() decides, and writes it down first.
 *
 * The loop is: take the next pending action, do it, journal what came of it, note it (which
 * steps), again. An action that costs something is announced in the journal before it begins
 * (prompt.sent, judge.started), so that a resumed run knows what was under way: it sends the same
 * prompt under the same number again, and judges the same source again.
 */
#include "agent/run.h"
#include "agent/edit.h"
#include "agent/prompt.h"
#include <math.h>
#include <string.h>

typedef struct {
    Arena *arena;
    const RunOptions *options;
    const RunDeps *deps;
    Journal *journal;
    Error *err;
    History history;
    const char *best_path;
    double began, earlier_seconds;
    Arena *last_arena, *best_arena; // what the two verdicts lie in
    Verdict last, best;
    bool have_last, have_best; // judged in this sitting
    const char *explanation;   // of the stop: why the model or the judge failed
    ErrorKind failure;         // what kind of failure that was
} Run;

/* ---- writing down ----------------------------------------------------------------------- */

/* Journals, then tells the listener, then takes it in. Takes the reference of `body`. */
static bool record(Run *run, const char *kind, Json *body) {
    if (!body) return error_harness(run->err, "event %s could not be put together", kind);
    bool good = journal_append(run->journal, kind, body, NULL, run->err);
    if (good && run->options->listener)
        run->options->listener(run->options->listener_context, kind, body);
    good = good && history_note(&run->history, run->journal, kind, body, true, run->err);
    json_decref(body);
    return good;
}

static bool store_text(Run *run, const char *text, Hash *hash) {
    return journal_put_blob(run->journal, text, strlen(text), hash, run->err);
}

static bool fetch_text(Run *run, const char *hash, char **text) {
    return journal_get_blob(run->journal, run->arena, hash, text, NULL, run->err);
}

static Json *real_or_null(double value) {
    return isfinite(value) ? json_real(value) : json_null();
}
static Json *count_or_null(int64_t value) {
    return value >= 0 ? json_integer(value) : json_null();
}

/* Text that a foreign program wrote may not be UTF-8, which JSON has to be. */
static Json *text_json(const char *text) {
    Json *json = json_string(text);
    if (json) return json;
    Buf clean = {0};
    for (const char *c = text; *c; c++)
        buf_append(&clean, (unsigned char)*c < 0x80 ? c : "?", 1);
    json = json_string(clean.data ? clean.data : "");
    buf_free(&clean);
    return json;
}
static Json *text_or_null(const char *text) {
    return text && *text ? text_json(text) : json_null();
}

/* ---- asking ----------------------------------------------------------------------------- */

static bool write_prompt(Run *run, Stage stage, char **prompt) {
    History *h = &run->history;
    Arena *arena = run->arena;
    PromptContext context = {
        .task = run->options->task,
        .arch = run->options->arch,
        .device = run->options->device,
        .hint = h->hint,
        .stage = stage,
        .refusal = h->refusal,
        .verdict = h->verdict,
        .message = h->message,
        .repair = h->repair,
        .history = history_table(h, arena, stage),
        .objective = objective_text(arena, h->state.best_objective, h->objective_kind),
    };
    char *source = NULL;
    if (h->state.base[0] && !fetch_text(run, h->state.base, &source)) return false;
    context.source = source;
    return prompt_stage(arena, &context, prompt, run->err) &&
           (!h->reply_partial || prompt_continue(arena, *prompt, h->reply, prompt, run->err));
}

static bool send_prompt(Run *run, Stage stage, char **system, char **prompt) {
    History *h = &run->history;
    Hash system_hash, prompt_hash;
    if (!prompt_system(run->arena, system, run->err) || !write_prompt(run, stage, prompt) ||
        !store_text(run, *system, &system_hash) || !store_text(run, *prompt, &prompt_hash))
        return false;
    return record(run, "prompt.sent",
                  json_pack("{s:s, s:i, s:i, s:i, s:i, s:i, s:s, s:s, s:b}", "stage",
                            stage_name(stage), "number", h->requests + 1, "stage_number",
                            h->stage_requests[stage] + 1, "draft", h->state.draft, "edit",
                            h->state.edit, "round", h->state.round, "system", system_hash.hex,
                            "prompt", prompt_hash.hex, "continues", h->reply_partial));
}

static bool no_reply(Run *run, Stage stage) {
    if (run->err->kind == ERROR_INTERRUPTED) {
        history_feed(&run->history, &(Event){.kind = EVENT_INTERRUPTED});
        return true;
    }
    run->explanation = arena_string(run->arena, run->err->message);
    run->failure = run->err->kind;
    return record(run, "model.failed",
                  json_pack("{s:s, s:i, s:o}", "stage", stage_name(stage), "number",
                            run->history.requests, "reason", text_json(run->explanation)));
}

static bool ask(Run *run, const Action *action) {
    History *h = &run->history;
    Stage stage = action->stage;
    char *system, *prompt;
    if (h->prompt) { // sent by an earlier sitting that did not live to see the reply
        if (!fetch_text(run, h->system, &system) || !fetch_text(run, h->prompt, &prompt))
            return false;
    } else if (!send_prompt(run, stage, &system, &prompt)) {
        return false;
    }
    const ModelRequest request = {.stage = stage,
                                  .number = h->requests,
                                  .stage_number = h->stage_requests[stage],
                                  .system = system,
                                  .prompt = prompt};
    ModelReply reply;
    if (!run->deps->ask(run->deps->context, run->arena, &request, &reply, run->err))
        return no_reply(run, stage);
    Hash hash;
    if (!journal_put_blob(run->journal, reply.text, reply.bytes, &hash, run->err)) return false;
    return record(run, "reply.received",
                  json_pack("{s:s, s:i, s:s, s:I, s:b, s:o, s:o, s:o, s:f}", "stage",
                            stage_name(stage), "number", request.number, "reply", hash.hex, "bytes",
                            (json_int_t)reply.bytes, "truncated", reply.truncated, "input_tokens",
                            count_or_null(reply.input_tokens), "output_tokens",
                            count_or_null(reply.output_tokens), "cost_dollars",
                            real_or_null(reply.cost_dollars), "seconds", reply.seconds));
}

/* ---- applying --------------------------------------------------------------------------- */

static bool refuse(Run *run, const char *reason) {
    const LoopState *state = &run->history.state;
    return record(run, "edit.refused",
                  json_pack("{s:s, s:o, s:o}", "stage", stage_name(state->stage), "base",
                            text_or_null(state->base), "reason", text_json(reason)));
}

static bool apply(Run *run) {
    History *h = &run->history;
    Arena *arena = run->arena;
    const LoopState *state = &h->state;
    char *base = NULL, *source, *refusal;
    if (state->base[0] && !fetch_text(run, state->base, &base)) return false;
    if (!edit_apply(arena, base, h->reply, h->reply_bytes, h->reply_truncated, &source, &refusal))
        return refuse(run, refusal);
    Hash hash = hash_bytes(source, strlen(source));
    const Attempt *known = history_attempt(h, hash.hex);
    if (known)
        return refuse(run, arena_printf(arena,
                                        "The outcome is a kernel that was judged already (%s: "
                                        "%.500s). Change something else.",
                                        known->verdict, known->message));
    if (!store_text(run, source, &hash)) return false;
    LineSpan span = edit_span(arena, base ? base : "", source);
    Reply parsed;
    bool whole =
        !reply_parse(arena, h->reply, h->reply_bytes, &parsed, &refusal) || parsed.edit_count == 0;
    return record(
        run, "edit.applied",
        json_pack("{s:s, s:s, s:o, s:o, s:b, s:i, s:i, s:i}", "stage", stage_name(state->stage),
                  "source", hash.hex, "base", text_or_null(state->base), "idea",
                  text_or_null(reply_idea(arena, h->reply)), "whole_file", whole, "first_line",
                  span.first_line, "lines_removed", span.removed, "lines_added", span.added));
}

/* ---- judging ---------------------------------------------------------------------------- */

static double objective_of(const Verdict *verdict, const char **kind) {
    *kind = NULL;
    if (verdict->kind != VERDICT_PASS) return NAN;
    if (isfinite(verdict->time_ms)) return *kind = "time_ms", verdict->time_ms;
    if (isfinite(verdict->cost_us)) return *kind = "cost_us", verdict->cost_us;
    return NAN;
}

/* The verdict lives in an arena of its own, so that a long run does not hoard compiler logs. */
static void remember_verdict(Run *run, Arena *arena, const Verdict *verdict) {
    if (run->last_arena != run->best_arena) arena_free(run->last_arena);
    run->last_arena = arena;
    run->last = *verdict;
    run->have_last = true;
}

/* A fault of the harness leaves a verdict with evidence, other errors none. */
static Json *fault_detail(const Verdict *verdict) {
    bool told = verdict->kind == VERDICT_HARNESS_FAULT && verdict->message;
    return told ? verdict_json(verdict) : json_null();
}

static bool judge_failed(Run *run, const Verdict *verdict) {
    if (run->err->kind == ERROR_INTERRUPTED) {
        history_feed(&run->history, &(Event){.kind = EVENT_INTERRUPTED});
        return true;
    }
    run->explanation = arena_string(run->arena, run->err->message);
    run->failure = run->err->kind;
    bool good = record(
        run, "verdict",
        json_pack("{s:s, s:s, s:o, s:s, s:n, s:n, s:f, s:o}", "source", run->history.state.source,
                  "verdict", verdict_name(VERDICT_HARNESS_FAULT), "message",
                  text_json(run->explanation), "repair", "", "objective", "objective_kind",
                  "seconds", verdict->seconds, "detail", fault_detail(verdict)));
    // The user's set-up is at fault: trying again would only fail again.
    if (good && run->failure == ERROR_INPUT && !run->history.state.done)
        history_feed(&run->history,
                     &(Event){.kind = EVENT_JUDGED, .verdict = VERDICT_HARNESS_FAULT});
    return good;
}

static bool judge(Run *run) {
    History *h = &run->history;
    char *source;
    if (!fetch_text(run, h->state.source, &source)) return false;
    if (!h->judging &&
        !record(run, "judge.started",
                json_pack("{s:s, s:i}", "source", h->state.source, "build", h->builds + 1)))
        return false;
    Arena *arena = arena_new();
    Verdict verdict = {.time_ms = NAN, .cost_us = NAN};
    if (!run->deps->judge(run->deps->context, arena, source, strlen(source), &verdict, run->err)) {
        bool good = judge_failed(run, &verdict);
        arena_free(arena);
        return good;
    }
    remember_verdict(run, arena, &verdict);
    if (verdict.kind == VERDICT_HARNESS_FAULT) {
        run->explanation = arena_string(run->arena, verdict.message);
        run->failure = ERROR_HARNESS;
    }
    const char *kind;
    double objective = objective_of(&verdict, &kind);
    return record(run, "verdict",
                  json_pack("{s:s, s:s, s:o, s:o, s:o, s:o, s:f, s:o}", "source", h->state.source,
                            "verdict", verdict_name(verdict.kind), "message",
                            text_json(verdict.message ? verdict.message : ""), "repair",
                            text_json(verdict.repair ? verdict.repair : ""), "objective",
                            real_or_null(objective), "objective_kind", text_or_null(kind),
                            "seconds", verdict.seconds, "detail", verdict_json(&verdict)));
}

/* ---- keeping and stopping ---------------------------------------------------------------- */

static bool write_best(Run *run, const char *hash) {
    char *source;
    return fetch_text(run, hash, &source) &&
           file_write_atomic(run->best_path, source, strlen(source), run->err);
}

static bool keep_best(Run *run) {
    const LoopState *state = &run->history.state;
    if (run->best_arena != run->last_arena) arena_free(run->best_arena);
    run->best_arena = run->last_arena;
    run->best = run->last;
    run->have_best = run->have_last;
    return record(run, "best.kept",
                  json_pack("{s:s, s:s, s:o, s:o}", "source", state->best, "path",
                            path_base(run->best_path), "objective",
                            real_or_null(state->best_objective), "objective_kind",
                            text_or_null(run->history.objective_kind))) &&
           write_best(run, state->best);
}

static double seconds_so_far(const Run *run) {
    return run->earlier_seconds + clock_seconds() - run->began;
}

static bool stop(Run *run, StopReason reason) {
    const History *h = &run->history;
    const char *explanation =
        reason == STOP_MODEL || reason == STOP_FAULT ? run->explanation : NULL;
    return record(run, "run.stopped",
                  json_pack("{s:s, s:o, s:b, s:o, s:i, s:i, s:i, s:f}", "reason", stop_name(reason),
                            "explanation", text_or_null(explanation), "passed",
                            h->state.best[0] != 0, "best", text_or_null(h->state.best), "replies",
                            h->replies, "builds", h->builds, "edits", h->edits, "seconds",
                            seconds_so_far(run)));
}

/* ---- the loop --------------------------------------------------------------------------- */

static bool act(Run *run, const Action *action) {
    switch (action->kind) {
    case ACTION_ASK:
        return ask(run, action);
    case ACTION_APPLY:
        return apply(run);
    case ACTION_JUDGE:
        return judge(run);
    case ACTION_KEEP_BEST:
        return keep_best(run);
    case ACTION_STOP:
        return stop(run, action->stop);
    }
    return error_harness(run->err, "the loop asked for an unknown action");
}

static bool go(Run *run) {
    History *h = &run->history;
    while (!h->stopped) {
        if (h->pending_at >= h->pending_count)
            return error_harness(run->err, "the record of the run leaves nothing to do next, yet "
                                           "it has not stopped; begin a new run");
        // A copy: noting an event replaces the list.
        const Action action = h->pending[h->pending_at];
        bool costs = action.kind == ACTION_ASK || action.kind == ACTION_JUDGE;
        if (costs && cancelled(run->options->cancel)) {
            history_feed(h, &(Event){.kind = EVENT_INTERRUPTED});
            continue;
        }
        if (!act(run, &action)) return false;
    }
    return true;
}

static Json *judging_json(const JudgeOptions *judging) {
    return json_pack("{s:i, s:f, s:f}", "seeds", judging->seeds, "call_timeout_s",
                     judging->call_timeout_s, "reference_timeout_s", judging->reference_timeout_s);
}

/* The path is absolute, so that the run can be resumed from another directory. */
static Json *started_json(Run *run, const char *start) {
    const RunOptions *o = run->options;
    return json_pack("{s:i, s:s, s:{s:s, s:o, s:s}, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}",
                     "schema", 1, "version", CUTEGEN_VERSION, "task", "name", o->task->name, "path",
                     text_json(path_absolute(run->arena, o->task->path)), "identity",
                     o->task->identity.hex, "device", text_or_null(o->device), "arch",
                     text_or_null(o->arch), "compiler", text_or_null(o->compiler), "model",
                     text_or_null(run->deps->model_name), "limits", limits_json(&o->limits),
                     "judge", judging_json(&o->judging), "start", text_or_null(start), "hint",
                     text_or_null(o->hint));
}

static bool begin(Run *run) {
    Hash start = {0};
    const char *source = run->options->start_source;
    if (source && !store_text(run, source, &start)) return false;
    return record(run, "run.started", started_json(run, start.hex));
}

static bool read_back(Run *run) {
    JournalEvent *events;
    size_t count;
    if (!journal_events(run->journal, run->arena, 0, &events, &count, run->err)) return false;
    for (size_t i = 0; i < count; i++)
        if (!history_note(&run->history, run->journal, events[i].kind, events[i].body, false,
                          run->err))
            return false;
    return true;
}

/* Stands where the journal ends. `*over`: there is nothing left to do. */
static bool go_back(Run *run, bool *over) {
    History *h = &run->history;
    if (!read_back(run)) return false;
    if (!h->begun) return begin(run); // killed before the first event
    if (h->task_identity && strcmp(h->task_identity, run->options->task->identity.hex) != 0)
        return error_input(run->err,
                           "%s or its reference was changed since this run began; begin a new run",
                           run->options->task->path);
    run->earlier_seconds = h->seconds;
    // best.kept is written before the file: it may be missing.
    if (h->kept && !write_best(run, h->kept)) return false;
    *over = h->stopped && !history_can_go_on(h, &run->options->limits);
    if (*over) return true;
    return record(run, "run.resumed",
                  json_pack("{s:s, s:o, s:o, s:o, s:o}", "version", CUTEGEN_VERSION, "compiler",
                            text_or_null(run->options->compiler), "model",
                            text_or_null(run->deps->model_name), "limits",
                            limits_json(&run->options->limits), "judge",
                            judging_json(&run->options->judging)));
}

/* The verdict as far as the journal knows it, for a kernel judged by an earlier sitting. */
static Verdict verdict_from(const History *h, const Json *detail) {
    Verdict verdict = {.kind = VERDICT_HARNESS_FAULT,
                       .message = json_text(detail, "message", h->message ? h->message : ""),
                       .repair = json_text(detail, "repair", ""),
                       .time_ms = json_real_or(detail, "time_ms", NAN),
                       .time_ci_ms = {NAN, NAN},
                       .cost_us = json_real_or(detail, "cost_us", NAN),
                       .evidence = json_object_get(detail, "evidence")};
    const char *name = detail == h->best_detail && detail ? "pass" : h->verdict;
    for (int kind = 0; name && kind < VERDICT_KIND_COUNT; kind++)
        if (strcmp(verdict_name((VerdictKind)kind), name) == 0) verdict.kind = (VerdictKind)kind;
    return verdict;
}

static void fill_result(Run *run, RunResult *result) {
    const History *h = &run->history;
    *result = (RunResult){
        .stop = h->state.stop,
        .reason = run->explanation,
        .passed = h->state.best[0] != 0,
        .best_path = h->state.best[0] ? run->best_path : NULL,
        .replies = h->replies,
        .builds = h->builds,
        .edits = h->edits,
        .seconds = seconds_so_far(run),
    };
    if (result->stop != STOP_MODEL && result->stop != STOP_FAULT) result->reason = NULL;
    bool of_best = result->passed;
    if (of_best ? run->have_best : run->have_last)
        result->verdict = of_best ? run->best : run->last;
    else
        result->verdict = verdict_from(h, of_best ? h->best_detail : h->detail);
    result->verdict_json = of_best ? h->best_detail : h->detail;
}

/* A failure that is not the kernel's: the caller gets it as an error, with its own kind. */
static bool explain(Run *run) {
    StopReason reason = run->history.state.stop;
    bool failed = reason == STOP_FAULT || (reason == STOP_MODEL && run->failure != ERROR_STOPPED);
    if (!failed || !run->explanation) return true;
    return run->failure == ERROR_INPUT ? error_input(run->err, "%s", run->explanation)
                                       : error_harness(run->err, "%s", run->explanation);
}

static void free_arena(void *arena) {
    arena_free(arena);
}

bool run_with(Arena *arena, const RunOptions *options, const RunDeps *deps, Journal *journal,
              bool resume, RunResult *result, Error *err) {
    Run run = {.arena = arena,
               .options = options,
               .deps = deps,
               .journal = journal,
               .err = err,
               .best_path = path_join(arena, options->directory, "best.cu"),
               .began = clock_seconds()};
    history_begin(&run.history, arena);
    bool over = false;
    bool good = (resume ? go_back(&run, &over) : begin(&run)) && (over || go(&run));
    fill_result(&run, result);
    if (run.last_arena) arena_defer(arena, free_arena, run.last_arena);
    if (run.best_arena && run.best_arena != run.last_arena)
        arena_defer(arena, free_arena, run.best_arena);
    return good && (over || explain(&run));
}

/* ---- the real model and judge ------------------------------------------------------------ */

static bool real_ask(void *context, Arena *arena, const ModelRequest *request, ModelReply *reply,
                     Error *err) {
    const RunOptions *options = context;
    return model_ask(options->model, arena, request, reply, err);
}

static bool real_judge(void *context, Arena *arena, const char *source, size_t bytes,
                       Verdict *verdict, Error *err) {
    const RunOptions *options = context;
    return judge_kernel(options->judge, arena, source, bytes, verdict, err);
}

static RunDeps real_deps(const RunOptions *options) {
    return (RunDeps){.context = (void *)options,
                     .ask = real_ask,
                     .judge = real_judge,
                     .model_name = model_name(options->model)};
}

bool run_task(Arena *arena, const RunOptions *options, Journal *journal, RunResult *result,
              Error *err) {
    RunDeps deps = real_deps(options);
    return run_with(arena, options, &deps, journal, false, result, err);
}

bool run_resume(Arena *arena, const RunOptions *options, Journal *journal, RunResult *result,
                Error *err) {
    RunDeps deps = real_deps(options);
    return run_with(arena, options, &deps, journal, true, result, err);
}
