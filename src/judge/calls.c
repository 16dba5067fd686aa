/* calls.c - one call of launch() after the other: what is asked of runner and oracle, in order.
 *
 * The oracle computes what is right while the runner launches. The tensors of a shape stay where
 * they are from call to call, with other data in them: a kernel that remembers a result by the
 * pointers it saw, or that only works the first time, is wrong at its second call.
 */
#include "judge/trial.h"
#include <signal.h>
#include <string.h>

#define REQUEST_SECONDS   120.0 // ours alone: copies and fills of whole tensors
#define LOAD_SECONDS      10.0  // static constructors included

/* Alive, and not just unburied: it may have died while nobody asked it anything. */
static bool ready(Peer *peer) {
    if (peer_running(peer) && child_ended(&peer->child, 0)) peer_stop(peer);
    return peer_running(peer);
}

bool judge_start_runner(Judge *judge, Error *err) {
    if (ready(&judge->runner)) return true;
    return runner_start(judge->arena, &judge->installation, &judge->device, judge->toolchain.arch,
                        judge->exchange, judge->options.cancel, &judge->runner, &judge->info, err);
}

bool judge_start_oracle(Judge *judge, Error *err) {
    if (ready(&judge->oracle)) return true;
    if (!oracle_start(judge->arena, &judge->installation, &judge->device, judge->exchange,
                      judge->options.cancel, &judge->oracle, err))
        return false;
    const Task *task = judge->task;
    WireWriter ask = {0};
    put_text(&ask, judge->double_reference);
    put_text(&ask, judge->float_reference);
    put_u32(&ask, (uint32_t)task->tensor_count);
    for (int i = 0; i < task->tensor_count; i++) {
        put_text(&ask, task->tensors[i].name);
        put_u8(&ask, task->tensors[i].is_output);
        put_u8(&ask, (uint8_t)task->tensors[i].dtype);
    }
    Error why = {0};
    PeerStatus status =
        peer_ask(&judge->oracle, ORACLE_TASK, &ask, ORACLE_OK, REQUEST_SECONDS, &why);
    wire_writer_free(&ask);
    if (status == PEER_OK) return true;
    peer_stop(&judge->oracle);
    if (status == PEER_CANCELLED) {
        *err = why;
        return false;
    }
    return error_input(err, "%s: %s", task->reference_path, why.message);
}

/* ---- the runner --------------------------------------------------------------------------- */

/* The runner broke while none of the kernel's code ran. Damage that host code does to the heap, or
 * to the frames, shows late: once the kernel has run it is suspected, and if another runner breaks
 * after it too, it is to blame. */
static Outcome runner_broke(Trial *trial, const Error *why) {
    bool again = trial->kernel_ran && trial->suspected;
    trial->suspected = trial->kernel_ran;
    if (again) return explain_late_death(trial, why->message);
    *trial->err = *why;
    trial->err->kind = ERROR_HARNESS;
    return TRY_AGAIN;
}

/* Asks and frees the request. A death or a silence while the kernel's code runs is its doing;
 * SIGKILL is the machine's (out of memory), for nothing of ours sends it. */
static Outcome ask_runner(Trial *trial, RunnerMessage type, WireWriter *ask, RunnerMessage expected,
                          double seconds) {
    Peer *runner = &trial->judge->runner;
    Error why = {0};
    PeerStatus status = peer_ask(runner, type, ask, expected, seconds, &why);
    wire_writer_free(ask);
    *ask = (WireWriter){0};
    bool kernel_runs = type == RUNNER_LOAD || type == RUNNER_LAUNCH;
    trial->kernel_ran |= kernel_runs;
    switch (status) {
    case PEER_OK:
        return GO_ON;
    case PEER_CANCELLED:
        *trial->err = why;
        return FAILED;
    case PEER_DIED:
        if (runner->signal == SIGKILL) break;
        return kernel_runs ? explain_death(trial, type == RUNNER_LOAD) : runner_broke(trial, &why);
    case PEER_TIMEOUT:
        return kernel_runs ? explain_timeout(trial, type == RUNNER_LOAD, seconds)
                           : runner_broke(trial, &why);
    case PEER_GARBLED:
        return runner_broke(trial, &why);
    case PEER_FAULT:
        break;
    }
    *trial->err = why;
    trial->err->kind = ERROR_HARNESS;
    return TRY_AGAIN;
}

static Outcome damaged_answer(Trial *trial) {
    Error why = {0};
    error_harness(&why, "the runner sent an answer that cannot be read");
    peer_stop(&trial->judge->runner);
    return runner_broke(trial, &why);
}

Outcome trial_load(Trial *trial, const char *object) {
    WireWriter ask = {0};
    put_text(&ask, object);
    Outcome outcome = ask_runner(trial, RUNNER_LOAD, &ask, RUNNER_LOADED, LOAD_SECONDS);
    if (outcome != GO_ON) return outcome;
    WireReader answer = frame_reader(&trial->judge->runner.answer);
    bool loaded = get_u8(&answer);
    char why[1000];
    get_text(&answer, why, sizeof why);
    if (answer.failed) return damaged_answer(trial);
    return loaded ? GO_ON : explain_load_failure(trial, why);
}

/* Sizes that no device of this kind could hold are the task's, not a failure of ours. */
static bool tensors_fit(Trial *trial) {
    const Judge *judge = trial->judge;
    double bytes = 0, capacity = (double)judge->info.memory_bytes;
    for (int i = 0; i < trial->task->tensor_count; i++)
        bytes += (double)trial->elements[i] * dtype_info(trial->task->tensors[i].dtype)->bytes;
    if (bytes <= capacity) return true;
    return error_input(trial->err,
                       "%s: the tensors of %s take %.1f GiB, more than the %.1f GiB of device "
                       "'%s'; give smaller sizes for check and sim",
                       trial->task->path, shape_text(trial), bytes / (1 << 30),
                       capacity / (1 << 30), judge->device.text);
}

Outcome trial_begin_shape(Trial *trial, const Dims *dims) {
    const Task *task = trial->task;
    trial->dims = dims;
    trial->call = 0;
    WireWriter ask = {0};
    put_u32(&ask, (uint32_t)task->tensor_count);
    for (int i = 0; i < task->tensor_count; i++) {
        const Tensor *tensor = &task->tensors[i];
        if (!tensor_extents(task, tensor, dims, trial->extents[i], &trial->elements[i],
                            trial->err)) {
            wire_writer_free(&ask);
            return FAILED;
        }
        put_text(&ask, tensor->name);
        put_u8(&ask, tensor->is_output);
        put_u8(&ask, (uint8_t)tensor->dtype);
        put_i64(&ask, trial->elements[i]);
    }
    if (!tensors_fit(trial)) {
        wire_writer_free(&ask);
        return FAILED;
    }
    return ask_runner(trial, RUNNER_TENSORS, &ask, RUNNER_OK, REQUEST_SECONDS);
}

static Fill fill_of(const Trial *trial, int input) {
    const Tensor *tensor = &trial->task->tensors[input];
    return trial->probe ? probe_fill(tensor) : tensor->fill;
}

static void put_fills(const Trial *trial, WireWriter *ask) {
    for (int i = 0; i < trial->task->input_count; i++) {
        Fill fill = fill_of(trial, i);
        put_u8(ask, (uint8_t)fill.kind);
        put_f64(ask, fill.low);
        put_f64(ask, fill.high);
    }
}

static Outcome prepare(Trial *trial) {
    WireWriter ask = {0};
    put_u8(&ask, trial->poison);
    Outcome outcome = ask_runner(trial, RUNNER_POISON, &ask, RUNNER_OK, REQUEST_SECONDS);
    if (outcome != GO_ON) return outcome;
    put_u64(&ask, trial->seed);
    put_u32(&ask, (uint32_t)trial->task->input_count);
    put_fills(trial, &ask);
    return ask_runner(trial, RUNNER_FILL, &ask, RUNNER_OK, REQUEST_SECONDS);
}

/* A launch may take this many lane-instructions on the simulator: far beyond what a clumsy but
 * right kernel needs, yet spent within seconds by one that never ends. */
static uint64_t budget(const Trial *trial) {
    if (trial->judge->options.budget) return trial->judge->options.budget;
    double elements = 0, flops = task_flops(trial->task, trial->dims);
    for (int i = 0; i < trial->task->tensor_count; i++)
        elements += (double)trial->elements[i];
    double lane_instructions = 2e8 + 1000 * elements + (isfinite(flops) ? 200 * flops : 0);
    return lane_instructions < 1e18 ? (uint64_t)lane_instructions : (uint64_t)1e18;
}

static bool read_launch(Trial *trial) {
    WireReader answer = frame_reader(&trial->judge->runner.answer);
    LaunchAnswer *launch = &trial->launch;
    *launch = (LaunchAnswer){.error = get_i64(&answer)};
    get_text(&answer, launch->name, sizeof launch->name);
    get_text(&answer, launch->meaning, sizeof launch->meaning);
    launch->phase = get_u8(&answer);
    launch->workspace_bytes = get_u64(&answer);
    launch->seconds = get_f64(&answer);
    uint32_t count = get_u32(&answer);
    if (answer.failed || count > 4096) return false;
    launch->report_count = count;
    launch->reports = arena_array_of(trial->arena, SimReport, count + 1);
    for (uint32_t i = 0; i < count; i++)
        report_get(&answer, &launch->reports[i]);
    launch->launches = get_u32(&answer);
    for (int i = 0; i < 3; i++)
        launch->grid[i] = get_u32(&answer);
    for (int i = 0; i < 3; i++)
        launch->block[i] = get_u32(&answer);
    launch->dynamic_shared_bytes = get_u64(&answer);
    return !answer.failed;
}

static Outcome launch(Trial *trial) {
    double seconds = trial->judge->options.call_timeout_s;
    WireWriter ask = {0};
    put_u32(&ask, (uint32_t)trial->task->dim_count);
    for (int i = 0; i < trial->task->dim_count; i++)
        put_i64(&ask, trial->dims->value[i]);
    put_u64(&ask, budget(trial));
    Outcome outcome = ask_runner(trial, RUNNER_LAUNCH, &ask, RUNNER_LAUNCHED, seconds);
    if (outcome != GO_ON) return outcome;
    return read_launch(trial) ? explain_launch(trial) : damaged_answer(trial);
}

static Outcome red_zones(Trial *trial) {
    WireWriter ask = {0};
    Outcome outcome = ask_runner(trial, RUNNER_REDZONES, &ask, RUNNER_REDZONES, REQUEST_SECONDS);
    if (outcome != GO_ON) return outcome;
    WireReader answer = frame_reader(&trial->judge->runner.answer);
    uint32_t count = get_u32(&answer);
    if (answer.failed) return damaged_answer(trial);
    if (count == 0) return GO_ON;
    uint32_t tensor = get_u32(&answer);
    int64_t offset = get_i64(&answer);
    uint64_t changed = get_u64(&answer);
    if (answer.failed || tensor > (uint32_t)trial->task->tensor_count) return damaged_answer(trial);
    return explain_red_zone(trial, tensor, offset, changed);
}

static Outcome export_tensors(Trial *trial) {
    for (int i = 0; i < trial->task->tensor_count; i++) {
        WireWriter ask = {0};
        put_u32(&ask, (uint32_t)i);
        Outcome outcome = ask_runner(trial, RUNNER_EXPORT, &ask, RUNNER_EXPORTED, REQUEST_SECONDS);
        if (outcome != GO_ON) return outcome;
        WireReader answer = frame_reader(&trial->judge->runner.answer);
        uint8_t how = get_u8(&answer);
        trial->exchange_offset[i] = get_u64(&answer);
        trial->exchange_bytes[i] = get_u64(&answer);
        uint64_t due = (uint64_t)trial->elements[i] *
                       (uint64_t)dtype_info(trial->task->tensors[i].dtype)->bytes;
        if (answer.failed || how != 0 || trial->exchange_bytes[i] != due)
            return damaged_answer(trial);
    }
    return GO_ON;
}

static Outcome run_kernel(Trial *trial) {
    Outcome outcome = prepare(trial);
    if (outcome == GO_ON) outcome = launch(trial);
    if (outcome == GO_ON) outcome = red_zones(trial);
    if (outcome == GO_ON) outcome = export_tensors(trial);
    return outcome;
}

/* ---- the oracle ----------------------------------------------------------------------------- */

/* It failed at something that is ours: worth another try with another one. */
static Outcome oracle_broke(Trial *trial, PeerStatus status, const Error *why) {
    peer_stop(&trial->judge->oracle);
    *trial->err = *why;
    if (status == PEER_CANCELLED) return FAILED;
    trial->err->kind = ERROR_HARNESS;
    return TRY_AGAIN;
}

/* It failed while the reference ran. That is the user's: what it does wrong is an error in their
 * input. SIGKILL alone is the machine's (out of memory). */
static Outcome reference_failed(Trial *trial, PeerStatus status, const Error *why) {
    Peer *oracle = &trial->judge->oracle;
    const char *reference = trial->task->reference_path;
    const char *shape = shape_text(trial);
    peer_stop(oracle);
    const char *words = text_cleaned(trial->arena, oracle->last_words, strlen(oracle->last_words));
    switch (status) {
    case PEER_FAULT:
        error_input(trial->err, "%s: at %s: %s", reference, shape, why->message);
        return FAILED;
    case PEER_TIMEOUT:
        error_input(trial->err, "%s: reference() did not end at %s: %s", reference, shape,
                    why->message);
        return FAILED;
    case PEER_DIED:
        if (oracle->signal == SIGKILL) break;
        if (oracle->signal)
            error_input(trial->err, "%s: reference() crashed at %s: %s%s%s", reference, shape,
                        strsignal(oracle->signal), *words ? "; it said: " : "", words);
        else
            error_input(trial->err, "%s: reference() ended the process at %s with exit code %d",
                        reference, shape, oracle->exit_code);
        return FAILED;
    default:
        break;
    }
    return oracle_broke(trial, status, why);
}

static PeerStatus request_truth(Trial *trial, Error *why) {
    const Task *task = trial->task;
    WireWriter ask = {0};
    put_u64(&ask, trial->seed);
    put_u32(&ask, (uint32_t)task->dim_count);
    for (int i = 0; i < task->dim_count; i++)
        put_i64(&ask, trial->dims->value[i]);
    for (int i = 0; i < task->tensor_count; i++) {
        put_u32(&ask, (uint32_t)task->tensors[i].rank);
        for (int axis = 0; axis < task->tensors[i].rank; axis++)
            put_i64(&ask, trial->extents[i][axis]);
    }
    put_fills(trial, &ask);
    PeerStatus status = peer_send(&trial->judge->oracle, ORACLE_TRUTH, &ask, why);
    wire_writer_free(&ask);
    return status;
}

static Outcome compare(Trial *trial) {
    const Task *task = trial->task;
    Peer *oracle = &trial->judge->oracle;
    WireWriter ask = {0};
    put_u8(&ask, trial->poison);
    for (int i = task->input_count; i < task->tensor_count; i++) {
        put_f64(&ask, task->tensors[i].rtol);
        put_f64(&ask, task->tensors[i].atol);
    }
    for (int i = 0; i < task->tensor_count; i++) {
        put_u64(&ask, trial->exchange_offset[i]);
        put_u64(&ask, trial->exchange_bytes[i]);
    }
    Error why = {0};
    PeerStatus status =
        peer_ask(oracle, ORACLE_COMPARE, &ask, ORACLE_COMPARED, REQUEST_SECONDS, &why);
    wire_writer_free(&ask);
    if (status != PEER_OK) return oracle_broke(trial, status, &why);

    WireReader answer = frame_reader(&oracle->answer);
    uint32_t mutated = get_u32(&answer), first_input = 0;
    int64_t first_element = 0;
    for (uint32_t i = 0; i < mutated && !answer.failed; i++) {
        uint32_t input = get_u32(&answer);
        int64_t element = get_i64(&answer);
        if (i == 0) {
            first_input = input;
            first_element = element;
        }
    }
    for (int i = task->input_count; i < task->tensor_count; i++)
        mismatch_get(&answer, &trial->mismatches[i]);
    if (answer.failed || (mutated && first_input >= (uint32_t)task->input_count)) {
        error_harness(trial->err, "the oracle sent an answer that cannot be read");
        peer_stop(oracle);
        return TRY_AGAIN;
    }
    if (mutated) return explain_mutation(trial, first_input, first_element);
    return trial->probe ? explain_precision(trial) : explain_mismatches(trial);
}

Outcome trial_call(Trial *trial) {
    Judge *judge = trial->judge;
    trial->call++;
    if (!judge_start_oracle(judge, trial->err)) return FAILED;
    Error why = {0};
    PeerStatus status = request_truth(trial, &why);
    if (status != PEER_OK) return oracle_broke(trial, status, &why);
    Outcome outcome = run_kernel(trial);
    // The answer is taken whatever the kernel did, so that the oracle can be asked again.
    status = peer_receive(&judge->oracle, ORACLE_OK, judge->options.reference_timeout_s, &why);
    if (status != PEER_OK) return reference_failed(trial, status, &why);
    return outcome == GO_ON ? compare(trial) : outcome;
}
