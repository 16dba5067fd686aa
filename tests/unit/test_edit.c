/* Promises of edit_apply: good replies become sources, bad ones a reason that helps. */
#include "agent/agent.h"
#include "agent/edit.h"
#include "agent/scan.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const char kBase[] = "#include \"task.h\"\n"                                       // 1
                            "__global__ void k(float *y, int n) {\n"                      // 2
                            "    int i = threadIdx.x;\n"                                  // 3
                            "    if (i < n)   \n"                                         // 4
                            "        y[i] = 1.f;\n"                                       // 5
                            "    __syncthreads();\n"                                      // 6
                            "    y[i] += 2.f;\n"                                          // 7
                            "    __syncthreads();\n"                                      // 8
                            "}\n"                                                         // 9
                            "extern \"C\" cudaError_t launch(float *y, Dims d, void *w, " // 10
                            "cudaStream_t s) {\n"
                            "    k<<<1, 32, 0, s>>>(y, 32);\n" // 11
                            "    return cudaGetLastError();\n" // 12
                            "}\n";                             // 13

#define EDIT(search, replace) "<<<<<<< SEARCH\n" search "=======\n" replace ">>>>>>> REPLACE\n"
#define WHOLE                                                                                      \
    "#include \"task.h\"\nextern \"C\" cudaError_t launch(float *y, Dims d, void *w, "             \
    "cudaStream_t s) { return cudaSuccess; }\n"

static int set_up(void **state) {
    return (*state = arena_new()) ? 0 : -1;
}
static int tear_down(void **state) {
    arena_free(*state);
    return 0;
}

static const char *accepts(Arena *arena, const char *base, const char *reply) {
    char *source = NULL, *refusal = NULL;
    if (!edit_apply(arena, base, reply, strlen(reply), false, &source, &refusal))
        fail_msg("refused: %s", refusal);
    return source;
}

static void refuses_bytes(Arena *arena, const char *base, const char *reply, size_t bytes,
                          bool truncated, const char *words) {
    char *source = NULL, *refusal = NULL;
    if (edit_apply(arena, base, reply, bytes, truncated, &source, &refusal))
        fail_msg("accepted, expected '%s': %s", words, source);
    if (!strstr(refusal, words)) fail_msg("'%s' does not say '%s'", refusal, words);
}

static void refuses(Arena *arena, const char *base, const char *reply, const char *words) {
    refuses_bytes(arena, base, reply, strlen(reply), false, words);
}

/* The base with its one occurrence of `from` replaced. */
static const char *with(Arena *arena, const char *from, const char *to) {
    const char *at = strstr(kBase, from);
    assert_non_null(at);
    return arena_printf(arena, "%.*s%s%s", (int)(at - kBase), kBase, to, at + strlen(from));
}

/* ---- what is accepted -------------------------------------------------------------------- */

static void test_anchored_edit_changes_just_its_place(void **state) {
    const char *got =
        accepts(*state, kBase,
                "Cause: off by one.\n\n" EDIT("        y[i] = 1.f;\n", "        y[i] = 3.f;\n"));
    assert_string_equal(got, with(*state, "y[i] = 1.f", "y[i] = 3.f"));
}

static void test_trailing_blanks_and_crlf_do_not_matter(void **state) {
    const char *got =
        accepts(*state, kBase,
                "<<<<<<< SEARCH\r\n    if (i < n)\r\n        y[i] = 1.f;  \r\n=======\r\n    if (i "
                "< n)\r\n        y[i] = 3.f;\r\n>>>>>>> REPLACE\r\n");
    assert_null(strchr(got, '\r'));
    assert_non_null(strstr(got, "y[i] = 3.f;\n"));
}

static void test_edits_inside_a_fence_are_edits(void **state) {
    const char *got = accepts(*state, kBase,
                              "```cuda\n" EDIT("    y[i] += 2.f;\n", "    y[i] += 4.f;\n") "```\n");
    assert_string_equal(got, with(*state, "y[i] += 2.f", "y[i] += 4.f"));
}

static void test_several_edits_apply_in_any_order(void **state) {
    const char *forward =
        accepts(*state, kBase,
                EDIT("    int i = threadIdx.x;\n",
                     "    int i = threadIdx.x + 1;\n") "and\n" EDIT("    y[i] += 2.f;\n", ""));
    const char *backward =
        accepts(*state, kBase,
                EDIT("    y[i] += 2.f;\n", "")
                    EDIT("    int i = threadIdx.x;\n", "    int i = threadIdx.x + 1;\n"));
    assert_string_equal(forward, backward);
    assert_null(strstr(forward, "+= 2.f"));
}

static void test_whole_file_block_replaces_everything(void **state) {
    const char *const tags[] = {"cuda", "cpp", "c++", "cu", "CUDA", "{.cuda}", ""};
    for (size_t i = 0; i < COUNT_OF(tags); i++) {
        const char *reply = arena_printf(*state, "Here:\n```%s\n" WHOLE "```\nDone.\n", tags[i]);
        assert_string_equal(accepts(*state, NULL, reply), WHOLE);
        assert_string_equal(accepts(*state, kBase, reply), WHOLE);
    }
}

static void test_bare_source_is_a_whole_file(void **state) {
    assert_string_equal(accepts(*state, NULL, WHOLE), WHOLE);
    assert_string_equal(accepts(*state, NULL, "\n// kernel\n" WHOLE), "\n// kernel\n" WHOLE);
}

static void test_reply_wrapped_in_markdown_fence_is_unwrapped(void **state) {
    assert_string_equal(accepts(*state, NULL, "```markdown\nText\n```cuda\n" WHOLE "```\n"), WHOLE);
}

static void test_other_blocks_beside_the_one_are_ignored(void **state) {
    assert_string_equal(accepts(*state, NULL, "```text\nplan\n```\n```cuda\n" WHOLE "```\n"),
                        WHOLE);
    accepts(*state, kBase,
            "The line\n```cpp\ny[i] += 2.f;\n```\nis wrong.\n" EDIT("    y[i] += 2.f;\n",
                                                                    "    y[i] += 5.f;\n"));
}

static void test_byte_order_mark_is_dropped(void **state) {
    assert_string_equal(accepts(*state, NULL, "\xef\xbb\xbf" WHOLE), WHOLE);
}

/* ---- what is refused, and in which words -------------------------------------------------- */

static void test_edit_with_ambiguous_anchor_is_returned_to_the_model(void **state) {
    refuses(*state, kBase, EDIT("    __syncthreads();\n", ""),
            "Edit 1 (line 1 of your reply): its anchor matches lines 6 and 8 of the source; add a "
            "line of context");
}

static void test_absent_anchor_shows_the_nearest_place(void **state) {
    refuses(*state, kBase, EDIT("    if (i < n)\n        y[i] = 1.0f;\n", "x\n"),
            "the nearest place is line 4; there line 2 of your anchor is\n            y[i] = 1.0f;"
            "\nwhere the source, in line 5, has\n            y[i] = 1.f;");
}

static void test_wrong_indentation_shows_both_lines(void **state) {
    refuses(*state, kBase, EDIT("  int i = threadIdx.x;\n", "  int i = 0;\n"),
            "an anchor is made of whole lines, with their indentation; line 3 is\n"
            "        int i = threadIdx.x;");
}

static void test_part_of_a_line_is_no_anchor(void **state) {
    refuses(*state, kBase, EDIT("y[i] += 2\n", "y[i] += 3\n"), "line 7 is\n        y[i] += 2.f;");
}

static void test_anchor_that_is_nowhere_says_so(void **state) {
    refuses(*state, kBase, EDIT("quux\n", "x\n"), "no line of it occurs there");
}

static void test_similar_line_is_shown(void **state) {
    refuses(*state, kBase, EDIT("    y[i] += 2.5f;\n", "x\n"),
            "the most similar line is 7:\n        y[i] += 2.f;");
}

static void test_edit_that_was_made_before_is_recognised(void **state) {
    refuses(*state, kBase, EDIT("    y[i] -= alpha;\n", "    y[i] += 2.f;\n"),
            "its REPLACE text stands in line 7 already");
}

static void test_one_bad_edit_of_several_spoils_all(void **state) {
    refuses(*state, kBase, EDIT("    y[i] += 2.f;\n", "    y[i] += 4.f;\n") EDIT("quux\n", "x\n"),
            "Edit 2 (line 6 of your reply)");
}

static void test_anchor_in_text_of_an_earlier_edit_is_explained(void **state) {
    refuses(*state, kBase, EDIT("    y[i] += 2.f;\n", "    quux;\n") EDIT("    quux;\n", "x\n"),
            "an earlier edit of yours is in it only if the source shows it");
}

static void test_overlapping_edits_are_refused(void **state) {
    refuses(*state, kBase,
            EDIT("    if (i < n)\n        y[i] = 1.f;\n", "    ;\n")
                EDIT("        y[i] = 1.f;\n", "    ;\n"),
            "Edits 1 and 2 both change line 5");
}

static void test_bad_replies_are_refused_with_the_reason(void **state) {
    static const struct {
        const char *reply, *words;
        bool draft;
    } cases[] = {
        {"", "Your reply is empty", true},
        {"  \n\t\n", "Your reply is empty", true},
        {"I think the kernel is fine as it is.", "has no code", false},
        {"# Plan\nFirst, tile.", "has no code", true},
        {"```python\nprint(1)\n```", "is tagged 'python'", true},
        {"```cuda\n" WHOLE "```\n```cuda\n" WHOLE "```\n", "2 code blocks (lines 1, 5)", true},
        {"```\na\n```\n```\nb\n```\n", "2 code blocks", true},
        {"```cuda\n" WHOLE, "line 1 of your reply is never closed", true},
        {"```cuda\nint x;\n```cuda\n" WHOLE "```\n", "a fence opens inside a code block", true},
        {EDIT("    y[i] += 2.f;\n", "x\n"), "no source yet that could be edited", true},
        {EDIT("", "int x;\n"), "has an empty SEARCH part", false},
        {EDIT("\n  \n", "int x;\n"), "has an empty SEARCH part", false},
        {EDIT("    y[i] += 2.f;\n", "    y[i] += 2.f;\n"), "changes nothing", false},
        {"<<<<<<< SEARCH\n    y[i] += 2.f;\n>>>>>>> REPLACE\n", "no ======= between", false},
        {"<<<<<<< SEARCH\n    y[i] += 2.f;\n=======\nx\n", "no >>>>>>> REPLACE", false},
        {"<<<<<<< SEARCH\n    y[i] += 2.f;\n", "no ======= and no end", false},
        {"<<<<<<< SEARCH\na\n=======\nb\n=======\nc\n>>>>>>> REPLACE\n", "a second =======", false},
        {"<<<<<<< SEARCH\na\n<<<<<<< SEARCH\nb\n=======\nc\n>>>>>>> REPLACE\n",
         "an edit begins inside another one", false},
        {"<<<<<<< HEAD\na\n=======\nb\n>>>>>>> mine\n", "edits begin with <<<<<<< SEARCH", false},
        {"text\n>>>>>>> REPLACE\n", "ends an edit that has not begun", false},
        {"<<<<<<< SEARCH\n```cuda\n    y[i] += 2.f;\n```\n=======\nx\n>>>>>>> REPLACE\n",
         "a Markdown fence stands inside an edit", false},
        {"```diff\n--- a/kernel.cu\n+++ b/kernel.cu\n@@ -7,1 +7,1 @@\n-a\n+b\n```\n",
         "Unified diffs are not accepted", false},
        {"--- kernel.cu\n+++ kernel.cu\n@@ -1 +1 @@\n-a\n+b\n", "Unified diffs are not accepted",
         false},
        {EDIT("    y[i] += 2.f;\n", "    { y[i] += 4.f;\n"), "the '{' in line 2 is never closed",
         false},
        {EDIT("        y[i] = 1.f;\n", "        y[i] = 1.f; }\n"),
         "the '}' in line 9 closes nothing", false},
        {EDIT("    y[i] += 2.f;\n", "    y[i) += 2.f;\n"), "the ')' in line 7 meets the '['",
         false},
        {EDIT("    y[i] += 2.f;\n", "    printf(\"a);\n"), "a string that is never closed", false},
        {EDIT("    y[i] += 2.f;\n", "    /* y[i] += 2.f;\n"), "a comment that is never closed",
         false},
        {EDIT("    y[i] += 2.f;\n", "#if 1\n"), "the #if in line 7 has no #endif", false},
        {EDIT("    y[i] += 2.f;\n", "    Now we don't sync.\n"),
         "a character literal that is never closed", false},
        {"```cuda\n#include \"task.h\"\n// ... rest of the kernel unchanged\n" WHOLE "```\n",
         "stands for code that you left out", false},
        {EDIT("    y[i] += 2.f;\n", "    // ... existing code ...\n"), "Line 7 of the outcome",
         false},
        {"```cuda\nextern \"C\" int run(float *y) { return 0; } // launch()\n```\n",
         "does not define launch()", true},
        {"```cuda\n" WHOLE "```\n" EDIT("    y[i] += 2.f;\n", "    y[i] += 4.f;\n"),
         "both edits and a whole file (line 1)", false},
        {"```cuda\n```\n", "would be empty", true},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        refuses(*state, cases[i].draft ? NULL : kBase, cases[i].reply, cases[i].words);
}

static void test_truncated_reply_is_not_applied(void **state) {
    const char *reply = "```cuda\n" WHOLE "```\n";
    refuses_bytes(*state, NULL, reply, strlen(reply), true, "cut off by the length limit");
}

static void test_binary_reply_is_refused(void **state) {
    refuses_bytes(*state, NULL, "a\nb\0c", 5, false, "line 2 has a zero byte");
    refuses_bytes(*state, NULL, "```cuda\n\xff\xfe\n```\n", 14, false, "not valid UTF-8");
}

static void test_huge_reply_is_refused(void **state) {
    char *reply = arena_alloc(*state, (10 << 20) + 1);
    memset(reply, 'x', 10 << 20);
    refuses_bytes(*state, NULL, reply, 10 << 20, false, "10485760 bytes");
    memcpy(reply, "```cuda\n//", 10);
    memset(reply + 10, 'y', 2 << 20);
    memcpy(reply + 10 + (2 << 20), "\n```\n", 6);
    refuses(*state, NULL, reply, "1048576 are allowed");
}

static void test_worst_case_of_matching_ends_soon(void **state) {
    // A megabyte of equal lines against the longest anchor that is looked for.
    Buf base = {0}, reply = {0};
    buf_puts(&base, WHOLE);
    for (int i = 0; i < 400000; i++)
        buf_puts(&base, "a\n");
    buf_puts(&reply, "<<<<<<< SEARCH\n");
    for (int i = 0; i < 399; i++)
        buf_puts(&reply, "a\n");
    buf_puts(&reply, "b\n=======\nc\n>>>>>>> REPLACE\n");
    double start = clock_seconds();
    refuses(*state, base.data, reply.data, "not in the source");
    assert_true(clock_seconds() - start < 20); // sanitizers and a busy machine included
    buf_free(&base);
    buf_free(&reply);
}

/* ---- the tokenizer ----------------------------------------------------------------------- */

static void test_brackets_in_literals_comments_and_macros_do_not_count(void **state) {
    static const char *const balanced[] = {
        "const char *s = \"}{\\\"(\"; char c = '{', d = '\\'';",
        "// don't { do\nint x; /* ((( */",
        "auto r = R\"cut(}\" )\" {{)cut\"; auto q = u8R\"({)\";",
        "int million = 1'000'000; auto h = 0xFF'FFu; double e = 1e+5;",
        "#define OPEN {\n#define CLOSE }\nint f() { return 1; }",
        "#define LONG(x) { \\\n  ( x\nint y;",
        "#if 0\nit's { not code ]\n#if X\n#endif\n#else\nint f() { }\n#endif",
        "#ifdef A\nif (x) {\n#else\nif (y) {\n#endif\n}",
        "#ifdef A\nif (x) {\n#endif\nz;\n#ifdef A\n}\n#endif",
        "#error this isn't a literal\nint x;",
        "// a comment \\\n that goes on {\nint x;",
        "wchar_t w = L'{'; auto t = u\"{\"; auto k = \"a\"_kernel;",
        "template <int N> void f(int (&a)[N]) { a[0] = N >> 1; }",
        "",
    };
    for (size_t i = 0; i < COUNT_OF(balanced); i++) {
        char *problem;
        if (!scan_balanced(*state, balanced[i], strlen(balanced[i]), &problem))
            fail_msg("%s\n%s", balanced[i], problem);
    }
}

static void test_unbalanced_sources_are_found_out(void **state) {
    static const char *const unbalanced[] = {
        "int f() { ",
        "}",
        "(]",
        "R\"x(abc)y\"",
        "R\"0123456789012345678(a)\"",
        "'a",
        "\"a\n\"",
        "/* ",
        "#endif",
        "#else",
        "#if 1\n#else\n",
        "#if 0\n{",
        "int a = 1'",
        "{ // }",
        "\"\\",
        "'\\",
        "R\"",
        "/*/",
    };
    for (size_t i = 0; i < COUNT_OF(unbalanced); i++) {
        char *problem;
        // In a buffer of exactly its size, so that a sanitizer sees every read past its end.
        size_t bytes = strlen(unbalanced[i]);
        char *exact = malloc(bytes);
        memcpy(exact, unbalanced[i], bytes);
        if (scan_balanced(*state, exact, bytes, &problem)) fail_msg("%s", unbalanced[i]);
        free(exact);
    }
}

static void test_any_prefix_of_a_reply_is_survived(void **state) {
    (void)state;
    const char *replies[] = {
        "```cuda\n" WHOLE "```\n",
        "Cause: x\n" EDIT("    y[i] += 2.f;\n", "    y[i] += R\"(a)\" '4' 1'0 /* */;\n"),
        "<<<<<<< SEARCH\r\n=======\r\n>>>>>>> REPLACE\r\n~~~~ cuda\n#if 0\n#elif\n~~~~",
    };
    for (size_t i = 0; i < COUNT_OF(replies); i++) {
        for (size_t bytes = 0; bytes <= strlen(replies[i]); bytes++) {
            char *source, *refusal, *exact = malloc(bytes + 1);
            memcpy(exact, replies[i], bytes);
            exact[bytes] = 0;
            Arena *arena = arena_new();
            bool good = edit_apply(arena, kBase, exact, bytes, false, &source, &refusal);
            assert_true(good || strlen(refusal) > 10);
            arena_free(arena);
            free(exact);
        }
    }
}

/* ---- pieces, spans, ideas ----------------------------------------------------------------- */

static void test_continuation_is_joined_without_repeats(void **state) {
    assert_string_equal(reply_join(*state, "```cuda\nint a;\nint b", " = 2;\n```\n"),
                        "```cuda\nint a;\nint b = 2;\n```\n");
    assert_string_equal(
        reply_join(*state, "```cuda\nfloat alpha = 1.f;\n", "float alpha = 1.f;\nint c;\n```\n"),
        "```cuda\nfloat alpha = 1.f;\nint c;\n```\n");
    assert_string_equal(reply_join(*state, "```cuda\nint a;\n", "```cuda\nint c;\n```\n"),
                        "```cuda\nint a;\nint c;\n```\n");
    assert_string_equal(reply_join(*state, "", "x"), "x");
}

static void test_span_of_a_change_is_its_lines(void **state) {
    LineSpan span = edit_span(*state, "a\nb\nc\nd\n", "a\nX\nY\nd\n");
    assert_int_equal(span.first_line, 2);
    assert_int_equal(span.removed, 2);
    assert_int_equal(span.added, 2);
    span = edit_span(*state, "a\na\n", "a\na\na\n");
    assert_int_equal(span.removed, 0);
    assert_int_equal(span.added, 1);
    span = edit_span(*state, "", "a\nb\n");
    assert_int_equal(span.first_line, 1);
    assert_int_equal(span.added, 2);
}

static void test_idea_is_the_labelled_line(void **state) {
    assert_string_equal(reply_idea(*state, "Well.\n**Idea:** wider loads\nmore"), "wider loads");
    assert_string_equal(reply_idea(*state, "Cause: the mask is missing  \n"),
                        "the mask is missing");
    assert_null(reply_idea(*state, "no label\nIdea:\n"));
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_anchored_edit_changes_just_its_place),
        TEST(test_trailing_blanks_and_crlf_do_not_matter),
        TEST(test_edits_inside_a_fence_are_edits),
        TEST(test_several_edits_apply_in_any_order),
        TEST(test_whole_file_block_replaces_everything),
        TEST(test_bare_source_is_a_whole_file),
        TEST(test_reply_wrapped_in_markdown_fence_is_unwrapped),
        TEST(test_other_blocks_beside_the_one_are_ignored),
        TEST(test_byte_order_mark_is_dropped),
        TEST(test_edit_with_ambiguous_anchor_is_returned_to_the_model),
        TEST(test_absent_anchor_shows_the_nearest_place),
        TEST(test_wrong_indentation_shows_both_lines),
        TEST(test_part_of_a_line_is_no_anchor),
        TEST(test_anchor_that_is_nowhere_says_so),
        TEST(test_similar_line_is_shown),
        TEST(test_edit_that_was_made_before_is_recognised),
        TEST(test_one_bad_edit_of_several_spoils_all),
        TEST(test_anchor_in_text_of_an_earlier_edit_is_explained),
        TEST(test_overlapping_edits_are_refused),
        TEST(test_bad_replies_are_refused_with_the_reason),
        TEST(test_truncated_reply_is_not_applied),
        TEST(test_binary_reply_is_refused),
        TEST(test_huge_reply_is_refused),
        TEST(test_worst_case_of_matching_ends_soon),
        TEST(test_brackets_in_literals_comments_and_macros_do_not_count),
        TEST(test_unbalanced_sources_are_found_out),
        TEST(test_any_prefix_of_a_reply_is_survived),
        TEST(test_continuation_is_joined_without_repeats),
        TEST(test_span_of_a_change_is_its_lines),
        TEST(test_idea_is_the_labelled_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
