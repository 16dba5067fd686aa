/* run.h - private to agent/: a run whose model and judge can be exchanged, and its history. */
#pragma once
#include "agent/agent.h"

/* Whom a run asks. Tests put fakes here; everything else of a run is real. */
typedef struct {
    void *context;
    bool (*ask)(void *context, Arena *arena, const ModelRequest *request, ModelReply *reply,
                Error *err);
    bool (*judge)(void *context, Arena *arena, const char *source, size_t bytes, Verdict *verdict,
                  Error *err);
    const char *model_name;
} RunDeps;

/* run_task and run_resume with `deps`; options->model and options->judge are not looked at. */
bool run_with(Arena *arena, const RunOptions *options, const RunDeps *deps, Journal *journal,
              bool resume, RunResult *result, Error *err);

/* One judged source, for the tables that prompts carry. */
typedef struct Attempt Attempt;
struct Attempt {
    Attempt *next;
    Stage stage;
    int draft, edit, round; // as they stood when it was judged
    const char *idea;       // or NULL
    const char *source;     // hash
    const char *verdict, *message;
    double objective;
};

/* What has happened so far: the loop's state and all that prompts are made of. It is changed by
 * history_note alone, from events that are journaled already. So a run that is resumed stands
 * exactly where the killed one stood, because both got there by the same events. */
typedef struct {
    Arena *arena;
    LoopLimits limits;
    LoopState state;
    LoopState before; // the last step, and
    Event last;       // what it was taken with: see revive()
    Action pending[STEP_MAX_ACTIONS];
    int pending_count, pending_at;

    int requests, stage_requests[STAGE_COUNT];
    const char *system, *prompt; // hashes of a prompt without its reply; NULL: none is out
    const char *reply;           // as far as it came
    size_t reply_bytes;
    bool reply_truncated;
    bool reply_partial; // its continuation is to be asked for
    int pieces;         // of that reply

    const char *refusal; // of the last reply; NULL when it was applied
    const char *idea;    // of the source that is judged next
    bool judging;        // judge.started without a verdict
    Attempt *attempts, **last_attempt;
    const char *verdict, *message, *repair; // of the source judged last
    const Json *detail;
    const Json *best_detail; // of the best kernel
    const char *objective_kind;
    const char *kept; // hash of the source in best.kept
    const char *start, *hint, *task_identity;

    bool begun, stopped; // run.started, run.stopped seen
    bool passed;
    int replies, builds, edits;
    double seconds; // of earlier sittings, by their run.stopped
} History;

void history_begin(History *history, Arena *arena);
/* `live`: the event has just been journaled by us; otherwise it is read back, and what ended an
 * earlier sitting (a failed model, an interruption, a fault) is passed over. Blobs are read from
 * `journal`. */
bool history_note(History *history, Journal *journal, const char *kind, const Json *body, bool live,
                  Error *err);
/* Takes a step with an event that is not in the journal (an interruption). */
void history_feed(History *history, const Event *event);
/* Would the run go on under `limits`? A finished one does if they leave room that was not there. */
bool history_can_go_on(const History *history, const LoopLimits *limits);
Json *limits_json(const LoopLimits *limits); // new reference

/* The table "Tried so far" for the stage that is asked next. */
char *history_table(const History *history, Arena *arena, Stage stage);
const Attempt *history_attempt(const History *history, const char *source_hash);
char *objective_text(Arena *arena, double objective, const char *kind);
