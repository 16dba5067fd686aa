/* Promises of the loop's pure step function: lists of events in, a trace of actions out. */
#include "agent/agent.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

typedef struct {
    LoopLimits limits;
    LoopState state;
    int sources;      // so far; names the next one "s1", "s2", …
    char trace[8192]; // actions since the last look
} Loop;

static Loop loop_of(int edits, int drafts, int rounds, int plateau) {
    return (Loop){.limits = {.edits_per_episode = edits,
                             .fresh_drafts = drafts,
                             .rounds = rounds,
                             .plateau_rounds = plateau},
                  .state = loop_begin()};
}

static void feed(Loop *loop, Event event) {
    Step next = step(&loop->limits, loop->state, &event);
    loop->state = next.state;
    for (int i = 0; i < next.action_count; i++) {
        const Action *action = &next.actions[i];
        char text[96] = "";
        switch (action->kind) {
        case ACTION_ASK:
            snprintf(text, sizeof text, "ask:%s", stage_name(action->stage));
            break;
        case ACTION_APPLY:
            snprintf(text, sizeof text, "apply");
            break;
        case ACTION_JUDGE:
            snprintf(text, sizeof text, "judge:%s", loop->state.source);
            break;
        case ACTION_KEEP_BEST:
            snprintf(text, sizeof text, "keep:%s", loop->state.best);
            break;
        case ACTION_STOP:
            snprintf(text, sizeof text, "stop:%s", stop_name(action->stop));
            break;
        }
        size_t used = strlen(loop->trace);
        snprintf(loop->trace + used, sizeof loop->trace - used, "%s%s", used ? " " : "", text);
    }
}

static void start(Loop *loop) {
    feed(loop, (Event){.kind = EVENT_STARTED});
}

/* A reply that becomes the next source. */
static void edit(Loop *loop) {
    char name[16];
    snprintf(name, sizeof name, "s%d", ++loop->sources);
    feed(loop, (Event){.kind = EVENT_REPLIED});
    feed(loop, (Event){.kind = EVENT_EDIT_APPLIED, .source = name});
}
static void verdict(Loop *loop, VerdictKind kind, double objective) {
    feed(loop, (Event){.kind = EVENT_JUDGED, .verdict = kind, .objective = objective});
}
static void refuse(Loop *loop) {
    feed(loop, (Event){.kind = EVENT_REPLIED});
    feed(loop, (Event){.kind = EVENT_EDIT_REFUSED, .reason = "no code"});
}
static void edit_and_fail(Loop *loop) {
    edit(loop);
    verdict(loop, VERDICT_WRONG, NAN);
}
static void edit_and_pass(Loop *loop, double objective) {
    edit(loop);
    verdict(loop, VERDICT_PASS, objective);
}

#define EXPECT(loop, text)                                                                         \
    do {                                                                                           \
        assert_string_equal((loop)->trace, text);                                                  \
        (loop)->trace[0] = 0;                                                                      \
    } while (0)

static void test_first_pass_is_kept_and_ends_a_run_without_rounds(void **state) {
    (void)state;
    Loop loop = loop_of(5, 3, 0, 4);
    start(&loop);
    edit_and_pass(&loop, 12.5);
    EXPECT(&loop, "ask:draft apply judge:s1 keep:s1 stop:passed");
    assert_true(loop.state.done);
    assert_string_equal(loop.state.best, "s1");
    assert_true(loop.state.best_objective == 12.5);
}

static void test_pass_without_objective_ends_the_run_even_with_rounds(void **state) {
    (void)state;
    Loop loop = loop_of(5, 3, 10, 4);
    start(&loop);
    edit_and_pass(&loop, NAN);
    EXPECT(&loop, "ask:draft apply judge:s1 keep:s1 stop:passed");
}

static void test_failing_draft_is_repaired_by_edits_of_what_was_judged_last(void **state) {
    (void)state;
    Loop loop = loop_of(5, 3, 0, 4);
    start(&loop);
    edit_and_fail(&loop);
    EXPECT(&loop, "ask:draft apply judge:s1 ask:debug");
    assert_string_equal(loop.state.base, "s1");
    edit_and_fail(&loop);
    EXPECT(&loop, "apply judge:s2 ask:debug");
    assert_string_equal(loop.state.base, "s2");
    edit_and_pass(&loop, NAN);
    EXPECT(&loop, "apply judge:s3 keep:s3 stop:passed");
}

static void test_fifth_edit_is_judged_too_then_a_fresh_draft_begins(void **state) {
    (void)state;
    Loop loop = loop_of(5, 3, 0, 4);
    start(&loop);
    edit_and_fail(&loop);
    for (int i = 0; i < 4; i++)
        edit_and_fail(&loop);
    loop.trace[0] = 0;
    edit(&loop); // the fifth
    EXPECT(&loop, "apply judge:s6");
    verdict(&loop, VERDICT_WRONG, NAN);
    EXPECT(&loop, "ask:draft");
    assert_int_equal(loop.state.draft, 2);
    assert_string_equal(loop.state.base, "");
    assert_string_equal(loop.state.source, "");
}

static void test_fifth_edit_may_pass(void **state) {
    (void)state;
    Loop loop = loop_of(5, 1, 0, 4);
    start(&loop);
    for (int i = 0; i < 5; i++)
        edit_and_fail(&loop);
    loop.trace[0] = 0;
    edit_and_pass(&loop, 1);
    EXPECT(&loop, "apply judge:s6 keep:s6 stop:passed");
}

static void test_run_stops_without_kernel_after_the_last_draft(void **state) {
    (void)state;
    Loop loop = loop_of(1, 2, 0, 4);
    start(&loop);
    for (int i = 0; i < 4; i++)
        edit_and_fail(&loop);
    EXPECT(&loop, "ask:draft apply judge:s1 ask:debug apply judge:s2 ask:draft apply judge:s3 "
                  "ask:debug apply judge:s4 stop:no_kernel");
    assert_string_equal(loop.state.best, "");
}

static void test_given_kernel_enters_at_the_judge_and_costs_no_draft(void **state) {
    (void)state;
    Loop loop = loop_of(1, 1, 0, 4);
    feed(&loop, (Event){.kind = EVENT_STARTED, .source = "given"});
    EXPECT(&loop, "judge:given");
    verdict(&loop, VERDICT_COMPILE_ERROR, NAN);
    edit_and_fail(&loop);
    EXPECT(&loop, "ask:debug apply judge:s1 ask:draft");
    assert_int_equal(loop.state.draft, 1);
}

static void test_refused_reply_is_asked_again_and_costs_no_edit(void **state) {
    (void)state;
    Loop loop = loop_of(5, 3, 0, 4);
    start(&loop);
    edit_and_fail(&loop);
    loop.trace[0] = 0;
    refuse(&loop);
    refuse(&loop);
    EXPECT(&loop, "apply ask:debug apply ask:debug");
    assert_int_equal(loop.state.edit, 0);
    edit(&loop);
    assert_int_equal(loop.state.edit, 1);
    assert_int_equal(loop.state.refused, 0);
}

static void test_three_refusals_in_a_row_cost_one_edit(void **state) {
    (void)state;
    Loop loop = loop_of(1, 2, 0, 4);
    start(&loop);
    edit_and_fail(&loop);
    loop.trace[0] = 0;
    refuse(&loop);
    refuse(&loop);
    refuse(&loop); // the only edit is spent: a fresh draft
    EXPECT(&loop, "apply ask:debug apply ask:debug apply ask:draft");
    assert_int_equal(loop.state.draft, 2);
    refuse(&loop);
    refuse(&loop);
    refuse(&loop);
    EXPECT(&loop, "apply ask:draft apply ask:draft apply stop:no_kernel");
}

static void test_endless_refusals_end_the_run(void **state) {
    (void)state;
    Loop loop = loop_of(5, 3, 10, 4);
    start(&loop);
    int replies = 0;
    while (!loop.state.done && replies < 1000) {
        refuse(&loop);
        replies++;
    }
    assert_int_equal(replies, 9);
    assert_int_equal(loop.state.stop, STOP_NO_KERNEL);
}

static void test_harness_fault_is_tried_once_more_and_never_counts(void **state) {
    (void)state;
    Loop loop = loop_of(5, 3, 0, 4);
    start(&loop);
    edit_and_fail(&loop);
    edit(&loop);
    loop.trace[0] = 0;
    verdict(&loop, VERDICT_HARNESS_FAULT, NAN);
    EXPECT(&loop, "judge:s2");
    assert_int_equal(loop.state.edit, 1);
    verdict(&loop, VERDICT_PASS, NAN);
    EXPECT(&loop, "keep:s2 stop:passed");
}

static void test_second_harness_fault_stops_the_run(void **state) {
    (void)state;
    Loop loop = loop_of(5, 3, 0, 4);
    start(&loop);
    edit(&loop);
    loop.trace[0] = 0;
    verdict(&loop, VERDICT_HARNESS_FAULT, NAN);
    verdict(&loop, VERDICT_HARNESS_FAULT, NAN);
    EXPECT(&loop, "judge:s1 stop:fault");
}

static void test_faults_on_different_sources_do_not_add_up(void **state) {
    (void)state;
    Loop loop = loop_of(5, 3, 0, 4);
    start(&loop);
    for (int i = 0; i < 3; i++) {
        edit(&loop);
        verdict(&loop, VERDICT_HARNESS_FAULT, NAN);
        verdict(&loop, VERDICT_WRONG, NAN);
    }
    assert_false(loop.state.done);
}

static void test_round_starts_from_the_best_and_keeps_only_what_is_better(void **state) {
    (void)state;
    Loop loop = loop_of(5, 3, 3, 0);
    start(&loop);
    edit_and_pass(&loop, 10);
    EXPECT(&loop, "ask:draft apply judge:s1 keep:s1 ask:optimise");
    edit_and_pass(&loop, 10); // equal is not better
    EXPECT(&loop, "apply judge:s2 ask:optimise");
    assert_string_equal(loop.state.base, "s1");
    edit_and_pass(&loop, 8);
    EXPECT(&loop, "apply judge:s3 keep:s3 ask:optimise");
    assert_string_equal(loop.state.base, "s3");
    edit_and_pass(&loop, 9);
    EXPECT(&loop, "apply judge:s4 stop:rounds");
    assert_string_equal(loop.state.best, "s3");
}

static void test_round_without_objective_is_not_better(void **state) {
    (void)state;
    Loop loop = loop_of(5, 3, 2, 0);
    start(&loop);
    edit_and_pass(&loop, 10);
    edit_and_pass(&loop, NAN);
    EXPECT(&loop, "ask:draft apply judge:s1 keep:s1 ask:optimise apply judge:s2 ask:optimise");
}

static void test_failing_round_is_debugged_then_dropped(void **state) {
    (void)state;
    Loop loop = loop_of(2, 3, 2, 0);
    start(&loop);
    edit_and_pass(&loop, 10);
    loop.trace[0] = 0;
    edit_and_fail(&loop);
    edit_and_fail(&loop);
    edit_and_fail(&loop);
    EXPECT(&loop, "apply judge:s2 ask:debug apply judge:s3 ask:debug apply judge:s4 ask:optimise");
    assert_string_equal(loop.state.base, "s1");
    assert_string_equal(loop.state.source, "s1");
    assert_int_equal(loop.state.round, 2);
    edit_and_fail(&loop);
    edit_and_pass(&loop, 7); // repaired within its episode
    EXPECT(&loop, "apply judge:s5 ask:debug apply judge:s6 keep:s6 stop:rounds");
}

static void test_plateau_stops_after_rounds_in_a_row_without_gain(void **state) {
    (void)state;
    Loop loop = loop_of(5, 3, 10, 2);
    start(&loop);
    edit_and_pass(&loop, 10);
    edit_and_pass(&loop, 11); // stale 1
    edit_and_pass(&loop, 9);  // gain
    edit_and_pass(&loop, 9);  // stale 1
    refuse(&loop);
    refuse(&loop);
    loop.trace[0] = 0;
    refuse(&loop); // a round spent on refusals: stale 2
    EXPECT(&loop, "apply stop:plateau");
    assert_int_equal(loop.state.round, 4);
}

static void test_model_failure_keeps_the_best(void **state) {
    (void)state;
    Loop loop = loop_of(5, 3, 10, 4);
    start(&loop);
    edit_and_pass(&loop, 10);
    loop.trace[0] = 0;
    feed(&loop, (Event){.kind = EVENT_MODEL_FAILED, .reason = "out of credit"});
    EXPECT(&loop, "stop:model");
    assert_string_equal(loop.state.best, "s1");
}

static void test_interruption_stops_anywhere(void **state) {
    (void)state;
    Loop loop = loop_of(5, 3, 10, 4);
    start(&loop);
    edit(&loop);
    loop.trace[0] = 0;
    feed(&loop, (Event){.kind = EVENT_INTERRUPTED});
    EXPECT(&loop, "stop:interrupted");
}

static void test_nothing_happens_after_the_end(void **state) {
    (void)state;
    Loop loop = loop_of(5, 3, 0, 4);
    start(&loop);
    edit_and_pass(&loop, 1);
    loop.trace[0] = 0;
    LoopState end = loop.state;
    edit_and_pass(&loop, 0.5);
    feed(&loop, (Event){.kind = EVENT_INTERRUPTED});
    EXPECT(&loop, "");
    assert_memory_equal(&end, &loop.state, sizeof end);
}

static void test_step_is_pure(void **state) {
    (void)state;
    const LoopLimits limits = loop_limits_default();
    LoopState before = loop_begin();
    Event event = {.kind = EVENT_STARTED};
    Step once = step(&limits, before, &event), twice = step(&limits, before, &event);
    assert_memory_equal(&once.state, &twice.state, sizeof once.state);
    assert_int_equal(before.draft, 0);
    assert_int_equal(limits.edits_per_episode, 5);
    assert_int_equal(limits.fresh_drafts, 3);
    assert_int_equal(limits.rounds, 10);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_first_pass_is_kept_and_ends_a_run_without_rounds),
        cmocka_unit_test(test_pass_without_objective_ends_the_run_even_with_rounds),
        cmocka_unit_test(test_failing_draft_is_repaired_by_edits_of_what_was_judged_last),
        cmocka_unit_test(test_fifth_edit_is_judged_too_then_a_fresh_draft_begins),
        cmocka_unit_test(test_fifth_edit_may_pass),
        cmocka_unit_test(test_run_stops_without_kernel_after_the_last_draft),
        cmocka_unit_test(test_given_kernel_enters_at_the_judge_and_costs_no_draft),
        cmocka_unit_test(test_refused_reply_is_asked_again_and_costs_no_edit),
        cmocka_unit_test(test_three_refusals_in_a_row_cost_one_edit),
        cmocka_unit_test(test_endless_refusals_end_the_run),
        cmocka_unit_test(test_harness_fault_is_tried_once_more_and_never_counts),
        cmocka_unit_test(test_second_harness_fault_stops_the_run),
        cmocka_unit_test(test_faults_on_different_sources_do_not_add_up),
        cmocka_unit_test(test_round_starts_from_the_best_and_keeps_only_what_is_better),
        cmocka_unit_test(test_round_without_objective_is_not_better),
        cmocka_unit_test(test_failing_round_is_debugged_then_dropped),
        cmocka_unit_test(test_plateau_stops_after_rounds_in_a_row_without_gain),
        cmocka_unit_test(test_model_failure_keeps_the_best),
        cmocka_unit_test(test_interruption_stops_anywhere),
        cmocka_unit_test(test_nothing_happens_after_the_end),
        cmocka_unit_test(test_step_is_pure),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
