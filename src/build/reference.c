/* reference.c - compiles a task's reference, once in double and once in float.
 *
 * A reference is the user's own C, so its errors are the user's: the first one is given back with
 * their file and line. Objects are kept by content like kernels, together with the headers that
 * were reached; the two compilers run beside each other. No contraction and no fast math: the
 * reference has to be what it says. In float its literals are float too: a single 0.5 would else
 * lift whole expressions to double, and the float version is there to show what float can do.
 */
#include "build/build.h"

#include "build/cache.h"
#include "build/toolchain.h"
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define MAX_REFERENCE_BYTES  ((size_t)4 << 20)
#define MAX_REFERENCE_MEMORY ((size_t)4 << 30)
#define MAX_OBJECT_BYTES     ((size_t)64 << 20)
#define DEFAULT_TIMEOUT_S    120.0

static const struct {
    const char *name, *flag;
} kReals[] = {{"double", NULL}, {"float", "-fsingle-precision-constant"}};

static const char *const kFlags[] = {
    "-std=gnu17",
    "-O2",
    "-fPIC",
    "-shared",
    "-ffp-contract=off",
    "-fno-math-errno",
    "-w",
    "-Werror=implicit-function-declaration",
    "-Wl,-z,defs",
};

static Hash reference_key(const Task *task, const Toolchain *toolchain, const char *text,
                          const char *header) {
    Hasher *hasher = hasher_new();
    hasher_add_text(hasher, "reference 3");
    hasher_add_text(hasher, task->reference_path);
    hasher_add_text(hasher, text);
    hasher_add_text(hasher, header);
    for (size_t i = 0; i < COUNT_OF(kFlags); i++)
        hasher_add_text(hasher, kFlags[i]);
    for (size_t i = 0; i < COUNT_OF(kReals); i++)
        hasher_add_text(hasher, kReals[i].flag ? kReals[i].flag : "");
    hasher_add_text(hasher, toolchain->cc);
    hasher_add_text(hasher, toolchain->identity);
    return hasher_finish(hasher);
}

/* The first line of gcc's output that is an error, with the path as the user gave the task. */
static const char *first_error(Arena *arena, const Task *task, const char *log) {
    char *shown =
        path_join(arena, path_directory(arena, task->path), path_base(task->reference_path));
    for (const char *line = log; *line;) {
        size_t bytes = strcspn(line, "\n");
        char *text = arena_string_n(arena, line, bytes);
        char *error = strstr(text, "error: ");
        if (error) {
            char *at = text_starts_with(text, task->reference_path)
                           ? text + strlen(task->reference_path)
                           : NULL;
            if (!at) return text;
            error += strlen("error: ");
            size_t place = strcspn(at + 1, " ");
            return arena_printf(arena, "%s%.*s %s", shown, (int)place + 1, at, error);
        }
        const char *undefined = strstr(text, "undefined reference to ");
        if (undefined) return arena_printf(arena, "%s: %s", shown, undefined);
        line += bytes + (line[bytes] == '\n');
    }
    return NULL;
}

typedef struct {
    Arena *arena; // its own
    const Task *task;
    const BuildOptions *options;
    const char *scratch, *real;
    const char *flag; // or NULL
    const char *output;
    bool good;
    Error err;
} Compilation;

/* Runs the C compiler with `flags` between fixed ones; false with job->err. */
static bool run_cc(Compilation *job, const char *const *arguments) {
    const char *argv[40] = {job->options->toolchain->cc};
    int count = 1;
    for (size_t i = 0; i < COUNT_OF(kFlags); i++)
        argv[count++] = kFlags[i];
    for (int i = 0; arguments[i]; i++)
        argv[count++] = arguments[i];
    double timeout_s = job->options->timeout_s > 0 ? job->options->timeout_s : DEFAULT_TIMEOUT_S;
    ProcessOptions options = {.argv = argv,
                              .cwd = job->scratch,
                              .timeout_s = timeout_s,
                              .limits = {.memory_bytes = MAX_REFERENCE_MEMORY},
                              .cancel = job->options->cancel};
    ProcessResult result;
    if (!process_run(job->arena, &options, &result, &job->err)) return false;
    const char *path = job->task->reference_path;
    if (result.timed_out)
        return error_input(&job->err, "%s: the compiler did not finish within %.0f s", path,
                           timeout_s);
    if (result.signal != 0)
        return error_harness(&job->err, "%s was killed by signal %d while compiling %s", argv[0],
                             result.signal, path);
    if (result.exit_code == 0) return true;
    const char *error = first_error(job->arena, job->task, result.err);
    return error_input(&job->err, "%s", error ? error : result.err);
}

/* Preprocessing is a step of its own because its output tells which headers were reached. */
static void *compile_one(void *context) {
    Compilation *job = context;
    Arena *arena = job->arena;
    char *preprocessed = arena_printf(arena, "%s/%s.ii", job->scratch, job->real);
    const char *preprocess[] = {
        "-E",
        arena_printf(arena, "-DCUTEGEN_REAL=%s", job->real),
        arena_printf(arena, "-I%s", job->scratch),
        arena_printf(arena, "-I%s", job->task->directory),
        "-o",
        preprocessed,
        job->task->reference_path,
        NULL,
    };
    const char *compile[] = {"-x",         "cpp-output", "-o",      job->output,
                             preprocessed, "-lm",        job->flag, NULL};
    job->good = run_cc(job, preprocess) && run_cc(job, compile);
    return NULL;
}

static bool compile_both(Arena *arena, const Task *task, const BuildOptions *options,
                         const char *scratch, const char *const outputs[2], Error *err) {
    Compilation jobs[2];
    pthread_t thread;
    for (int i = 0; i < 2; i++)
        jobs[i] = (Compilation){.arena = arena_new(),
                                .task = task,
                                .options = options,
                                .scratch = scratch,
                                .real = kReals[i].name,
                                .flag = kReals[i].flag,
                                .output = path_join(arena, scratch, path_base(outputs[i]))};
    bool threaded = pthread_create(&thread, NULL, compile_one, &jobs[0]) == 0;
    if (!threaded) compile_one(&jobs[0]);
    compile_one(&jobs[1]);
    if (threaded) pthread_join(thread, NULL);
    bool good = true;
    for (int i = 0; good && i < 2; i++) {
        char *object;
        size_t bytes;
        good = jobs[i].good;
        if (!good) *err = jobs[i].err;
        good = good &&
               file_read(jobs[i].arena, jobs[i].output, MAX_OBJECT_BYTES, &object, &bytes, err) &&
               file_write_atomic(outputs[i], object, bytes, err);
    }
    for (int i = 0; i < 2; i++)
        arena_free(jobs[i].arena);
    return good;
}

/* ---- kept objects -------------------------------------------------------------------------- */

/* headers.json is written last, so an entry that has one is whole. */
static bool is_kept(Arena *arena, const char *directory, const char *const outputs[2]) {
    char *text;
    size_t bytes;
    HeaderList headers;
    bool touched = false;
    Error ignored;
    char *list = path_join(arena, directory, "headers.json");
    return path_exists(list) && path_exists(outputs[0]) && path_exists(outputs[1]) &&
           file_read(arena, list, MAX_REFERENCE_BYTES, &text, &bytes, &ignored) &&
           headers_parse(arena, text, bytes, &headers) && headers_unchanged(&headers, &touched);
}

static bool compile_in(Arena *arena, const Task *task, const BuildOptions *options,
                       const char *source, const char *header, const char *directory,
                       const char *scratch, const char *const outputs[2], Error *err) {
    HeaderList headers;
    bool complete;
    int64_t start_ns = headers_clock_ns();
    if (!file_write_atomic(path_join(arena, scratch, "reference.h"), header, strlen(header), err) ||
        !compile_both(arena, task, options, scratch, outputs, err) ||
        !headers_collect(arena, scratch, start_ns, &headers, &complete, err))
        return false;
    char *text = headers_text(arena, &headers);
    return !complete || !headers_reach_all(source) ||
           file_write_atomic(path_join(arena, directory, "headers.json"), text, strlen(text), err);
}

static bool compile_locked(Arena *arena, const Task *task, const BuildOptions *options,
                           const char *source, const char *header, const char *directory,
                           const char *const outputs[2], Error *err) {
    int lock = file_lock(path_join(arena, directory, "lock"), true, options->cancel, err);
    if (lock < 0) return false;
    bool good = !options->no_cache && is_kept(arena, directory, outputs);
    char *scratch = good ? NULL : directory_scratch(arena, "reference", err);
    if (scratch) {
        good = compile_in(arena, task, options, source, header, directory, scratch, outputs, err);
        Error ignored;
        directory_remove(scratch, &ignored);
    }
    close(lock);
    return good;
}

bool build_reference(Arena *arena, const Task *task, const BuildOptions *options,
                     const char **double_object, const char **float_object, Error *err) {
    char *text;
    size_t bytes;
    if (!file_read(arena, task->reference_path, MAX_REFERENCE_BYTES, &text, &bytes, err))
        return false;
    char *header = task_reference_header(arena, task);
    Hash key = reference_key(task, options->toolchain, text, header);
    char *directory = cache_entry_directory(arena, &key, err);
    if (!directory) return false;
    const char *outputs[2];
    for (int i = 0; i < 2; i++)
        outputs[i] = arena_printf(arena, "%s/%s.so", directory, kReals[i].name);
    *double_object = outputs[0];
    *float_object = outputs[1];
    if (!options->no_cache && is_kept(arena, directory, outputs)) return true;
    return compile_locked(arena, task, options, text, header, directory, outputs, err);
}
