/* build.c - from a kernel's source to a build result.
 *
 * The key of a build is the hash of everything that goes in. When no log and object are kept under
 * it, the process that gets the key's lock compiles and keeps them, while others that want the same
 * wait for it. Then, kept or fresh, what came out is judged: refused, or linked but importing what
 * it must not. Failures are kept as well: the same source fails the same way. Only what an idler
 * or larger machine might finish is not kept: a timeout, a compiler that crashed.
 */
#include "build/build.h"

#include "build/cache.h"
#include "build/constructs.h"
#include "build/diagnostics.h"
#include "build/figures.h"
#include "build/imports.h"
#include "build/nvcc.h"
#include "build/toolchain.h"
#include <string.h>
#include <unistd.h>

#define DEFAULT_TIMEOUT_S 120.0
#define IDLE_FACTOR       3.0 // on a busy machine a compiler waits: that is not the kernel's doing
#define MAX_SOURCE_BYTES  ((size_t)1 << 20)
#define MAX_NAME_BYTES    120
#define MAX_OBJECT_BYTES  ((size_t)256 << 20)
#define RECIPE_VERSION    "3" // changes with how the compilers are run or their log is edited

typedef struct {
    Arena *arena;
    const Task *task;
    const char *source;
    size_t source_bytes;
    const BuildOptions *options;
    double timeout_s;
    const char *directory; // of the cache entry
    BuildResult *result;
    Error *err;
} Build;

/* ---- results made without a compiler ------------------------------------------------------- */

static void set_refusal(Build *build, int line, const char *message) {
    Diagnostic *item = arena_new_of(build->arena, Diagnostic);
    *item = (Diagnostic){.level = DIAGNOSTIC_ERROR,
                         .file = KERNEL_FILE,
                         .line = line,
                         .user_line = line,
                         .message = message};
    build->result->status = BUILD_COMPILE_ERROR;
    build->result->diagnostics = item;
    build->result->diagnostic_count = 1;
    build->result->distilled =
        line ? arena_printf(build->arena, KERNEL_FILE ":%d: error: %s\n", line, message)
             : arena_printf(build->arena, KERNEL_FILE ": error: %s\n", message);
}

static int line_of(const char *text, size_t at) {
    int line = 1;
    for (size_t i = 0; i < at; i++)
        line += text[i] == '\n';
    return line;
}

/* Refuses what no compiler need look at. */
static bool source_is_text(Build *build) {
    const char *source = build->source;
    size_t bytes = build->source_bytes;
    if (bytes > MAX_SOURCE_BYTES) {
        set_refusal(build, 0,
                    arena_printf(build->arena,
                                 "the file has %zu bytes; at most %zu are "
                                 "taken",
                                 bytes, MAX_SOURCE_BYTES));
        return false;
    }
    const char *zero = memchr(source, '\0', bytes);
    if (zero) {
        set_refusal(build, line_of(source, (size_t)(zero - source)),
                    "this is a binary file, not CUDA source (it holds a zero byte)");
        return false;
    }
    if (!text_is_utf8(source, bytes)) {
        size_t good = 0;
        for (size_t step = bytes; step > 0; step /= 2)
            while (good + step <= bytes && text_is_utf8(source, good + step))
                good += step;
        set_refusal(build, line_of(source, good), "this is not UTF-8 text");
        return false;
    }
    if (strspn(source, " \t\r\n") == bytes) {
        set_refusal(build, 0, "the file is empty");
        return false;
    }
    return true;
}

/* ---- the key ------------------------------------------------------------------------------ */

static Hash build_key(Build *build, const char *header, const char *footer) {
    const Toolchain *toolchain = build->options->toolchain;
    Hasher *hasher = hasher_new();
    hasher_add_text(hasher, "kernel " RECIPE_VERSION);
    hasher_add_text(hasher, build->source);
    hasher_add_text(hasher, header);
    hasher_add_text(hasher, footer);
    int contract = CONTRACT_VERSION;
    hasher_add(hasher, &contract, sizeof contract);
    for (const char **flag = nvcc_flags(build->arena, toolchain); *flag; flag++)
        hasher_add_text(hasher, *flag);
    toolchain_fingerprint(build->arena, toolchain, hasher);
    return hasher_finish(hasher);
}

/* ---- what came out ------------------------------------------------------------------------- */

static void set_diagnosis(Build *build, const CompileOutcome *outcome) {
    bool refused = outcome->status == COMPILE_FAILED || outcome->status == COMPILE_CRASHED;
    Diagnosis diagnosis =
        (refused ? diagnose_refusal : diagnose)(build->arena, outcome->log, build->source);
    build->result->diagnostics = diagnosis.items;
    build->result->diagnostic_count = diagnosis.count;
    build->result->distilled = diagnosis.distilled;
}

static const char *forbidden_advice(const char *name) {
    static const struct {
        const char *part, *advice;
    } kAdvice[] = {
        {"cudaMalloc", "ask for memory with workspace_bytes() instead"},
        {"cudaHostAlloc", "ask for memory with workspace_bytes() instead"},
        {"cudaFree", "ask for memory with workspace_bytes() instead"},
        {"Synchronize", "launch() must not wait; the harness does"},
        {"cudaMemset", "use cudaMemsetAsync on the given stream"},
        {"cudaMemcpy", "use cudaMemcpyAsync on the given stream"},
        {"cudaStream", "do all work on the given stream"},
        {"cudaEvent", "do all work on the given stream"},
        {"cublas", "write the computation with CuTe"},
        {"cudnn", "write the computation with CuTe"},
        {"exit", "return the error from launch() instead"},
    };
    for (size_t i = 0; i < COUNT_OF(kAdvice); i++)
        if (strstr(name, kAdvice[i].part)) return kAdvice[i].advice;
    return NULL;
}

static void set_forbidden(Build *build, const char **names, int count) {
    demangle_names(build->arena, names, count);
    Buf text = {0};
    for (int i = 0; i < count && text.length < DISTILLED_MAX_BYTES - 200; i++) {
        const char *advice = forbidden_advice(names[i]);
        int shown = shown_bytes(names[i], strlen(names[i]), MAX_NAME_BYTES);
        buf_printf(&text, KERNEL_FILE " uses %.*s, which a kernel may not import%s%s\n", shown,
                   names[i], advice ? "; " : "", advice ? advice : "");
    }
    build->result->status = BUILD_FORBIDDEN;
    build->result->forbidden = names;
    build->result->forbidden_count = count;
    build->result->distilled = buf_take(build->arena, &text);
}

/* Looks at what the object imports. `ok` tells whether it may be loaded. */
static bool check_object(Build *build, const char *object, bool *ok) {
    char *data;
    size_t bytes;
    DynamicImports imports;
    const char *why;
    *ok = false;
    Arena *scratch = arena_new();
    bool good = file_read(scratch, object, MAX_OBJECT_BYTES, &data, &bytes, build->err);
    if (good && !imports_read(build->arena, data, bytes, &imports, &why)) {
        const char **names = arena_array_of(build->arena, const char *, 1);
        names[0] = arena_printf(build->arena, "an unusual object file (%s)", why);
        set_forbidden(build, names, 1);
    } else if (good && !imports.defines_launch) {
        set_refusal(build, 0,
                    arena_printf(build->arena, "it defines no launch(...); expected is\n%s",
                                 task_launch_signature(build->arena, build->task)));
        build->result->distilled =
            arena_printf(build->arena, KERNEL_FILE " defines no launch(...); expected is\n%s\n",
                         task_launch_signature(build->arena, build->task));
    } else if (good) {
        const char **names =
            arena_array_of(build->arena, const char *,
                           (size_t)(imports.undefined_count + imports.needed_count) + 1);
        int count = 0;
        for (int i = 0; i < imports.undefined_count; i++)
            if (!import_allowed(imports.undefined[i])) names[count++] = imports.undefined[i];
        for (int i = 0; i < imports.needed_count; i++)
            if (!library_allowed(imports.needed[i])) names[count++] = imports.needed[i];
        if (imports.run_path)
            names[count++] = arena_printf(build->arena, "run path %s", imports.run_path);
        *ok = count == 0;
        if (count > 0)
            set_forbidden(build, names, count);
        else
            constructs_find(build->arena, data, bytes, build->result);
    }
    arena_free(scratch);
    return good;
}

/* EDG says of another launch() only that there are two of them. */
static void explain_signature(Build *build) {
    BuildResult *result = build->result;
    if (!strstr(result->distilled, "function \"launch\" has \"C\" linkage")) return;
    char *expected = task_launch_signature(build->arena, build->task);
    size_t room = DISTILLED_MAX_BYTES - strlen("expected is\n\n");
    if (strlen(expected) + strlen(result->distilled) > room) return;
    result->distilled =
        arena_printf(build->arena, "%sexpected is\n%s\n", result->distilled, expected);
}

static bool settle(Build *build, const CompileOutcome *outcome) {
    BuildResult *result = build->result;
    bool loadable = false;
    result->compiler_seconds = outcome->seconds;
    set_diagnosis(build, outcome);
    switch (outcome->status) {
    case COMPILE_FAILED:
    case COMPILE_CRASHED:
        result->status = BUILD_COMPILE_ERROR;
        explain_signature(build);
        return true;
    case COMPILE_TIMEOUT:
        result->status = BUILD_TIMEOUT;
        result->distilled = arena_printf(build->arena,
                                         "the compiler did not finish " KERNEL_FILE
                                         " within %.0f s; use smaller tiles or less unrolling and "
                                         "template recursion\n",
                                         build->timeout_s);
        return true;
    case COMPILE_OK:
        break;
    }
    result->status = BUILD_OK;
    result->figures = figures_parse(build->arena, outcome->log, &result->figure_count);
    if (!check_object(build, outcome->object, &loadable)) return false;
    if (loadable) result->object = outcome->object;
    return true;
}

/* ---- compiling ---------------------------------------------------------------------------- */

static bool write_inputs(Build *build, const char *scratch, const char *header,
                         const char *footer) {
    Buf text = {0};
    buf_append(&text, build->source, build->source_bytes);
    // A source may end without a newline, or with a backslash that would join the next line.
    buf_puts(&text, "\n\n");
    buf_puts(&text, footer);
    char *kernel = path_join(build->arena, scratch, KERNEL_FILE);
    bool good = file_write_atomic(kernel, text.data, text.length, build->err) &&
                file_write_atomic(path_join(build->arena, scratch, "task.h"), header,
                                  strlen(header), build->err);
    buf_free(&text);
    return good;
}

static bool compile_in(Build *build, const char *scratch, const char *header, const char *footer) {
    int64_t start_ns = headers_clock_ns();
    CompileJob job = {
        .toolchain = build->options->toolchain,
        .scratch = scratch,
        .cpu_s = build->timeout_s,
        .deadline = clock_seconds() + IDLE_FACTOR * build->timeout_s,
        .cancel = build->options->cancel,
    };
    CompileOutcome outcome;
    HeaderList headers;
    bool complete;
    if (!write_inputs(build, scratch, header, footer) ||
        !nvcc_compile(build->arena, &job, &outcome, build->err) ||
        !cache_keep(build->arena, build->directory, &outcome, build->err) ||
        !settle(build, &outcome) ||
        !headers_collect(build->arena, scratch, start_ns, &headers, &complete, build->err))
        return false;
    // A machine short of time or memory may be the cause of these two; the next try may do better.
    bool certain = outcome.status != COMPILE_TIMEOUT && outcome.status != COMPILE_CRASHED;
    return !certain || !complete || !headers_reach_all(build->source) ||
           cache_store(build->arena, build->directory, &build->result->key, &outcome, &headers,
                       build->err);
}

static bool compile(Build *build, const char *header, const char *footer) {
    char *scratch = directory_scratch(build->arena, "build", build->err);
    if (!scratch) return false;
    bool good = compile_in(build, scratch, header, footer);
    Error ignored;
    directory_remove(scratch, &ignored);
    return good;
}

/* Gives the kept result; false, without an error, when there is none that can be used. */
static bool take_kept(Build *build) {
    CompileOutcome outcome;
    BuildResult *result = build->result, empty = *result;
    if (build->options->no_cache ||
        !cache_load(build->arena, build->directory, &result->key, &outcome))
        return false;
    if (settle(build, &outcome)) {
        result->from_cache = true;
        return true;
    }
    *result = empty;
    *build->err = (Error){0};
    return false;
}

static bool build_locked(Build *build, const char *header, const char *footer) {
    int lock = file_lock(path_join(build->arena, build->directory, "lock"), true,
                         build->options->cancel, build->err);
    if (lock < 0) return false;
    // Whoever held the lock may have built just this.
    bool good = take_kept(build) || compile(build, header, footer);
    close(lock);
    return good;
}

bool build_kernel(Arena *arena, const Task *task, const char *source, size_t source_bytes,
                  const BuildOptions *options, BuildResult *result, Error *err) {
    double start = clock_seconds();
    *result = (BuildResult){.distilled = ""};
    Build build = {
        .arena = arena,
        .task = task,
        .source = source,
        .source_bytes = source_bytes,
        .options = options,
        .result = result,
        .err = err,
        .timeout_s = options->timeout_s > 0 ? options->timeout_s : DEFAULT_TIMEOUT_S,
    };
    if (!source_is_text(&build)) {
        result->key = hash_bytes(source, source_bytes);
        result->seconds = clock_seconds() - start;
        return true;
    }
    build.source = arena_string_n(arena, source, source_bytes);
    char *header = task_kernel_header(arena, task), *footer = task_kernel_footer(arena, task);
    result->key = build_key(&build, header, footer);
    build.directory = cache_entry_directory(arena, &result->key, err);
    if (!build.directory) return false;
    result->log_path = cache_log_path(arena, build.directory);
    bool good = take_kept(&build) || build_locked(&build, header, footer);
    result->seconds = clock_seconds() - start;
    return good;
}
