/* test_diagnostics.c - the distiller on what the compilers said about faulty CuTe kernels.
 *
 * tests/data/build/NAME.cu is a kernel whose culprit line ends in "<- error"; NAME.log is what
 * the compilers printed (nvcc 13.0); NAME.txt what the distiller makes of it. To record anew,
 * after adding a kernel: CUTEGEN_RECORD=1 build/tests/test_diagnostics (compiles each, minutes).
 */
#include "build/build.h"
#include "build/diagnostics.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define DATA SOURCE_ROOT "/tests/data/build"

static char *read_text(Arena *arena, const char *path) {
    char *text;
    Error err = {0};
    if (!file_read(arena, path, (size_t)16 << 20, &text, NULL, &err)) fail_msg("%s", err.message);
    return text;
}

static void write_text(const char *path, const char *text) {
    Error err = {0};
    if (!file_write_atomic(path, text, strlen(text), &err)) fail_msg("%s", err.message);
}

static int compare_names(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The names of all recorded kernels, in order. */
static int case_names(Arena *arena, const char **names, int capacity) {
    DIR *directory = opendir(DATA);
    assert_non_null(directory);
    int count = 0;
    for (struct dirent *entry; (entry = readdir(directory));)
        if (text_ends_with(entry->d_name, ".cu") && count < capacity)
            names[count++] = arena_string_n(arena, entry->d_name, strlen(entry->d_name) - 3);
    closedir(directory);
    qsort(names, (size_t)count, sizeof *names, compare_names);
    return count;
}

static int culprit_line(const char *source) {
    const char *mark = strstr(source, "<- error");
    assert_non_null(mark);
    int line = 1;
    for (const char *c = source; c < mark; c++)
        line += *c == '\n';
    return line;
}

/* ---- recording ---------------------------------------------------------------------------- */

static void replace_all(Arena *arena, char **text, const char *from, const char *to) {
    Buf out = {0};
    buf_puts(&out, "");
    for (char *at = *text; *at;) {
        char *found = strstr(at, from);
        buf_append(&out, at, found ? (size_t)(found - at) : strlen(at));
        if (found) buf_puts(&out, to);
        at = found ? found + strlen(from) : at + strlen(at);
    }
    *text = buf_take(arena, &out);
}

/* Paths of the machine that records must not matter. */
static char *neutral_log(Arena *arena, const Toolchain *toolchain, const char *log) {
    char *text = arena_string(arena, log);
    replace_all(arena, &text, toolchain->cutlass_include, "/opt/cutlass/include");
    replace_all(arena, &text, path_directory(arena, path_directory(arena, toolchain->nvcc)),
                "/opt/cuda");
    return text;
}

static void record(void **state) {
    (void)state;
    Arena *arena = arena_new();
    Error err = {0};
    Toolchain toolchain;
    Task task = {.path = "task.yaml",
                 .directory = "/",
                 .name = "recorded",
                 .summary = "",
                 .dim_count = 2,
                 .dim_names = {"rows", "cols"},
                 .tensor_count = 2,
                 .input_count = 1};
    for (int i = 0; i < 2; i++)
        task.tensors[i] = (Tensor){.name = i ? "y" : "x",
                                   .dtype = DTYPE_F32,
                                   .is_output = i == 1,
                                   .rank = 2,
                                   .extent_text = {"rows", "cols"}};
    assert_int_equal(chdir(SOURCE_ROOT), 0);
    if (!toolchain_find(arena, "sm_90a", &toolchain, &err)) fail_msg("%s", err.message);
    const char *names[200];
    int count = case_names(arena, names, COUNT_OF(names));
    for (int i = 0; i < count; i++) {
        char *source = read_text(arena, arena_printf(arena, DATA "/%s.cu", names[i]));
        BuildOptions options = {.toolchain = &toolchain};
        BuildResult result;
        if (!build_kernel(arena, &task, source, strlen(source), &options, &result, &err))
            fail_msg("%s: %s", names[i], err.message);
        char *log = neutral_log(arena, &toolchain, read_text(arena, result.log_path));
        write_text(arena_printf(arena, DATA "/%s.log", names[i]), log);
        write_text(arena_printf(arena, DATA "/%s.txt", names[i]),
                   diagnose(arena, log, source).distilled);
    }
    arena_free(arena);
}

/* ---- tests -------------------------------------------------------------------------------- */

static void test_recorded_outputs_distil_to_the_expected_text(void **state) {
    (void)state;
    Arena *arena = arena_new();
    const char *names[200];
    int count = case_names(arena, names, COUNT_OF(names));
    assert_true(count >= 30);
    for (int i = 0; i < count; i++) {
        char *source = read_text(arena, arena_printf(arena, DATA "/%s.cu", names[i]));
        char *log = read_text(arena, arena_printf(arena, DATA "/%s.log", names[i]));
        char *expected = read_text(arena, arena_printf(arena, DATA "/%s.txt", names[i]));
        Diagnosis diagnosis = diagnose(arena, log, source);
        if (strcmp(diagnosis.distilled, expected) != 0)
            fail_msg("%s distils to\n%s\ninstead of\n%s", names[i], diagnosis.distilled, expected);
        assert_true(strlen(diagnosis.distilled) <= DISTILLED_MAX_BYTES);
    }
    arena_free(arena);
}

static void test_first_error_names_the_culprit_line_in_every_recorded_kernel(void **state) {
    (void)state;
    Arena *arena = arena_new();
    const char *names[200];
    int count = case_names(arena, names, COUNT_OF(names));
    for (int i = 0; i < count; i++) {
        char *source = read_text(arena, arena_printf(arena, DATA "/%s.cu", names[i]));
        char *log = read_text(arena, arena_printf(arena, DATA "/%s.log", names[i]));
        Diagnosis diagnosis = diagnose(arena, log, source);
        assert_true(diagnosis.count > 0);
        if (diagnosis.items[0].user_line != culprit_line(source))
            fail_msg("%s: line %d, not %d, is named first:\n%s", names[i],
                     diagnosis.items[0].user_line, culprit_line(source), diagnosis.distilled);
        char *head = arena_printf(arena, KERNEL_FILE ":%d:", culprit_line(source));
        assert_true(text_starts_with(diagnosis.distilled, head));
    }
    arena_free(arena);
}

static void test_column_and_caret_point_into_the_users_own_line(void **state) {
    (void)state;
    Arena *arena = arena_new();
    Diagnosis diagnosis = diagnose(arena,
                                   "kernel.cu(2): error: identifier \"tensr\" is undefined\n"
                                   "      y[0] = tensr(0);\n"
                                   "             ^\n\n",
                                   "void f(float *y) {\n    y[0] = tensr(0);\n}\n");
    assert_int_equal(diagnosis.count, 1);
    assert_int_equal(diagnosis.items[0].column, 12);
    assert_string_equal(diagnosis.distilled,
                        "kernel.cu:2:12: error: identifier \"tensr\" is undefined\n"
                        "    2 |     y[0] = tensr(0);\n"
                        "      |            ^\n");
    arena_free(arena);
}

static void test_refusal_without_a_known_error_tells_the_line_that_speaks_of_one(void **state) {
    (void)state;
    static const struct {
        const char *log, *message;
    } cases[] = {
        {"/tmp/x.s: Assembler messages:\n/tmp/x.s:9: Error: no such instruction: `frob'\n done\n",
         "/tmp/x.s:9: Error: no such instruction: `frob'"},
        {"ld: symbol versions do not match\n\n", "ld: symbol versions do not match"},
        {"", "the compiler refused it without a message"},
    };
    Arena *arena = arena_new();
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        Diagnosis diagnosis = diagnose_refusal(arena, cases[i].log, "int x;\n");
        assert_int_equal(diagnosis.count, 1);
        assert_string_equal(diagnosis.items[0].message, cases[i].message);
        assert_string_equal(diagnosis.distilled,
                            arena_printf(arena, "kernel.cu: error: %s\n", cases[i].message));
    }
    arena_free(arena);
}

static void test_warnings_of_ptxas_are_kept_when_there_is_no_error(void **state) {
    (void)state;
    Arena *arena = arena_new();
    Diagnosis diagnosis =
        diagnose(arena,
                 "ptxas info    : 11 bytes gmem\n"
                 "ptxas info    : (C7510) Potential Performance Loss: wgmma.mma_async instructions "
                 "are serialized due to insufficient register resources\n"
                 "ptxas info    : Compiling entry function 'k' for 'sm_90a'\n",
                 "int x;\n");
    assert_int_equal(diagnosis.count, 1);
    assert_int_equal(diagnosis.items[0].level, DIAGNOSTIC_WARNING);
    assert_string_equal(diagnosis.distilled,
                        "kernel.cu: warning: (C7510) Potential Performance Loss: wgmma.mma_async "
                        "instructions are serialized due to insufficient register resources\n");
    arena_free(arena);
}

static void test_types_are_written_in_cute_notation(void **state) {
    (void)state;
    static const struct {
        const char *before, *after;
    } cases[] = {
        {"cute::Layout<cute::tuple<cute::C<128>, cute::C<8>>, cute::tuple<cute::C<8>, cute::C<1>>>",
         "(_128,_8):(_8,_1)"},
        {"cute::tuple<int, cute::tuple<cute::_2, cute::C<-1>>>", "(int,(_2,C<-1>))"},
        {"cute::ViewEngine<cute::gmem_ptr<const float *>>", "gmem const float *"},
        {"cute::Swizzle<3, 4, 3>", "Swizzle<3,4,3>"},
        {"lambda [](const auto &...)->auto", "lambda [](const auto &...)->auto"},
        {"a < b and c > d", "a < b and c > d"},
        {"tuple<unclosed, (", "tuple<unclosed, ("},
        {"x->y<int>", "x->y<int>"},
        {"", ""},
    };
    Arena *arena = arena_new();
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        assert_string_equal(cute_notation(arena, cases[i].before, 200), cases[i].after);
    assert_string_equal(cute_notation(arena, "0123456789abcdef", 10), "0123456...");
    arena_free(arena);
}

static void test_garbage_is_no_diagnosis_and_no_crash(void **state) {
    (void)state;
    static const char *const logs[] = {
        "",
        "\n\n\n",
        "(",
        "(1",
        "x(1): ",
        "x(1): error",
        "kernel.cu(99999999999): error: x\n",
        "ptxas ",
        "ptxas , line ; error   : ",
        ": error: x\n",
        "error:",
        "kernel.cu(1): error:\n",
        "kernel.cu(1): error: x\n          detected during:\n            instantiation of \"",
        "kernel.cu(1): error: x\n          detected during instantiation of \" at line ",
        "kernel.cu:1:1: error: x\n | \n |",
        "\xff\xfe(1): error: \xc3\x28\n",
    };
    Arena *arena = arena_new();
    for (size_t i = 0; i < COUNT_OF(logs); i++) {
        Diagnosis diagnosis = diagnose(arena, logs[i], "one line");
        assert_true(strlen(diagnosis.distilled) <= DISTILLED_MAX_BYTES);
        assert_true(text_is_utf8(diagnosis.distilled, strlen(diagnosis.distilled)));
        diagnose(arena, logs[i], "");
    }
    arena_free(arena);
}

static void test_no_cut_splits_a_character(void **state) {
    (void)state;
    Arena *arena = arena_new();
    for (int shift = 0; shift < 3; shift++) {
        Buf log = {0}, source = {0};
        for (int line = 1; line <= 40; line++) {
            buf_printf(&log, "/x/include/cute/a.hpp(%d): error: \xe2\x82\xac failed\n    %.*s",
                       line, shift, "xyz");
            for (int i = 0; i < 200; i++)
                buf_puts(&log, "\xe2\x82\xac");
            buf_printf(&log,
                       "\n    ^\n          detected during instantiation of \"f\" at line %d "
                       "of kernel.cu\n\n",
                       line);
            for (int i = 0; i < 100 + shift; i++)
                buf_puts(&source, i < shift ? "x" : "\xe2\x82\xac");
            buf_puts(&source, "\n");
        }
        Diagnosis diagnosis = diagnose(arena, buf_take(arena, &log), buf_take(arena, &source));
        assert_true(diagnosis.count > 0);
        assert_non_null(strstr(diagnosis.distilled, "a.hpp:1: "));
        assert_true(strlen(diagnosis.distilled) <= DISTILLED_MAX_BYTES);
        assert_true(text_is_utf8(diagnosis.distilled, strlen(diagnosis.distilled)));
    }
    arena_free(arena);
}

static void test_a_megabyte_of_log_takes_little_time(void **state) {
    (void)state;
    Arena *arena = arena_new();
    char *source = read_text(arena, DATA "/copy_of_unequal_ranks.cu");
    char *log = read_text(arena, DATA "/copy_of_unequal_ranks.log");
    Buf large = {0};
    while (large.length < (size_t)1 << 20)
        buf_puts(&large, log);
    double start = clock_seconds();
    Diagnosis diagnosis = diagnose(arena, large.data, source);
    assert_true(clock_seconds() - start < 1.0); // 10 ms, but tests also run under ASan
    assert_int_equal(diagnosis.items[0].user_line, culprit_line(source));
    buf_free(&large);
    arena_free(arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_recorded_outputs_distil_to_the_expected_text),
        cmocka_unit_test(test_first_error_names_the_culprit_line_in_every_recorded_kernel),
        cmocka_unit_test(test_column_and_caret_point_into_the_users_own_line),
        cmocka_unit_test(test_refusal_without_a_known_error_tells_the_line_that_speaks_of_one),
        cmocka_unit_test(test_warnings_of_ptxas_are_kept_when_there_is_no_error),
        cmocka_unit_test(test_types_are_written_in_cute_notation),
        cmocka_unit_test(test_garbage_is_no_diagnosis_and_no_crash),
        cmocka_unit_test(test_no_cut_splits_a_character),
        cmocka_unit_test(test_a_megabyte_of_log_takes_little_time),
    };
    const struct CMUnitTest recording[] = {cmocka_unit_test(record)};
    if (getenv("CUTEGEN_RECORD")) return cmocka_run_group_tests(recording, NULL, NULL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
