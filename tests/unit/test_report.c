/* Promises of the reports: what is seen live, and the story that is told afterwards. */
#include "report/diff.h"
#include "report/report.h"
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const char kernel[] = "#include \"task.h\"\n"
                             "__global__ void scale(const float* x, float* y, int n) {\n"
                             "    int i = blockIdx.x * 128 + threadIdx.x;\n"
                             "    y[i] = 2 * x[i];\n"
                             "}\n";
static const char repaired[] = "#include \"task.h\"\n"
                               "__global__ void scale(const float* x, float* y, int n) {\n"
                               "    int i = blockIdx.x * 128 + threadIdx.x;\n"
                               "    if (i < n) y[i] = 2 * x[i];\n"
                               "}\n";

typedef struct {
    Arena *arena;
    const char *directory;
    Journal *journal;
    FILE *out;
    char *text;
    size_t bytes;
    Error err;
} World;

static int set_up(void **state) {
    Arena *arena = arena_new();
    World *world = arena_new_of(arena, World);
    world->arena = arena;
    world->directory = directory_scratch(arena, "report", &world->err);
    assert_non_null(world->directory);
    assert_true(
        journal_create(path_join(arena, world->directory, "run.db"), &world->journal, &world->err));
    world->out = open_memstream(&world->text, &world->bytes);
    *state = world;
    return 0;
}

static int tear_down(void **state) {
    World *world = *state;
    journal_close(world->journal);
    directory_remove(world->directory, &world->err);
    fclose(world->out);
    free(world->text);
    arena_free(world->arena);
    return 0;
}

static const char *printed(World *world) {
    fflush(world->out);
    return world->text;
}

static void assert_says(const char *text, const char *part) {
    if (!strstr(text, part)) fail_msg("'%s' is not in:\n%s", part, text);
}

static void assert_silent_about(const char *text, const char *part) {
    if (strstr(text, part)) fail_msg("'%s' is in:\n%s", part, text);
}

/* Takes the reference of `body`. */
static void record(World *world, const char *kind, Json *body) {
    assert_non_null(body);
    assert_true(journal_append(world->journal, kind, body, NULL, &world->err));
    json_decref(body);
}

static const char *put(World *world, const char *text) {
    Hash hash;
    assert_true(journal_put_blob(world->journal, text, strlen(text), &hash, &world->err));
    return arena_string(world->arena, hash.hex);
}

static Json *verdict_of(const char *kind, const char *message, int line) {
    return json_pack("{s:i, s:s, s:s, s:s, s:{s:s, s:i, s:i}, s:{s:b, s:f, s:[]}}", "schema", 1,
                     "verdict", kind, "message", message, "repair", "guard the store", "place",
                     "file", "kernel.cu", "line", line, "column", 0, "build", "from_cache", 0,
                     "seconds", 6.1, "kernels");
}

static Json *judged(const char *kind, const char *message, int line, const char *source) {
    return json_pack("{s:s, s:s, s:s, s:f, s:o}", "source", source, "verdict", kind, "message",
                     message, "seconds", 7.5, "detail", verdict_of(kind, message, line));
}

/* A draft that fails, an edit, a pass. */
static void record_repaired_run(World *world) {
    const char *first = put(world, kernel), *second = put(world, repaired);
    record(world, "run.started",
           json_pack("{s:s, s:{s:s}, s:s, s:s, s:s, s:{s:i, s:i}}", "version", "0.1.0", "task",
                     "name", "scale", "device", "sim", "arch", "sm_90a", "model", "exec:fake",
                     "limits", "edits_per_episode", 5, "rounds", 0));
    record(world, "prompt.sent",
           json_pack("{s:s, s:i, s:i, s:s}", "stage", "draft", "number", 1, "draft", 1, "prompt",
                     put(world, "write it")));
    record(world, "reply.received",
           json_pack("{s:i, s:f, s:i, s:i}", "bytes", 1500, "seconds", 0.4, "input_tokens", 900,
                     "output_tokens", 400));
    record(world, "edit.applied",
           json_pack("{s:s, s:n, s:i, s:b}", "source", first, "base", "lines_added", 5,
                     "whole_file", 1));
    record(world, "verdict", judged("memory_error", "kernel.cu:4: reads past x", 4, first));
    record(world, "prompt.sent",
           json_pack("{s:s, s:i, s:i, s:i}", "stage", "debug", "number", 2, "draft", 1, "edit", 0));
    record(world, "reply.received", json_pack("{s:i, s:f}", "bytes", 500, "seconds", 0.6));
    record(world, "edit.applied",
           json_pack("{s:s, s:s, s:s, s:s, s:i, s:i, s:i}", "stage", "debug", "source", second,
                     "base", first, "idea", "no guard at the ragged edge", "first_line", 4,
                     "lines_added", 1, "lines_removed", 1));
    record(world, "verdict", judged("pass", "all 3 shapes are right", 0, second));
    record(world, "best.kept", json_pack("{s:s, s:s}", "source", second, "path", "best.cu"));
    record(world, "run.stopped",
           json_pack("{s:s, s:b, s:i, s:i, s:i, s:f}", "reason", "passed", "passed", 1, "replies",
                     2, "builds", 2, "edits", 1, "seconds", 16.2));
}

static void test_verdict_shows_the_source_line_it_blames(void **state) {
    World *world = *state;
    Reporter *reporter = reporter_new(&(ReportOptions){.out = world->out});
    Json *verdict = verdict_of("memory_error", "kernel.cu:4: reads past x", 4);
    reporter_verdict(reporter, verdict, kernel);
    json_decref(verdict);
    reporter_free(reporter);
    const char *text = printed(world);
    assert_says(text, "memory_error   kernel.cu:4: reads past x\n");
    assert_says(text, "    3 | ");
    assert_says(text, ">    4 |     y[i] = 2 * x[i];\n");
    assert_silent_about(text, "   1 | "); // two lines around it
}

static void test_place_beyond_the_source_shows_no_excerpt(void **state) {
    World *world = *state;
    Reporter *reporter = reporter_new(&(ReportOptions){.out = world->out});
    Json *verdict = verdict_of("memory_error", "somewhere", 4000);
    reporter_verdict(reporter, verdict, kernel);
    json_decref(verdict);
    reporter_free(reporter);
    assert_silent_about(printed(world), " | ");
}

static void test_quiet_verdict_is_one_line(void **state) {
    World *world = *state;
    Reporter *reporter = reporter_new(&(ReportOptions){.out = world->out, .quiet = true});
    Json *verdict = verdict_of("memory_error", "kernel.cu:4: reads past x", 4);
    reporter_line(reporter, "simulated sm_90a");
    reporter_verdict(reporter, verdict, kernel);
    json_decref(verdict);
    reporter_free(reporter);
    assert_string_equal(printed(world), "memory_error: kernel.cu:4: reads past x\n");
}

static void test_long_message_wraps_only_on_a_terminal(void **state) {
    World *world = *state;
    const char *message = "kernel.cu:4: thread (3,0,0) of block (1,0,0) reads x[1048576], 4 bytes "
                          "past its end (rows=1024, cols=1024)";
    for (int terminal = 0; terminal <= 1; terminal++) {
        rewind(world->out);
        Reporter *reporter =
            reporter_new(&(ReportOptions){.out = world->out, .terminal = terminal});
        Json *verdict = verdict_of("memory_error", message, 0);
        reporter_verdict(reporter, verdict, NULL);
        json_decref(verdict);
        reporter_free(reporter);
        const char *text = printed(world);
        if (terminal) {
            assert_says(text, "reads\n                        x[1048576]");
            for (const char *at = text; *at; at += strcspn(at, "\n"), at += *at == '\n') {
                assert_true(strcspn(at, "\n") <= 80);
            }
        } else {
            assert_says(text, message);
        }
    }
}

static void test_control_characters_do_not_reach_the_terminal(void **state) {
    World *world = *state;
    Reporter *reporter = reporter_new(&(ReportOptions){.out = world->out});
    Json *verdict = verdict_of("compile_error",
                               "\x1b]0;owned\x07 \xc2\x9b"
                               "31m red",
                               1);
    reporter_verdict(reporter, verdict, "int a; // \x1b[2J \xff\r\n");
    json_decref(verdict);
    reporter_free(reporter);
    const char *text = printed(world);
    for (const char *at = text; *at; at++) {
        assert_true(*at == '\n' || (unsigned char)*at >= 0x20);
    }
    assert_says(text, "?]0;owned? ?31m red");
    assert_says(text, "int a; // ?[2J ?\n");
}

static void test_colour_is_used_only_when_asked_for(void **state) {
    World *world = *state;
    for (int color = 0; color <= 1; color++) {
        rewind(world->out);
        Reporter *reporter = reporter_new(&(ReportOptions){.out = world->out, .color = color});
        Json *verdict = verdict_of("pass", "all shapes are right", 0);
        reporter_verdict(reporter, verdict, NULL);
        json_decref(verdict);
        reporter_free(reporter);
        assert_int_equal(strstr(printed(world), "\x1b[32mpass") != NULL, color);
    }
}

static void test_status_line_is_taken_away_before_other_output(void **state) {
    World *world = *state;
    Reporter *reporter = reporter_new(&(ReportOptions){.out = world->out, .terminal = true});
    reporter_progress(reporter, "checking rows=37 cols=1009");
    reporter_line(reporter, "a line that stays");
    reporter_free(reporter);
    const char *text = printed(world);
    assert_says(text, "checking rows=37 cols=1009");
    assert_says(text, "\r\x1b[Ka line that stays\n");
    assert_true(strlen(text) >= 4 && strcmp(text + strlen(text) - 4, "\r\x1b[K") == 0);
}

static void test_progress_outside_a_terminal_is_not_printed(void **state) {
    World *world = *state;
    Reporter *reporter = reporter_new(&(ReportOptions){.out = world->out});
    reporter_progress(reporter, "checking rows=37 cols=1009");
    reporter_free(reporter);
    assert_string_equal(printed(world), "");
}

static void test_story_tells_failure_edit_and_pass_in_order(void **state) {
    World *world = *state;
    record_repaired_run(world);
    ReportOptions options = {.out = world->out, .verbose = true};
    assert_true(report_story(world->journal, &options, &world->err));
    const char *at = printed(world);
    const char *parts[] = {
        "scale\n",
        "model exec:fake; device sim, sm_90a",
        "draft 1        asked the model",
        "reply of 1.5 kB after 400 ms, 400 tokens",
        "kernel of 5 lines",
        "built in 6.1 s",
        "memory_error   kernel.cu:4: reads past x",
        ">    4 |     y[i] = 2 * x[i];",
        "guard the store",
        "repair 1/5     asked the model",
        "cause: no guard at the ragged edge",
        "edit applied at line 4: +1 -1 line\n",
        "-    4 |     y[i] = 2 * x[i];",
        "+    4 |     if (i < n) y[i] = 2 * x[i];",
        "pass           all 3 shapes are right",
        "best kept      best.cu",
        "passed         2 replies, 2 builds, 1 edit, 16 s",
        "2 replies (2.0 kB, 900 tokens in, 400 out) in 1.0 s; 1 edit; 2 verdicts in 15 s; ",
    };
    for (size_t i = 0; i < COUNT_OF(parts); i++) {
        assert_says(at, parts[i]);
        at = strstr(at, parts[i]);
    }
}

static void test_story_of_a_killed_run_says_that_it_can_be_resumed(void **state) {
    World *world = *state;
    record(world, "run.started", json_pack("{s:{s:s}}", "task", "name", "scale"));
    ReportOptions options = {.out = world->out};
    assert_true(report_story(world->journal, &options, &world->err));
    assert_says(printed(world), "the record ends here");
}

static void test_story_of_an_empty_record_is_an_input_error(void **state) {
    World *world = *state;
    ReportOptions options = {.out = world->out};
    assert_false(report_story(world->journal, &options, &world->err));
    assert_int_equal(world->err.kind, ERROR_INPUT);
}

static void test_json_story_adds_up(void **state) {
    World *world = *state;
    record_repaired_run(world);
    Json *json;
    assert_true(report_json(world->journal, &json, &world->err));
    const Json *totals = json_object_get(json, "totals");
    assert_int_equal(json_int_or(json, "schema", 0), 1);
    assert_string_equal(json_text(json, "stopped", ""), "passed");
    assert_int_equal(json_int_or(totals, "replies", 0), 2);
    assert_int_equal(json_int_or(totals, "reply_bytes", 0), 2000);
    assert_int_equal(json_int_or(totals, "edits", 0), 1);
    assert_int_equal(json_int_or(totals, "verdicts", 0), 2);
    assert_int_equal(json_int_or(totals, "passes", 0), 1);
    assert_true(json_is_null(json_object_get(totals, "cost_dollars")));
    assert_int_equal(json_array_size(json_object_get(json, "events")), 11);
    json_decref(json);
}

static void test_events_without_their_fields_are_survived(void **state) {
    World *world = *state;
    static const char *const kinds[] = {
        "run.started",  "run.resumed",  "prompt.sent",  "reply.received",
        "model.failed", "edit.applied", "edit.refused", "judge.started",
        "verdict",      "best.kept",    "run.stopped",  "something.new",
    };
    record(world, "run.started", json_object());
    for (size_t i = 0; i < COUNT_OF(kinds); i++)
        record(world, kinds[i], json_object());
    ReportOptions options = {.out = world->out, .verbose = true};
    assert_true(report_story(world->journal, &options, &world->err));
    assert_silent_about(printed(world), "something.new");
}

/* The old source out of ' ' and '-' lines, the new one out of ' ' and '+' lines. */
static char *side_of(Arena *arena, const Diff *diff, char mark) {
    Buf text = {0};
    for (size_t i = 0; i < diff->count; i++) {
        const DiffLine *line = &diff->lines[i];
        if (line->mark != ' ' && line->mark != mark) continue;
        buf_append(&text, line->text, line->bytes);
        buf_puts(&text, "\n");
    }
    return buf_take(arena, &text);
}

static void test_diff_gives_both_sources_back(void **state) {
    World *world = *state;
    static const struct {
        const char *old_text, *new_text;
        int added, removed;
    } cases[] = {
        {"", "", 0, 0},
        {"", "a\nb\n", 2, 0},
        {"a\nb\n", "", 0, 2},
        {"a\nb\nc\n", "a\nb\nc\n", 0, 0},
        {"a\nb\nc\n", "a\nx\nc\n", 1, 1},
        {"a\nb\na\nb\n", "b\na\nb\na\n", 1, 1},
        {"x\na\nb\nc\ny\n", "x\nb\nd\nc\nz\ny\n", 2, 1},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        Diff diff = diff_lines(world->arena, cases[i].old_text, cases[i].new_text);
        assert_string_equal(side_of(world->arena, &diff, '-'), cases[i].old_text);
        assert_string_equal(side_of(world->arena, &diff, '+'), cases[i].new_text);
        assert_int_equal(diff.added, cases[i].added);
        assert_int_equal(diff.removed, cases[i].removed);
    }
}

int main(void) {
    unsetenv("LC_ALL");
    unsetenv("LC_CTYPE");
    setenv("LANG", "C", 1);
#define PROMISE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        PROMISE(test_verdict_shows_the_source_line_it_blames),
        PROMISE(test_place_beyond_the_source_shows_no_excerpt),
        PROMISE(test_quiet_verdict_is_one_line),
        PROMISE(test_long_message_wraps_only_on_a_terminal),
        PROMISE(test_control_characters_do_not_reach_the_terminal),
        PROMISE(test_colour_is_used_only_when_asked_for),
        PROMISE(test_status_line_is_taken_away_before_other_output),
        PROMISE(test_progress_outside_a_terminal_is_not_printed),
        PROMISE(test_story_tells_failure_edit_and_pass_in_order),
        PROMISE(test_story_of_a_killed_run_says_that_it_can_be_resumed),
        PROMISE(test_story_of_an_empty_record_is_an_input_error),
        PROMISE(test_json_story_adds_up),
        PROMISE(test_events_without_their_fields_are_survived),
        PROMISE(test_diff_gives_both_sources_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
