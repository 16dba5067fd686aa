/* test_build_cache.c - what the build cache keeps and what it does not; references. */
#include "support/build_world.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* ---- the cache ------------------------------------------------------------------------------ */

static const char kQuickError[] = "#include \"task.h\"\n#include <extra.h>\n"
                                  "int broken = nothing + EXTRA;\n";

/* A header tree of our own, in place of CUTLASS's. */
static char *own_header(World *world, const char *text) {
    char *include = path_join(world->arena, world->scratch, "include");
    assert_true(directory_make(include, &world->err));
    world->toolchain.cutlass_include = include;
    char *path = path_join(world->arena, include, "extra.h");
    write_file(world, path, text);
    // The cache trusts no header that changed while it was building.
    struct timespec past[2] = {{.tv_sec = 1000000}, {.tv_sec = 1000000}};
    assert_int_equal(utimensat(AT_FDCWD, path, past, 0), 0);
    return path;
}

static void test_changed_header_is_noticed_and_touched_header_is_not(void **state) {
    World *world = *state;
    char *header = own_header(world, "#define EXTRA 1\n");
    assert_false(build(world, kQuickError).from_cache);
    assert_true(build(world, kQuickError).from_cache);
    struct timespec other[2] = {{.tv_sec = 2000000}, {.tv_sec = 2000000}};
    assert_int_equal(utimensat(AT_FDCWD, header, other, 0), 0);
    assert_true(build(world, kQuickError).from_cache);
    own_header(world, "#define EXTRA 2\n");
    assert_false(build(world, kQuickError).from_cache);
    assert_true(build(world, kQuickError).from_cache);
}

static void test_sources_that_reach_for_untracked_files_are_not_kept(void **state) {
    World *world = *state;
    own_header(world, "#define EXTRA 1\n");
    static const char *const reaches[] = {
        "#include \"../beside.h\"\n",
        "#if __has_include(\"other.h\")\n#endif\n",
        "asm(\".incbin \\\"/etc/hostname\\\"\");\n",
        "# 1 \"/dev/zero\" 1\n# 2 \"kernel.cu\" 2\n",
    };
    char *beside = path_join(world->arena, world->scratch, "beside.h");
    write_file(world, beside, "");
    setenv("TMPDIR", world->scratch, 1); // so that it is one step above the build
    for (size_t i = 0; i < COUNT_OF(reaches); i++) {
        char *source = arena_printf(world->arena, "%s%s", reaches[i], kQuickError);
        for (int turn = 0; turn < 2; turn++) {
            BuildResult result = build(world, source);
            assert_int_equal(result.status, BUILD_COMPILE_ERROR);
            if (!strstr(result.distilled, "nothing")) fail_msg("%s", result.distilled);
            assert_false(result.from_cache);
        }
    }
    unsetenv("TMPDIR");
}

static void test_damaged_entries_are_built_again(void **state) {
    World *world = *state;
    own_header(world, "#define EXTRA 1\n");
    BuildResult result = build(world, kQuickError);
    char *json =
        path_join(world->arena, path_directory(world->arena, result.log_path), "result.json");
    char *good = read_text(world, json);
    char *other_version = arena_string(world->arena, good);
    memcpy(strstr(other_version, "\"schema\":2"), "\"schema\":9", 10);
    const char *damaged[] = {"",
                             "{",
                             "[]",
                             "{\"schema\":2}",
                             arena_string_n(world->arena, good, strlen(good) / 2),
                             other_version};
    for (size_t i = 0; i < COUNT_OF(damaged); i++) {
        write_file(world, json, damaged[i]);
        assert_false(build(world, kQuickError).from_cache);
    }
    assert_true(build(world, kQuickError).from_cache);
    write_file(world, result.log_path, "another log\n");
    assert_false(build(world, kQuickError).from_cache);
    assert_int_equal(unlink(result.log_path), 0);
    assert_false(build(world, kQuickError).from_cache);
}

static void test_object_that_is_not_the_one_kept_is_built_again(void **state) {
    World *world = *state;
    const char *source = "#include \"task.h\"\n" PLAIN_KERNEL LAUNCH;
    BuildResult first = build(world, source);
    char *data;
    size_t bytes;
    Hash hash;
    assert_true(
        file_read(world->arena, first.object, (size_t)64 << 20, &data, &bytes, &world->err));
    data[bytes / 2] ^= 1;
    Hash other = hash_bytes(data, bytes);
    assert_true(file_write_atomic(first.object, data, bytes, &world->err));
    BuildResult second = build(world, source);
    assert_false(second.from_cache);
    assert_true(hash_file(second.object, &hash, &world->err));
    assert_string_not_equal(hash.hex, other.hex);
    assert_true(build(world, source).from_cache);
}

static void test_no_cache_builds_again(void **state) {
    World *world = *state;
    own_header(world, "#define EXTRA 1\n");
    build(world, kQuickError);
    BuildOptions options = {.toolchain = &world->toolchain, .no_cache = true};
    BuildResult result;
    assert_true(try_build(world, kQuickError, &options, &result));
    assert_false(result.from_cache);
}

static void test_two_processes_build_one_source_once(void **state) {
    World *world = *state;
    own_header(world, "#define EXTRA 1\n");
    pid_t children[2];
    for (int i = 0; i < 2; i++) {
        children[i] = fork();
        assert_true(children[i] >= 0);
        if (children[i] == 0) {
            BuildOptions options = {.toolchain = &world->toolchain};
            BuildResult result;
            bool good = try_build(world, kQuickError, &options, &result);
            _exit(good ? result.from_cache : 2);
        }
    }
    int cached = 0;
    for (int i = 0; i < 2; i++) {
        int status;
        assert_int_equal(waitpid(children[i], &status, 0), children[i]);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) <= 1);
        cached += WEXITSTATUS(status);
    }
    assert_int_equal(cached, 1);
}

/* ---- references -------------------------------------------------------------------------------
 */

static void test_reference_is_built_in_double_and_float_once(void **state) {
    World *world = *state;
    world->task.reference_path = path_join(world->arena, world->scratch, "reference.c");
    write_file(
        world, world->task.reference_path,
        "#include \"reference.h\"\n"
        "void reference(const Inputs *in, Outputs *out, const Dims *dims, int64_t begin, "
        "int64_t end) {\n"
        "    (void)dims;\n    for (int64_t i = begin; i < end; i++) out->y[i] = in->x[i];\n}\n");
    BuildOptions options = {.toolchain = &world->toolchain};
    const char *objects[2], *again[2];
    if (!build_reference(world->arena, &world->task, &options, &objects[0], &objects[1],
                         &world->err))
        fail_msg("%s", world->err.message);
    assert_string_not_equal(objects[0], objects[1]);
    assert_true(path_exists(objects[0]) && path_exists(objects[1]));
    double start = clock_seconds();
    assert_true(
        build_reference(world->arena, &world->task, &options, &again[0], &again[1], &world->err));
    assert_true(clock_seconds() - start < 0.1);
    assert_string_equal(again[0], objects[0]);
}

static void test_header_beside_a_reference_is_part_of_it(void **state) {
    World *world = *state;
    world->task.reference_path = path_join(world->arena, world->scratch, "reference.c");
    char *header = path_join(world->arena, world->scratch, "scale.h");
    write_file(world, world->task.reference_path,
               "#include \"reference.h\"\n#include \"scale.h\"\n"
               "void reference(const Inputs *in, Outputs *out, const Dims *dims, int64_t begin, "
               "int64_t end) {\n    (void)dims, (void)begin, (void)end;\n"
               "    out->y[0] = SCALE * in->x[0];\n}\n");
    BuildOptions options = {.toolchain = &world->toolchain};
    const char *objects[2];
    Hash hashes[2];
    for (int i = 0; i < 2; i++) {
        write_file(world, header, i ? "#define SCALE 3\n" : "#define SCALE 2\n");
        if (!build_reference(world->arena, &world->task, &options, &objects[0], &objects[1],
                             &world->err))
            fail_msg("%s", world->err.message);
        assert_true(hash_file(objects[0], &hashes[i], &world->err));
    }
    assert_string_not_equal(hashes[0].hex, hashes[1].hex);
}

/* Has the reference in `object` compute one element. */
static void call_reference(const char *object, const void *x, void *y) {
    void *handle = dlopen(object, RTLD_NOW | RTLD_LOCAL);
    if (!handle) fail_msg("%s", dlerror());
    void (*reference)(const void *, void *, const void *, int64_t, int64_t);
    *(void **)&reference = dlsym(handle, "reference");
    assert_non_null(reference);
    const void *inputs[] = {x};
    void *outputs[] = {y};
    int64_t dims[] = {1};
    reference(inputs, outputs, dims, 0, 1);
    assert_int_equal(dlclose(handle), 0);
}

static void test_literals_of_a_reference_are_of_its_real(void **state) {
    World *world = *state;
    world->task.reference_path = path_join(world->arena, world->scratch, "reference.c");
    write_file(world, world->task.reference_path,
               "#include \"reference.h\"\n"
               "void reference(const Inputs *in, Outputs *out, const Dims *dims, int64_t begin, "
               "int64_t end) {\n    (void)dims, (void)begin, (void)end;\n"
               "    out->y[0] = (in->x[0] + 1e-9) - 1.0;\n}\n");
    BuildOptions options = {.toolchain = &world->toolchain};
    const char *objects[2];
    if (!build_reference(world->arena, &world->task, &options, &objects[0], &objects[1],
                         &world->err))
        fail_msg("%s", world->err.message);
    double x = 1, y = 0;
    float x_float = 1, y_float = 7;
    call_reference(objects[0], &x, &y);
    call_reference(objects[1], &x_float, &y_float);
    assert_true(y > 0.9e-9 && y < 1.1e-9);
    assert_true(y_float == 0); // 1e-9 is lost in a float sum, and was not in a double one
}

static void test_faulty_reference_is_an_input_error_with_the_users_line(void **state) {
    World *world = *state;
    world->task.reference_path = path_join(world->arena, world->scratch, "reference.c");
    write_file(world, world->task.reference_path,
               "#include \"reference.h\"\n"
               "void reference(const Inputs *in, Outputs *out, const Dims *dims, int64_t begin, "
               "int64_t end) {\n    out->y[0] = in->z[0];\n}\n");
    BuildOptions options = {.toolchain = &world->toolchain};
    const char *objects[2];
    assert_false(build_reference(world->arena, &world->task, &options, &objects[0], &objects[1],
                                 &world->err));
    assert_int_equal(world->err.kind, ERROR_INPUT);
    assert_true(text_starts_with(world->err.message, "copy/reference.c:3:"));
    assert_non_null(strstr(world->err.message, "has no member named"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_changed_header_is_noticed_and_touched_header_is_not),
        TEST(test_sources_that_reach_for_untracked_files_are_not_kept),
        TEST(test_damaged_entries_are_built_again),
        TEST(test_object_that_is_not_the_one_kept_is_built_again),
        TEST(test_no_cache_builds_again),
        TEST(test_two_processes_build_one_source_once),
        TEST(test_reference_is_built_in_double_and_float_once),
        TEST(test_header_beside_a_reference_is_part_of_it),
        TEST(test_literals_of_a_reference_are_of_its_real),
        TEST(test_faulty_reference_is_an_input_error_with_the_users_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
