/* names.h - which names a task may use. Private to task/. */
#pragma once
#include "task/task.h"

#define NAME_MAX_LENGTH 63 // reports carry tensor names in 64 bytes

/* Names of dimensions and tensors become C and CUDA identifiers. NULL when `name` will do, else
 * what is wrong with it, as words that follow it: "is a keyword of C++". */
const char *identifier_problem(const char *name);
/* A task's own name becomes part of file names. */
const char *task_name_problem(const char *name);
/* What people write for a type elsewhere ("float32", "half"), or NULL. */
const char *dtype_synonym(const char *name);
