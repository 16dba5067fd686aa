/* Promises of a whole run: real SQLite, real files and real kills; only model and judge are fakes.
 *
 * The fake model answers from a script, the n-th request of a stage with the n-th reply of that
 * stage. The fake judge reads its verdict from the kernel: "// verdict: wrong",
 * "// verdict: pass 12.5". Both count how often they are asked in memory shared across fork.
 */
#include "agent/run.h"
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define KERNEL(verdict)                                                                            \
    "#include \"task.h\"\n// verdict: " verdict "\n"                                               \
    "extern \"C\" cudaError_t launch(const float *x, float *y, Dims d, void *w, cudaStream_t s) "  \
    "{ return cudaSuccess; }\n"
#define FILE_REPLY(verdict) "```cuda\n" KERNEL(verdict) "```\n"
#define EDIT_REPLY(label, from, to)                                                                \
    label "\n<<<<<<< SEARCH\n// verdict: " from "\n=======\n// verdict: " to "\n>>>>>>> REPLACE\n"

typedef struct {
    Stage stage;
    const char *text;
    bool truncated;
} Scripted;

typedef struct {
    int asked, judged; // over all processes
    int killed_at;     // the listener dies after so many events; 0: never
    int events;
} Counters;

typedef struct {
    Arena *arena;
    const char *directory;
    Task task;
    const Scripted *script;
    size_t script_count;
    Counters *counters;
    atomic_int cancel;
    int cancel_at_judge;  // Ctrl-C during the n-th verdict
    int fault_at_judge;   // the judge fails during the n-th verdict …
    ErrorKind fault_kind; // … in this way, once
    LoopLimits limits;
    const char *start;
    char last_prompt[65536];
    RunResult result;
    Error err;
} World;

static int set_up(void **state) {
    Arena *arena = arena_new();
    World *world = arena_new_of(arena, World);
    world->arena = arena;
    world->directory = directory_scratch(arena, "run", &world->err);
    assert_non_null(world->directory);
    world->limits =
        (LoopLimits){.edits_per_episode = 5, .fresh_drafts = 3, .rounds = 0, .plateau_rounds = 4};
    world->counters = mmap(NULL, sizeof *world->counters, PROT_READ | PROT_WRITE,
                           MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(world->counters != MAP_FAILED);
    if (!task_load(arena, SOURCE_ROOT "/tasks/relu", &world->task, &world->err))
        fail_msg("%s", world->err.message);
    *state = world;
    return 0;
}

static int tear_down(void **state) {
    World *world = *state;
    munmap(world->counters, sizeof *world->counters);
    directory_remove(world->directory, &world->err);
    arena_free(world->arena);
    return 0;
}

static bool fake_ask(void *context, Arena *arena, const ModelRequest *request, ModelReply *reply,
                     Error *err) {
    World *world = context;
    world->counters->asked++;
    snprintf(world->last_prompt, sizeof world->last_prompt, "%s", request->prompt);
    int seen = 0;
    for (size_t i = 0; i < world->script_count; i++) {
        const Scripted *scripted = &world->script[i];
        if (scripted->stage != request->stage || ++seen != request->stage_number) continue;
        *reply = (ModelReply){.text = arena_string(arena, scripted->text),
                              .bytes = strlen(scripted->text),
                              .truncated = scripted->truncated,
                              .input_tokens = 100,
                              .output_tokens = -1,
                              .cost_dollars = NAN};
        return true;
    }
    return error_stopped(err, "the script has no %s reply left", stage_name(request->stage));
}

static bool fake_judge(void *context, Arena *arena, const char *source, size_t bytes,
                       Verdict *verdict, Error *err) {
    World *world = context;
    (void)bytes;
    int number = ++world->counters->judged;
    if (number == world->cancel_at_judge) {
        atomic_store(&world->cancel, SIGINT);
        return error_interrupted(err, "interrupted");
    }
    if (number == world->fault_at_judge) {
        *err = (Error){.kind = world->fault_kind, .message = "the oracle is missing"};
        if (world->fault_kind == ERROR_HARNESS)
            *verdict = (Verdict){.kind = VERDICT_HARNESS_FAULT,
                                 .message = "the oracle is missing",
                                 .evidence = json_owned(arena, json_pack("{s:s}", "kind", "fault")),
                                 .time_ms = NAN,
                                 .cost_us = NAN};
        return false;
    }
    char name[32] = "";
    double objective = NAN;
    const char *line = strstr(source, "// verdict: ");
    if (line) sscanf(line, "// verdict: %31s %lf", name, &objective);
    *verdict = (Verdict){.kind = VERDICT_HARNESS_FAULT,
                         .message = arena_printf(arena, "it is %s", name),
                         .repair = "look at the mask",
                         .evidence = json_owned(arena, json_object()),
                         .time_ms = NAN,
                         .cost_us = objective,
                         .seconds = 0.5};
    for (int kind = 0; kind < VERDICT_KIND_COUNT; kind++)
        if (strcmp(verdict_name((VerdictKind)kind), name) == 0) verdict->kind = (VerdictKind)kind;
    return true;
}

static void listen(void *context, const char *kind, const Json *body) {
    World *world = context;
    (void)kind, (void)body;
    if (++world->counters->events == world->counters->killed_at) _exit(99);
}

static RunOptions run_options(World *world) {
    return (RunOptions){.task = &world->task,
                        .limits = world->limits,
                        .judging = {.seeds = 7, .call_timeout_s = 1.5},
                        .compiler = "nvcc 1.2.3",
                        .directory = world->directory,
                        .device = "sim",
                        .arch = "sm_90a",
                        .start_source = world->start,
                        .hint = "mind the tail"};
}

static bool run(World *world, bool resume) {
    const RunDeps deps = {
        .context = world, .ask = fake_ask, .judge = fake_judge, .model_name = "fake:script"};
    RunOptions options = run_options(world);
    options.listener = listen;
    options.listener_context = world;
    options.cancel = &world->cancel;
    const char *path = path_join(world->arena, world->directory, "run.db");
    Journal *journal;
    bool opened = resume ? journal_open(path, &journal, &world->err)
                         : journal_create(path, &journal, &world->err);
    if (!opened) return false;
    bool good =
        run_with(world->arena, &options, &deps, journal, resume, &world->result, &world->err);
    journal_close(journal);
    return good;
}

static void play(World *world, const Scripted *script, size_t count) {
    world->script = script;
    world->script_count = count;
    if (!run(world, false)) fail_msg("%s", world->err.message);
}
#define PLAY(world, script) play(world, script, COUNT_OF(script))

/* Compares line by line: a whole story is longer than what cmocka prints. */
static void same_story(const char *got, const char *expected) {
    int line = 1;
    for (; *got || *expected; line++) {
        size_t a = strcspn(got, "\n"), b = strcspn(expected, "\n");
        if (a != b || memcmp(got, expected, a) != 0)
            fail_msg("event %d is\n  %.*s\nnot\n  %.*s", line, (int)a, got, (int)b, expected);
        got += a + (got[a] != 0);
        expected += b + (expected[b] != 0);
    }
}

/* Every event of the journal: kind and body, without what differs from sitting to sitting. */
static char *story(World *world) {
    Journal *journal;
    JournalEvent *events;
    size_t count;
    const char *path = path_join(world->arena, world->directory, "run.db");
    if (!journal_open_read_only(path, &journal, &world->err) ||
        !journal_events(journal, world->arena, 0, &events, &count, &world->err))
        fail_msg("%s", world->err.message);
    Buf out = {0};
    for (size_t i = 0; i < count; i++) {
        if (strcmp(events[i].kind, "run.resumed") == 0) continue;
        json_object_del(events[i].body, "seconds");
        buf_printf(&out, "%s %s\n", events[i].kind, json_line(world->arena, events[i].body));
    }
    journal_close(journal);
    return buf_take(world->arena, &out);
}

static char *kinds(World *world) {
    char *text = story(world);
    Buf out = {0};
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
        buf_printf(&out, "%s%.*s", out.length ? " " : "", (int)strcspn(line, " "), line);
    return buf_take(world->arena, &out);
}

static char *best(World *world) {
    char *text;
    if (!file_read(world->arena, path_join(world->arena, world->directory, "best.cu"), 1 << 20,
                   &text, NULL, &world->err))
        return "";
    return text;
}

static const Scripted kRepair[] = {
    {STAGE_DRAFT, FILE_REPLY("wrong"), false},
    {STAGE_DEBUG, "I cannot help.", false},
    {STAGE_DEBUG, EDIT_REPLY("Cause: the mask", "wrong", "memory_error"), false},
    {STAGE_DEBUG, EDIT_REPLY("Cause: the index", "memory_error", "pass"), false},
};

static void test_run_repairs_and_keeps_the_kernel(void **state) {
    World *world = *state;
    PLAY(world, kRepair);
    assert_string_equal(kinds(world),
                        "run.started prompt.sent reply.received edit.applied judge.started verdict "
                        "prompt.sent reply.received edit.refused "
                        "prompt.sent reply.received edit.applied judge.started verdict "
                        "prompt.sent reply.received edit.applied judge.started verdict "
                        "best.kept run.stopped");
    assert_int_equal(world->result.stop, STOP_PASSED);
    assert_true(world->result.passed);
    assert_int_equal(world->result.replies, 4);
    assert_int_equal(world->result.builds, 3);
    assert_int_equal(world->result.edits, 2);
    assert_int_equal(world->result.verdict.kind, VERDICT_PASS);
    assert_string_equal(json_text(world->result.verdict_json, "verdict", ""), "pass");
    assert_string_equal(best(world), KERNEL("pass"));
}

static void test_debug_prompt_carries_source_verdict_history_and_refusal(void **state) {
    World *world = *state;
    play(world, kRepair, 2); // ends when the script does, at the second debug prompt
    assert_int_equal(world->result.stop, STOP_MODEL);
    assert_string_equal(world->result.reason, "the script has no debug reply left");
    const char *const parts[] = {KERNEL("wrong"),    "it is wrong",
                                 "look at the mask", "Your reply has no code.",
                                 "mind the tail",    "- first version: wrong: it is wrong"};
    for (size_t i = 0; i < COUNT_OF(parts); i++)
        if (!strstr(world->last_prompt, parts[i]))
            fail_msg("no '%s' in\n%s", parts[i], world->last_prompt);
    assert_null(strstr(world->last_prompt, "{{"));
}

static const Scripted kImprove[] = {
    {STAGE_DRAFT, FILE_REPLY("pass 20.0"), false},
    {STAGE_OPTIMISE, EDIT_REPLY("Idea: wider loads", "pass 20.0", "pass 15.0"), false},
    {STAGE_OPTIMISE, EDIT_REPLY("Idea: unroll", "pass 15.0", "hang"), false},
    {STAGE_DEBUG, EDIT_REPLY("Cause: the loop", "hang", "pass 18.0"), false},
    {STAGE_OPTIMISE, FILE_REPLY("pass 9.5"), false},
};

static void test_rounds_start_from_the_best(void **state) {
    World *world = *state;
    world->limits.rounds = 3;
    PLAY(world, kImprove);
    assert_int_equal(world->result.stop, STOP_ROUNDS);
    assert_true(world->result.verdict.cost_us == 9.5);
    assert_string_equal(best(world), KERNEL("pass 9.5"));
    const char *const parts[] = {KERNEL("pass 15.0"), "15 us of estimated cost",
                                 "- round 1, wider loads: pass, 15 us", "- round 2, unroll: hang",
                                 "- edit 1, the loop: pass, 18 us"};
    for (size_t i = 0; i < COUNT_OF(parts); i++)
        if (!strstr(world->last_prompt, parts[i]))
            fail_msg("no '%s' in\n%s", parts[i], world->last_prompt);
}

static void test_given_kernel_is_judged_first(void **state) {
    World *world = *state;
    static const Scripted script[] = {
        {STAGE_DEBUG, EDIT_REPLY("Cause: x", "wrong", "pass"), false},
    };
    world->start = KERNEL("wrong");
    PLAY(world, script);
    assert_string_equal(kinds(world), "run.started judge.started verdict prompt.sent "
                                      "reply.received edit.applied judge.started verdict "
                                      "best.kept run.stopped");
}

static void test_source_judged_before_is_not_built_again(void **state) {
    World *world = *state;
    static const Scripted script[] = {
        {STAGE_DRAFT, FILE_REPLY("wrong"), false},
        {STAGE_DEBUG, EDIT_REPLY("Cause: a", "wrong", "hang"), false},
        {STAGE_DEBUG, EDIT_REPLY("Cause: b", "hang", "wrong"), false}, // back again
        {STAGE_DEBUG, EDIT_REPLY("Cause: c", "hang", "pass"), false},
    };
    PLAY(world, script);
    assert_int_equal(world->counters->judged, 3);
    assert_non_null(strstr(story(world), "was judged already (wrong: it is wrong)"));
}

static void test_cut_off_reply_is_continued_and_joined(void **state) {
    World *world = *state;
    static const Scripted script[] = {
        {STAGE_DRAFT, "```cuda\n#include \"task.h\"\n// verdict: pass\nextern \"C\" cudaErr", true},
        {STAGE_DRAFT,
         "or_t launch(const float *x, float *y, Dims d, void *w, cudaStream_t s) { return "
         "cudaSuccess; }\n```\n",
         false},
    };
    PLAY(world, script);
    assert_true(world->result.passed);
    assert_string_equal(best(world), KERNEL("pass"));
    assert_non_null(strstr(world->last_prompt, "extern \"C\" cudaErr"));
    assert_non_null(strstr(story(world), "\"continues\":true"));
}

static void test_reply_cut_off_again_and_again_is_refused(void **state) {
    World *world = *state;
    static const Scripted script[] = {
        {STAGE_DRAFT, "```cuda\nint a;\n", true}, {STAGE_DRAFT, "int b;\n", true},
        {STAGE_DRAFT, "int c;\n", true},          {STAGE_DRAFT, "int d;\n", true},
        {STAGE_DRAFT, FILE_REPLY("pass"), false},
    };
    PLAY(world, script);
    assert_true(world->result.passed);
    assert_int_equal(world->counters->asked, 5);
    assert_non_null(strstr(story(world), "cut off by the length limit"));
}

static void test_run_without_a_passing_kernel_says_so(void **state) {
    World *world = *state;
    static const Scripted script[] = {{STAGE_DRAFT, FILE_REPLY("wrong"), false}};
    world->limits = (LoopLimits){.edits_per_episode = 0, .fresh_drafts = 1};
    PLAY(world, script);
    assert_int_equal(world->result.stop, STOP_NO_KERNEL);
    assert_false(world->result.passed);
    assert_null(world->result.best_path);
    assert_int_equal(world->result.verdict.kind, VERDICT_WRONG);
    assert_string_equal(best(world), "");
}

static void test_finished_run_goes_on_when_given_more_edits(void **state) {
    World *world = *state;
    world->limits = (LoopLimits){.edits_per_episode = 1, .fresh_drafts = 1};
    PLAY(world, kRepair);
    assert_int_equal(world->result.stop, STOP_NO_KERNEL);
    int asked = world->counters->asked;
    char *before = story(world);
    assert_true(run(world, true)); // with the same limits there is nothing to do
    assert_int_equal(world->counters->asked, asked);
    assert_int_equal(world->result.stop, STOP_NO_KERNEL);
    same_story(story(world), before);

    world->limits.edits_per_episode = 3;
    assert_true(run(world, true));
    assert_true(world->result.passed);
    assert_int_equal(world->counters->asked, 4); // nothing was asked twice
}

static void test_passed_run_goes_on_when_given_rounds(void **state) {
    World *world = *state;
    PLAY(world, kImprove);
    assert_int_equal(world->result.stop, STOP_PASSED);
    world->limits.rounds = 1;
    assert_true(run(world, true));
    assert_int_equal(world->result.stop, STOP_ROUNDS);
    assert_string_equal(best(world), KERNEL("pass 15.0"));
    int kept = 0; // each of the two just once
    for (const char *at = story(world); (at = strstr(at, "best.kept")); at++)
        kept++;
    assert_int_equal(kept, 2);
}

/* ---- interruptions and faults ------------------------------------------------------------ */

static void test_interrupted_verdict_is_judged_again_on_resume(void **state) {
    World *world = *state;
    world->cancel_at_judge = 1;
    PLAY(world, kRepair);
    assert_int_equal(world->result.stop, STOP_INTERRUPTED);
    atomic_store(&world->cancel, 0);
    assert_true(run(world, true));
    assert_int_equal(world->result.stop, STOP_PASSED);
    assert_int_equal(world->counters->asked, 4);
    assert_int_equal(world->counters->judged, 4); // three and the interrupted one
}

static void test_kernel_that_passed_is_kept_even_when_interrupted_then(void **state) {
    World *world = *state;
    world->limits.rounds = 3;
    world->script = kImprove;
    world->script_count = COUNT_OF(kImprove);
    world->cancel_at_judge = 2;
    assert_true(run(world, false));
    assert_int_equal(world->result.stop, STOP_INTERRUPTED);
    assert_true(world->result.passed);
    assert_string_equal(best(world), KERNEL("pass 20.0"));
}

static void test_passing_fault_costs_nothing(void **state) {
    World *world = *state;
    world->fault_at_judge = 2;
    world->fault_kind = ERROR_HARNESS;
    PLAY(world, kRepair);
    assert_int_equal(world->result.stop, STOP_PASSED);
    assert_int_equal(world->counters->asked, 4);
    assert_int_equal(world->counters->judged, 4);
}

static void test_fault_leaves_its_evidence_in_the_record(void **state) {
    World *world = *state;
    world->fault_at_judge = 1;
    world->fault_kind = ERROR_HARNESS;
    PLAY(world, kRepair);
    const char *fault = strstr(story(world), "\"verdict\":\"harness_fault\"");
    assert_non_null(fault);
    const char *evidence = strstr(fault, "\"evidence\":{\"kind\":\"fault\"}");
    assert_non_null(evidence);
    assert_true(evidence < fault + strcspn(fault, "\n"));
}

static void test_lasting_fault_is_an_error_and_resumable(void **state) {
    World *world = *state;
    static const Scripted script[] = {{STAGE_DRAFT, FILE_REPLY("harness_fault"), false}};
    world->script = script;
    world->script_count = COUNT_OF(script);
    assert_false(run(world, false));
    assert_int_equal(world->err.kind, ERROR_HARNESS);
    assert_string_equal(world->err.message, "it is harness_fault");
    assert_int_equal(world->result.stop, STOP_FAULT);
    assert_int_equal(world->counters->judged, 2);
    assert_false(run(world, true));
    assert_int_equal(world->counters->judged, 4);
    assert_int_equal(world->counters->asked, 1);
}

static void test_fault_of_the_set_up_is_not_tried_again(void **state) {
    World *world = *state;
    world->script = kRepair;
    world->script_count = COUNT_OF(kRepair);
    world->fault_at_judge = 1;
    world->fault_kind = ERROR_INPUT;
    assert_false(run(world, false));
    assert_int_equal(world->err.kind, ERROR_INPUT);
    assert_string_equal(world->err.message, "the oracle is missing");
    assert_int_equal(world->counters->judged, 1);
    assert_true(run(world, true)); // put right meanwhile
    assert_true(world->result.passed);
}

static void test_changed_task_is_not_resumed(void **state) {
    World *world = *state;
    play(world, kRepair, 2);
    world->task.identity.hex[0] ^= 1;
    assert_false(run(world, true));
    assert_int_equal(world->err.kind, ERROR_INPUT);
    assert_non_null(strstr(world->err.message, "was changed since this run began"));
}

static void test_model_that_recovers_is_asked_the_same_again(void **state) {
    World *world = *state;
    play(world, kRepair, 1);
    assert_int_equal(world->result.stop, STOP_MODEL);
    world->script_count = COUNT_OF(kRepair);
    assert_true(run(world, true));
    assert_true(world->result.passed);
    const char *text = story(world);
    const char *failed = strstr(text, "model.failed");
    assert_non_null(failed);
    assert_null(strstr(failed, "\"number\":3,\"stage_number\":1")); // number 2 was sent once
}

/* ---- kills ------------------------------------------------------------------------------- */

/* Plays in a child that dies when its `killed_at`-th event is durable; 0: to the end. */
static int play_in_child(World *world, bool resume, int killed_at) {
    world->counters->events = 0;
    world->counters->killed_at = killed_at;
    pid_t child = fork();
    if (child == 0) _exit(run(world, resume) ? 0 : 1);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

/* Kills at each event in turn, resumes, and wants the story that nobody interrupted. */
static void kill_everywhere(World *world, const Scripted *script, size_t count) {
    world->script = script;
    world->script_count = count;
    const char *home = world->directory;
    assert_int_equal(play_in_child(world, false, 0), 0);
    const char *expected = story(world);
    const char *kernel = best(world);
    int events = world->counters->events, asked = world->counters->asked;
    assert_true(events > 10);
    for (int at = 1; at <= events; at++) {
        world->directory = path_join(world->arena, home, arena_printf(world->arena, "%d", at));
        assert_true(directory_make(world->directory, &world->err));
        world->counters->asked = world->counters->judged = 0;
        assert_int_equal(play_in_child(world, false, at), 99);
        assert_int_equal(play_in_child(world, true, 0), 0);
        same_story(story(world), expected);
        assert_string_equal(best(world), kernel);
        assert_int_equal(world->counters->asked, asked);
    }
    world->directory = home;
}

static void test_kill_at_any_event_resumes_to_the_same_story(void **state) {
    kill_everywhere(*state, kRepair, COUNT_OF(kRepair));
}

static void test_kill_at_any_event_of_an_optimisation_resumes_to_the_same_story(void **state) {
    World *world = *state;
    world->limits.rounds = 3;
    kill_everywhere(world, kImprove, COUNT_OF(kImprove));
}

static void test_kill_at_every_second_event_still_ends_the_same(void **state) {
    World *world = *state;
    world->script = kRepair;
    world->script_count = COUNT_OF(kRepair);
    assert_int_equal(play_in_child(world, false, 0), 0);
    const char *expected = story(world);
    world->directory = path_join(world->arena, world->directory, "again");
    assert_true(directory_make(world->directory, &world->err));
    int code = play_in_child(world, false, 2), sittings = 1;
    while (code == 99 && sittings++ < 50)
        code = play_in_child(world, true, 2); // one is run.resumed, one is progress
    assert_int_equal(code, 0);
    assert_true(sittings > 10);
    same_story(story(world), expected);
}

static void test_kill_during_build_resumes_without_second_call(void **state) {
    World *world = *state;
    world->script = kRepair;
    world->script_count = COUNT_OF(kRepair);
    assert_int_equal(play_in_child(world, false, 5), 99); // judge.started is durable
    assert_int_equal(world->counters->asked, 1);
    assert_int_equal(world->counters->judged, 0);
    assert_int_equal(play_in_child(world, true, 3), 99); // resumed, verdict, prompt
    assert_int_equal(world->counters->asked, 1);
    assert_int_equal(world->counters->judged, 1);
}

static void test_lost_best_file_is_written_again(void **state) {
    World *world = *state;
    PLAY(world, kRepair);
    assert_int_equal(unlink(path_join(world->arena, world->directory, "best.cu")), 0);
    assert_true(run(world, true));
    assert_string_equal(best(world), KERNEL("pass"));
}

/* The journal cannot grow beyond `bytes`; in a child, since the limit cannot be raised again. */
static int play_on_full_disk(World *world, rlim_t bytes) {
    pid_t child = fork();
    if (child == 0) {
        signal(SIGXFSZ, SIG_IGN);
        struct rlimit limit = {.rlim_cur = bytes, .rlim_max = bytes};
        if (setrlimit(RLIMIT_FSIZE, &limit) != 0) _exit(9);
        bool good = run(world, false);
        bool clear = world->err.kind == ERROR_HARNESS && strstr(world->err.message, "no room");
        _exit(good ? 0 : clear ? 1 : 2);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void test_nothing_is_asked_that_could_not_be_written_down(void **state) {
    World *world = *state;
    world->script = kRepair;
    world->script_count = COUNT_OF(kRepair);
    assert_int_equal(play_on_full_disk(world, 48 << 10), 1); // no room for the prompt
    assert_int_equal(world->counters->asked, 0);
    assert_true(run(world, true)); // room again
    assert_true(world->result.passed);
    assert_int_equal(world->counters->asked, 4);
}

/* ---- replay ------------------------------------------------------------------------------ */

typedef struct {
    World *world;
    Model *model;
} ReplayContext;

static bool replay_ask(void *context, Arena *arena, const ModelRequest *request, ModelReply *reply,
                       Error *err) {
    return model_ask(((ReplayContext *)context)->model, arena, request, reply, err);
}
static bool replay_judge(void *context, Arena *arena, const char *source, size_t bytes,
                         Verdict *verdict, Error *err) {
    return fake_judge(((ReplayContext *)context)->world, arena, source, bytes, verdict, err);
}

static void test_replayed_run_tells_the_same_story(void **state) {
    World *world = *state;
    world->limits.rounds = 3;
    PLAY(world, kImprove);
    char *expected = story(world);
    ReplayContext context = {.world = world};
    const char *spec = arena_printf(world->arena, "replay:%s", world->directory);
    if (!model_open(world->arena, spec, NULL, &context.model, &world->err))
        fail_msg("%s", world->err.message);

    world->directory = path_join(world->arena, world->directory, "second");
    assert_true(directory_make(world->directory, &world->err));
    const RunDeps deps = {
        .context = &context, .ask = replay_ask, .judge = replay_judge, .model_name = "fake:script"};
    const RunOptions options = run_options(world);
    Journal *journal;
    assert_true(
        journal_create(path_join(world->arena, world->directory, "run.db"), &journal, &world->err));
    assert_true(
        run_with(world->arena, &options, &deps, journal, false, &world->result, &world->err));
    journal_close(journal);
    model_close(context.model);
    same_story(story(world), expected);
}

/* ---- records that somebody edited --------------------------------------------------------- */

static void note(World *world, History *history, const char *kind, const char *body) {
    Json *json;
    if (!json_parse(world->arena, body, strlen(body), kind, &json, &world->err) ||
        !history_note(history, NULL, kind, json, false, &world->err))
        fail_msg("%s", world->err.message);
}

static void test_empty_idea_in_a_record_is_none(void **state) {
    World *world = *state;
    History history;
    history_begin(&history, world->arena);
    note(world, &history, "run.started", "{}");
    note(world, &history, "edit.applied", "{\"source\": \"a\", \"idea\": \"\"}");
    note(world, &history, "verdict",
         "{\"source\": \"a\", \"verdict\": \"wrong\", \"message\": \"it is wrong\"}");
    assert_string_equal(history_table(&history, world->arena, STAGE_DEBUG),
                        "- first version: wrong: it is wrong\n");
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_run_repairs_and_keeps_the_kernel),
        TEST(test_debug_prompt_carries_source_verdict_history_and_refusal),
        TEST(test_rounds_start_from_the_best),
        TEST(test_given_kernel_is_judged_first),
        TEST(test_source_judged_before_is_not_built_again),
        TEST(test_cut_off_reply_is_continued_and_joined),
        TEST(test_reply_cut_off_again_and_again_is_refused),
        TEST(test_run_without_a_passing_kernel_says_so),
        TEST(test_finished_run_goes_on_when_given_more_edits),
        TEST(test_passed_run_goes_on_when_given_rounds),
        TEST(test_interrupted_verdict_is_judged_again_on_resume),
        TEST(test_kernel_that_passed_is_kept_even_when_interrupted_then),
        TEST(test_passing_fault_costs_nothing),
        TEST(test_fault_leaves_its_evidence_in_the_record),
        TEST(test_lasting_fault_is_an_error_and_resumable),
        TEST(test_fault_of_the_set_up_is_not_tried_again),
        TEST(test_changed_task_is_not_resumed),
        TEST(test_model_that_recovers_is_asked_the_same_again),
        TEST(test_kill_at_any_event_resumes_to_the_same_story),
        TEST(test_kill_at_any_event_of_an_optimisation_resumes_to_the_same_story),
        TEST(test_kill_at_every_second_event_still_ends_the_same),
        TEST(test_kill_during_build_resumes_without_second_call),
        TEST(test_lost_best_file_is_written_again),
        TEST(test_nothing_is_asked_that_could_not_be_written_down),
        TEST(test_replayed_run_tells_the_same_story),
        TEST(test_empty_idea_in_a_record_is_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
