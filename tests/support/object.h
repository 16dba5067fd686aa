/* object.h - shared objects that tests make out of a few lines of C.
 *
 * What a runner loads need not come from nvcc: on the simulator device memory is host memory, so
 * plain C stands for a kernel, and building it takes a moment.
 */
#pragma once
#include "base/base.h"

/* Compiles `text` into directory/name.so with the C compiler and returns its path. Fails the test
 * if that does not work. `text` sees stdint.h, stddef.h and a few more headers of libc. */
const char *object_compile(Arena *arena, const char *directory, const char *name, const char *text);
