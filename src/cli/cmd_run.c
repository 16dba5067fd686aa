/* cmd_run.c - cutegen run TASK and cutegen resume RUN: the loop, from the first prompt or from
 * where a record ends.
 *
 * A run's directory is made only when everything else is in place, so that a misspelt model
 * leaves nothing behind. From then on every failure names the directory and how to go on.
 */
#include "cli/cli.h"
#include <string.h>

/* What a run is begun with, and what its record gives back for a resume. */
typedef struct {
    const char *task, *device, *arch, *model;
    const char *compiler; // of the sitting before; NULL: none, or not known
    LoopLimits limits;
    JudgeOptions judging;
    char *start_source;
    char *directory; // of the run
} Settings;

typedef struct {
    Workplace place;
    Model *model;
    Journal *journal;
    int events; // told by this sitting of the run
} Session;

static void limits_from_options(const Options *options, LoopLimits *limits) {
    if (options->max_rounds >= 0) limits->rounds = (int)options->max_rounds;
    if (options->max_edits >= 0) limits->edits_per_episode = (int)options->max_edits;
    if (options->max_drafts >= 0) limits->fresh_drafts = (int)options->max_drafts;
}

static bool open_session(Arena *arena, const Options *options, Cancel *cancel,
                         const Settings *settings, Session *session, Error *err) {
    Workplace *place = &session->place;
    if (!workplace_find(arena, options, settings->task, settings->device, place, err)) {
        return false;
    }
    ModelOptions asking = {
        .cancel = cancel,
        .progress = reporter_progress,
        .progress_context = place->reporter,
    };
    return model_open(arena, settings->model, &asking, &session->model, err) &&
           workplace_open_judge(arena, &settings->judging, settings->arch, cancel, place, err);
}

/* Makes cutegen-runs/<task>-<utc>-<hex> and the record in it, or leaves nothing. */
static bool make_run(Arena *arena, const Options *options, const char *task, char **directory,
                     Journal **journal, Error *err) {
    uint8_t unique[3];
    if (!random_bytes(unique, sizeof unique, err)) return false;
    const char *state_dir = options->state_dir ? options->state_dir : "cutegen-runs";
    *directory = arena_printf(arena, "%s/%s-%s-%02x%02x%02x", state_dir, task,
                              clock_utc_compact(arena), unique[0], unique[1], unique[2]);
    if (!directory_make(*directory, err)) {
        return error_input(err, "%.1900s; choose another place with --state-dir", err->message);
    }
    if (journal_create(path_join(arena, *directory, "run.db"), journal, err)) return true;
    Error ignored = {0};
    directory_remove(*directory, &ignored);
    return false;
}

static Json *run_json(const Session *session, const Settings *settings, const RunResult *result) {
    Json *json = json_object();
    json_object_set_new(json, "schema", json_integer(1));
    json_object_set_new(json, "task", json_string(session->place.task.name));
    json_object_set_new(json, "run", json_string(settings->directory));
    json_object_set_new(json, "device", workplace_json(&session->place));
    json_object_set_new(json, "model", json_string(model_name(session->model)));
    json_object_set_new(json, "stop", json_string(stop_name(result->stop)));
    json_object_set_new(json, "reason", result->reason ? json_string(result->reason) : json_null());
    json_object_set_new(json, "passed", json_boolean(result->passed));
    json_object_set_new(json, "best",
                        result->best_path ? json_string(result->best_path) : json_null());
    json_object_set_new(json, "verdict",
                        result->verdict_json ? json_deep_copy(result->verdict_json) : json_null());
    json_object_set_new(json, "replies", json_integer(result->replies));
    json_object_set_new(json, "builds", json_integer(result->builds));
    json_object_set_new(json, "edits", json_integer(result->edits));
    json_object_set_new(json, "seconds", json_real(result->seconds));
    return json;
}

/* What to do next. With --quiet this is all that is said. */
static void conclude(Arena *arena, const Options *options, const Session *session,
                     const Settings *settings, const RunResult *result) {
    Reporter *reporter = session->place.reporter;
    bool finished = result->stop != STOP_INTERRUPTED && result->stop != STOP_MODEL;
    if (options->quiet && !options->json) {
        printf("%s: %s\n", stop_name(result->stop),
               result->best_path ? result->best_path : settings->directory);
    }
    reporter_line(reporter, "");
    if (result->best_path) {
        reporter_line(reporter, arena_printf(arena, "kernel: %s", result->best_path));
    }
    reporter_line(reporter, arena_printf(arena, "story:  cutegen show %s", settings->directory));
    if (!finished || !result->passed) {
        // a run that used up its limits needs wider ones to go on
        const char *wider =
            finished ? arena_printf(arena, " --max-drafts %d", 2 * settings->limits.fresh_drafts)
                     : "";
        reporter_line(reporter, arena_printf(arena, "go on:  cutegen resume %s%s",
                                             settings->directory, wider));
    }
    if (options->json) print_json(run_json(session, settings, result));
}

static int exit_code_of(const RunResult *result, Cancel *cancel) {
    if (result->stop == STOP_INTERRUPTED) return 128 + (cancelled(cancel) ? *cancel : 2);
    if (result->stop == STOP_FAULT) return EXIT_HARNESS;
    return result->passed ? EXIT_PASS : EXIT_STOPPED;
}

static void on_event(void *context, const char *kind, const Json *body) {
    Session *session = context;
    session->events++;
    reporter_event(session->place.reporter, kind, body);
}

typedef bool (*Loop)(Arena *, const RunOptions *, Journal *, RunResult *, Error *);

static bool go(Arena *arena, const Options *options, Cancel *cancel, const Settings *settings,
               Session *session, Loop loop, int *exit_code, Error *err) {
    Workplace *place = &session->place;
    RunOptions run = {
        .task = &place->task,
        .judge = place->judge,
        .model = session->model,
        .limits = settings->limits,
        .judging = judge_options(place->judge),
        .compiler = place->toolchain.identity,
        .directory = settings->directory,
        .device = place->device.text,
        .arch = place->toolchain.arch,
        .start_source = settings->start_source,
        .hint = options->hint,
        .listener = on_event,
        .listener_context = session,
        .cancel = cancel,
    };
    RunResult result = {0};
    reporter_set_journal(place->reporter, session->journal);
    reporter_line(place->reporter, arena_printf(arena, "run: %s", settings->directory));
    if (settings->compiler && strcmp(settings->compiler, place->toolchain.identity) != 0) {
        reporter_line(place->reporter,
                      arena_printf(arena, "another compiler than before: %s, not %s",
                                   place->toolchain.identity, settings->compiler));
    }
    reporter_line(place->reporter, "");
    if (!loop(arena, &run, session->journal, &result, err)) {
        if (err->kind == ERROR_INPUT) return false; // the same again would end the same
        Error why = *err;
        *err = (Error){.kind = why.kind};
        snprintf(err->message, sizeof err->message, "%.1700s; go on with: cutegen resume %.256s",
                 why.message, settings->directory);
        return false;
    }
    if (session->events == 0) {
        reporter_line(place->reporter, arena_printf(arena, "this run had ended already: %s",
                                                    stop_name(result.stop)));
    }
    conclude(arena, options, session, settings, &result);
    *exit_code = exit_code_of(&result, cancel);
    return true;
}

static void close_session(Session *session) {
    workplace_close(&session->place); // before the journal that its reporter reads
    model_close(session->model);
    journal_close(session->journal);
}

static bool read_start(Arena *arena, const char *path, char **source, Error *err) {
    size_t bytes;
    if (!file_read(arena, path, KERNEL_MAX_BYTES, source, &bytes, err)) return false;
    if (!memchr(*source, '\0', bytes)) return true;
    return error_input(err, "%s: this is a binary file, not CUDA source (it holds a zero byte)",
                       path);
}

static bool begin_run(Arena *arena, const Options *options, Cancel *cancel, Session *session,
                      int *exit_code, Error *err) {
    if (!options->model) {
        return error_input(err, "cutegen run: no model given; add --model manual:DIR, "
                                "--model 'exec:CMD' or --model replay:FILE");
    }
    Settings settings = {
        .task = options->operands[0],
        .device = options->device,
        .arch = options->arch,
        .model = options->model,
        .limits = loop_limits_default(),
    };
    limits_from_options(options, &settings.limits);
    judging_from_options(options, &settings.judging);
    if (options->start && !read_start(arena, options->start, &settings.start_source, err)) {
        return false;
    }
    return open_session(arena, options, cancel, &settings, session, err) &&
           make_run(arena, options, session->place.task.name, &settings.directory,
                    &session->journal, err) &&
           go(arena, options, cancel, &settings, session, run_task, exit_code, err);
}

bool command_run(Arena *arena, const Options *options, Cancel *cancel, int *exit_code, Error *err) {
    Session session = {0};
    bool ok = begin_run(arena, options, cancel, &session, exit_code, err);
    close_session(&session);
    return ok;
}

static void limits_from_json(const Json *json, LoopLimits *limits) {
    limits->edits_per_episode =
        (int)json_int_or(json, "edits_per_episode", limits->edits_per_episode);
    limits->fresh_drafts = (int)json_int_or(json, "fresh_drafts", limits->fresh_drafts);
    limits->rounds = (int)json_int_or(json, "rounds", limits->rounds);
    limits->plateau_rounds = (int)json_int_or(json, "plateau_rounds", limits->plateau_rounds);
}

static void judging_from_json(const Json *json, JudgeOptions *judging) {
    judging->seeds = (int)json_int_or(json, "seeds", judging->seeds);
    judging->call_timeout_s = json_real_or(json, "call_timeout_s", judging->call_timeout_s);
    judging->reference_timeout_s =
        json_real_or(json, "reference_timeout_s", judging->reference_timeout_s);
}

/* What the run was begun with, as later resumes changed it; options given now win. */
static bool read_settings(Arena *arena, const Options *options, Journal *journal,
                          Settings *settings, Error *err) {
    JournalEvent *events;
    size_t count;
    if (!journal_events(journal, arena, 0, &events, &count, err)) return false;
    settings->limits = loop_limits_default();
    for (size_t i = 0; i < count; i++) {
        const Json *body = events[i].body;
        bool begins = strcmp(events[i].kind, "run.started") == 0;
        if (!begins && strcmp(events[i].kind, "run.resumed") != 0) continue;
        if (begins) {
            const Json *task = json_object_get(body, "task");
            settings->task = json_text(task, "path", json_text(task, "name", ""));
            settings->device = json_text(body, "device", NULL);
            settings->arch = json_text(body, "arch", NULL);
        }
        settings->model = json_text(body, "model", settings->model);
        settings->compiler = json_text(body, "compiler", settings->compiler);
        limits_from_json(json_object_get(body, "limits"), &settings->limits);
        judging_from_json(json_object_get(body, "judge"), &settings->judging);
    }
    if (!settings->task || !settings->model) {
        return error_input(err, "%s holds a run that never began; begin a new one with cutegen run",
                           settings->directory);
    }
    if (options->model) settings->model = options->model;
    limits_from_options(options, &settings->limits);
    judging_from_options(options, &settings->judging);
    return true;
}

static bool go_on(Arena *arena, const Options *options, Cancel *cancel, Session *session,
                  int *exit_code, Error *err) {
    Settings settings = {0};
    return run_find(arena, options, options->operands[0], &settings.directory, err) &&
           journal_open(path_join(arena, settings.directory, "run.db"), &session->journal, err) &&
           read_settings(arena, options, session->journal, &settings, err) &&
           open_session(arena, options, cancel, &settings, session, err) &&
           go(arena, options, cancel, &settings, session, run_resume, exit_code, err);
}

bool command_resume(Arena *arena, const Options *options, Cancel *cancel, int *exit_code,
                    Error *err) {
    Session session = {0};
    bool ok = go_on(arena, options, cancel, &session, exit_code, err);
    close_session(&session);
    return ok;
}
