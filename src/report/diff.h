/* diff.h - private to report/: what changed between two sources, line by line.
 */
#pragma once
#include "base/base.h"

typedef struct {
    char mark;        // ' ' kept, '-' only in the old one, '+' only in the new one
    int line;         // 1-based, in the old source for '-', else in the new one
    const char *text; // not terminated
    size_t bytes;
} DiffLine;

typedef struct {
    DiffLine *lines;
    size_t count;
    int added, removed;
} Diff;

Diff diff_lines(Arena *arena, const char *old_text, const char *new_text);
