/* figures.h - what ptxas says about each kernel. */
#pragma once
#include "build/build.h"

/* Reads the output of `ptxas -v`; names are demangled. */
const KernelFigures *figures_parse(Arena *arena, const char *log, int *count);

/* Demangles each of `names` in place, through c++filt; those it does not know stay as they are,
 * but for bytes that are not printable text. */
void demangle_names(Arena *arena, const char **names, int count);
