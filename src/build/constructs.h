/* constructs.h - which CuTe constructs a built kernel really uses. */
#pragma once
#include "build/build.h"

/* Reads them from the object and puts them into `result`. */
void constructs_find(Arena *arena, const void *object, size_t bytes, BuildResult *result);
