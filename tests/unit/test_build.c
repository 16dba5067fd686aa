/* test_build.c - builds with the real nvcc: results, and what goes wrong.
 *
 * Sources that do not need CuTe do not include it, so that most builds take a second.
 */
#include "build/imports.h"
#include "build/nvcc.h"
#include "build/toolchain.h"
#include "support/build_world.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static DynamicImports read_imports(World *world, const char *object) {
    char *data;
    size_t bytes;
    DynamicImports imports;
    const char *why;
    assert_true(file_read(world->arena, object, (size_t)64 << 20, &data, &bytes, &world->err));
    assert_true(imports_read(world->arena, data, bytes, &imports, &why));
    return imports;
}

/* ---- good kernels -------------------------------------------------------------------------- */

static const char kCuteKernel[] =
    "#include \"task.h\"\n"
    "#include <cute/tensor.hpp>\n"
    "using namespace cute;\n"
    "template <int kTile>\n"
    "__global__ void copy_kernel(const float *x, float *y, int n) {\n"
    "    Tensor g_x = make_tensor(make_gmem_ptr(x), make_layout(n));\n"
    "    Tensor g_y = make_tensor(make_gmem_ptr(y), make_layout(n));\n"
    "    Tensor t_x = local_tile(g_x, Shape<Int<kTile>>{}, make_coord(blockIdx.x));\n"
    "    Tensor t_y = local_tile(g_y, Shape<Int<kTile>>{}, make_coord(blockIdx.x));\n"
    "    auto copier = make_tiled_copy(Copy_Atom<UniversalCopy<uint128_t>, float>{},\n"
    "                                  Layout<_64>{}, Layout<_4>{});\n"
    "    auto thread = copier.get_slice(threadIdx.x);\n"
    "    copy(copier, thread.partition_S(t_x), thread.partition_D(t_y));\n"
    "}\n"
    "extern \"C\" cudaError_t launch(const float *x, float *y, Dims dims, void *, cudaStream_t s) "
    "{\n"
    "    copy_kernel<256><<<unsigned(dims.n / 256), 64, 0, s>>>(x, y, int(dims.n));\n"
    "    return cudaGetLastError();\n"
    "}\n";

static bool has_construct(const BuildResult *result, const char *name) {
    for (int i = 0; i < result->construct_count; i++)
        if (strcmp(result->constructs[i], name) == 0) return true;
    return false;
}

static void test_cute_kernel_is_built_with_figures_and_constructs_and_then_cached(void **state) {
    World *world = *state;
    BuildResult first = build(world, kCuteKernel);
    assert_int_equal(first.status, BUILD_OK);
    assert_string_equal(first.distilled, "");
    assert_false(first.from_cache);
    assert_true(path_exists(first.object));
    assert_true(path_exists(first.log_path));
    assert_int_equal(first.figure_count, 1);
    assert_string_equal(first.figures[0].kernel, "copy_kernel<256>");
    assert_in_range(first.figures[0].registers, 4, 64);
    assert_int_equal(first.figures[0].spill_store_bytes, 0);
    assert_true(has_construct(&first, "copy"));
    assert_true(has_construct(&first, "tiled_copy"));
    assert_true(has_construct(&first, "UniversalCopy"));
    assert_false(has_construct(&first, "gemm"));
    assert_false(has_construct(&first, "swizzle"));

    BuildResult second = build(world, kCuteKernel);
    assert_true(second.from_cache);
    assert_true(second.seconds < 0.3);
    assert_string_equal(second.key.hex, first.key.hex);
    assert_string_equal(second.object, first.object);
    assert_string_equal(second.log_path, first.log_path);
    assert_int_equal(second.figure_count, 1);
    assert_string_equal(second.figures[0].kernel, first.figures[0].kernel);
    assert_int_equal(second.figures[0].registers, first.figures[0].registers);
    assert_int_equal(second.construct_count, first.construct_count);
}

static CompileOutcome compile_in(World *world, const char *name, bool plain) {
    char *directory = path_join(world->arena, world->scratch, name);
    assert_true(directory_make(directory, &world->err));
    write_file(world, path_join(world->arena, directory, "kernel.cu"), kCuteKernel);
    write_file(world, path_join(world->arena, directory, "task.h"),
               task_kernel_header(world->arena, &world->task));
    CompileJob job = {.toolchain = &world->toolchain,
                      .scratch = directory,
                      .cpu_s = 120,
                      .deadline = clock_seconds() + 360,
                      .plain = plain};
    CompileOutcome outcome;
    if (!nvcc_compile(world->arena, &job, &outcome, &world->err))
        fail_msg("%s", world->err.message);
    assert_int_equal(outcome.status, COMPILE_OK);
    return outcome;
}

static void test_passes_side_by_side_give_what_plain_nvcc_gives(void **state) {
    World *world = *state;
    CompileOutcome beside = compile_in(world, "beside", false);
    CompileOutcome plain = compile_in(world, "plain", true);
    assert_true(beside.beside);
    assert_false(plain.beside);
    DynamicImports a = read_imports(world, beside.object), b = read_imports(world, plain.object);
    assert_int_equal(a.undefined_count, b.undefined_count);
    for (int i = 0; i < a.undefined_count; i++)
        assert_string_equal(a.undefined[i], b.undefined[i]);
    assert_true(a.defines_launch);
    assert_true(b.defines_launch);
}

/* ---- kernels that are refused ---------------------------------------------------------------- */

static void test_compile_error_names_the_line_and_is_cached(void **state) {
    World *world = *state;
    const char *source = "#include \"task.h\"\n" PLAIN_KERNEL "int broken = nothing;\n" LAUNCH;
    BuildResult first = build(world, source);
    assert_int_equal(first.status, BUILD_COMPILE_ERROR);
    assert_null(first.object);
    assert_int_equal(first.diagnostic_count, 1);
    assert_int_equal(first.diagnostics[0].line, 5);
    assert_string_equal(first.distilled,
                        "kernel.cu:5:14: error: identifier \"nothing\" is undefined\n"
                        "    5 | int broken = nothing;\n"
                        "      |              ^\n");
    BuildResult second = build(world, source);
    assert_true(second.from_cache);
    assert_int_equal(second.status, BUILD_COMPILE_ERROR);
    assert_string_equal(second.distilled, first.distilled);
    assert_int_equal(second.diagnostics[0].column, 14);
}

static void test_error_in_host_code_only_is_found(void **state) {
    World *world = *state;
    BuildResult result =
        build(world, "#include \"task.h\"\n" PLAIN_KERNEL
                     "#ifndef __CUDA_ARCH__\nint broken = nothing;\n#endif\n" LAUNCH);
    assert_int_equal(result.status, BUILD_COMPILE_ERROR);
    assert_int_equal(result.diagnostics[0].line, 6);
}

static void test_kernel_without_launch_is_told_the_signature(void **state) {
    World *world = *state;
    BuildResult result = build(world, "#include \"task.h\"\n" PLAIN_KERNEL);
    assert_int_equal(result.status, BUILD_COMPILE_ERROR);
    char *expected =
        arena_printf(world->arena, "kernel.cu defines no launch(...); expected is\n%s\n",
                     task_launch_signature(world->arena, &world->task));
    assert_string_equal(result.distilled, expected);
}

static void test_launch_of_another_signature_is_told_the_right_one(void **state) {
    World *world = *state;
    BuildResult result = build(world, "#include \"task.h\"\n" PLAIN_KERNEL
                                      "extern \"C\" cudaError_t launch(float *y, int n) {\n"
                                      "    return cudaSuccess;\n}\n");
    assert_int_equal(result.status, BUILD_COMPILE_ERROR);
    assert_int_equal(result.diagnostics[0].line, 5);
    assert_non_null(strstr(result.distilled, task_launch_signature(world->arena, &world->task)));
}

static void test_forbidden_imports_are_named_with_advice_and_not_given_out(void **state) {
    World *world = *state;
    const char *source = "#include \"task.h\"\n#include <unistd.h>\n" PLAIN_KERNEL
                         "extern \"C\" cudaError_t launch(const float *x, float *y, Dims dims, "
                         "void *, cudaStream_t s) {\n"
                         "    void *more;\n    if (getppid() == 1) return cudaErrorUnknown;\n"
                         "    return cudaMalloc(&more, dims.n);\n}\n";
    BuildResult result = build(world, source);
    assert_int_equal(result.status, BUILD_FORBIDDEN);
    assert_null(result.object);
    assert_int_equal(result.forbidden_count, 2);
    assert_string_equal(result.forbidden[0], "cudaMalloc");
    assert_string_equal(result.forbidden[1], "getppid");
    assert_string_equal(result.distilled,
                        "kernel.cu uses cudaMalloc, which a kernel may not import; ask for memory "
                        "with workspace_bytes() instead\n"
                        "kernel.cu uses getppid, which a kernel may not import\n");
    result = build(world, source);
    assert_true(result.from_cache);
    assert_int_equal(result.status, BUILD_FORBIDDEN);
    assert_int_equal(result.forbidden_count, 2);
}

static void test_name_that_is_no_text_is_forbidden_like_any_other(void **state) {
    World *world = *state;
    const char *source =
        "#include \"task.h\"\n" PLAIN_KERNEL
        "#ifndef __CUDA_ARCH__\nextern \"C\" void h() asm(\"\\xff\\xfez\");\n#endif\n"
        "extern \"C\" cudaError_t launch(const float *x, float *y, Dims dims, "
        "void *, cudaStream_t s) {\n"
        "#ifndef __CUDA_ARCH__\n    h();\n#endif\n    return cudaSuccess;\n}\n";
    for (int i = 0; i < 2; i++) {
        BuildResult result = build(world, source);
        assert_int_equal(result.from_cache, i);
        assert_int_equal(result.status, BUILD_FORBIDDEN);
        assert_int_equal(result.forbidden_count, 1);
        assert_string_equal(result.forbidden[0], "??z");
        assert_string_equal(result.distilled,
                            "kernel.cu uses ??z, which a kernel may not import\n");
    }
}

static void test_what_is_not_source_is_refused_without_a_compiler(void **state) {
    World *world = *state;
    char *huge = arena_alloc(world->arena, (size_t)10 << 20);
    memset(huge, 'x', (size_t)10 << 20);
    const struct {
        const char *source;
        size_t bytes;
        const char *message;
    } cases[] = {
        {"", 0, "kernel.cu: error: the file is empty\n"},
        {" \n\t\n", 4, "kernel.cu: error: the file is empty\n"},
        {"int x;\n\0\1", 9,
         "kernel.cu:2: error: this is a binary file, not CUDA source (it holds "
         "a zero byte)\n"},
        {"int x;\n\n\xff", 9, "kernel.cu:3: error: this is not UTF-8 text\n"},
        {huge, (size_t)10 << 20,
         "kernel.cu: error: the file has 10485760 bytes; at most 1048576 "
         "are taken\n"},
    };
    Toolchain none = {.nvcc = "/nonexistent/nvcc",
                      .arch = "sm_90a",
                      .identity = "none",
                      .cutlass_include = "/nonexistent",
                      .cc = "/nonexistent/cc"};
    BuildOptions options = {.toolchain = &none};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        BuildResult result;
        assert_true(build_kernel(world->arena, &world->task, cases[i].source, cases[i].bytes,
                                 &options, &result, &world->err));
        assert_int_equal(result.status, BUILD_COMPILE_ERROR);
        assert_string_equal(result.distilled, cases[i].message);
    }
}

static void test_source_without_final_newline_or_with_final_backslash_is_built(void **state) {
    World *world = *state;
    BuildResult result = build(world, "#include \"task.h\"\n" PLAIN_KERNEL LAUNCH "// end \\");
    assert_int_equal(result.status, BUILD_OK);
}

/* ---- the machine's faults ---------------------------------------------------------------------
 */

/* An nvcc that is the real one, but for a cicc that is a shell script. */
static void replace_cicc(World *world, const char *script) {
    char *bin = path_join(world->arena, world->scratch, "bin");
    assert_true(directory_make(bin, &world->err));
    char *cicc = path_join(world->arena, bin, "cicc"), *nvcc = path_join(world->arena, bin, "nvcc");
    write_file(world, cicc, arena_printf(world->arena, "#!/bin/sh\n%s\n", script));
    write_file(world, nvcc,
               arena_printf(world->arena,
                            "#!/bin/sh\n[ \"$1\" = --dryrun ] || exit 1\n"
                            "%s \"$@\" 2>&1 | sed 's|^#$ CICC_PATH=.*|#$ CICC_PATH=%s|' >&2\n",
                            world->toolchain.nvcc, bin));
    assert_int_equal(chmod(cicc, 0755) + chmod(nvcc, 0755), 0);
    world->toolchain.nvcc = nvcc;
}

static void test_killed_compiler_is_a_harness_fault(void **state) {
    World *world = *state;
    replace_cicc(world, "kill -9 $$");
    BuildOptions options = {.toolchain = &world->toolchain};
    BuildResult result;
    assert_false(try_build(world, "#include \"task.h\"\n" PLAIN_KERNEL LAUNCH, &options, &result));
    assert_int_equal(world->err.kind, ERROR_HARNESS);
    assert_non_null(strstr(world->err.message, "cicc was killed by signal 9"));
}

static void test_crashing_compiler_is_reported_as_the_sources_doing(void **state) {
    World *world = *state;
    replace_cicc(world, "kill -SEGV $$");
    BuildResult result = build(world, "#include \"task.h\"\n" PLAIN_KERNEL LAUNCH);
    assert_int_equal(result.status, BUILD_COMPILE_ERROR);
    assert_string_equal(result.distilled, "kernel.cu: error: the compiler crashed on this source "
                                          "(Segmentation fault)\n");
}

/* A killed process may stay for a while as a zombie that nobody has waited for. */
static bool is_running(World *world, int pid) {
    assert_true(pid > 0);
    char *text, *path = arena_printf(world->arena, "/proc/%d/stat", pid);
    Error ignored;
    if (!file_read(world->arena, path, 4096, &text, NULL, &ignored)) return false;
    const char *state = strrchr(text, ')');
    return state && !text_starts_with(state, ") Z") && !text_starts_with(state, ") X");
}

static void test_endless_compilation_is_a_timeout_and_not_cached(void **state) {
    World *world = *state;
    char *pid_file = path_join(world->arena, world->scratch, "pid");
    replace_cicc(world, arena_printf(world->arena, "sleep 100 & echo $! >%s; wait", pid_file));
    BuildOptions options = {.toolchain = &world->toolchain, .timeout_s = 1};
    const char *source = "#include \"task.h\"\n" PLAIN_KERNEL LAUNCH;
    for (int i = 0; i < 2; i++) {
        BuildResult result;
        double start = clock_seconds();
        assert_true(try_build(world, source, &options, &result));
        assert_int_equal(result.status, BUILD_TIMEOUT);
        assert_false(result.from_cache);
        assert_true(clock_seconds() - start < 20);
        assert_non_null(strstr(result.distilled, "did not finish kernel.cu within 1 s"));
        assert_false(is_running(world, atoi(read_text(world, pid_file))));
    }
}

static void test_compiler_that_computes_for_ever_is_a_timeout(void **state) {
    World *world = *state;
    replace_cicc(world, "while :; do :; done");
    BuildOptions options = {.toolchain = &world->toolchain, .timeout_s = 1};
    BuildResult result;
    assert_true(try_build(world, "#include \"task.h\"\n" PLAIN_KERNEL LAUNCH, &options, &result));
    assert_int_equal(result.status, BUILD_TIMEOUT);
}

static void test_compiler_may_take_half_of_the_memory_at_most(void **state) {
    World *world = *state;
    char *limit = path_join(world->arena, world->scratch, "limit");
    replace_cicc(world, arena_printf(world->arena, "ulimit -v >%s; exit 1", limit));
    build(world, "#include \"task.h\"\n" PLAIN_KERNEL LAUNCH);
    double limit_bytes = 1024 * strtod(read_text(world, limit), NULL);
    double memory_bytes = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
    assert_true(limit_bytes > 0);
    assert_true(limit_bytes <= memory_bytes / 2);
}

static void test_interrupt_ends_a_build(void **state) {
    World *world = *state;
    replace_cicc(world, "sleep 100");
    atomic_int flag = 1;
    BuildOptions options = {.toolchain = &world->toolchain, .cancel = &flag};
    BuildResult result;
    assert_false(try_build(world, "#include \"task.h\"\n" PLAIN_KERNEL LAUNCH, &options, &result));
    assert_int_equal(world->err.kind, ERROR_INTERRUPTED);
}

static void test_full_disk_is_a_harness_fault_that_says_so(void **state) {
    World *world = *state;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        // As cutegen's main() does; a file that grows too large is then an error, not a death.
        signal(SIGXFSZ, SIG_IGN);
        struct rlimit limit = {.rlim_cur = 100000, .rlim_max = 100000};
        setrlimit(RLIMIT_FSIZE, &limit);
        BuildOptions options = {.toolchain = &world->toolchain};
        BuildResult result;
        bool good =
            try_build(world, "#include \"task.h\"\n" PLAIN_KERNEL LAUNCH, &options, &result);
        _exit(!good && world->err.kind == ERROR_HARNESS &&
                      strstr(world->err.message, "raise the file size limit")
                  ? 0
                  : 1);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(WEXITSTATUS(status), 0);
}

/* ---- dry runs ---------------------------------------------------------------------------------
 */

/* What `nvcc --dryrun --keep --keep-dir /scratch` and our flags printed. */
static char *recorded_dryrun(World *world, const char *version) {
    return read_text(
        world, arena_printf(world->arena, SOURCE_ROOT "/tests/data/build/dryrun-%s.txt", version));
}

static void test_recorded_dry_run_is_understood(void **state) {
    World *world = *state;
    static const char *const versions[] = {"13.0", "13.2"};
    for (size_t version = 0; version < COUNT_OF(versions); version++) {
        Plan plan;
        const char *why;
        if (!plan_parse(world->arena, recorded_dryrun(world, versions[version]), &plan, &why))
            fail_msg("%s", why);
        assert_string_equal(plan.cicc.argv[0], "/opt/cuda/bin/../nvvm/bin/cicc");
        assert_string_equal(plan.module_id, "/scratch/kernel.module_id");
        assert_string_equal(plan.ptx, "/scratch/kernel.ptx");
        for (int i = 0; i < plan.cudafe.argc; i++)
            assert_string_not_equal(plan.cudafe.argv[i], "--gen_module_id_file");
        for (int i = 0; i < plan.link.argc; i++)
            assert_string_not_equal(plan.link.argv[i], "/scratch/kernel_dlink.o");
    }
}

static char *edited(World *world, const char *text, const char *from, const char *to) {
    const char *at = strstr(text, from);
    assert_non_null(at);
    return arena_printf(world->arena, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
}

static void test_foreign_dry_runs_are_left_to_plain_nvcc(void **state) {
    World *world = *state;
    char *good = recorded_dryrun(world, "13.0");
    const char *foreign[] = {
        "",
        "#$ \n",
        "nvcc fatal   : Unknown option\n",
        "#$ gcc -c x.c -o x.o\n",
        arena_printf(world->arena, "%s#$ upload /scratch/kernel.ptx\n", good),
        edited(world, good, "#$ cudafe++", "#$ cudafe3"),
        edited(world, good, "#$ ptxas", "#$ ptxas | tee log"),
        edited(world, good, "\"$CICC_PATH/cicc\"", "\"$UNKNOWN/cicc\""),
        edited(world, good, "--gen_module_id_file", ""),
        edited(world, good, "kernel.cpp4.ii\" \n#$ cudafe", "other.ii\" \n#$ cudafe"),
        edited(world, good, "-o \"kernel.so\"", "-o \"kernel.so"),
    };
    for (size_t i = 0; i < COUNT_OF(foreign); i++) {
        Plan plan;
        const char *why = NULL;
        if (plan_parse(world->arena, foreign[i], &plan, &why)) fail_msg("case %zu", i);
        assert_non_null(why);
    }
    for (size_t bytes = 0; bytes < strlen(good); bytes += 61) {
        Plan plan;
        const char *why;
        plan_parse(world->arena, arena_string_n(world->arena, good, bytes), &plan, &why);
    }
}

static void test_unknown_dry_run_still_builds(void **state) {
    World *world = *state;
    char *bin = path_join(world->arena, world->scratch, "bin");
    assert_true(directory_make(bin, &world->err));
    char *nvcc = path_join(world->arena, bin, "nvcc");
    write_file(world, nvcc,
               arena_printf(world->arena,
                            "#!/bin/sh\n[ \"$1\" = --dryrun ] && { echo '#$ magic' "
                            ">&2; exit; }\nexec %s \"$@\"\n",
                            world->toolchain.nvcc));
    assert_int_equal(chmod(nvcc, 0755), 0);
    world->toolchain.nvcc = nvcc;
    BuildResult result = build(world, "#include \"task.h\"\n" PLAIN_KERNEL LAUNCH);
    assert_int_equal(result.status, BUILD_OK);
    assert_true(build(world, "#include \"task.h\"\n" PLAIN_KERNEL LAUNCH).from_cache);
}

/* ---- names -------------------------------------------------------------------------------------
 */

static void test_arch_is_taken_in_every_usual_spelling(void **state) {
    World *world = *state;
    static const char *const same[] = {"sm_90a", "90a", "9.0a", "compute_90a"};
    const char *arch;
    for (size_t i = 0; i < COUNT_OF(same); i++) {
        assert_true(arch_parse(world->arena, same[i], &arch, &world->err));
        assert_string_equal(arch, "sm_90a");
    }
    assert_true(arch_parse(world->arena, "8.6", &arch, &world->err));
    assert_string_equal(arch, "sm_86");
    static const char *const wrong[] = {"",       "sm_",   "9",     "hopper",
                                        "sm_90b", "sm_70", "9.0.0", "sm_9999"};
    for (size_t i = 0; i < COUNT_OF(wrong); i++)
        assert_false(arch_parse(world->arena, wrong[i], &arch, &world->err));
    assert_string_equal(world->err.message,
                        "unknown arch 'sm_9999'; use sm_80, sm_86, sm_89 or sm_90a");
}

static void test_version_is_read_from_what_nvcc_prints(void **state) {
    World *world = *state;
    const char *full;
    assert_int_equal(nvcc_version_parse(world->arena,
                                        "Cuda compilation tools, release 12.8, "
                                        "V12.8.93\n",
                                        &full),
                     12080);
    assert_string_equal(full, "12.8.93");
    assert_int_equal(nvcc_version_parse(world->arena, "gcc (Debian) 12.2.0", &full), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_cute_kernel_is_built_with_figures_and_constructs_and_then_cached),
        TEST(test_passes_side_by_side_give_what_plain_nvcc_gives),
        TEST(test_compile_error_names_the_line_and_is_cached),
        TEST(test_error_in_host_code_only_is_found),
        TEST(test_kernel_without_launch_is_told_the_signature),
        TEST(test_launch_of_another_signature_is_told_the_right_one),
        TEST(test_forbidden_imports_are_named_with_advice_and_not_given_out),
        TEST(test_name_that_is_no_text_is_forbidden_like_any_other),
        TEST(test_what_is_not_source_is_refused_without_a_compiler),
        TEST(test_source_without_final_newline_or_with_final_backslash_is_built),
        TEST(test_killed_compiler_is_a_harness_fault),
        TEST(test_crashing_compiler_is_reported_as_the_sources_doing),
        TEST(test_endless_compilation_is_a_timeout_and_not_cached),
        TEST(test_compiler_that_computes_for_ever_is_a_timeout),
        TEST(test_compiler_may_take_half_of_the_memory_at_most),
        TEST(test_interrupt_ends_a_build),
        TEST(test_full_disk_is_a_harness_fault_that_says_so),
        TEST(test_recorded_dry_run_is_understood),
        TEST(test_foreign_dry_runs_are_left_to_plain_nvcc),
        TEST(test_unknown_dry_run_still_builds),
        TEST(test_arch_is_taken_in_every_usual_spelling),
        TEST(test_version_is_read_from_what_nvcc_prints),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
