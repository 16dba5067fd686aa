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
    int edits_per_episode; // 5
    int fresh_drafts;      // 3
    int rounds;            // optimisation rounds; 10
    int plateau_rounds;    // stop after so many rounds in a row that improved nothing; 4
} LoopLimits;
LoopLimits loop_limits_default(void);

typedef enum {
    EVENT_STARTED,      // the run begins, or a kernel given by --start is at hand
    EVENT_REPLIED,      // the model answered
    EVENT_EDIT_APPLIED, // its reply became a new source
    EVENT_EDIT_REFUSED, // its reply could not be applied; reason
    EVENT_JUDGED,       // a verdict
    EVENT_MODEL_FAILED, // no reply to be had; reason
    EVENT_INTERRUPTED,
} EventKind;

typedef struct {
    EventKind kind;
    const char *source;  // EDIT_APPLIED, STARTED: hash of the source
    const char *reason;  // EDIT_REFUSED, MODEL_FAILED
    VerdictKind verdict; // JUDGED
    double objective;    // JUDGED and pass: lower is better; NAN if none
} Event;

typedef enum { ACTION_ASK, ACTION_APPLY, ACTION_JUDGE, ACTION_KEEP_BEST, ACTION_STOP } ActionKind;
typedef enum {
    STOP_PASSED,      // a kernel passed and no optimisation was asked for or possible
    STOP_PLATEAU,     // limits.plateau_rounds rounds brought nothing
    STOP_ROUNDS,      // limits.rounds are used up
    STOP_NO_KERNEL,   // every draft and its edits failed
    STOP_MODEL,       // no reply to be had; resumable
    STOP_INTERRUPTED, // resumable
    STOP_FAULT,       // the judge itself failed twice on one source; resumable
    STOP_REASON_COUNT
} StopReason;
const char *stop_name(StopReason reason); // "no_kernel"
typedef struct {
    ActionKind kind;
    Stage stage;     // ASK
    StopReason stop; // STOP
} Action;

/* How the loop moves.
 *
 * A draft that fails opens a debug episode of limits.edits_per_episode edits, each made to the
 * source judged last; the last edit is judged too. Then a fresh draft begins, limits.fresh_drafts
 * in all (a kernel given by --start is none of them), then the run stops without a kernel.
 * After a pass, optimisation rounds begin, each from the best kernel; an edit that fails may be
 * debugged within one episode, and is otherwise dropped. The best kernel is replaced only by a
 * strictly better objective. Where the pass has no objective (NAN), no kernel can be shown to be
 * better than another, so the run stops at the first pass.
 *
 * A refused reply costs no build and is asked again; STEP_REFUSALS_PER_EDIT in a row count as one
 * edit (draft: as the draft; optimise: as the round). A harness fault never counts against the
 * kernel: it is judged once more, then the run stops. */
#define STEP_REFUSALS_PER_EDIT 3

typedef struct {
    Stage stage;
    int draft;        // 1-based: which fresh draft; 0: the kernel given by --start
    int edit;         // edits tried in this debug episode
    int refused;      // replies refused in a row; costs no build
    int faults;       // harness faults in a row on this source
    int round;        // optimisation round, 0 before
    int stale_rounds; // rounds in a row that improved nothing
    char source[65];  // hash of the current source, "" for none
    char base[65];    // what the present edit is made to
    char best[65];    // hash of the best passing source, "" for none
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

/* What the run tells the world, as it happens and once it is durable; report/ renders it. `body`
 * is the journal event's body (docs/journal.md). */
typedef void (*RunListener)(void *context, const char *kind, const Json *body);

typedef struct {
    const Task *task;
    Judge *judge;
    Model *model;
    LoopLimits limits;
    JudgeOptions judging;      // as they hold (judge_options), and
    const char *compiler;      //   the toolchain's identity: for the record
    const char *directory;     // ./cutegen-runs/<task>-<utc>-<hex>
    const char *device, *arch; // as the user gave them; for the record and the prompt
    const char *start_source;  // --start; or NULL
    const char *hint;          // --hint; or NULL
    RunListener listener;
    void *listener_context;
    Cancel *cancel;
} RunOptions;

typedef struct {
    StopReason stop;
    const char *reason; // MODEL, FAULT: why, for the user; else NULL
    bool passed;
    const char *best_path;    // best.cu; NULL if none
    Verdict verdict;          // of the best kernel, or of the last one; from a resumed run's
                              //   record without its build
    const Json *verdict_json; // the same as recorded (docs/schema/verdict.json); NULL if none
    int replies, builds, edits;
    double seconds;
} RunResult;

/* Both return false, with `err` set, when the set-up or the harness is at fault (STOP_FAULT too,
 * `result` is then filled as far as it goes); a run that ends without a kernel returns true. */
bool run_task(Arena *arena, const RunOptions *options, Journal *journal, RunResult *result,
              Error *err);
/* Goes on where a journal ends: no reply that was recorded is asked for again, a source whose
 * verdict is missing is judged again. The task must be the one the run began with. */
bool run_resume(Arena *arena, const RunOptions *options, Journal *journal, RunResult *result,
                Error *err);
