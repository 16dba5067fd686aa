/* ptx_lines.h - which lines of source, through which functions, an instruction of PTX came from. */
#pragma once
#include "build/build.h"

/* One .loc directive: where the instructions after it come from. */
typedef struct {
    size_t offset;          // of the directive in the text
    int file, line, column;
    int function;           // index of the string that names the function, -1: not inlined
    int parent;             // the .loc of the call it was inlined at, -1: see call_*
    int call_file, call_line, call_column; // where it was inlined; 0: nowhere
} PtxLoc;

typedef struct {
    int loc_count;
    PtxLoc *locs;           // in the order of the text
    int file_count;
    const char **files;     // by number; NULL where there is none
    int string_count;
    const char **strings;   // .debug_str by number: mangled names
} PtxLines;

PtxLines ptx_lines_read(Arena *arena, const char *text, size_t bytes);

/* The index of the last .loc before `offset`, or -1. */
int ptx_loc_at(const PtxLines *lines, size_t offset);

/* The line of kernel.cu that the instruction at `offset` belongs to: the innermost call in the
 * chain that is written there; 0 if there is none. */
int ptx_user_line(const PtxLines *lines, size_t offset);

/* ptxas reports errors by the line of its own input. Adds kernel.cu's line and the instruction to
 * each such message in `log`: "ptxas k.ptx, line 50 (kernel.cu:6); error   : …; in: fma.rn.f32x3 …". */
char *ptx_explain_errors(Arena *arena, const char *log, const char *ptx_path);
