/* base.h - what every other folder stands on: errors, memory, strings, JSON, files, processes.
 *
 * Nothing here knows about tasks, kernels or models, prints, or exits. Every function that can
 * fail returns bool and fills `Error *err` (never NULL) with one sentence for the user.
 */
#pragma once
#include <jansson.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define PRINTF_LIKE(fmt, first) __attribute__((format(printf, fmt, first)))
#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

/* ---- errors ---------------------------------------------------------------------------- */

typedef enum {
    ERROR_NONE = 0,
    ERROR_INPUT,       // usage, input file or set-up is wrong: exit code 2
    ERROR_HARNESS,     // our own fault or the machine's: exit code 3
    ERROR_STOPPED,     // a budget or the model ended the work: exit code 4
    ERROR_INTERRUPTED, // Ctrl-C or SIGTERM: exit code 130 or 143
} ErrorKind;

typedef struct {
    ErrorKind kind;
    char message[2048]; // one sentence: where, what, what to do; no trailing newline
} Error;

/* Each sets kind and message and returns false, so that `return error_input(err, …)` reads well.
 * `err` may be one that already holds a message; the old one is replaced, and may be quoted in
 * the arguments. */
bool error_input(Error *err, const char *fmt, ...) PRINTF_LIKE(2, 3);
bool error_harness(Error *err, const char *fmt, ...) PRINTF_LIKE(2, 3);
bool error_stopped(Error *err, const char *fmt, ...) PRINTF_LIKE(2, 3);
bool error_interrupted(Error *err, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* The same, with the result where compilers and analyzers see it: else they hold it possible that
 * a failed function returned true and left its results unset. */
#define error_input(...) ({ error_input(__VA_ARGS__); false; })
#define error_harness(...) ({ error_harness(__VA_ARGS__); false; })
#define error_stopped(...) ({ error_stopped(__VA_ARGS__); false; })
#define error_interrupted(...) ({ error_interrupted(__VA_ARGS__); false; })

/* Set from a signal handler, looked at by everything that waits. NULL means "never". */
typedef const atomic_int Cancel;
static inline bool cancelled(Cancel *cancel) { return cancel && atomic_load(cancel) != 0; }

/* ---- memory ---------------------------------------------------------------------------- */

/* An arena per run or request: everything allocated from it goes at once. Not thread-safe.
 * Running out of memory aborts: no caller could do better. */
typedef struct Arena Arena;
Arena *arena_new(void);
void arena_free(Arena *arena);                       // NULL is fine
void *arena_alloc(Arena *arena, size_t bytes);       // zeroed, 16-byte aligned
void *arena_copy(Arena *arena, const void *data, size_t bytes);
char *arena_string(Arena *arena, const char *text);  // NULL stays NULL
char *arena_string_n(Arena *arena, const char *text, size_t bytes); // adds the NUL
char *arena_printf(Arena *arena, const char *fmt, ...) PRINTF_LIKE(2, 3);
char *arena_vprintf(Arena *arena, const char *fmt, va_list args);
void arena_defer(Arena *arena, void (*cleanup)(void *), void *what); // runs in reverse order
#define arena_new_of(arena, Type) ((Type *)arena_alloc((arena), sizeof(Type)))
#define arena_array_of(arena, Type, count) ((Type *)arena_alloc((arena), sizeof(Type) * (count)))

/* ---- text ------------------------------------------------------------------------------ */

/* A growing string on the heap; zero-initialise, `buf_free` at the end. `data` is always
 * NUL-terminated once something was appended, and may be NULL before. */
typedef struct {
    char *data;
    size_t length, capacity;
} Buf;
void buf_append(Buf *buf, const void *data, size_t bytes);
void buf_puts(Buf *buf, const char *text);
void buf_printf(Buf *buf, const char *fmt, ...) PRINTF_LIKE(2, 3);
void buf_free(Buf *buf);
char *buf_take(Arena *arena, Buf *buf); // copies into the arena and frees `buf`; never NULL

bool text_starts_with(const char *text, const char *prefix);
bool text_ends_with(const char *text, const char *suffix);
/* The candidate nearest to `word` by edit distance, or NULL when none is near enough to be what
 * was meant ("did you mean f32?"). */
const char *text_nearest(const char *word, const char *const *candidates, size_t count);
bool text_is_utf8(const char *text, size_t bytes);

/* ---- JSON (jansson) --------------------------------------------------------------------- */

typedef json_t Json;
Json *json_owned(Arena *arena, Json *json); // decref'd with the arena; returns `json`
/* Compact, keys in insertion order, one line. Allocated from the arena. */
char *json_line(Arena *arena, const Json *json);
bool json_parse(Arena *arena, const char *text, size_t bytes, const char *where, Json **json,
                Error *err);
const char *json_text(const Json *object, const char *key, const char *otherwise);
double json_real_or(const Json *object, const char *key, double otherwise);
int64_t json_int_or(const Json *object, const char *key, int64_t otherwise);

/* ---- files ------------------------------------------------------------------------------ */

char *path_join(Arena *arena, const char *a, const char *b);
char *path_absolute(Arena *arena, const char *path); // works for a file that does not exist yet
const char *path_base(const char *path);
char *path_directory(Arena *arena, const char *path); // "." where there is none
bool path_exists(const char *path);
bool path_is_directory(const char *path);

/* `max_bytes` guards against feeding a 10 GB file to us; the error names the limit. The text is
 * NUL-terminated; `bytes` may be NULL. A missing or unreadable file is an ERROR_INPUT. */
bool file_read(Arena *arena, const char *path, size_t max_bytes, char **text, size_t *bytes,
               Error *err);
/* Writes to a temporary name beside `path`, fsyncs and renames: the old or the new, never half. */
bool file_write_atomic(const char *path, const void *data, size_t bytes, Error *err);
bool directory_make(const char *path, Error *err); // like mkdir -p
bool directory_remove(const char *path, Error *err); // like rm -rf; a missing one is fine
/* A fresh private directory below $TMPDIR or /tmp, mode 0700. */
char *directory_scratch(Arena *arena, const char *prefix, Error *err);
/* $XDG_CACHE_HOME/cutegen or ~/.cache/cutegen, created. */
char *directory_cache(Arena *arena, Error *err);

/* Exclusive advisory lock (flock) on `path`, created if need be. Waits while another process
 * holds it, unless `wait` is false. Returns the descriptor, or -1 with `err`; when not waiting
 * and somebody holds it, -1 with err->kind == ERROR_NONE. Close to release. */
int file_lock(const char *path, bool wait, Cancel *cancel, Error *err);

/* ---- hashing ---------------------------------------------------------------------------- */

/* SHA-256 as 64 hexadecimal digits. Content addresses protect against a hostile source, so the
 * hash is a cryptographic one. */
typedef struct { char hex[65]; } Hash;
typedef struct Hasher Hasher;
Hasher *hasher_new(void);
void hasher_add(Hasher *hasher, const void *data, size_t bytes);
void hasher_add_text(Hasher *hasher, const char *text); // length-prefixed: no two splits collide
Hash hasher_finish(Hasher *hasher);                     // frees it
Hash hash_bytes(const void *data, size_t bytes);
bool hash_file(const char *path, Hash *hash, Error *err);
bool random_bytes(void *out, size_t bytes, Error *err); // from the kernel

/* ---- time ------------------------------------------------------------------------------- */

double clock_seconds(void);                 // monotonic
char *clock_utc(Arena *arena);              // 2026-01-31T12:34:56.789Z
char *clock_utc_compact(Arena *arena);      // 20260131-123456

/* ---- processes -------------------------------------------------------------------------- */

/* Limits for untrusted children. Zero means "no limit of this kind". */
typedef struct {
    double cpu_s;
    size_t memory_bytes;  // address space (RLIMIT_AS); CUDA needs none of this: it maps terabytes
    size_t file_bytes;    // largest file it may write (RLIMIT_FSIZE)
    int open_files;
    int processes;
} Limits;

typedef struct {
    const char *const *argv;    // NULL-terminated; argv[0] is looked up in PATH
    const char *const *env;     // "NAME=value", NULL-terminated, added to the scrubbed environment
    bool keep_environment;      // not scrubbed: for the user's own command, never for ours
    const char *cwd;            // NULL: ours
    const char *input;          // fed to its standard input; NULL: /dev/null
    size_t input_bytes;
    double timeout_s;           // 0: none. At the limit the whole process group is killed
    size_t max_output_bytes;    // kept per stream; the rest is drained and dropped. 0: 4 MiB
    Limits limits;
    Cancel *cancel;
} ProcessOptions;

typedef struct {
    int exit_code;              // -1 if it did not exit by itself
    int signal;                 // 0 if it was not killed
    bool timed_out;
    bool output_truncated;
    char *out, *err;            // NUL-terminated, from the arena
    size_t out_bytes, err_bytes;
    double seconds;
} ProcessResult;

/* Runs a program to its end in its own process group with a scrubbed environment (PATH, HOME,
 * LANG, TMPDIR, CUDA_*, LD_LIBRARY_PATH; nothing that looks like a key), no_new_privs, and dies
 * with us. Returns false when it could not be started (the error names it) or was cancelled. */
bool process_run(Arena *arena, const ProcessOptions *options, ProcessResult *result, Error *err);

/* A child that lives on and is spoken to through pipes. */
typedef struct {
    pid_t pid;                  // also its process group; 0: none
    int to_child, from_child;   // -1 once closed; non-inheritable
    int stderr_file;            // an unlinked file that collects what it wrote to stderr
} Child;
bool child_start(const ProcessOptions *options, Child *child, Error *err);
/* Kills the group, reaps, closes. Safe to call twice. Fills `result`'s exit_code, signal, and
 * the first `max_output_bytes` of err where `result` is not NULL. */
void child_stop(Arena *arena, Child *child, ProcessResult *result);
/* Waits up to `seconds` for it to end by itself; true when it has ended (then stop still reaps). */
bool child_ended(Child *child, double seconds);

/* ---- log -------------------------------------------------------------------------------- */

/* A line that only developers want; goes to the file $CUTEGEN_LOG names, if any. Never secrets. */
void log_debug(const char *fmt, ...) PRINTF_LIKE(1, 2);
