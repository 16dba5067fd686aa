/* explain.c - what the compiler and the runner saw, put so that the kernel can be repaired.
 *
 * A simulator's report names the line; a CUDA error code does not, so it is joined by what was
 * asked for (grid, block, shared memory) and by the rule that was most likely broken.
 */
#include "judge/trial.h"
#include <signal.h>
#include <stdlib.h>
#include <string.h>

enum {
    MAX_BLOCK_THREADS = 1024,
    MAX_GRID_YZ = 65535,
    REGISTERS_PER_BLOCK = 65536,
    STATIC_SHARED_BYTES = 48 << 10,
    EVIDENCE_REPORTS = 16,
};

/* cudaError_t values that mean a stray access; on a GPU they carry no line. */
enum {
    CUDA_INVALID_VALUE = 1,
    CUDA_INVALID_CONFIGURATION = 9,
    CUDA_ILLEGAL_ADDRESS = 700,
    CUDA_LAUNCH_OUT_OF_RESOURCES = 701,
    CUDA_LAUNCH_TIMEOUT = 702,
    CUDA_ASSERT = 710,
    CUDA_MISALIGNED_ADDRESS = 716,
};

/* ---- the build --------------------------------------------------------------------------------
 */

/* A message may go on over several lines; the sentence for a person is the first, and what the
 * next lines were to complete is cut off with them. */
static char *first_sentence(Trial *trial, const char *text) {
    size_t length = strcspn(text, "\n");
    const char *clause = text[length] ? memrchr(text, ';', length) : NULL;
    return arena_string_n(trial->arena, text, clause ? (size_t)(clause - text) : length);
}

static const Diagnostic *first_error(const BuildResult *build) {
    for (int i = 0; i < build->diagnostic_count; i++)
        if (build->diagnostics[i].level == DIAGNOSTIC_ERROR) return &build->diagnostics[i];
    return NULL;
}

static void begin_compile_error(Trial *trial, const Diagnostic *error) {
    bool in_kernel = error->file && !strcmp(error->file, "kernel.cu");
    int line = in_kernel ? error->line : error->user_line;
    const char *where = "kernel.cu: ";
    if (line > 0)
        where = arena_printf(trial->arena, "kernel.cu:%d: ", line);
    else if (!in_kernel && error->file)
        where = arena_printf(trial->arena, "%s:%d: ", error->file, error->line);
    verdict_begin(trial, VERDICT_COMPILE_ERROR, line, "diagnostics", "%s%s", where,
                  first_sentence(trial, error->message));
    if (in_kernel && line > 0) trial->verdict->place.column = error->column;
}

static Json *diagnostic_json(const Diagnostic *diagnostic) {
    Json *json = json_object();
    bool is_error = diagnostic->level == DIAGNOSTIC_ERROR;
    evidence_set(json, "level", json_string(is_error ? "error" : "warning"));
    evidence_text(json, "file", diagnostic->file ? diagnostic->file : "");
    evidence_set(json, "line", json_integer(diagnostic->line));
    evidence_set(json, "column", json_integer(diagnostic->column));
    evidence_set(json, "user_line", json_integer(diagnostic->user_line));
    evidence_text(json, "message", diagnostic->message ? diagnostic->message : "");
    if (diagnostic->frames) evidence_text(json, "frames", diagnostic->frames);
    return json;
}

static Outcome explain_compile_error(Trial *trial) {
    const BuildResult *build = &trial->verdict->build;
    const Diagnostic *error = first_error(build);
    if (error)
        begin_compile_error(trial, error);
    else
        verdict_begin(trial, VERDICT_COMPILE_ERROR, 0, "diagnostics",
                      "kernel.cu: the compiler refused it without a message");
    Json *list = json_array();
    for (int i = 0; i < build->diagnostic_count; i++)
        json_array_append_new(list, diagnostic_json(&build->diagnostics[i]));
    evidence_set(trial->verdict->evidence, "diagnostics", list);
    evidence_text(trial->verdict->evidence, "log", build->log_path ? build->log_path : "");
    if (build->distilled && *build->distilled)
        repair_write_text(trial, build->distilled);
    else
        repair_write(trial, NULL);
    return JUDGED;
}

static Outcome explain_forbidden(Trial *trial) {
    const BuildResult *build = &trial->verdict->build;
    Buf names = {0};
    Json *list = json_array();
    for (int i = 0; i < build->forbidden_count; i++) {
        char *name = text_cleaned(trial->arena, build->forbidden[i], strlen(build->forbidden[i]));
        if (i < 8) buf_printf(&names, "%s%s", i ? ", " : "", name);
        json_array_append_new(list, json_string(name));
    }
    if (build->forbidden_count > 8) buf_printf(&names, " and %d more", build->forbidden_count - 8);
    // The line of a call such as dlopen(…) is easily found where the name is plain.
    const char *first = build->forbidden_count ? build->forbidden[0] : "";
    size_t plain = strcspn(first, "(<@: ");
    int line = plain ? source_line_of(trial, arena_string_n(trial->arena, first, plain)) : 0;
    verdict_begin(trial, VERDICT_FORBIDDEN, line, "imports", "%s%s: a kernel may not use %s",
                  line ? arena_printf(trial->arena, "kernel.cu:%d: ", line) : "kernel.cu: ",
                  buf_take(trial->arena, &names), build->forbidden_count == 1 ? "it" : "them");
    evidence_set(trial->verdict->evidence, "symbols", list);
    // The rule first: what is too long is cut at its end.
    repair_write(trial,
                 arena_printf(trial->arena,
                              "A kernel may use the CUDA runtime, the arithmetic and memory "
                              "functions of libc and libm, and CuTe/CUTLASS headers; no other "
                              "library, no files, threads, processes or environment, and no device "
                              "memory of its own: what launch() needs comes as workspace "
                              "(workspace_bytes).\n%s",
                              build->distilled));
    return JUDGED;
}

Outcome explain_build(Trial *trial) {
    switch (trial->verdict->build.status) {
    case BUILD_OK:
        return GO_ON;
    case BUILD_COMPILE_ERROR:
        return explain_compile_error(trial);
    case BUILD_FORBIDDEN:
        return explain_forbidden(trial);
    case BUILD_TIMEOUT:
        verdict_begin(trial, VERDICT_COMPILE_ERROR, 0, "build_timeout",
                      "kernel.cu: the compiler did not finish within %.0f s",
                      trial->verdict->build.seconds);
        repair_write(trial, "Look for unbounded template recursion, constexpr loops and very "
                            "large unrolled loops; instantiate fewer variants.");
        return JUDGED;
    }
    error_harness(trial->err, "the build gave an unknown status");
    return FAILED;
}

/* ---- the process ------------------------------------------------------------------------------
 */

Outcome explain_load_failure(Trial *trial, const char *why) {
    verdict_begin(trial, VERDICT_LAUNCH_ERROR, 0, "load",
                  "kernel.cu: the built object cannot be loaded: %s", why);
    evidence_text(trial->verdict->evidence, "loader", why);
    repair_write(trial, "Every function that is declared and called must be defined in kernel.cu.");
    return JUDGED;
}

static char *at_shape(Trial *trial) {
    return trial->dims && trial->task->dim_count
               ? arena_printf(trial->arena, " (%s)", shape_text(trial))
               : "";
}

/* An assertion in host code says where it stands: "kernel.cu:21: …". */
static int line_in_words(const char *words) {
    const char *place = strstr(words, "kernel.cu:");
    int line = place ? atoi(place + strlen("kernel.cu:")) : 0;
    return line > 0 ? line : 0;
}

/* What the runner says of host code that follows a device pointer: ": host code touches …". */
static const char *device_memory_in_words(Arena *arena, const char *words) {
    const char *said = strstr(words, "host code touches the device memory of ");
    return said ? arena_printf(arena, ": %.*s", (int)strcspn(said, "\r\n"), said) : "";
}

static char *signal_name(Arena *arena, int number) {
    const char *abbreviation = sigabbrev_np(number); // NULL for real-time signals
    return abbreviation ? arena_printf(arena, "SIG%s", abbreviation)
                        : arena_printf(arena, "signal %d", number);
}

/* How it ended, unless we ended it. */
static void process_evidence(Trial *trial, const char *phase) {
    const Peer *runner = &trial->judge->runner;
    Json *evidence = trial->verdict->evidence;
    bool by_us = runner->signal == SIGKILL;
    evidence_set(evidence, "phase", json_string(phase));
    evidence_set(evidence, "signal",
                 runner->signal && !by_us ? json_string(signal_name(trial->arena, runner->signal))
                                          : json_null());
    evidence_set(evidence, "exit_code",
                 runner->signal ? json_null() : json_integer(runner->exit_code));
    evidence_text(evidence, "stderr", runner->last_words);
}

Outcome explain_death(Trial *trial, bool loading) {
    const Peer *runner = &trial->judge->runner;
    const char *how =
        runner->signal
            ? arena_printf(trial->arena, "was killed by %s (%s)",
                           signal_name(trial->arena, runner->signal), strsignal(runner->signal))
            : arena_printf(trial->arena, "ended the process with exit code %d", runner->exit_code);
    int line = line_in_words(runner->last_words);
    verdict_begin(trial, VERDICT_LAUNCH_ERROR, line, "process", "%s%s %s%s%s",
                  line ? arena_printf(trial->arena, "kernel.cu:%d: ", line) : "kernel.cu: ",
                  loading ? "a static constructor" : "launch()", how,
                  device_memory_in_words(trial->arena, runner->last_words), at_shape(trial));
    process_evidence(trial, loading ? "load" : "launch");
    repair_write(trial, arena_printf(trial->arena, "This happened in host code.%s%s",
                                     *runner->last_words ? " Last words on stderr:\n" : "",
                                     runner->last_words));
    return JUDGED;
}

Outcome explain_late_death(Trial *trial, const char *how) {
    verdict_begin(trial, VERDICT_LAUNCH_ERROR, 0, "process",
                  "kernel.cu: the process died after launch(): %s%s", how, at_shape(trial));
    process_evidence(trial, "after_launch");
    repair_write(trial, "Host code of launch() has damaged the process it runs in: look for writes "
                        "past the end of host arrays and for memory that is freed twice.");
    return JUDGED;
}

Outcome explain_timeout(Trial *trial, bool loading, double seconds) {
    verdict_begin(trial, VERDICT_HANG, 0, "timeout", "kernel.cu: %s did not end within %.3g s%s",
                  loading ? "a static constructor" : "launch() or a kernel it started", seconds,
                  at_shape(trial));
    evidence_set(trial->verdict->evidence, "phase", json_string(loading ? "load" : "launch"));
    evidence_set(trial->verdict->evidence, "seconds", json_real(seconds));
    repair_write(trial, loading ? "Objects of static storage must not run code that waits."
                                : "Look for a loop whose condition never becomes false, in "
                                  "launch() and in the kernels, and for waits (barriers, flags) "
                                  "that nothing ends.");
    return JUDGED;
}

/* ---- the simulator's reports -------------------------------------------------------------------
 */

/* Lower is told first: what makes the rest unreliable, then what names the cause most exactly. */
static int urgency(SimReportKind kind) {
    static const int order[SIM_REPORT_KIND_COUNT] = {
        [SIM_UNSUPPORTED] = 0, [SIM_OUT_OF_BOUNDS] = 1, [SIM_MISALIGNED] = 2,    [SIM_ASSERT] = 3,
        [SIM_TRAP] = 4,        [SIM_BARRIER] = 5,       [SIM_UNINITIALIZED] = 6, [SIM_BUDGET] = 7,
    };
    return kind < SIM_REPORT_KIND_COUNT ? order[kind] : SIM_REPORT_KIND_COUNT;
}

static const SimReport *most_urgent(const LaunchAnswer *launch) {
    const SimReport *first = NULL;
    for (uint32_t i = 0; i < launch->report_count; i++)
        if (!first || urgency(launch->reports[i].kind) < urgency(first->kind))
            first = &launch->reports[i];
    return first;
}

static const Tensor *tensor_named(const Trial *trial, const char *name) {
    for (int i = 0; i < trial->task->tensor_count; i++)
        if (!strcmp(trial->task->tensors[i].name, name)) return &trial->task->tensors[i];
    return NULL;
}

/* "x[1048576]" where the offset is a whole element, else "byte 3 of x". */
static char *element_text(Trial *trial, const char *name, int64_t offset_bytes) {
    const Tensor *tensor = tensor_named(trial, name);
    int64_t bytes = tensor ? dtype_info(tensor->dtype)->bytes : 0;
    if (bytes && offset_bytes % bytes == 0)
        return arena_printf(trial->arena, "%s[%lld]", name, (long long)(offset_bytes / bytes));
    return arena_printf(trial->arena, "byte %lld of %s", (long long)offset_bytes, name);
}

static char *bytes_text(Trial *trial, uint64_t bytes) {
    return arena_printf(trial->arena, "%llu byte%s", (unsigned long long)bytes,
                        bytes == 1 ? "" : "s");
}

/* "reads x[1048576], 4 bytes past its end" */
static char *stray_access(Trial *trial, const SimReport *report) {
    Arena *arena = trial->arena;
    const char *verb = report->is_write ? "writes" : "reads";
    const char *space = report->space;
    if (!*report->tensor) {
        if (!strcmp(space, "global") || !*space)
            return arena_printf(arena, "%s %s at address 0x%llx, which belongs to no tensor", verb,
                                bytes_text(trial, report->access_bytes),
                                (unsigned long long)report->address);
        return arena_printf(
            arena, "%s %s of %s memory at offset %lld%s", verb,
            bytes_text(trial, report->access_bytes), space, (long long)report->offset_bytes,
            report->tensor_bytes ? arena_printf(arena, ", outside of its %s",
                                                bytes_text(trial, report->tensor_bytes))
                                 : ", outside of it");
    }
    const Tensor *tensor = tensor_named(trial, report->tensor);
    bool wide = !tensor || report->access_bytes != (uint64_t)dtype_info(tensor->dtype)->bytes;
    const char *what =
        arena_printf(arena, "%s%s%s", wide ? bytes_text(trial, report->access_bytes) : "",
                     wide ? " at " : "", element_text(trial, report->tensor, report->offset_bytes));
    if (report->offset_bytes < 0)
        return arena_printf(arena, "%s %s, %s before its start", verb, what,
                            bytes_text(trial, -(uint64_t)report->offset_bytes));
    uint64_t end = (uint64_t)report->offset_bytes + report->access_bytes;
    if (end > report->tensor_bytes)
        return arena_printf(arena, "%s %s, %s%s past its end", verb, what, wide ? "ending " : "",
                            bytes_text(trial, end - report->tensor_bytes));
    return arena_printf(arena, "%s %s, which is not its to touch", verb, what);
}

/* What happened, without the place: continues "thread (3,0,0) of block (1,0,0)". */
static char *event_text(Trial *trial, const SimReport *report) {
    Arena *arena = trial->arena;
    const char *verb = report->is_write ? "writes" : "reads";
    switch (report->kind) {
    case SIM_OUT_OF_BOUNDS:
        return arena_printf(arena, " %s", stray_access(trial, report));
    case SIM_MISALIGNED:
        return arena_printf(arena, " %s %s at %s, which is not aligned to %s", verb,
                            bytes_text(trial, report->access_bytes),
                            *report->tensor
                                ? element_text(trial, report->tensor, report->offset_bytes)
                                : arena_printf(arena, "%s address 0x%llx", report->space,
                                               (unsigned long long)report->address),
                            bytes_text(trial, report->access_bytes));
    case SIM_BUDGET:
        return arena_printf(arena, " did not end: %s", report->message);
    case SIM_ASSERT:
    case SIM_TRAP:
        return arena_printf(arena, ": %s", report->message);
    default:
        return arena_printf(arena, " %s", report->message);
    }
}

static VerdictKind verdict_of(SimReportKind kind) {
    switch (kind) {
    case SIM_OUT_OF_BOUNDS:
    case SIM_MISALIGNED:
    case SIM_UNINITIALIZED:
        return VERDICT_MEMORY_ERROR;
    case SIM_BUDGET:
    case SIM_BARRIER:
        return VERDICT_HANG;
    case SIM_TRAP:
    case SIM_ASSERT:
        return VERDICT_LAUNCH_ERROR;
    default:
        return VERDICT_HARNESS_FAULT;
    }
}

static const char *advice_for(const SimReport *report) {
    switch (report->kind) {
    case SIM_OUT_OF_BOUNDS:
        return !strcmp(report->space, "shared")
                   ? "The layout spans more shared memory than was declared or asked for."
                   : "Guard the access: compare coordinates with the tensor's shape "
                     "(elem_less, copy_if) where a tile reaches past the edge.";
    case SIM_MISALIGNED:
        return "A vector access needs an address that is a multiple of its size; rows whose "
               "length is not a multiple of the vector need a scalar path.";
    case SIM_UNINITIALIZED:
        return "Write it before it is read: outputs and workspace hold nothing on entry, shared "
               "memory holds what earlier blocks left.";
    case SIM_BARRIER:
        return "As many threads as a barrier counts must reach it: keep it out of branches that "
               "some threads do not take, and give a named barrier the number that arrive.";
    case SIM_BUDGET:
        return "Look for a loop whose condition never becomes false.";
    default:
        return NULL;
    }
}

static Json *report_json(const SimReport *report) {
    Json *json = json_object();
    evidence_set(json, "kind", json_string(sim_report_kind_name(report->kind)));
    evidence_set(json, "is_write", json_boolean(report->is_write));
    evidence_text(json, "space", report->space);
    evidence_text(json, "kernel", report->kernel);
    evidence_text(json, "file", path_base(report->file));
    evidence_set(json, "line", json_integer(report->line));
    evidence_text(json, "chain", report->chain);
    evidence_text(json, "instruction", report->instruction);
    Json *thread = json_array(), *block = json_array();
    for (int i = 0; i < 3; i++) {
        json_array_append_new(thread, json_integer(report->thread[i]));
        json_array_append_new(block, json_integer(report->block[i]));
    }
    evidence_set(json, "thread", thread);
    evidence_set(json, "block", block);
    evidence_set(json, "access_bytes", json_integer((json_int_t)report->access_bytes));
    evidence_text(json, "tensor", report->tensor);
    evidence_set(json, "offset_bytes", json_integer(report->offset_bytes));
    evidence_set(json, "tensor_bytes", json_integer((json_int_t)report->tensor_bytes));
    evidence_set(json, "count", json_integer((json_int_t)report->count));
    evidence_text(json, "message", report->message);
    return json;
}

/* The simulator knows mangled names; ptxas' figures have the same kernels demangled. A mangled name
 * holds the plain one after its length. */
static const char *kernel_name(Trial *trial, const char *mangled) {
    const BuildResult *build = &trial->verdict->build;
    if (!text_starts_with(mangled, "_Z")) return mangled;
    for (int i = 0; i < build->figure_count; i++) {
        const char *name = build->figures[i].kernel;
        size_t length = strcspn(name, "<(");
        const char *scope = memrchr(name, ':', length);
        const char *plain = scope ? scope + 1 : name;
        length -= (size_t)(plain - name);
        if (strstr(mangled, arena_printf(trial->arena, "%zu%.*s", length, (int)length, plain)))
            return name;
    }
    return mangled;
}

static char *report_place(Trial *trial, const SimReport *report) {
    if (!*report->file || !report->line)
        return arena_printf(trial->arena,
                            "kernel.cu: in %s: ", *report->kernel ? report->kernel : "a kernel");
    return arena_printf(trial->arena, "%s:%u: ", path_base(report->file), report->line);
}

static char *report_details(Trial *trial, const SimReport *told) {
    Buf details = {0};
    if (*told->kernel) buf_printf(&details, "kernel: %s\n", kernel_name(trial, told->kernel));
    if (*told->chain) buf_printf(&details, "through: %s\n", told->chain);
    if (*told->instruction) buf_printf(&details, "instruction: %s\n", told->instruction);
    if (told->count > 1)
        buf_printf(&details, "happened %llu times at this place\n",
                   (unsigned long long)told->count);
    for (uint32_t i = 0, others = 0; i < trial->launch.report_count && others < 3; i++) {
        const SimReport *other = &trial->launch.reports[i];
        if (other == told) continue;
        others++;
        buf_printf(&details, "also %sthread (%u,%u,%u) of block (%u,%u,%u)%s\n",
                   report_place(trial, other), other->thread[0], other->thread[1], other->thread[2],
                   other->block[0], other->block[1], other->block[2], event_text(trial, other));
    }
    if (advice_for(told)) buf_printf(&details, "%s\n", advice_for(told));
    return buf_take(trial->arena, &details);
}

static Outcome explain_report(Trial *trial, const SimReport *report) {
    const char *place = report_place(trial, report);
    bool in_kernel = !strcmp(path_base(report->file), "kernel.cu");
    VerdictKind kind = verdict_of(report->kind);
    if (kind == VERDICT_HARNESS_FAULT)
        verdict_begin(trial, kind, in_kernel ? (int)report->line : 0, "sim_reports",
                      "%sthe simulator cannot execute this: %s", place, report->message);
    else
        verdict_begin(trial, kind, in_kernel ? (int)report->line : 0, "sim_reports",
                      "%sthread (%u,%u,%u) of block (%u,%u,%u)%s%s", place, report->thread[0],
                      report->thread[1], report->thread[2], report->block[0], report->block[1],
                      report->block[2], event_text(trial, report), at_shape(trial));
    Json *list = json_array();
    json_array_append_new(list, report_json(report));
    for (uint32_t i = 0; i < trial->launch.report_count; i++)
        if (&trial->launch.reports[i] != report && json_array_size(list) < EVIDENCE_REPORTS)
            json_array_append_new(list, report_json(&trial->launch.reports[i]));
    evidence_set(trial->verdict->evidence, "reports", list);
    repair_write(trial, report_details(trial, report));
    if (kind != VERDICT_HARNESS_FAULT) return JUDGED;
    error_harness(trial->err, "%s", trial->verdict->message);
    return FAILED;
}

/* ---- CUDA errors
 * ---------------------------------------------------------------------------------- */

static int most_registers(const BuildResult *build) {
    int most = 0;
    for (int i = 0; i < build->figure_count; i++)
        if (build->figures[i].registers > most) most = build->figures[i].registers;
    return most;
}

/* Which rule of a launch was broken, as far as can be told from what was asked. */
static char *launch_rule(Trial *trial) {
    Arena *arena = trial->arena;
    const LaunchAnswer *launch = &trial->launch;
    const uint32_t *grid = launch->grid, *block = launch->block;
    uint64_t threads = (uint64_t)block[0] * block[1] * block[2];
    int registers = most_registers(&trial->verdict->build);
    if (launch->phase == LAUNCH_WORKSPACE)
        return "workspace_bytes() must return what launch() needs for these dims, in bytes.";
    if (!launch->launches)
        return "launch() asked for no kernel, so the error comes from another CUDA call in it.";
    if (!grid[0] || !grid[1] || !grid[2])
        return "The grid has an extent of 0: round the number of blocks up, (n + tile - 1) / tile, "
               "and start no kernel when there is nothing to do.";
    if (!threads) return "The block has an extent of 0.";
    if (threads > MAX_BLOCK_THREADS || block[2] > 64)
        return arena_printf(arena,
                            "A block may have %d threads (%d along z); this one asks for "
                            "%llu.",
                            MAX_BLOCK_THREADS, 64, (unsigned long long)threads);
    if (grid[1] > MAX_GRID_YZ || grid[2] > MAX_GRID_YZ || grid[0] > INT32_MAX)
        return arena_printf(arena,
                            "A grid may have 2147483647 blocks along x and %d along y "
                            "and z.",
                            MAX_GRID_YZ);
    if (launch->dynamic_shared_bytes > 227 << 10)
        return arena_printf(arena,
                            "The device has at most 227 KiB (sm_90), 163 KiB (sm_80) or "
                            "99 KiB (sm_86, sm_89) of shared memory per block; %llu bytes "
                            "were asked for: use fewer stages or smaller tiles.",
                            (unsigned long long)launch->dynamic_shared_bytes);
    if (launch->dynamic_shared_bytes > STATIC_SHARED_BYTES)
        return "More than 48 KiB of dynamic shared memory needs cudaFuncSetAttribute(kernel, "
               "cudaFuncAttributeMaxDynamicSharedMemorySize, bytes) before the launch, and its "
               "result checked.";
    if ((uint64_t)registers * threads > REGISTERS_PER_BLOCK)
        return arena_printf(arena,
                            "%d registers times %llu threads exceed the %d registers of a "
                            "multiprocessor: use a smaller block, or __launch_bounds__(%llu).",
                            registers, (unsigned long long)threads, REGISTERS_PER_BLOCK,
                            (unsigned long long)threads);
    return NULL;
}

static char *asked_for(Trial *trial) {
    const LaunchAnswer *launch = &trial->launch;
    if (!launch->launches) return "";
    return arena_printf(trial->arena,
                        "; asked for: grid (%u,%u,%u), block (%u,%u,%u), %llu bytes of dynamic "
                        "shared memory",
                        launch->grid[0], launch->grid[1], launch->grid[2], launch->block[0],
                        launch->block[1], launch->block[2],
                        (unsigned long long)launch->dynamic_shared_bytes);
}

static char *phase_text(Trial *trial) {
    const LaunchAnswer *launch = &trial->launch;
    switch (launch->phase) {
    case LAUNCH_RETURNED:
        return arena_printf(trial->arena, "launch() returned %s (%s)", launch->name,
                            launch->meaning);
    case LAUNCH_PENDING:
        return arena_printf(trial->arena, "launch() returned cudaSuccess but left %s (%s) behind",
                            launch->name, launch->meaning);
    case LAUNCH_SYNCHRONIZED:
        return arena_printf(trial->arena, "the kernel ended with %s (%s)", launch->name,
                            launch->meaning);
    case LAUNCH_WORKSPACE:
        return arena_printf(trial->arena,
                            "workspace_bytes() asks for %llu bytes, more than the device has",
                            (unsigned long long)launch->workspace_bytes);
    }
    return "";
}

static Json *triple(const uint32_t value[3]) {
    Json *json = json_array();
    for (int i = 0; i < 3; i++)
        json_array_append_new(json, json_integer(value[i]));
    return json;
}

/* The line that starts a kernel, where the source has just one that does. */
static int launch_line(const Trial *trial) {
    bool by_call = memmem(trial->source, trial->source_bytes, "cudaLaunch", strlen("cudaLaunch"));
    return by_call ? 0 : source_line_of(trial, "<<<");
}

static Outcome explain_cuda_error(Trial *trial) {
    static const char *const phases[] = {"returned", "synchronized", "pending", "workspace"};
    const LaunchAnswer *launch = &trial->launch;
    bool stray = launch->error == CUDA_ILLEGAL_ADDRESS || launch->error == CUDA_MISALIGNED_ADDRESS;
    VerdictKind kind = stray                                  ? VERDICT_MEMORY_ERROR
                       : launch->error == CUDA_LAUNCH_TIMEOUT ? VERDICT_HANG
                                                              : VERDICT_LAUNCH_ERROR;
    bool refused = launch->phase == LAUNCH_RETURNED || launch->phase == LAUNCH_PENDING;
    int line = launch->launches && refused ? launch_line(trial) : 0;
    verdict_begin(trial, kind, line, "cuda_error", "%s%s%s%s",
                  line ? arena_printf(trial->arena, "kernel.cu:%d: ", line) : "kernel.cu: ",
                  phase_text(trial), asked_for(trial), at_shape(trial));
    Json *evidence = trial->verdict->evidence;
    evidence_set(evidence, "code", json_integer(launch->error));
    evidence_text(evidence, "name", launch->name);
    evidence_text(evidence, "meaning", launch->meaning);
    evidence_set(evidence, "phase",
                 json_string(launch->phase < COUNT_OF(phases) ? phases[launch->phase] : "unknown"));
    evidence_set(evidence, "workspace_bytes", json_integer((json_int_t)launch->workspace_bytes));
    evidence_set(evidence, "kernels", json_integer(launch->launches));
    evidence_set(evidence, "grid", triple(launch->grid));
    evidence_set(evidence, "block", triple(launch->block));
    evidence_set(evidence, "dynamic_shared_bytes",
                 json_integer((json_int_t)launch->dynamic_shared_bytes));
    const char *rule =
        stray ? "A GPU does not tell where. `cutegen check --device sim` names line and thread."
              : launch_rule(trial);
    if (rule) evidence_text(evidence, "rule", rule);
    repair_write(trial, rule);
    return JUDGED;
}

Outcome explain_launch(Trial *trial) {
    const SimReport *report = most_urgent(&trial->launch);
    if (report) return explain_report(trial, report);
    return trial->launch.error ? explain_cuda_error(trial) : GO_ON;
}

Outcome explain_red_zone(Trial *trial, uint32_t tensor, int64_t offset, uint64_t changed) {
    const Task *task = trial->task;
    bool workspace = tensor == (uint32_t)task->tensor_count;
    const char *name = workspace ? "workspace" : task->tensors[tensor].name;
    verdict_begin(trial, VERDICT_MEMORY_ERROR, 0, "red_zone",
                  "kernel.cu: %s of memory outside of %s were overwritten, the first at %s%s",
                  bytes_text(trial, changed), name, element_text(trial, name, offset),
                  at_shape(trial));
    Json *evidence = trial->verdict->evidence;
    evidence_text(evidence, "tensor", name);
    evidence_set(evidence, "offset_bytes", json_integer(offset));
    evidence_set(evidence, "bytes", json_integer((json_int_t)changed));
    repair_write(trial, "Guard the store where a tile reaches past the edge. "
                        "`cutegen check --device sim` names line and thread.");
    return JUDGED;
}
