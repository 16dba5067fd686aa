/* toolchain.h - what the rest of build/ needs to know about the compilers that were found. */
#pragma once
#include "build/build.h"

/* The oldest nvcc whose objects the runner and the simulator know: 12.8. */
#define OLDEST_NVCC 12080

/* Adds everything about the compilers that can change what they produce: versions, and size and
 * time of each binary, so that an upgrade in place is noticed without running them. */
void toolchain_fingerprint(Arena *arena, const Toolchain *toolchain, Hasher *hasher);

/* "Cuda compilation tools, release 13.0, V13.0.88" gives 13000 and "13.0.88"; 0 when the text is
 * not from nvcc. */
int nvcc_version_parse(Arena *arena, const char *text, const char **full);

/* "9.0a", "90a", "compute_90a" and "sm_90a" give "sm_90a". */
bool arch_parse(Arena *arena, const char *text, const char **arch, Error *err);

/* The virtual architecture of "sm_90a": "compute_90a". */
char *arch_virtual(Arena *arena, const char *arch);
