/* diagnostics.h - reads what compilers print and distils it for whoever repairs the kernel. */
#pragma once
#include "build/build.h"

#define DISTILLED_MAX_BYTES 2000
#define KERNEL_FILE "kernel.cu"

typedef struct {
    int count;
    const Diagnostic *items;   // errors in the order of their causes, then warnings
    const char *distilled;     // "" when there is nothing to say
} Diagnosis;

/* `log` is what cudafe++, cicc, gcc, ptxas and ld printed, in that manner; `source` the user's
 * text, to quote lines from. */
Diagnosis diagnose(Arena *arena, const char *log, const char *source);

/* The same of a source that was refused: where nothing in the log is known for an error (the
 * assembler and the linker have words of their own), its last line that speaks of one is it, or
 * the last line of all. So there is always an error to show. */
Diagnosis diagnose_refusal(Arena *arena, const char *log, const char *source);

/* `text` as valid UTF-8: one with a byte that is none loses all that is not ASCII. */
char *clean_text(Arena *arena, const char *text);

/* How many of `bytes` are shown when at most `max_bytes` may be: no character is split. An int, as
 * "%.*s" wants it. */
int shown_bytes(const char *text, size_t bytes, size_t max_bytes);

/* "/opt/x/include/cute/layout.hpp" gives "cute/layout.hpp"; the user's file is kernel.cu. */
const char *short_path(Arena *arena, const char *path);

/* Rewrites C++ types in CuTe's own notation, in one line:
 * cute::Layout<cute::tuple<cute::C<128>, int>, cute::tuple<cute::_1, int>> as (_128,int):(_1,int).
 * Cuts to `max_bytes` with an ellipsis. */
char *cute_notation(Arena *arena, const char *text, size_t max_bytes);
