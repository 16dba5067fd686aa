/* test_judge.c - the judge with everything real: nvcc, oracle, runner, simulator.
 *
 * A build takes seconds, so that there is one kernel for all tests: which way it misbehaves is a
 * dim of its task. The tasks differ in their check shapes alone, which a build does not depend on.
 */
#include "judge/judge.h"

#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* The lines are counted in the tests below: keep LINE_… in step. */
static const char kernel[] =
    "#include \"task.h\"\n"
    "#include <cute/tensor.hpp>\n"
    "using namespace cute;\n"
    "enum Mode { RIGHT = 1, PAST_END, CRASH, HOST_LOOP, WRITE_INPUT, REMEMBER, UNTOUCHED, ERROR,\n"
    "            IMPRECISE, RED_ZONE, GARBAGE, EXIT, WORKSPACE, KILLED, LOOP, SWALLOWED, DAMAGE, "
    "FORGED,\n"
    "            LAUNCH_CALL };\n"
    "__global__ void twice(const float *x, float *y, float *in, int64_t n, int64_t mode) {\n"
    "    Tensor g_x = make_tensor(make_gmem_ptr(x), make_layout(n));\n"
    "    Tensor g_y = make_tensor(make_gmem_ptr(y), make_layout(n));\n"
    "    int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;\n"
    "    if (i >= n) return;\n"
    "    if (mode == UNTOUCHED && i >= 64) return;\n"
    "    float value = 2 * g_x(i);\n"
    "    if (mode == PAST_END) value += g_x(i + 4);\n"
    "    if (mode == WRITE_INPUT && i == 5) in[i] = 1;\n"
    "    if (mode == IMPRECISE)\n"
    "        value = __uint_as_float(__float_as_uint(value) & 0xffffe000u);\n"
    "    while (mode == LOOP) g_y(i) = value;\n"
    "    g_y(i) = value;\n"
    "}\n"
    "static void system_call(long number, long a, const void *b, long c) {\n"
    "    register long d asm(\"r10\") = 8;\n" // of rt_sigaction: bytes of a signal set
    "    asm volatile(\"syscall\" : \"+a\"(number) : \"D\"(a), \"S\"(b), \"d\"(c), \"r\"(d)\n"
    "                 : \"rcx\", \"r11\", \"memory\");\n"
    "}\n"
    "extern \"C\" size_t workspace_bytes(Dims dims) {\n"
    "    return dims.mode == WORKSPACE ? size_t(1) << 50 : 128;\n"
    "}\n"
    "extern \"C\" cudaError_t launch(const float *x, float *y, Dims dims, void *workspace,\n"
    "                              cudaStream_t stream) {\n"
    "    static bool done = false;\n"
    "    volatile bool for_ever = dims.mode == HOST_LOOP;\n"
    "    while (for_ever) { }\n"
    "    if (dims.mode == CRASH) *(volatile int *)nullptr = 1;\n"
    "    if (dims.mode == ERROR) return cudaErrorNotSupported;\n"
    "    if (dims.mode == RED_ZONE) cudaMemsetAsync((char *)y - 3, 1, 1, stream);\n"
    "    if (dims.mode == GARBAGE)\n"
    "        for (int fd = 3; fd < 128; fd++) system_call(1, fd, \"garbage garbage\", 15);\n"
    "    if (dims.mode == EXIT) system_call(231, 7, nullptr, 0);\n"
    "    if (dims.mode == KILLED) system_call(62, 0, (void *)9, 0);\n"
    // SIGXFSZ at its default and no file size allowed: writing the exchange file is what dies of
    // it, after launch() has returned.
    "    static const unsigned long zeros[4] = {0, 0, 0, 0};\n"
    "    if (dims.mode == DAMAGE) system_call(13, 25, zeros, 0);\n"
    "    if (dims.mode == DAMAGE) system_call(160, 1, zeros, 0);\n"
    // A launch that went well (zeros throughout) and red zones without any content.
    "    static const char launched[112] = \"CTG1\\1\\0\\12\\0\\144\\0\\0\";\n"
    "    for (int fd = 3; dims.mode == FORGED && fd < 128; fd++) {\n"
    "        system_call(1, fd, launched, 112);\n"
    "        system_call(1, fd, \"CTG1\\1\\0\\13\\0\\0\\0\\0\", 12);\n"
    "    }\n"
    "    if (dims.mode == LAUNCH_CALL)\n"
    "        return cudaLaunchKernel(twice, dim3(1), dim3(2048), (void **)nullptr, 7, stream);\n"
    "    if (dims.mode == REMEMBER && done) return cudaSuccess;\n"
    "    done = true;\n"
    "    unsigned blocks = dims.mode == SWALLOWED ? 0 : unsigned((dims.n + 127) / 128);\n"
    "    twice<<<blocks, 128, 0, stream>>>(x, y, const_cast<float *>(x), dims.n, dims.mode);\n"
    "    return dims.mode == SWALLOWED ? cudaSuccess : cudaGetLastError();\n"
    "}\n";
enum { LINE_PAST_END = 14, LINE_LOOP = 18 };
enum Mode {
    RIGHT = 1,
    PAST_END,
    CRASH,
    HOST_LOOP,
    WRITE_INPUT,
    REMEMBER,
    UNTOUCHED,
    ERROR,
    IMPRECISE,
    RED_ZONE,
    GARBAGE,
    EXIT,
    WORKSPACE,
    KILLED,
    LOOP,
    SWALLOWED,
    DAMAGE,
    FORGED,
    LAUNCH_CALL
};

static const char twice_reference[] =
    "#include \"reference.h\"\n"
    "void reference(const Inputs *in, Outputs *out, const Dims *dims, int64_t begin, int64_t end) "
    "{\n"
    "    (void)dims;\n"
    "    for (int64_t i = begin; i < end; i++) out->y[i] = 2 * in->x[i];\n"
    "}\n";

typedef struct {
    Arena *arena;
    const char *scratch;
    Toolchain toolchain;
    Installation installation;
    DeviceSpec device;
    Task task;
    Judge *judge;
    Verdict verdict;
    Error err;
} World;

static int set_up(void **state) {
    World *world = calloc(1, sizeof *world);
    assert_non_null(world);
    world->arena = arena_new();
    *state = world;
    if (!installation_find(world->arena, &world->installation, &world->err) ||
        !toolchain_find(world->arena, NULL, &world->toolchain, &world->err) ||
        !device_parse(world->arena, "sim", &world->device, &world->err))
        fail_msg("%s", world->err.message);
    world->scratch = directory_scratch(world->arena, "cutegen-test", &world->err);
    assert_non_null(world->scratch);
    return 0;
}

static int tear_down(void **state) {
    World *world = *state;
    judge_close(world->judge);
    assert_true(directory_remove(world->scratch, &world->err));
    arena_free(world->arena);
    free(world);
    return 0;
}

static void write_text(World *world, const char *name, const char *text) {
    const char *path = path_join(world->arena, world->scratch, name);
    if (!file_write_atomic(path, text, strlen(text), &world->err))
        fail_msg("%s", world->err.message);
}

/* A task whose only check shape is n=200 in `mode`. */
static bool open_judge(World *world, enum Mode mode, const char *reference,
                       const JudgeOptions *options) {
    write_text(world, "reference.c", reference);
    write_text(world, "task.yaml",
               arena_printf(world->arena,
                            "schema: 1\nname: twice\nsummary: twice its input\n"
                            "class: elementwise\ndims: {n: 4096, mode: 1}\n"
                            "sim: {n: 300, mode: 1}\ncheck:\n  - {n: 200, mode: %d}\n"
                            "inputs:\n  - {name: x, dtype: f32, shape: [n], fill: normal}\n"
                            "outputs:\n  - {name: y, dtype: f32, shape: [n]}\n"
                            "reference: reference.c\ntolerance: {rtol: 1e-2, atol: 1e-3}\n",
                            mode));
    if (!task_load(world->arena, world->scratch, &world->task, &world->err))
        fail_msg("%s", world->err.message);
    return judge_open(world->arena, &world->task, &world->toolchain, &world->installation,
                      &world->device, options, &world->judge, &world->err);
}

static bool judge_with(World *world, enum Mode mode, const JudgeOptions *options) {
    if (!open_judge(world, mode, twice_reference, options)) fail_msg("%s", world->err.message);
    return judge_kernel(world->judge, world->arena, kernel, strlen(kernel), &world->verdict,
                        &world->err);
}

static void expect(World *world, enum Mode mode, VerdictKind kind, int line, const char *evidence,
                   const char *text) {
    if (!judge_with(world, mode, &(JudgeOptions){.quick = true, .call_timeout_s = 20}))
        fail_msg("%s", world->err.message);
    const Verdict *verdict = &world->verdict;
    assert_string_equal(verdict_name(verdict->kind), verdict_name(kind));
    if (!strstr(verdict->message, text)) fail_msg("'%s' lacks '%s'", verdict->message, text);
    assert_int_equal(verdict->place.line, line);
    assert_string_equal(json_text(verdict->evidence, "kind", ""), evidence);
    assert_true(strlen(verdict->repair) <= 2000);
}

/* ---- verdicts ------------------------------------------------------------------------------ */

static void test_right_kernel_passes_on_check_and_sim_shapes(void **state) {
    World *world = *state;
    assert_true(judge_with(world, RIGHT, NULL));
    assert_int_equal(world->verdict.kind, VERDICT_PASS);
    Json *shapes = json_object_get(world->verdict.evidence, "shapes");
    assert_int_equal(json_array_size(shapes), 3); // check, sim, and the precision probe on it
    Json *sim = json_array_get(shapes, 1), *probe = json_array_get(shapes, 2);
    assert_int_equal(json_int_or(json_object_get(sim, "dims"), "n", 0), 300);
    assert_int_equal(json_int_or(sim, "calls", 0), 3);
    assert_true(json_is_true(json_object_get(probe, "probe")));
}

static void test_kernels_judged_one_after_the_other_do_not_share_a_runner(void **state) {
    World *world = *state;
    // `static bool done` would betray a second use of the same process: nothing is launched then.
    assert_true(judge_with(world, RIGHT, &(JudgeOptions){.quick = true}));
    assert_int_equal(world->verdict.kind, VERDICT_PASS);
    assert_true(judge_kernel(world->judge, world->arena, kernel, strlen(kernel), &world->verdict,
                             &world->err));
    assert_int_equal(world->verdict.kind, VERDICT_PASS);
    assert_true(world->verdict.build.from_cache);
}

static void test_read_past_the_end_names_line_thread_and_element(void **state) {
    expect(*state, PAST_END, VERDICT_MEMORY_ERROR, LINE_PAST_END, "sim_reports",
           "kernel.cu:14: thread (68,0,0) of block (1,0,0) reads x[200], 4 bytes past its end "
           "(n=200, mode=2)");
    const char *marked = strstr(((World *)*state)->verdict.repair, ">   14 | ");
    assert_non_null(marked);
}

static void test_crash_in_launch_is_a_launch_error_with_the_signal(void **state) {
    expect(*state, CRASH, VERDICT_LAUNCH_ERROR, 0, "process", "launch() was killed by SIGSEGV");
}

static void test_exit_in_launch_is_a_launch_error(void **state) {
    expect(*state, EXIT, VERDICT_LAUNCH_ERROR, 0, "process",
           "launch() ended the process with exit code 7");
}

static void test_host_loop_is_a_hang_at_the_deadline(void **state) {
    World *world = *state;
    assert_true(
        judge_with(world, HOST_LOOP, &(JudgeOptions){.quick = true, .call_timeout_s = 0.5}));
    assert_int_equal(world->verdict.kind, VERDICT_HANG);
    assert_non_null(strstr(world->verdict.message, "did not end within 0.5 s"));
}

static void test_device_loop_is_a_hang_with_its_line(void **state) {
    World *world = *state;
    assert_true(judge_with(world, LOOP, &(JudgeOptions){.quick = true, .budget = 1000000}));
    assert_int_equal(world->verdict.kind, VERDICT_HANG);
    assert_int_equal(world->verdict.place.line, LINE_LOOP);
}

static void test_changed_input_is_wrong(void **state) {
    expect(*state, WRITE_INPUT, VERDICT_WRONG, 0, "input_changed", "changes its input x");
    assert_non_null(strstr(((World *)*state)->verdict.message, "x[5]"));
}

static void test_result_kept_from_the_first_call_is_wrong_at_the_second(void **state) {
    World *world = *state;
    expect(world, REMEMBER, VERDICT_WRONG, 0, "mismatch", "y is wrong");
    assert_int_equal(json_int_or(world->verdict.evidence, "call", 0), 2);
    assert_non_null(strstr(world->verdict.repair, "nothing may be kept"));
}

static void test_untouched_output_is_told_as_such(void **state) {
    World *world = *state;
    expect(world, UNTOUCHED, VERDICT_WRONG, 0, "mismatch", "y is wrong");
    Json *output = json_array_get(json_object_get(world->verdict.evidence, "outputs"), 0);
    assert_string_equal(json_text(output, "shape", ""), "untouched");
    assert_int_equal(json_int_or(output, "wrong", 0), 136);
    assert_int_equal(json_int_or(output, "first", 0), 64);
}

static void test_returned_error_is_named(void **state) {
    expect(*state, ERROR, VERDICT_LAUNCH_ERROR, 0, "cuda_error",
           "launch() returned cudaErrorNotSupported");
}

static void test_swallowed_error_is_found_and_the_launch_shown(void **state) {
    // Two lines start a kernel: neither is named.
    expect(*state, SWALLOWED, VERDICT_LAUNCH_ERROR, 0, "cuda_error",
           "launch() returned cudaSuccess but left");
    assert_non_null(strstr(((World *)*state)->verdict.message, "grid (0,1,1), block (128,1,1)"));
    assert_non_null(strstr(((World *)*state)->verdict.repair, "extent of 0"));
}

static void test_tf32_like_arithmetic_is_wrong_although_within_tolerance(void **state) {
    expect(*state, IMPRECISE, VERDICT_WRONG, 0, "precision", "lower precision");
}

static void test_overwritten_red_zone_is_a_memory_error(void **state) {
    expect(*state, RED_ZONE, VERDICT_MEMORY_ERROR, 0, "red_zone", "outside of y");
}

static void test_workspace_beyond_the_device_is_a_launch_error(void **state) {
    expect(*state, WORKSPACE, VERDICT_LAUNCH_ERROR, 0, "cuda_error",
           "workspace_bytes() asks for 1125899906842624 bytes");
}

static void test_garbled_answers_of_two_runners_are_the_kernels_doing(void **state) {
    expect(*state, GARBAGE, VERDICT_LAUNCH_ERROR, 0, "process",
           "the process died after launch(): the runner sent something that is not an answer");
}

static void test_damage_that_kills_the_runner_later_is_the_kernels_doing(void **state) {
    World *world = *state;
    expect(world, DAMAGE, VERDICT_LAUNCH_ERROR, 0, "process",
           "the process died after launch(): the runner was killed by signal 25");
    assert_string_equal(json_text(world->verdict.evidence, "phase", ""), "after_launch");
    assert_string_equal(json_text(world->verdict.evidence, "signal", ""), "SIGXFSZ");
}

static void test_answer_about_red_zones_without_content_does_not_count_as_clean(void **state) {
    expect(*state, FORGED, VERDICT_LAUNCH_ERROR, 0, "process",
           "the runner sent an answer that cannot be read");
}

static void test_launch_by_an_ordinary_call_is_seen_too(void **state) {
    World *world = *state;
    expect(world, LAUNCH_CALL, VERDICT_LAUNCH_ERROR, 0, "cuda_error",
           "grid (1,1,1), block (2048,1,1), 7 bytes of dynamic shared memory");
    assert_int_equal(json_int_or(world->verdict.evidence, "kernels", 0), 1);
}

static void test_task_without_check_shapes_is_judged_though_quick(void **state) {
    World *world = *state;
    JudgeOptions options = {.quick = true};
    if (!open_judge(world, WRITE_INPUT, twice_reference, &options))
        fail_msg("%s", world->err.message);
    world->task.sim = world->task.checks[0];
    world->task.check_count = 0;
    assert_true(judge_kernel(world->judge, world->arena, kernel, strlen(kernel), &world->verdict,
                             &world->err));
    assert_int_equal(world->verdict.kind, VERDICT_WRONG);
}

static void test_tensors_that_no_device_holds_are_an_input_error(void **state) {
    World *world = *state;
    if (!open_judge(world, RIGHT, twice_reference, NULL)) fail_msg("%s", world->err.message);
    world->task.checks[0].value[0] = (int64_t)1 << 40;
    assert_false(judge_kernel(world->judge, world->arena, kernel, strlen(kernel), &world->verdict,
                              &world->err));
    assert_int_equal(world->err.kind, ERROR_INPUT);
    assert_non_null(strstr(world->err.message, "n=1099511627776, mode=1 take 8192.0 GiB"));
}

static void test_runner_killed_by_the_machine_is_a_harness_fault(void **state) {
    World *world = *state;
    assert_false(judge_with(world, KILLED, &(JudgeOptions){.quick = true}));
    assert_int_equal(world->err.kind, ERROR_HARNESS);
}

static void test_first_seed_makes_a_judgement_repeatable(void **state) {
    World *world = *state;
    JudgeOptions options = {.quick = true, .first_seed = 42};
    assert_true(judge_with(world, UNTOUCHED, &options));
    char *first = json_line(world->arena, world->verdict.evidence);
    assert_true(judge_kernel(world->judge, world->arena, kernel, strlen(kernel), &world->verdict,
                             &world->err));
    assert_string_equal(json_line(world->arena, world->verdict.evidence), first);
    assert_int_equal(json_int_or(world->verdict.evidence, "first_seed", 0), 42);
}

static void test_verdict_of_any_kind_becomes_json(void **state) {
    World *world = *state;
    assert_true(judge_with(world, PAST_END, &(JudgeOptions){.quick = true}));
    Json *json = verdict_json(&world->verdict);
    assert_int_equal(json_int_or(json, "schema", 0), 1);
    assert_string_equal(json_text(json, "verdict", ""), "memory_error");
    assert_int_equal(json_int_or(json_object_get(json, "place"), "line", 0), LINE_PAST_END);
    assert_true(json_is_null(json_object_get(json, "time_ms")));
    json_decref(json);
}

/* ---- sources that are no kernels ------------------------------------------------------------ */

static void test_binary_source_is_a_compile_error_in_valid_utf8(void **state) {
    World *world = *state;
    static const char binary[] = "\x7f"
                                 "ELF\x00\xff\xfe\x80 <<< \x01\xc3(\n\0\0\xf0\x9f";
    if (!open_judge(world, RIGHT, twice_reference, NULL)) fail_msg("%s", world->err.message);
    assert_true(judge_kernel(world->judge, world->arena, binary, sizeof binary, &world->verdict,
                             &world->err));
    assert_int_equal(world->verdict.kind, VERDICT_COMPILE_ERROR);
    assert_true(text_is_utf8(world->verdict.repair, strlen(world->verdict.repair)));
}

/* ---- references that fail -----------------------------------------------------------------------
 */

static void expect_reference_error(World *world, const char *body, const char *text) {
    const char *source = arena_printf(
        world->arena,
        "#include \"reference.h\"\n#include <stdlib.h>\n"
        "void reference(const Inputs *in, Outputs *out, const Dims *dims, int64_t b, int64_t e) "
        "{\n    (void)in; (void)out; (void)dims; (void)b; (void)e;\n    %s\n}\n",
        body);
    JudgeOptions options = {.quick = true, .reference_timeout_s = 1};
    if (!open_judge(world, RIGHT, source, &options)) fail_msg("%s", world->err.message);
    for (int i = 0; i < 2; i++) { // the oracle is started again
        world->err = (Error){0};
        assert_false(judge_kernel(world->judge, world->arena, kernel, strlen(kernel),
                                  &world->verdict, &world->err));
        assert_int_equal(world->err.kind, ERROR_INPUT);
        assert_non_null(strstr(world->err.message, "reference.c"));
        assert_non_null(strstr(world->err.message, "n=200"));
        if (!strstr(world->err.message, text))
            fail_msg("'%s' lacks '%s'", world->err.message, text);
    }
}

static void test_reference_that_crashes_is_an_input_error_with_its_shape(void **state) {
    expect_reference_error(*state, "*(volatile int *)8 = 1;", "crashed");
}

static void test_reference_that_hangs_is_an_input_error_with_its_shape(void **state) {
    expect_reference_error(*state, "for (volatile int i = 0; i < 1;) { }", "did not end");
}

static void test_reference_that_exits_is_an_input_error_with_its_shape(void **state) {
    expect_reference_error(*state, "exit(3);", "exit");
}

static void test_verdict_on_a_kernel_is_dropped_when_the_reference_fails_too(void **state) {
    World *world = *state;
    if (!open_judge(world, ERROR,
                    "#include \"reference.h\"\nvoid reference(const Inputs *in, "
                    "Outputs *out, const Dims *dims, int64_t b, int64_t e) {\n"
                    "    (void)in; (void)out; (void)dims; (void)b; (void)e;\n"
                    "    __builtin_trap();\n}\n",
                    NULL))
        fail_msg("%s", world->err.message);
    assert_false(judge_kernel(world->judge, world->arena, kernel, strlen(kernel), &world->verdict,
                              &world->err));
    assert_int_equal(world->err.kind, ERROR_INPUT);
    assert_null(world->verdict.message);
    assert_int_equal(world->verdict.kind, VERDICT_HARNESS_FAULT);
}

/* The children of this process that run `program`. */
static int kill_children(const char *program) {
    int killed = 0;
    char path[64], text[4096] = {0};
    snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)getpid());
    FILE *list = fopen(path, "r");
    assert_non_null(list);
    for (int pid; fscanf(list, "%d", &pid) == 1;) {
        snprintf(path, sizeof path, "/proc/%d/comm", pid);
        FILE *name = fopen(path, "r");
        if (name && fgets(text, sizeof text, name) && strncmp(text, program, strlen(program)) == 0)
            killed += kill(pid, SIGKILL) == 0 &&
                      waitid(P_PID, (id_t)pid, &(siginfo_t){0}, WEXITED | WNOWAIT) == 0;
        if (name) fclose(name);
    }
    fclose(list);
    return killed;
}

static void test_oracle_and_runner_that_were_killed_are_replaced(void **state) {
    World *world = *state;
    JudgeOptions options = {.quick = true};
    assert_true(open_judge(world, ERROR, twice_reference, &options));
    assert_int_equal(kill_children("cutegen-oracle"), 1);
    assert_int_equal(kill_children("cutegen-runner"), 1);
    assert_true(judge_kernel(world->judge, world->arena, kernel, strlen(kernel), &world->verdict,
                             &world->err));
    assert_int_equal(world->verdict.kind, VERDICT_LAUNCH_ERROR);
}

static void test_reference_that_does_not_compile_is_an_input_error(void **state) {
    World *world = *state;
    assert_false(open_judge(world, RIGHT, "#include \"reference.h\"\nint x = ;\n", NULL));
    assert_int_equal(world->err.kind, ERROR_INPUT);
    assert_non_null(strstr(world->err.message, "reference.c:2"));
    assert_null(world->judge);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
    signal(SIGPIPE, SIG_IGN);
    // Builds are kept in the build tree, so that only the first run waits for nvcc.
    setenv("XDG_CACHE_HOME", SOURCE_ROOT "/.cache/tests", 1);
    const struct CMUnitTest tests[] = {
        TEST(test_right_kernel_passes_on_check_and_sim_shapes),
        TEST(test_kernels_judged_one_after_the_other_do_not_share_a_runner),
        TEST(test_read_past_the_end_names_line_thread_and_element),
        TEST(test_crash_in_launch_is_a_launch_error_with_the_signal),
        TEST(test_exit_in_launch_is_a_launch_error),
        TEST(test_host_loop_is_a_hang_at_the_deadline),
        TEST(test_device_loop_is_a_hang_with_its_line),
        TEST(test_changed_input_is_wrong),
        TEST(test_result_kept_from_the_first_call_is_wrong_at_the_second),
        TEST(test_untouched_output_is_told_as_such),
        TEST(test_returned_error_is_named),
        TEST(test_swallowed_error_is_found_and_the_launch_shown),
        TEST(test_tf32_like_arithmetic_is_wrong_although_within_tolerance),
        TEST(test_overwritten_red_zone_is_a_memory_error),
        TEST(test_workspace_beyond_the_device_is_a_launch_error),
        TEST(test_garbled_answers_of_two_runners_are_the_kernels_doing),
        TEST(test_damage_that_kills_the_runner_later_is_the_kernels_doing),
        TEST(test_answer_about_red_zones_without_content_does_not_count_as_clean),
        TEST(test_launch_by_an_ordinary_call_is_seen_too),
        TEST(test_task_without_check_shapes_is_judged_though_quick),
        TEST(test_tensors_that_no_device_holds_are_an_input_error),
        TEST(test_runner_killed_by_the_machine_is_a_harness_fault),
        TEST(test_first_seed_makes_a_judgement_repeatable),
        TEST(test_verdict_of_any_kind_becomes_json),
        TEST(test_binary_source_is_a_compile_error_in_valid_utf8),
        TEST(test_reference_that_crashes_is_an_input_error_with_its_shape),
        TEST(test_reference_that_hangs_is_an_input_error_with_its_shape),
        TEST(test_reference_that_exits_is_an_input_error_with_its_shape),
        TEST(test_verdict_on_a_kernel_is_dropped_when_the_reference_fails_too),
        TEST(test_oracle_and_runner_that_were_killed_are_replaced),
        TEST(test_reference_that_does_not_compile_is_an_input_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
