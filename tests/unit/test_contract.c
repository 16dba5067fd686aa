/* test_contract.c - kernels that keep the contract link and are called; each way to break it shows
 * the symptom that docs/kernel-contract.md promises. Real nvcc, no CuTe: a second each.
 */
#include "build/build.h"
#include "task/task.h"

#include <dlfcn.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

typedef struct {
    Arena *arena;
    const char *scratch;
    Toolchain toolchain;
    Task task;
    Error err;
} World;

static int set_up(void **state) {
    World *w = calloc(1, sizeof(*w));
    assert_non_null(w);
    *state = w;
    w->arena = arena_new();
    w->scratch = directory_scratch(w->arena, "cutegen-test", &w->err);
    assert_non_null(w->scratch);
    if (!toolchain_find(w->arena, NULL, &w->toolchain, &w->err) ||
        !task_load(w->arena, SOURCE_ROOT "/tasks/row_softmax", &w->task, &w->err))
        fail_msg("%s", w->err.message);
    return 0;
}

static int tear_down(void **state) {
    World *w = *state;
    assert_true(directory_remove(w->scratch, &w->err));
    arena_free(w->arena);
    free(w);
    return 0;
}

static const char *write_file(World *w, const char *name, const char *text) {
    const char *path = path_join(w->arena, w->scratch, name);
    if (!file_write_atomic(path, text, strlen(text), &w->err)) fail_msg("%s", w->err.message);
    return path;
}

/* Compiles header, kernel and footer as a build does; what nvcc said is in `result`. */
static const char *compile(World *w, const char *kernel, ProcessResult *result) {
    static int number; // a fresh name each time: dlopen knows objects by name
    const char *object = arena_printf(w->arena, "%s/kernel%d.so", w->scratch, number++);
    write_file(w, "task.h", task_kernel_header(w->arena, &w->task));
    const char *source =
        write_file(w, "kernel.cu",
                   arena_printf(w->arena, "%s%s", kernel, task_kernel_footer(w->arena, &w->task)));
    const char *const argv[] = {w->toolchain.nvcc,
                                "-std=c++17",
                                "-O2",
                                "-shared",
                                "-cudart",
                                "shared",
                                "-arch=sm_90a",
                                "-Xcompiler",
                                "-fPIC,-Wall,-Wextra,-Werror,-Wno-unused-parameter",
                                "-Xlinker",
                                "-z,defs",
                                "-I",
                                w->scratch,
                                "-o",
                                object,
                                source,
                                NULL};
    ProcessOptions options = {.argv = argv, .cwd = w->scratch, .timeout_s = 120};
    if (!process_run(w->arena, &options, result, &w->err)) fail_msg("%s", w->err.message);
    return object;
}

#define PARAMETERS "const float *x, float *y, Dims dims, void *workspace, cudaStream_t stream"
/* "Launches" by leaving what it was given where the test finds it: in its output. */
#define GOOD_LAUNCH                                                                                \
    "#include \"task.h\"\n"                                                                        \
    "extern \"C\" cudaError_t launch(" PARAMETERS ") {\n"                                          \
    "    y[0] = x[0]; y[1] = dims.rows; y[2] = dims.cols;\n"                                       \
    "    *(cudaStream_t *)workspace = stream;\n"                                                   \
    "    return cudaErrorNotReady;\n}\n"

static void *opened(World *w, const char *kernel) {
    ProcessResult result;
    const char *object = compile(w, kernel, &result);
    if (result.exit_code != 0) fail_msg("%s%s", result.out, result.err);
    // As in the runner: the runtime first, wherever it lies, so that its soname is at hand.
    void *runtime = dlopen(BUILD_ROOT "/lib/cutegen/sim/libcudart.so.13", RTLD_NOW | RTLD_GLOBAL);
    if (!runtime) fail_msg("%s", dlerror());
    void *handle = dlopen(object, RTLD_NOW | RTLD_LOCAL);
    if (!handle) fail_msg("%s", dlerror());
    return handle;
}

static size_t workspace_of(void *handle, const int64_t *dims) {
    size_t (*ask)(const int64_t *);
    void *symbol = dlsym(handle, "cutegen_workspace_bytes_v1");
    assert_non_null(symbol);
    memcpy(&ask, &symbol, sizeof(ask));
    return ask(dims);
}

static void test_entry_passes_everything_on(void **state) {
    void *handle = opened(*state, GOOD_LAUNCH);
    int (*entry)(void *const *, const int64_t *, void *, size_t, void *);
    void *symbol = dlsym(handle, "cutegen_entry_v1");
    assert_non_null(symbol);
    memcpy(&entry, &symbol, sizeof(entry));

    float x[1] = {42}, y[3] = {0};
    void *tensors[] = {x, y}, *workspace = NULL;
    int64_t dims[] = {37, 1009};
    int stream;
    assert_int_equal(entry(tensors, dims, &workspace, sizeof(workspace), &stream), 600);
    assert_true(y[0] == 42 && y[1] == 37 && y[2] == 1009);
    assert_ptr_equal(workspace, &stream);
    assert_int_equal(workspace_of(handle, dims), 0); // it defines no workspace_bytes
    assert_null(dlsym(handle, "workspace_bytes"));
    dlclose(handle);
}

static void test_workspace_bytes_of_the_kernel_is_asked(void **state) {
    void *handle =
        opened(*state, GOOD_LAUNCH "size_t workspace_bytes(Dims dims) { return 4 * dims.cols; }\n");
    assert_int_equal(workspace_of(handle, (int64_t[]){37, 1009}), 4036);
    dlclose(handle);
}

static void test_extern_c_may_be_left_out(void **state) {
    void *handle = opened(*state, "#include \"task.h\"\n"
                                  "cudaError_t launch(" PARAMETERS ") { return cudaSuccess; }\n");
    dlclose(handle);
}

static void test_each_broken_launch_has_its_symptom(void **state) {
    static const struct {
        const char *kernel, *symptom;
    } cases[] = {
        {"#include \"task.h\"\n", "undefined reference to `launch'"},
        {"#include \"task.h\"\n\nextern \"C\" cudaError_t launch(const float *x, float *y, long "
         "n) { return cudaSuccess; }\n",
         "kernel.cu(3): error: more than one instance of overloaded function \"launch\" has \"C\" "
         "linkage"},
        {"#include \"task.h\"\ncudaError_t launch(const float *x, float *y) { return cudaSuccess; "
         "}\n",
         CONTRACT_FOOTER_FILE "(3): error: cannot determine which instance of overloaded function "
                              "\"launch\" is intended"},
        {"#include \"task.h\"\n\n\nextern \"C\" void launch(" PARAMETERS ") {}\n",
         "kernel.cu(4): error: cannot overload functions distinguished by return type alone"},
        {"#include \"task.h\"\nnamespace mine { cudaError_t launch(" PARAMETERS
         ") { return cudaSuccess; } }\n",
         "undefined reference to `launch'"},
        {GOOD_LAUNCH "extern \"C\" size_t workspace_bytes(int64_t rows) { return rows; }\n",
         "kernel.cu(7): error: more than one instance of overloaded function \"workspace_bytes\" "
         "has \"C\" linkage"},
    };
    World *w = *state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        ProcessResult result;
        compile(w, cases[i].kernel, &result);
        assert_int_not_equal(result.exit_code, 0);
        const char *said = arena_printf(w->arena, "%s%s", result.out, result.err);
        if (!strstr(said, cases[i].symptom)) fail_msg("no \"%s\" in:\n%s", cases[i].symptom, said);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_entry_passes_everything_on),
        TEST(test_workspace_bytes_of_the_kernel_is_asked),
        TEST(test_extern_c_may_be_left_out),
        TEST(test_each_broken_launch_has_its_symptom),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
