/* agent.h - the loop: a pure step function, and the driver that carries out its actions.
 *
 * step(state, event) -> (state, actions) touches neither files, clock nor network; the driver
 * journals each event before it is acted upon, so that a run can be killed anywhere and resumed.
 */
#pragma once
#include "base/base.h"
#include "journal/journal.h"
#include "judge/judge.h"
#include "model/model.h"
#include "task/task.h"

typedef struct {
    int edits_per_episode;     // 5
    int fresh_drafts;          // 3
    int rounds;                // optimisation rounds; 10
} LoopLimits;

typedef enum {
    EVENT_STARTED,             // the run begins, or a kernel given by --start is at hand
    EVENT_REPLIED,             // the model answered
    EVENT_EDIT_APPLIED,        // its reply became a new source
    EVENT_EDIT_REFUSED,        // its reply could not be applied; reason
    EVENT_JUDGED,              // a verdict
    EVENT_MODEL_FAILED,        // no reply to be had; reason
    EVENT_INTERRUPTED,
} EventKind;

typedef struct {
    EventKind kind;
    const char *source;        // EDIT_APPLIED, STARTED: hash of the source
    const char *reason;        // EDIT_REFUSED, MODEL_FAILED
    VerdictKind verdict;       // JUDGED
    double objective;          // JUDGED and pass: lower is better; NAN if none
} Event;

typedef enum { ACTION_ASK, ACTION_APPLY, ACTION_JUDGE, ACTION_KEEP_BEST, ACTION_STOP } ActionKind;
typedef enum {
    STOP_PASSED, STOP_PLATEAU, STOP_ROUNDS, STOP_NO_KERNEL, STOP_MODEL, STOP_INTERRUPTED
} StopReason;
typedef struct {
    ActionKind kind;
    Stage stage;               // ASK
    StopReason stop;           // STOP
} Action;

typedef struct {
    Stage stage;
    int draft;                 // 1-based: which fresh draft
    int edit;                  // edits tried in this debug episode
    int refused;               // replies refused in a row; costs no build
    int round;                 // optimisation round, 0 before
    char source[65];           // hash of the current source, "" for none
    char base[65];             // what the present edit is made to
    char best[65];             // hash of the best passing source, "" for none
    double best_objective;
    bool done;
    StopReason stop;
} LoopState;

#define STEP_MAX_ACTIONS 4
typedef struct {
    LoopState state;
    int action_count;
    Action actions[STEP_MAX_ACTIONS];
} Step;

LoopState loop_begin(void);
Step step(const LoopLimits *limits, LoopState state, const Event *event);

/* ---- edits ------------------------------------------------------------------------------ */

/* Applies a model's reply to `base` (NULL for a draft). On refusal returns false and `refusal`
 * says why, addressed to the model. */
bool edit_apply(Arena *arena, const char *base, const char *reply, size_t reply_bytes,
                bool reply_truncated, char **source, char **refusal);

/* ---- a whole run ------------------------------------------------------------------------- */

/* What the run tells the world, as it happens; report/ renders it. `body` is the journal event's
 * body. */
typedef void (*RunListener)(void *context, const char *kind, const Json *body);

typedef struct {
    const Task *task;
    Judge *judge;
    Model *model;
    LoopLimits limits;
    const char *directory;     // ./cutegen-runs/<task>-<utc>-<hex>
    const char *root;          // where prompts/ lie
    const char *start_source;  // --start; or NULL
    const char *hint;          // --hint; or NULL
    RunListener listener;
    void *listener_context;
    Cancel *cancel;
} RunOptions;

typedef struct {
    StopReason stop;
    bool passed;
    const char *best_path;     // best.cu; NULL if none
    Verdict verdict;           // of the best kernel, or of the last one
    int replies, builds, edits;
    double seconds;
} RunResult;

bool run_task(Arena *arena, const RunOptions *options, Journal *journal, RunResult *result,
              Error *err);
/* Goes on where a journal ends. */
bool run_resume(Arena *arena, const RunOptions *options, Journal *journal, RunResult *result,
                Error *err);
