/* Promises of the model providers, with real files and processes. */
#include "journal/journal.h"
#include "model/model.h"
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

typedef struct {
    Arena *arena;
    const char *directory;
    atomic_int cancel;
    char progress[1024];
    bool cancel_at_progress; // the user presses Ctrl-C as the wait begins
    Error err;
} World;

static int set_up(void **state) {
    Arena *arena = arena_new();
    World *world = arena_new_of(arena, World);
    world->arena = arena;
    world->directory = directory_scratch(arena, "model", &world->err);
    assert_non_null(world->directory);
    *state = world;
    return 0;
}

static int tear_down(void **state) {
    World *world = *state;
    directory_remove(world->directory, &world->err);
    arena_free(world->arena);
    return 0;
}

static void require(bool good, const Error *err) {
    if (!good) fail_msg("%s", err->message);
}

static void says(World *world, bool good, ErrorKind kind, const char *words) {
    assert_false(good);
    if (world->err.kind != kind || !strstr(world->err.message, words))
        fail_msg("'%s' (kind %d) is not '%s' (kind %d)", world->err.message, world->err.kind, words,
                 kind);
}

static void note(void *context, const char *line) {
    World *world = context;
    snprintf(world->progress, sizeof world->progress, "%s", line);
    if (world->cancel_at_progress) atomic_store(&world->cancel, 1);
}

static const char *in(World *world, const char *name) {
    return path_join(world->arena, world->directory, name);
}

static void put(World *world, const char *name, const char *text) {
    require(file_write_atomic(in(world, name), text, strlen(text), &world->err), &world->err);
}

static Model *open_with(World *world, const char *spec, double timeout_s) {
    Model *model;
    const ModelOptions options = {.cancel = &world->cancel,
                                  .timeout_s = timeout_s,
                                  .progress = note,
                                  .progress_context = world};
    require(model_open(world->arena, spec, &options, &model, &world->err), &world->err);
    return model;
}

static bool ask(World *world, Model *model, Stage stage, int number, int stage_number,
                ModelReply *reply) {
    const ModelRequest request = {.stage = stage,
                                  .number = number,
                                  .stage_number = stage_number,
                                  .system = "be exact",
                                  .prompt = "draft a kernel"};
    return model_ask(model, world->arena, &request, reply, &world->err);
}

static Model *manual(World *world, double timeout_s) {
    return open_with(world, arena_printf(world->arena, "manual:%s", world->directory), timeout_s);
}

static void test_unknown_provider_lists_the_known(void **state) {
    World *world = *state;
    Model *model;
    says(world, model_open(world->arena, "replya:x", NULL, &model, &world->err), ERROR_INPUT,
         "did you mean replay");
    assert_non_null(strstr(world->err.message, "manual:DIR, exec:CMD, replay:FILE"));
    says(world, model_open(world->arena, "exec", NULL, &model, &world->err), ERROR_INPUT,
         "exec:CMD");
}

static void test_slash_separates_like_a_colon(void **state) {
    World *world = *state;
    Model *model = open_with(world, "exec/cat", 0);
    assert_string_equal(model_name(model), "exec:cat");
    model_close(model);
}

static void test_manual_writes_the_prompt_and_takes_a_renamed_reply(void **state) {
    World *world = *state;
    Model *model = manual(world, 20);
    pid_t person = fork();
    if (person == 0) {
        // Waits for the prompt, writes under another name, then renames.
        while (!path_exists(in(world, "0007.prompt.md")))
            usleep(1000);
        put(world, "draft.tmp", "half");
        usleep(50000);
        put(world, "draft.tmp", "the answer");
        _exit(rename(in(world, "draft.tmp"), in(world, "0007.reply.md")) != 0);
    }
    ModelReply reply;
    double start = clock_seconds();
    require(ask(world, model, STAGE_DRAFT, 7, 1, &reply), &world->err);
    assert_true(clock_seconds() - start < 0.9); // woken, not found by the look every second
    waitpid(person, NULL, 0);
    assert_string_equal(reply.text, "the answer");
    assert_int_equal(reply.bytes, 10);
    assert_true(isnan(reply.cost_dollars));
    char *prompt;
    require(
        file_read(world->arena, in(world, "0007.prompt.md"), 1 << 20, &prompt, NULL, &world->err),
        &world->err);
    assert_string_equal(prompt, "be exact\n\ndraft a kernel");
    assert_non_null(strstr(world->progress, "0007.reply.md"));
    model_close(model);
}

static void test_manual_takes_a_reply_that_came_while_nobody_waited(void **state) {
    World *world = *state;
    put(world, "0001.reply.md", "early");
    ModelReply reply;
    Model *model = manual(world, 5);
    require(ask(world, model, STAGE_DRAFT, 1, 1, &reply), &world->err);
    assert_string_equal(reply.text, "early");
    require(ask(world, model, STAGE_DRAFT, 1, 1, &reply), &world->err); // resumed: the same again
    assert_string_equal(reply.text, "early");
    model_close(model);
}

static void test_manual_does_not_take_another_runs_reply(void **state) {
    World *world = *state;
    put(world, "0001.prompt.md", "another question");
    put(world, "0001.reply.md", "another answer");
    ModelReply reply;
    Model *model = manual(world, 5);
    says(world, ask(world, model, STAGE_DRAFT, 1, 1, &reply), ERROR_INPUT,
         "answers another prompt");
    model_close(model);
}

static void test_manual_wait_ends_at_the_time_limit(void **state) {
    World *world = *state;
    ModelReply reply;
    Model *model = manual(world, 0.1);
    says(world, ask(world, model, STAGE_DRAFT, 1, 1, &reply), ERROR_STOPPED, "no reply in");
    model_close(model);
}

static void test_manual_wait_can_be_interrupted(void **state) {
    World *world = *state;
    Model *model = manual(world, 20);
    ModelReply reply;
    world->cancel_at_progress = true;
    double start = clock_seconds();
    says(world, ask(world, model, STAGE_DRAFT, 1, 1, &reply), ERROR_INTERRUPTED, "0001.reply.md");
    assert_true(clock_seconds() - start < 5);
    model_close(model);
}

static void test_exec_sees_prompt_environment_and_stage(void **state) {
    World *world = *state;
    setenv("MY_API_KEY", "k123", 1);
    Model *model =
        open_with(world, "exec:echo $MY_API_KEY $CUTEGEN_STAGE $CUTEGEN_REQUEST; cat", 0);
    ModelReply reply;
    require(ask(world, model, STAGE_DEBUG, 3, 1, &reply), &world->err);
    assert_string_equal(reply.text, "k123 debug 3\nbe exact\n\ndraft a kernel");
    unsetenv("MY_API_KEY");
    model_close(model);
}

static void test_exec_failure_carries_the_end_of_stderr(void **state) {
    World *world = *state;
    Model *model =
        open_with(world, "exec:cat >/dev/null; echo partial; echo out of credit >&2; exit 3", 0);
    ModelReply reply;
    says(world, ask(world, model, STAGE_DRAFT, 1, 1, &reply), ERROR_STOPPED,
         "exit code 3: out of credit");
    model_close(model);
    model = open_with(world, "exec:no-such-command-at-all", 0);
    says(world, ask(world, model, STAGE_DRAFT, 1, 1, &reply), ERROR_STOPPED, "exit code 127");
    model_close(model);
}

static void test_exec_that_does_not_read_its_prompt_still_answers(void **state) {
    World *world = *state;
    Model *model = open_with(world, "exec:echo yes", 0);
    char *huge = arena_alloc(world->arena, (1 << 20) + 1);
    memset(huge, 'x', 1 << 20);
    const ModelRequest request = {.number = 1, .stage_number = 1, .system = "", .prompt = huge};
    ModelReply reply;
    require(model_ask(model, world->arena, &request, &reply, &world->err), &world->err);
    assert_string_equal(reply.text, "yes\n");
    model_close(model);
}

static void test_exec_that_hangs_is_killed(void **state) {
    World *world = *state;
    Model *model = open_with(world, "exec:sleep 60", 0.3);
    ModelReply reply;
    double start = clock_seconds();
    says(world, ask(world, model, STAGE_DRAFT, 1, 1, &reply), ERROR_STOPPED, "no reply within");
    assert_true(clock_seconds() - start < 10);
    model_close(model);
}

static void test_exec_that_floods_is_an_error(void **state) {
    World *world = *state;
    Model *model = open_with(world, "exec:head -c 11000000 /dev/zero", 0);
    ModelReply reply;
    says(world, ask(world, model, STAGE_DRAFT, 1, 1, &reply), ERROR_STOPPED, "more than 10 MiB");
    model_close(model);
}

static void test_exec_can_be_interrupted(void **state) {
    World *world = *state;
    Model *model = open_with(world, "exec:sleep 60", 0);
    ModelReply reply;
    world->cancel_at_progress = true;
    double start = clock_seconds();
    says(world, ask(world, model, STAGE_DRAFT, 1, 1, &reply), ERROR_INTERRUPTED, "interrupted");
    assert_true(clock_seconds() - start < 10);
    model_close(model);
}

static void record(World *world, Journal *journal, const char *stage, const char *text,
                   bool truncated) {
    Hash hash;
    require(journal_put_blob(journal, text, strlen(text), &hash, &world->err), &world->err);
    Json *body =
        json_pack("{s:s,s:s,s:b,s:i,s:n,s:f}", "stage", stage, "reply", hash.hex, "truncated",
                  truncated, "input_tokens", 11, "output_tokens", "cost_dollars", 0.5);
    require(journal_append(journal, "reply.received", body, NULL, &world->err), &world->err);
    json_decref(body);
}

static void make_recording(World *world) {
    Journal *journal;
    require(journal_create(in(world, "run.db"), &journal, &world->err), &world->err);
    record(world, journal, "draft", "D1", false);
    record(world, journal, "debug", "E1", true);
    record(world, journal, "draft", "D2", false);
    record(world, journal, "debug", "D1", false); // the same text as another reply
    Buf lines = {0};
    require(journal_export(journal, &lines, &world->err), &world->err);
    put(world, "recording.jsonl", lines.data);
    buf_free(&lines);
    journal_close(journal);
}

static void test_replay_answers_by_stage_from_any_form_of_a_recording(void **state) {
    World *world = *state;
    make_recording(world);
    const char *const forms[] = {"run.db", "recording.jsonl", ""};
    for (size_t i = 0; i < COUNT_OF(forms); i++) {
        const char *spec = arena_printf(world->arena, "replay:%s/%s", world->directory, forms[i]);
        Model *model = open_with(world, spec, 0);
        ModelReply reply;
        require(ask(world, model, STAGE_DEBUG, 1, 1, &reply), &world->err);
        assert_string_equal(reply.text, "E1");
        assert_true(reply.truncated);
        assert_int_equal(reply.input_tokens, 11);
        assert_int_equal(reply.output_tokens, -1);
        assert_true(reply.cost_dollars == 0.5);
        require(ask(world, model, STAGE_DRAFT, 2, 2, &reply), &world->err);
        assert_string_equal(reply.text, "D2");
        require(ask(world, model, STAGE_DEBUG, 3, 2, &reply), &world->err);
        assert_string_equal(reply.text, "D1");
        says(world, ask(world, model, STAGE_DRAFT, 4, 3, &reply), ERROR_STOPPED,
             "no draft reply left (it holds 2)");
        model_close(model);
    }
}

static void test_replay_of_an_edited_recording_follows_the_edit(void **state) {
    World *world = *state;
    put(world, "r.jsonl",
        "{\"seq\":1,\"time\":\"\",\"kind\":\"reply.received\","
        "\"body\":{\"stage\":\"draft\",\"reply\":\"k\"},\"blobs\":{\"k\":\"by hand\"}}\n\n");
    Model *model =
        open_with(world, arena_printf(world->arena, "replay:%s", in(world, "r.jsonl")), 0);
    ModelReply reply;
    require(ask(world, model, STAGE_DRAFT, 1, 1, &reply), &world->err);
    assert_string_equal(reply.text, "by hand");
    model_close(model);
}

static void test_replay_of_a_bad_file_names_file_and_line(void **state) {
    World *world = *state;
    const struct {
        const char *text, *words;
    } cases[] = {
        {"", "holds no recorded reply"},
        {"\n{\"kind\":\"run.started\",\"body\":{}}\nnot json\n", "bad.jsonl:3"},
        {"[1]\n", "bad.jsonl:1: not an event"},
        {"{\"kind\":\"reply.received\",\"body\":{\"stage\":\"draft\",\"reply\":\"k\"}}\n",
         "text is missing"},
        {"{\"kind\":\"reply.received\",\"body\":{\"stage\":\"nap\",\"reply\":\"k\"}}\n",
         "unknown stage 'nap'"},
        {"{\"kind\":\"reply.received\"}\n", "unknown stage ''"},
        {"{\"kind\":\"reply.received\",\"body\":{\"stage\":\"draft\",\"reply\":\"k\"},"
         "\"blobs\":{\"k\":{\"hex\":\"abc\"}}}\n",
         "text is missing"},
    };
    const char *spec = arena_printf(world->arena, "replay:%s", in(world, "bad.jsonl"));
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        put(world, "bad.jsonl", cases[i].text);
        Model *model;
        says(world, model_open(world->arena, spec, NULL, &model, &world->err), ERROR_INPUT,
             cases[i].words);
    }
    Model *model;
    says(world, model_open(world->arena, "replay:/no/such/file", NULL, &model, &world->err),
         ERROR_INPUT, "/no/such/file");
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_unknown_provider_lists_the_known),
        TEST(test_slash_separates_like_a_colon),
        TEST(test_manual_writes_the_prompt_and_takes_a_renamed_reply),
        TEST(test_manual_takes_a_reply_that_came_while_nobody_waited),
        TEST(test_manual_does_not_take_another_runs_reply),
        TEST(test_manual_wait_ends_at_the_time_limit),
        TEST(test_manual_wait_can_be_interrupted),
        TEST(test_exec_sees_prompt_environment_and_stage),
        TEST(test_exec_failure_carries_the_end_of_stderr),
        TEST(test_exec_that_does_not_read_its_prompt_still_answers),
        TEST(test_exec_that_hangs_is_killed),
        TEST(test_exec_that_floods_is_an_error),
        TEST(test_exec_can_be_interrupted),
        TEST(test_replay_answers_by_stage_from_any_form_of_a_recording),
        TEST(test_replay_of_an_edited_recording_follows_the_edit),
        TEST(test_replay_of_a_bad_file_names_file_and_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
