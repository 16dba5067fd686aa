/* build_world.h - the world that tests of build/ share: the real compilers, an empty cache, and a
 * task "copy" (y = x) whose sources need no CuTe, so that most builds take a second.
 */
#pragma once
#include "build/build.h"

#define LAUNCH                                                                                     \
    "extern \"C\" cudaError_t launch(const float *x, float *y, Dims dims, void *, cudaStream_t s)" \
    " {\n    kernel<<<1, 128, 0, s>>>(x, y, dims.n);\n    return cudaGetLastError();\n}\n"
#define PLAIN_KERNEL                                                                               \
    "__global__ void kernel(const float *x, float *y, int64_t n) {\n"                              \
    "    if (threadIdx.x < n) y[threadIdx.x] = x[threadIdx.x];\n}\n"

typedef struct {
    Arena *arena;
    const char *scratch;
    Toolchain toolchain;
    Task task;
    Error err;
} World;

int build_world_set_up(void **state);
int build_world_tear_down(void **state);
bool try_build(World *world, const char *source, const BuildOptions *options, BuildResult *result);
BuildResult build(World *world, const char *source); // fails the test on a failure of ours
void write_file(World *world, const char *path, const char *text);
char *read_text(World *world, const char *path);

#define TEST(name) cmocka_unit_test_setup_teardown(name, build_world_set_up, build_world_tear_down)
