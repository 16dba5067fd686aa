/* trial.h - inside the judge: one kernel's way through runner and oracle.
 *
 * judge.c     opens, closes, leads a kernel through the shapes
 * calls.c     asks runner and oracle, one call of launch() after the other
 * explain.c   what the runner saw -> a verdict's sentence and evidence
 * differ.c    what the oracle saw -> the same: mismatches, changed inputs, precision
 * repair.c    the text for whoever repairs the kernel, with the lines around the place
 * verdict.c   names, evidence, JSON
 */
#pragma once
#include "judge/judge.h"
#include <math.h>

struct Judge {
    Arena *arena;
    const Task *task;
    Toolchain toolchain;
    Installation installation;
    DeviceSpec device;
    JudgeOptions options;
    char *exchange; // path of the file through which tensors reach the oracle
    const char *double_reference, *float_reference;
    Peer oracle, runner; // the runner is fresh: no kernel was loaded into it
    RunnerInfo info;
};

/* How a step of a trial ended. */
typedef enum {
    GO_ON,
    JUDGED,    // the verdict is filled in
    TRY_AGAIN, // our machinery failed; trial->err says how. Worth one more try
    FAILED,    // trial->err says why, and it would fail again
} Outcome;

/* What a launch came to, as the runner told it. */
typedef struct {
    int64_t error;               // cudaError_t
    char name[64], meaning[200]; // of the error
    LaunchPhase phase;
    uint64_t workspace_bytes;
    double seconds;
    uint32_t report_count;
    SimReport *reports;
    uint32_t launches;
    uint32_t grid[3], block[3]; // of the last one
    uint64_t dynamic_shared_bytes;
} LaunchAnswer;

typedef struct {
    Judge *judge;
    const Task *task;
    Arena *arena;
    const char *source;
    size_t source_bytes;
    Verdict *verdict;
    Error *err;
    uint64_t first_seed;
    Json *shapes;    // what has passed so far; array
    bool kernel_ran; // in this attempt
    bool suspected;  // the runner of the attempt before broke after the kernel had run

    // The call under way.
    const Dims *dims; // NULL: not launched yet
    int64_t extents[TASK_MAX_TENSORS][WIRE_MAX_RANK], elements[TASK_MAX_TENSORS];
    uint64_t seed;
    int call; // 1-based, within one set of allocations
    uint8_t poison;
    bool probe; // zero-mean inputs, for precision
    uint64_t exchange_offset[TASK_MAX_TENSORS], exchange_bytes[TASK_MAX_TENSORS];
    LaunchAnswer launch;
    Mismatch mismatches[TASK_MAX_TENSORS]; // per output
} Trial;

/* ---- calls.c -------------------------------------------------------------------------------- */

Outcome trial_load(Trial *trial, const char *object);
/* Allocates the tensors of `dims`; calls then reuse them. */
Outcome trial_begin_shape(Trial *trial, const Dims *dims);
/* Poison, fill, launch, red zones, comparison. */
Outcome trial_call(Trial *trial);
bool judge_start_oracle(Judge *judge, Error *err);
bool judge_start_runner(Judge *judge, Error *err);

/* ---- explain.c ------------------------------------------------------------------------------ */

Outcome explain_build(Trial *trial);
Outcome explain_load_failure(Trial *trial, const char *why);
/* The runner ended (or never answered) while it loaded or launched. */
Outcome explain_death(Trial *trial, bool loading);
/* The runner broke after the kernel's code had returned, and not for the first time. */
Outcome explain_late_death(Trial *trial, const char *how);
Outcome explain_timeout(Trial *trial, bool loading, double seconds);
Outcome explain_launch(Trial *trial); // GO_ON when there is nothing to explain
Outcome explain_red_zone(Trial *trial, uint32_t tensor, int64_t offset, uint64_t changed);

/* ---- differ.c -------------------------------------------------------------------------------- */

Outcome explain_mutation(Trial *trial, uint32_t input, int64_t element);
Outcome explain_mismatches(Trial *trial);
/* The fills of the precision probe; false when the task's own are zero-mean enough or exact. */
Fill probe_fill(const Tensor *tensor);
Outcome explain_precision(Trial *trial);

/* ---- repair.c -------------------------------------------------------------------------------- */

enum { REPAIR_CHARACTERS = 2000 };
/* verdict->repair from its message, `details` (lines, may be NULL) and the lines around its place.
 */
void repair_write(Trial *trial, const char *details);
/* The same from a text that says it all. */
void repair_write_text(Trial *trial, const char *text);
/* The only line that holds `text` outside of a line comment; 0 if there is none or several. */
int source_line_of(const Trial *trial, const char *text);

/* ---- verdict.c --------------------------------------------------------------------------------
 */

/* Sets kind, message and place ("kernel.cu" when line > 0) and starts the evidence: `evidence`
 * names its kind, the shape, seed and call are added. */
void verdict_begin(Trial *trial, VerdictKind kind, int line, const char *evidence, const char *fmt,
                   ...) PRINTF_LIKE(5, 6);
/* Adds text that may hold any bytes. */
void evidence_text(Json *object, const char *key, const char *text);
void evidence_set(Json *object, const char *key, Json *value);    // steals
Json *json_finite(double value);                                  // null for NaN and infinities
char *text_cleaned(Arena *arena, const char *text, size_t bytes); // valid UTF-8, no controls
char *shape_text(Trial *trial);                                   // "rows=37, cols=1009"
