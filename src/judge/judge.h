/* judge.h - decides what a kernel is worth.
 *
 * The judge never runs candidate code in its own process: it sends requests to a runner and
 * looks at what comes back. Expected values live in the oracle, never beside the kernel.
 */
#pragma once
#include "base/base.h"
#include "build/build.h"
#include "device/device.h"
#include "task/task.h"

typedef enum {
    VERDICT_PASS,
    VERDICT_COMPILE_ERROR,     // nvcc or ptxas refused it; evidence: distilled diagnostics
    VERDICT_FORBIDDEN,         // imports something outside the contract; evidence: the symbols
    VERDICT_LAUNCH_ERROR,      // launch() or the stream gave an error, or the process died
    VERDICT_HANG,              // no end in time, or the simulator's budget was spent
    VERDICT_MEMORY_ERROR,      // out of bounds, misaligned, uninitialised, red zone touched
    VERDICT_RACE,
    VERDICT_WRONG,             // an output is off; evidence: the shape of the mismatch
    VERDICT_NONDETERMINISTIC,  // the same input gave different bits where the task forbids it
    VERDICT_CHEATING,
    VERDICT_HARNESS_FAULT,     // our fault, never the kernel's
    VERDICT_KIND_COUNT
} VerdictKind;
const char *verdict_name(VerdictKind kind); // "compile_error"

typedef struct {
    const char *file;          // "kernel.cu"; NULL when no line is to blame
    int line, column;
} Place;

typedef struct {
    VerdictKind kind;
    const char *message;       // one sentence for a person, names the line where it can
    const char *repair;        // for whoever repairs it: <= 2,000 characters
    Place place;
    Json *evidence;            // docs/verdicts.md; owned by the arena
    BuildResult build;
    double time_ms;            // median of timed calls on a GPU; NAN if not timed
    double time_ci_ms[2];      // 95 % bootstrap interval of time_ms
    double cost_us;            // the cost model's estimate, NAN if none; never a measured time
    double seconds;            // what the verdict took, building included
} Verdict;

typedef struct {
    int seeds;                 // per shape; 0: 3
    double call_timeout_s;     // 0: 20 on a GPU, 60 simulated
    double reference_timeout_s; // of reference() on one shape; 0: 300
    uint64_t budget;           // lane-instructions a launch may take on the simulator; 0: as many
                               // as a clumsy kernel of the shape's size could need
    uint64_t first_seed;       // 0: from the system's random numbers, never seen before
    bool quick;                // check shapes alone, where the task has any
    Cancel *cancel;
    /* Called with one line of progress ("checking rows=37 cols=1009"); may be NULL. */
    void (*progress)(void *context, const char *line);
    void *progress_context;
} JudgeOptions;

/* One per task: keeps the oracle alive between verdicts, and a runner ready. */
typedef struct Judge Judge;
bool judge_open(Arena *arena, const Task *task, const Toolchain *toolchain,
                const Installation *installation, const DeviceSpec *device,
                const JudgeOptions *options, Judge **judge, Error *err);
void judge_close(Judge *judge); // NULL is fine
JudgeOptions judge_options(const Judge *judge); // with the defaults filled in

/* Builds and judges `source`. Every check shape, then the sim dims (or the timed shape on a GPU),
 * each with several seeds and a second call with other data; stops at the first failure.
 * Returns false only on a harness fault or when cancelled, with `err` set (kind says which); a
 * bad kernel is a verdict, not an error. After a harness fault `verdict` holds it too, as
 * VERDICT_HARNESS_FAULT; its message is NULL after any other error. */
bool judge_kernel(Judge *judge, Arena *arena, const char *source, size_t source_bytes,
                  Verdict *verdict, Error *err);

Json *verdict_json(const Verdict *verdict); // new reference; docs/schema/verdict.json
