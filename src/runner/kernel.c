/* kernel.c - loads the one kernel of this process, launches it, and tells what came of it.
 *
 * What goes wrong here is the kernel's doing unless it becomes a fault: errors of launch(), errors
 * that only show when the stream is waited for, and errors that launch() swallowed.
 */
#include "runner/runner.h"
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { MAX_DIMS = 64, MAX_REPORTS = 64, MAX_COUNTERS = 1024 };

static double now_seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

bool kernel_load(Runner *runner, WireReader *ask, WireWriter *answer, Fault *why) {
    char path[4096];
    get_text(ask, path, sizeof path);
    if (ask->failed) return fault(why, "a damaged request to load");
    if (runner->object) return fault(why, "this runner has a kernel already");
    launches_begin(&runner->cudart);
    if (!lock_down(why)) return false;
    runner->object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!runner->object) {
        put_u8(answer, 0);
        put_text(answer, dlerror());
        return true;
    }
    void *entry = dlsym(runner->object, "cutegen_entry_v1");
    void *workspace_bytes = dlsym(runner->object, "cutegen_workspace_bytes_v1");
    memcpy(&runner->entry, &entry, sizeof entry);
    memcpy(&runner->workspace_bytes, &workspace_bytes, sizeof workspace_bytes);
    put_u8(answer, entry != NULL);
    put_text(answer, entry ? "" : "the object has no cutegen_entry_v1");
    return true;
}

/* The workspace lives until its size or the tensors change, as a caller's would. */
static bool provide_workspace(Runner *runner, uint64_t bytes, bool *out_of_memory, Fault *why) {
    *out_of_memory = false;
    if (runner->workspace.base && runner->workspace.bytes != bytes &&
        !guarded_free(runner, &runner->workspace, why))
        return false;
    if (bytes > 1ull << 50) { // cudaMalloc would say so too, but our sums must not overflow
        *out_of_memory = true;
        return false;
    }
    if (bytes && !runner->workspace.base &&
        !guarded_allocate(runner, "workspace", bytes, &runner->workspace, out_of_memory, why))
        return false;
    return guarded_poison(runner, &runner->workspace, why);
}

/* ---- host code that touches device memory ---------------------------------------------------- */

/* A handler gets no argument of ours; set before the handler is. */
static const Runner *interrupted;

static const Guarded *tensor_at(const Runner *runner, uintptr_t address) {
    for (uint32_t i = 0; i <= runner->count; i++) {
        const Guarded *memory =
            i == runner->count ? &runner->workspace : &runner->tensors[i].memory;
        if (address - (uintptr_t)memory->base < memory->total) return memory;
    }
    return NULL;
}

/* Says what was touched, if that was hidden; the access is then repeated and kills us. The judge
 * reads this sentence from our stderr. */
static void explain_crash(int number, siginfo_t *info, void *context) {
    (void)context;
    const Guarded *memory = tensor_at(interrupted, (uintptr_t)info->si_addr);
    if (memory) {
        const char *const words[] = {"\nhost code touches the device memory of ", memory->name,
                                     "\n"};
        for (size_t i = 0; i < sizeof words / sizeof *words; i++)
            if (write(STDERR_FILENO, words[i], strlen(words[i])) < 0) break;
    }
    signal(number, SIG_DFL);
}

static void hide_tensors(const Runner *runner, bool hidden) {
    if (!runner->cudart.simulated) return; // a GPU's memory is out of reach anyway
    struct sigaction action = {.sa_sigaction = explain_crash, .sa_flags = SA_SIGINFO};
    interrupted = runner;
    if (!hidden) action = (struct sigaction){.sa_handler = SIG_DFL};
    sigaction(SIGSEGV, &action, NULL);
    runner->cudart.sim_hide_memory(hidden);
}

/* ---- launching --------------------------------------------------------------------------------- */

static CudaError launch_and_wait(Runner *runner, const int64_t *dims, LaunchPhase *phase,
                                 double *seconds) {
    const Cudart *cudart = &runner->cudart;
    void *tensors[MAX_TENSORS];
    for (uint32_t i = 0; i < runner->count; i++)
        tensors[i] = runner->tensors[i].memory.data;

    double begin = now_seconds();
    *phase = LAUNCH_RETURNED;
    hide_tensors(runner, true);
    CudaError error = runner->entry(tensors, dims, runner->workspace.data, runner->workspace.bytes,
                                    runner->stream);
    hide_tensors(runner, false);
    if (error == CUDA_SUCCESS) {
        *phase = LAUNCH_PENDING;
        error = cudart->GetLastError();
    }
    if (error == CUDA_SUCCESS) {
        *phase = LAUNCH_SYNCHRONIZED;
        error = cudart->StreamSynchronize(runner->stream);
    }
    if (error == CUDA_SUCCESS) // work put on another stream must not outlive the call
        error = cudart->DeviceSynchronize();
    *seconds = now_seconds() - begin;
    return error;
}

bool kernel_launch(Runner *runner, WireReader *ask, WireWriter *answer, Fault *why) {
    static SimReport reports[MAX_REPORTS]; // too large for the stack
    const Cudart *cudart = &runner->cudart;
    int64_t dims[MAX_DIMS] = {0};
    uint32_t dim_count = get_u32(ask);
    if (dim_count > MAX_DIMS) return fault(why, "%u dims are more than %d", dim_count, MAX_DIMS);
    for (uint32_t i = 0; i < dim_count; i++)
        dims[i] = get_i64(ask);
    uint64_t budget = get_u64(ask);
    if (ask->failed || !runner->entry)
        return fault(why, ask->failed ? "a damaged request to launch" : "no kernel is loaded");

    if (cudart->simulated) {
        cudart->sim_configure(
            &(SimOptions){.check_bounds = 1, .check_initialized = 1, .budget = budget});
        cudart->sim_take_reports(reports, MAX_REPORTS); // nothing old
    }
    launches_begin(cudart);
    cudart->GetLastError();
    uint64_t workspace_bytes = runner->workspace_bytes ? runner->workspace_bytes(dims) : 0;
    LaunchPhase phase = LAUNCH_WORKSPACE;
    CudaError error = CUDA_ERROR_MEMORY_ALLOCATION;
    double seconds = 0;
    bool out_of_memory = false;
    if (provide_workspace(runner, workspace_bytes, &out_of_memory, why))
        error = launch_and_wait(runner, dims, &phase, &seconds);
    else if (!out_of_memory)
        return false;

    put_i64(answer, error);
    put_text(answer, cudart->GetErrorName(error));
    put_text(answer, cudart->GetErrorString(error));
    put_u8(answer, (uint8_t)phase);
    put_u64(answer, workspace_bytes);
    put_f64(answer, seconds);
    size_t count = cudart->simulated ? cudart->sim_take_reports(reports, MAX_REPORTS) : 0;
    if (count > MAX_REPORTS) count = MAX_REPORTS;
    put_u32(answer, (uint32_t)count);
    for (size_t i = 0; i < count; i++)
        report_put(answer, &reports[i]);
    Launches launches = launches_seen();
    put_u32(answer, launches.count);
    for (int i = 0; i < 3; i++)
        put_u32(answer, launches.grid[i]);
    for (int i = 0; i < 3; i++)
        put_u32(answer, launches.block[i]);
    put_u64(answer, launches.dynamic_shared_bytes);
    return true;
}

bool kernel_counters(Runner *runner, WireWriter *answer, Fault *why) {
    static SimCounter counters[MAX_COUNTERS];
    size_t count = 0;
    if (runner->cudart.simulated) count = runner->cudart.sim_take_counters(counters, MAX_COUNTERS);
    if (count > MAX_COUNTERS) return fault(why, "more than %d counters", MAX_COUNTERS);
    put_u32(answer, (uint32_t)count);
    for (size_t i = 0; i < count; i++) {
        put_text(answer, counters[i].kernel);
        put_text(answer, counters[i].counter);
        put_f64(answer, counters[i].value);
    }
    return true;
}
