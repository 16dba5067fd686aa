/* Promises of the prompts: nothing unfilled, nothing forgotten, and a prefix that stays the same.
 */
#include "agent/prompt.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

typedef struct {
    Arena *arena;
    Task task;
    Error err;
} World;

static int set_up(void **state) {
    Arena *arena = arena_new();
    World *world = arena_new_of(arena, World);
    world->arena = arena;
    if (!task_load(arena, SOURCE_ROOT "/tasks/row_softmax", &world->task, &world->err))
        fail_msg("%s", world->err.message);
    *state = world;
    return 0;
}

static int tear_down(void **state) {
    arena_free(((World *)*state)->arena);
    return 0;
}

/* A whole context; a test takes away or adds what it is about. */
static PromptContext context_of(World *world, Stage stage) {
    return (PromptContext){
        .task = &world->task,
        .arch = "sm_90a",
        .device = "sim",
        .stage = stage,
        .source = stage == STAGE_DRAFT ? NULL : "int table[1][2] = {{1, 2}}; // {{name}}\n",
        .verdict = "wrong",
        .message = "y[7] is off",
        .repair = "only the ragged edge is wrong",
        .history = "- edit 1: wrong\n",
        .objective = "12 us",
    };
}

static const char *prompt_of(World *world, const PromptContext *context) {
    char *text;
    if (!prompt_stage(world->arena, context, &text, &world->err))
        fail_msg("%s", world->err.message);
    return text;
}

static void has(const char *text, const char *part) {
    if (!strstr(text, part)) fail_msg("no '%s' in\n%s", part, text);
}

static void test_unfilled_placeholder_is_an_error_that_names_it(void **state) {
    World *world = *state;
    char *text;
    const PromptValue values[] = {{"prompt", "p"}};
    assert_false(prompt_fill(world->arena, "continue", values, 1, &text, &world->err));
    assert_int_equal(world->err.kind, ERROR_HARNESS);
    assert_string_equal(world->err.message, "prompts/continue.md: nothing to put in {{tail}}");
    PromptContext context = context_of(world, STAGE_DEBUG);
    context.verdict = NULL;
    assert_false(prompt_stage(world->arena, &context, &text, &world->err));
    assert_string_equal(world->err.message, "prompts/debug.md: nothing to put in {{verdict}}");
}

static void test_unknown_template_is_an_error(void **state) {
    World *world = *state;
    char *text;
    assert_false(prompt_fill(world->arena, "nonsense", NULL, 0, &text, &world->err));
    assert_string_equal(world->err.message, "there is no prompt nonsense.md");
}

static void test_braces_of_code_and_of_values_are_left_alone(void **state) {
    World *world = *state;
    PromptContext context = context_of(world, STAGE_DEBUG);
    has(prompt_of(world, &context), "int table[1][2] = {{1, 2}}; // {{name}}\n");
}

static void test_every_stage_tells_the_task(void **state) {
    World *world = *state;
    for (int stage = STAGE_DRAFT; stage < STAGE_DONE; stage++) {
        PromptContext context = context_of(world, (Stage)stage);
        context.hint = "mind the tail";
        const char *text = prompt_of(world, &context);
        const char *const parts[] = {
            "row_softmax",
            "input `x`: f32 [rows, cols]",
            "output `y`: f32 [rows, cols], right within rtol",
            "rows=4096 cols=8192",
            "extern \"C\" cudaError_t launch(const float *x",
            "struct Dims {",
            "reference(",
            "The user adds: mind the tail",
            "in plain float",
        };
        for (size_t i = 0; i < COUNT_OF(parts); i++)
            has(text, parts[i]);
    }
}

static void test_simulated_runs_are_told_what_the_simulator_cannot_do(void **state) {
    World *world = *state;
    PromptContext context = context_of(world, STAGE_DRAFT);
    has(prompt_of(world, &context), "must not be used: tensor cores");
    context.device = "cuda:0";
    assert_null(strstr(prompt_of(world, &context), "simulator"));
}

static void test_debug_prompt_holds_the_rules_of_repair(void **state) {
    World *world = *state;
    PromptContext context = context_of(world, STAGE_DEBUG);
    context.refusal = "Your reply is empty.";
    const char *text = prompt_of(world, &context);
    const char *const parts[] = {
        "## The verdict: wrong",
        "y[7] is off",
        "only the ragged edge is wrong",
        "- edit 1: wrong",
        "Your reply is empty.",
        "Its intent is settled",
        "smallest change",
        "never fall back to a library",
        "never drop a mask",
        "never change the precision",
    };
    for (size_t i = 0; i < COUNT_OF(parts); i++)
        has(text, parts[i]);
}

static void test_draft_and_optimise_carry_the_playbook_of_the_class(void **state) {
    World *world = *state;
    static const struct {
        WorkloadClass class;
        const char *title;
    } cases[] = {{CLASS_SOFTMAX, "Playbook: reductions, norms, softmax"},
                 {CLASS_NORM, "Playbook: reductions, norms, softmax"},
                 {CLASS_ELEMENTWISE, "Playbook: element-wise"},
                 {CLASS_GEMM, "Playbook: matrix products"},
                 {CLASS_SCAN, "Playbook: any other operator"}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        world->task.class = cases[i].class;
        PromptContext context = context_of(world, STAGE_DRAFT);
        has(prompt_of(world, &context), cases[i].title);
        context = context_of(world, STAGE_OPTIMISE);
        has(prompt_of(world, &context), cases[i].title);
    }
}

static void test_sections_without_content_leave_no_heading(void **state) {
    World *world = *state;
    PromptContext context = context_of(world, STAGE_DRAFT);
    context.history = "";
    const char *text = prompt_of(world, &context);
    assert_null(strstr(text, "Tried so far"));
    assert_null(strstr(text, "could not be used"));
    assert_null(strstr(text, "The user adds"));
}

static void test_system_prefix_is_short_complete_and_always_the_same(void **state) {
    World *world = *state;
    char *once, *again;
    assert_true(prompt_system(world->arena, &once, &world->err));
    assert_true(prompt_system(world->arena, &again, &world->err));
    assert_string_equal(once, again);
    assert_null(strstr(once, "{{cute_card}}"));
    has(once, "# CuTe in brief");
    has(once, "<<<<<<< SEARCH");
    assert_in_range(strlen(once), 8000, 20000); // at 3.4 bytes or more a token: below 6,000
}

static void test_continuation_quotes_the_end_of_the_reply(void **state) {
    World *world = *state;
    char *text, reply[2000];
    memset(reply, 'a', sizeof reply);
    strcpy(reply + sizeof reply - 12, "\xc3\xa9 the end");
    assert_true(prompt_continue(world->arena, "QUESTION", reply, &text, &world->err));
    has(text, "QUESTION");
    has(text, "\xc3\xa9 the end");
    assert_true(strlen(text) < 1500);
    assert_true(text_is_utf8(text, strlen(text)));
}

static void test_missing_reference_is_reported(void **state) {
    World *world = *state;
    world->task.reference_path = "/nowhere/reference.c";
    PromptContext context = context_of(world, STAGE_DRAFT);
    char *text;
    assert_false(prompt_stage(world->arena, &context, &text, &world->err));
    has(world->err.message, "/nowhere/reference.c");
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_unfilled_placeholder_is_an_error_that_names_it),
        TEST(test_unknown_template_is_an_error),
        TEST(test_braces_of_code_and_of_values_are_left_alone),
        TEST(test_every_stage_tells_the_task),
        TEST(test_simulated_runs_are_told_what_the_simulator_cannot_do),
        TEST(test_debug_prompt_holds_the_rules_of_repair),
        TEST(test_draft_and_optimise_carry_the_playbook_of_the_class),
        TEST(test_sections_without_content_leave_no_heading),
        TEST(test_system_prefix_is_short_complete_and_always_the_same),
        TEST(test_continuation_quotes_the_end_of_the_reply),
        TEST(test_missing_reference_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
