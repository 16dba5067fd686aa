/* judge.c - leads a kernel from its source to a verdict.
 *
 * Build it; load it into a runner that has loaded nothing else; then, shape by shape, call it
 * several times with data it has never seen. The first failure is the verdict. Failures of our
 * own are tried once more with a fresh runner before they are reported as such.
 */
#include "judge/trial.h"
#include <string.h>

enum { DEFAULT_SEEDS = 3, MAX_SEEDS = 64, SEED_BITS = 48, SEEDS_PER_SHAPE = 1024, ATTEMPTS = 2 };
#define CALL_SECONDS           20.0
#define SIMULATED_CALL_SECONDS 60.0
#define REFERENCE_SECONDS      300.0 // on all cores

/* Every byte of outputs and workspace before a call. No two calls in a row share one, so that
 * what a kernel leaves untouched cannot be right by accident: NaNs, a large and small numbers. */
static const uint8_t poisons[] = {0xFF, 0x5A, 0xC3, 0x7E};

/* ---- opening ------------------------------------------------------------------------------- */

static bool open_parts(Judge *judge, Error *err) {
    BuildOptions build = {.toolchain = &judge->toolchain, .cancel = judge->options.cancel};
    judge->exchange = exchange_create(judge->arena, err);
    return judge->exchange &&
           build_reference(judge->arena, judge->task, &build, &judge->double_reference,
                           &judge->float_reference, err) &&
           judge_start_oracle(judge, err) && judge_start_runner(judge, err);
}

static JudgeOptions with_defaults(const JudgeOptions *given, const DeviceSpec *device) {
    JudgeOptions options = given ? *given : (JudgeOptions){0};
    if (options.seeds <= 0) options.seeds = DEFAULT_SEEDS;
    if (options.seeds > MAX_SEEDS) options.seeds = MAX_SEEDS;
    if (!(options.call_timeout_s > 0))
        options.call_timeout_s = device->simulated ? SIMULATED_CALL_SECONDS : CALL_SECONDS;
    if (!(options.reference_timeout_s > 0)) options.reference_timeout_s = REFERENCE_SECONDS;
    return options;
}

JudgeOptions judge_options(const Judge *judge) {
    return judge->options;
}

bool judge_open(Arena *arena, const Task *task, const Toolchain *toolchain,
                const Installation *installation, const DeviceSpec *device,
                const JudgeOptions *options, Judge **out, Error *err) {
    Judge *judge = arena_new_of(arena, Judge);
    *judge = (Judge){
        .arena = arena_new(), // a runner is started for every kernel: its strings are ours
        .task = task,
        .toolchain = *toolchain,
        .installation = *installation,
        .device = *device,
        .options = with_defaults(options, device),
    };
    *out = judge;
    if (open_parts(judge, err)) return true;
    judge_close(judge);
    *out = NULL;
    return false;
}

void judge_close(Judge *judge) {
    if (!judge || !judge->arena) return;
    peer_stop(&judge->runner);
    peer_stop(&judge->oracle);
    arena_free(judge->arena);
    judge->arena = NULL;
}

/* ---- one kernel -------------------------------------------------------------------------------
 */

static bool choose_seed(const JudgeOptions *options, uint64_t *seed, Error *err) {
    if (options->first_seed) {
        *seed = options->first_seed;
        return true;
    }
    if (!random_bytes(seed, sizeof *seed, err)) return false;
    *seed &= (1ull << SEED_BITS) - 1; // small enough for a number in JSON
    return true;
}

static void tell(const Trial *trial, const char *what) {
    const JudgeOptions *options = &trial->judge->options;
    if (options->progress) options->progress(options->progress_context, what);
}

/* Never none: a task without check shapes is judged at its full size, quick or not. */
static int shape_count(const Trial *trial) {
    int checks = trial->task->check_count;
    return checks > 0 && trial->judge->options.quick ? checks : checks + 1;
}

static const Dims *shape_at(const Trial *trial, int index) {
    const Task *task = trial->task;
    if (index < task->check_count) return &task->checks[index];
    return trial->judge->device.simulated ? &task->sim : &task->timed;
}

/* The shape at which precision is probed: the largest, where most is accumulated. */
static int largest_shape(const Trial *trial) {
    int largest = 0;
    for (int i = 1; i < shape_count(trial); i++)
        if (task_bytes(trial->task, shape_at(trial, i)) >=
            task_bytes(trial->task, shape_at(trial, largest)))
            largest = i;
    return largest;
}

static void note_passed(Trial *trial, int calls) {
    Json *outputs = json_array();
    for (int i = trial->task->input_count; i < trial->task->tensor_count; i++) {
        const Mismatch *mismatch = &trial->mismatches[i];
        Json *output = json_object();
        evidence_set(output, "tensor", json_string(trial->task->tensors[i].name));
        evidence_set(output, "error", json_finite(mismatch->error));
        evidence_set(output, "reference_error", json_finite(mismatch->baseline_error));
        evidence_set(output, "max_abs", json_finite(mismatch->max_abs));
        json_array_append_new(outputs, output);
    }
    Json *shape = json_object();
    evidence_set(shape, "dims", dims_json(trial->task, trial->dims));
    evidence_set(shape, "calls", json_integer(calls));
    evidence_set(shape, "probe", json_boolean(trial->probe));
    evidence_set(shape, "outputs", outputs);
    json_array_append_new(trial->shapes, shape);
}

static Outcome judge_shape(Trial *trial, int index, bool with_probe) {
    int seeds = trial->judge->options.seeds;
    int calls = seeds < 2 ? 2 : seeds; // a second call with other data, always
    trial->probe = false;
    Outcome outcome = trial_begin_shape(trial, shape_at(trial, index));
    for (int i = 0; outcome == GO_ON && i < calls + with_probe; i++) {
        trial->probe = i == calls;
        trial->seed = trial->first_seed + (uint64_t)index * SEEDS_PER_SHAPE + (uint64_t)i;
        trial->poison = poisons[(size_t)(index + i) % COUNT_OF(poisons)];
        if (i == 0) tell(trial, arena_printf(trial->arena, "checking %s", shape_text(trial)));
        outcome = trial_call(trial);
        if (outcome == GO_ON && i == calls - 1) note_passed(trial, calls);
        if (outcome == GO_ON && trial->probe) note_passed(trial, 1);
    }
    return outcome;
}

static Outcome judge_shapes(Trial *trial) {
    int probed = trial->task->exact_precision ? largest_shape(trial) : -1;
    Outcome outcome = GO_ON;
    for (int i = 0; outcome == GO_ON && i < shape_count(trial); i++)
        outcome = judge_shape(trial, i, i == probed);
    return outcome;
}

/* As if nothing had been found yet, but for the build. */
static void clear(Verdict *verdict) {
    *verdict = (Verdict){.kind = VERDICT_HARNESS_FAULT,
                         .build = verdict->build,
                         .time_ms = NAN,
                         .time_ci_ms = {NAN, NAN},
                         .cost_us = NAN};
}

static Outcome attempt(Trial *trial) {
    clear(trial->verdict);
    trial->dims = NULL;
    trial->kernel_ran = false;
    trial->shapes = json_owned(trial->arena, json_array());
    if (!judge_start_runner(trial->judge, trial->err))
        return trial->err->kind == ERROR_HARNESS ? TRY_AGAIN : FAILED;
    Outcome outcome = trial_load(trial, trial->verdict->build.object);
    if (outcome == GO_ON) outcome = judge_shapes(trial);
    peer_stop(&trial->judge->runner); // it has loaded this kernel: no other may share it
    return outcome;
}

static Outcome judge_built(Trial *trial) {
    Outcome outcome = TRY_AGAIN;
    for (int i = 0; outcome == TRY_AGAIN && i < ATTEMPTS; i++) {
        if (i > 0) log_debug("judge: trying again: %s", trial->err->message);
        outcome = attempt(trial);
    }
    if (outcome == GO_ON) {
        int shapes = shape_count(trial);
        trial->dims = NULL;
        verdict_begin(trial, VERDICT_PASS, 0, "passed", "%s",
                      shapes == 1 ? "right on the task's only shape"
                                  : arena_printf(trial->arena, "right on all %d shapes", shapes));
        evidence_set(trial->verdict->evidence, "shapes", json_incref(trial->shapes));
        repair_write(trial, NULL);
        outcome = JUDGED;
    }
    return outcome;
}

static void describe_fault(Trial *trial) {
    trial->dims = NULL;
    verdict_begin(trial, VERDICT_HARNESS_FAULT, 0, "fault", "%s", trial->err->message);
    repair_write(trial, "this is not the kernel's fault; it was not judged");
}

bool judge_kernel(Judge *judge, Arena *arena, const char *source, size_t source_bytes,
                  Verdict *verdict, Error *err) {
    double begin = clock_seconds();
    verdict->build = (BuildResult){0};
    clear(verdict);
    Trial *trial = arena_new_of(arena, Trial);
    trial->judge = judge;
    trial->task = judge->task;
    trial->arena = arena;
    trial->source = source;
    trial->source_bytes = source_bytes;
    trial->verdict = verdict;
    trial->err = err;
    if (!choose_seed(&judge->options, &trial->first_seed, err)) return false;

    BuildOptions options = {.toolchain = &judge->toolchain, .cancel = judge->options.cancel};
    tell(trial, "building");
    Outcome outcome = FAILED;
    if (build_kernel(arena, judge->task, source, source_bytes, &options, &verdict->build, err)) {
        outcome = explain_build(trial);
        if (outcome == GO_ON) outcome = judge_built(trial);
    }
    // What the kernel came to does not count where the reference or the oracle failed after it.
    if (outcome != JUDGED && verdict->kind != VERDICT_HARNESS_FAULT) clear(verdict);
    if (outcome != JUDGED && err->kind != ERROR_HARNESS) clear(verdict);
    if (outcome != JUDGED && err->kind == ERROR_HARNESS && !verdict->message) describe_fault(trial);
    verdict->seconds = clock_seconds() - begin;
    return outcome == JUDGED;
}
