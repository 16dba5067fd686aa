/* records.h - what compilers print, as records: one per error or warning, nothing judged yet. */
#pragma once
#include "build/diagnostics.h"

/* A step on the way from the user's code to the place of the error. */
typedef struct {
    const char *what;           // "instantiation of \"void cute::copy(…)\"", without the quotes
    const char *file;
    int line;
} Context;

typedef struct {
    DiagnosticLevel level;
    const char *file;           // as printed; "" when it is nowhere
    int line, column;
    const char *message;
    const char *detail;         // further lines of the message, joined by "; ", or NULL
    const char *snippet;        // the compiler's own quotation of the line, or NULL
    int caret;                  // 0-based column in `snippet`, -1: none
    int context_count;
    Context *contexts;              // innermost first
    const char *note;           // the first note's message, or NULL
    const char *note_file;
    int note_line;
} Record;

typedef struct {
    int count;
    Record *items;
} RecordList;

/* Reads up to a few hundred records; a log may be megabytes of consequences. */
RecordList records_parse(Arena *arena, const char *log);
