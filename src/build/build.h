/* build.h - turns a kernel's source into a shared object, or into a diagnosis.
 *
 * nvcc's host and device passes run beside each other; results, failures too, are cached by
 * content. Nothing that is built here is ever loaded into this process.
 */
#pragma once
#include "base/base.h"
#include "task/task.h"

typedef struct {
    const char *nvcc;           // absolute
    int version;                // 13000 for 13.0
    const char *cutlass_include;// absolute
    const char *identity;       // "nvcc 13.0.88, gcc 12.2.0": part of every cache key
    const char *arch;           // "sm_90a"
    const char *cc;             // the C compiler for references
} Toolchain;

/* Looks for nvcc (>= 12.8) in $CUDA_HOME, PATH, /usr/local/cuda, the project's .cache/, then for
 * CUTLASS headers ($CUTLASS_PATH, .cache/). `arch` NULL means sm_90a; "9.0a" is accepted. The
 * error says what is missing and how to get it. */
bool toolchain_find(Arena *arena, const char *arch, Toolchain *toolchain, Error *err);
/* The same without nvcc: enough to compile references. */
bool toolchain_find_host(Arena *arena, Toolchain *toolchain, Error *err);

typedef enum { DIAGNOSTIC_ERROR, DIAGNOSTIC_WARNING } DiagnosticLevel;
typedef struct {
    DiagnosticLevel level;
    const char *file;           // "kernel.cu" for the user's source, else the header's short path
    int line, column;           // 0: unknown
    const char *message;
    const char *frames;         // the instantiation frames that matter, a line each, or NULL
    int user_line;              // the nearest line of kernel.cu in the chain; 0: none
} Diagnostic;

typedef struct {
    const char *kernel;         // demangled
    int registers, shared_bytes, spill_store_bytes, spill_load_bytes, stack_bytes;
} KernelFigures;

typedef enum {
    BUILD_OK,
    BUILD_COMPILE_ERROR,        // diagnostics say where
    BUILD_FORBIDDEN,            // an import outside the list; `forbidden` names them
    BUILD_TIMEOUT,              // the compiler did not end; the kernel is to blame
} BuildStatus;

typedef struct {
    BuildStatus status;
    Hash key;                   // of everything that went in
    const char *object;         // absolute path in the cache; NULL unless BUILD_OK
    int diagnostic_count;
    const Diagnostic *diagnostics;
    const char *distilled;      // what a repairer is shown: <= 2,000 characters
    const char *log_path;       // the whole compiler output, in the cache
    int forbidden_count;
    const char *const *forbidden;   // symbol names, demangled
    int figure_count;
    const KernelFigures *figures;
    int construct_count;
    const char *const *constructs;  // CuTe constructs found in the object: "tiled_copy", …
    bool from_cache;
    double seconds;             // of this call
    double compiler_seconds;    // nvcc's share when it was built
} BuildResult;

typedef struct {
    const Toolchain *toolchain;
    double timeout_s;           // what one compiler may compute, 0: 120; thrice that by the clock
    bool no_cache;
    Cancel *cancel;
} BuildOptions;

/* Builds `source` as an answer to `task`. One process builds a given key, others wait for it.
 * Returns false on our own failures alone (compiler missing, disk full), with `err` set. */
bool build_kernel(Arena *arena, const Task *task, const char *source, size_t source_bytes,
                  const BuildOptions *options, BuildResult *result, Error *err);

/* Compiles reference.c twice, in double and in float. A reference that does not compile is an
 * ERROR_INPUT that carries the compiler's first error with the user's file and line. */
bool build_reference(Arena *arena, const Task *task, const BuildOptions *options,
                     const char **double_object, const char **float_object, Error *err);
