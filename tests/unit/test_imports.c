/* test_imports.c - what an object may import, and the reader of dynamic symbols on hostile files.
 */
#include "build/imports.h"
#include "support/object.h"

#include <elf.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

typedef struct {
    Arena *arena;
    const char *scratch;
    Error err;
} World;

static int set_up(void **state) {
    World *world = calloc(1, sizeof *world);
    assert_non_null(world);
    world->arena = arena_new();
    world->scratch = directory_scratch(world->arena, "cutegen-test", &world->err);
    assert_non_null(world->scratch);
    *state = world;
    return 0;
}

static int tear_down(void **state) {
    World *world = *state;
    assert_true(directory_remove(world->scratch, &world->err));
    arena_free(world->arena);
    free(world);
    return 0;
}

static char *compiled(World *world, const char *text, size_t *bytes) {
    char *data;
    const char *path = object_compile(world->arena, world->scratch, "object", text);
    assert_true(file_read(world->arena, path, (size_t)16 << 20, &data, bytes, &world->err));
    return data;
}

static bool imports(const DynamicImports *imports, const char *name) {
    for (int i = 0; i < imports->undefined_count; i++)
        if (strcmp(imports->undefined[i], name) == 0) return true;
    return false;
}

static void test_imports_and_libraries_of_a_real_object_are_found(void **state) {
    World *world = *state;
    size_t bytes;
    const char *why;
    DynamicImports found;
    char *data =
        compiled(world, "int launch(void) { return system(\"true\") + getpid(); }", &bytes);
    assert_true(imports_read(world->arena, data, bytes, &found, &why));
    assert_true(found.defines_launch);
    assert_true(imports(&found, "system"));
    assert_true(imports(&found, "getpid"));
    assert_false(imports(&found, "launch"));
    assert_int_equal(found.needed_count, 1);
    assert_string_equal(found.needed[0], "libc.so.6");
    assert_null(found.run_path);
}

static void test_object_that_defines_nothing_has_its_imports_found(void **state) {
    World *world = *state;
    size_t bytes;
    const char *why;
    DynamicImports found;
    char *data =
        compiled(world, "__attribute__((constructor)) static void f(void) { abort(); }", &bytes);
    assert_true(imports_read(world->arena, data, bytes, &found, &why));
    assert_false(found.defines_launch);
    assert_true(imports(&found, "abort"));
}

static void test_listed_names_are_exact(void **state) {
    (void)state;
    static const char *const allowed[] = {
        "memcpy",
        "expf",
        "__cudaRegisterFatBinary",
        "cudaFuncSetAttribute",
        "__assert_fail",
        "cudaGetDriverEntryPointByVersion",
        "_ZNSt8ios_base4InitC1Ev",
        "workspace_bytes",
        "_Znwm",
        "_ZSt21ios_base_library_initv",
        "cudaMemcpyAsync",
        "printf",
        "cudaLaunchKernelExC",
    };
    static const char *const forbidden[] = {
        "dlopen",
        "dlsym",
        "system",
        "syscall",
        "fork",
        "execve",
        "pthread_create",
        "fopen",
        "open",
        "read",
        "mmap",
        "mprotect",
        "getenv",
        "sleep",
        "clock_gettime",
        "socket",
        "ptrace",
        "_exit",
        "longjmp",
        "cublasGemmEx",
        "cudnnCreate",
        "cudaMalloc",
        "cudaMallocAsync",
        "cudaFree",
        "cudaDeviceSynchronize",
        "cudaStreamSynchronize",
        "cudaStreamCreate",
        "cudaEventRecord",
        "cudaPointerGetAttributes",
        "cudaMemcpy",
        "cudaGetExportTable",
        "cudaLibraryLoadData",
        "cuLaunchKernel",
        "memcpy2",
        "emcpy",
        "",
        "launch",
        "cutegen_entry_v1",
        "_ZNSt6thread15_M_start_threadESt10unique_ptrINS_6_StateESt14default_deleteIS1_EEPFvvE",
        "_ZNSt13basic_filebufIcSt11char_traitsIcEE4openEPKcSt13_Ios_Openmode",
    };
    for (size_t i = 0; i < COUNT_OF(allowed); i++)
        if (!import_allowed(allowed[i])) fail_msg("%s should be allowed", allowed[i]);
    for (size_t i = 0; i < COUNT_OF(forbidden); i++)
        if (import_allowed(forbidden[i])) fail_msg("%s should be forbidden", forbidden[i]);
    assert_true(library_allowed("libcudart.so.13"));
    assert_true(library_allowed("libcudart.so.12"));
    assert_false(library_allowed("libcublas.so.13"));
    assert_false(library_allowed("libcuda.so.1"));
    assert_false(library_allowed("./libm.so.6"));
}

static void test_every_truncation_is_refused_without_harm(void **state) {
    World *world = *state;
    size_t bytes;
    const char *why;
    DynamicImports found;
    char *data = compiled(world, "int launch(void) { return system(\"true\"); }", &bytes);
    size_t refused = 0;
    for (size_t length = 0; length < bytes; length += length < 1024 ? 1 : 97) {
        Arena *arena = arena_new();
        // A copy of exactly this length, so that the sanitizer sees a read past it.
        char *cut = malloc(length ? length : 1);
        assert_non_null(cut);
        memcpy(cut, data, length);
        why = NULL;
        if (!imports_read(arena, cut, length, &found, &why)) {
            assert_non_null(why);
            refused++;
        }
        free(cut);
        arena_free(arena);
    }
    assert_true(refused > 500);
}

static void test_flipped_bytes_never_crash_the_reader(void **state) {
    World *world = *state;
    size_t bytes;
    const char *why;
    DynamicImports found;
    char *data = compiled(world, "int launch(void) { return system(\"true\"); }", &bytes);
    uint32_t random = 12345;
    for (int round = 0; round < 20000; round++) {
        Arena *arena = arena_new();
        size_t places[3];
        char kept[3];
        for (int i = 0; i < 3; i++) {
            random = random * 1664525u + 1013904223u;
            places[i] = (random >> 8) % (round % 2 ? bytes : 1024); // the headers more often
            kept[i] = data[places[i]];
            data[places[i]] = (char)(random >> 3);
        }
        imports_read(arena, data, bytes, &found, &why);
        for (int i = 2; i >= 0; i--)
            data[places[i]] = kept[i];
        arena_free(arena);
    }
}

static void test_section_headers_that_lie_change_nothing(void **state) {
    World *world = *state;
    size_t bytes;
    const char *why;
    DynamicImports found;
    char *data = compiled(world, "int launch(void) { return system(\"true\"); }", &bytes);
    Elf64_Ehdr header;
    memcpy(&header, data, sizeof header);
    memset(data + header.e_shoff, 0, bytes - header.e_shoff);
    header.e_shoff = 0;
    header.e_shnum = 0;
    memcpy(data, &header, sizeof header);
    assert_true(imports_read(world->arena, data, bytes, &found, &why));
    assert_true(imports(&found, "system"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_listed_names_are_exact),
        cmocka_unit_test_setup_teardown(test_imports_and_libraries_of_a_real_object_are_found,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_object_that_defines_nothing_has_its_imports_found,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_every_truncation_is_refused_without_harm, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_flipped_bytes_never_crash_the_reader, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_section_headers_that_lie_change_nothing, set_up,
                                        tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
