/* imports.h - what a shared object asks of others, read without loading it. */
#pragma once
#include "build/build.h"

typedef struct {
    int undefined_count;
    const char **undefined;     // names of undefined dynamic symbols, sorted
    int needed_count;
    const char **needed;        // DT_NEEDED
    const char *run_path;       // DT_RPATH or DT_RUNPATH, or NULL
    bool defines_launch;
} DynamicImports;

/* The object comes from untrusted source: every offset is checked. False when it is not an x86-64
 * shared object of the usual form; `why` says what is wrong with it. */
bool imports_read(Arena *arena, const void *object, size_t bytes, DynamicImports *imports,
                  const char **why);

/* True when a kernel may import `symbol` (imports.def, exact names). */
bool import_allowed(const char *symbol);
bool library_allowed(const char *needed);
