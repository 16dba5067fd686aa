/* build_world.c - see build_world.h. */
#include "support/build_world.h"

#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

int build_world_set_up(void **state) {
    World *world = calloc(1, sizeof *world);
    assert_non_null(world);
    world->arena = arena_new();
    *state = world;
    world->scratch = directory_scratch(world->arena, "cutegen-test", &world->err);
    assert_non_null(world->scratch);
    // A cache of its own, or nothing here would ever be built twice.
    setenv("XDG_CACHE_HOME", world->scratch, 1);
    assert_int_equal(chdir(SOURCE_ROOT), 0); // where .cache/ is, wherever the build directory lies
    if (!toolchain_find(world->arena, NULL, &world->toolchain, &world->err))
        fail_msg("%s", world->err.message);
    world->task = (Task){.path = "copy/task.yaml",
                         .directory = world->scratch,
                         .name = "copy",
                         .summary = "y = x",
                         .dim_count = 1,
                         .dim_names = {"n"},
                         .tensor_count = 2,
                         .input_count = 1};
    for (int i = 0; i < 2; i++)
        world->task.tensors[i] = (Tensor){.name = i ? "y" : "x",
                                          .dtype = DTYPE_F32,
                                          .is_output = i == 1,
                                          .rank = 1,
                                          .extent_text = {"n"}};
    return 0;
}

int build_world_tear_down(void **state) {
    World *world = *state;
    assert_true(directory_remove(world->scratch, &world->err));
    arena_free(world->arena);
    free(world);
    return 0;
}

bool try_build(World *world, const char *source, const BuildOptions *options, BuildResult *result) {
    return build_kernel(world->arena, &world->task, source, strlen(source), options, result,
                        &world->err);
}

BuildResult build(World *world, const char *source) {
    BuildOptions options = {.toolchain = &world->toolchain};
    BuildResult result;
    if (!try_build(world, source, &options, &result)) fail_msg("%s", world->err.message);
    return result;
}

void write_file(World *world, const char *path, const char *text) {
    if (!file_write_atomic(path, text, strlen(text), &world->err))
        fail_msg("%s", world->err.message);
}

char *read_text(World *world, const char *path) {
    char *text;
    if (!file_read(world->arena, path, (size_t)64 << 20, &text, NULL, &world->err))
        fail_msg("%s", world->err.message);
    return text;
}
