/* workplace.c - what a subcommand needs before it can judge anything: the companions of this
 * program, a compiler, a device, a task, and a judge for it.
 *
 * Things are looked for in the order in which a user would want to hear that they are missing:
 * a misspelt task before a missing compiler.
 */
#include "cli/cli.h"
#include <string.h>

/* The name that was meant: "softmx" is near to no name, but to a part of row_softmax. */
static const char *nearest_task(Arena *arena, const char *word, const char *const *names,
                                size_t count) {
    const char *nearest = text_nearest(word, names, count);
    for (size_t i = 0; i < count && !nearest; i++) {
        char *parts = arena_string(arena, names[i]);
        for (char *part = strtok_r(parts, "_", &parts); part; part = strtok_r(NULL, "_", &parts)) {
            const char *candidate = part;
            if (text_nearest(word, &candidate, 1)) nearest = names[i];
        }
    }
    return nearest;
}

bool task_find(Arena *arena, const Installation *installation, const char *name, Task *task,
               Error *err) {
    bool is_path = strchr(name, '/') || text_ends_with(name, ".yaml") ||
                   text_ends_with(name, ".yml") || path_exists(path_join(arena, name, "task.yaml"));
    if (is_path) return task_load(arena, name, task, err);

    const char *root = path_join(arena, installation->root, "tasks");
    const char **names;
    size_t count;
    if (!task_list(arena, root, &names, &count, err)) return false;
    for (size_t i = 0; i < count; i++) {
        if (strcmp(names[i], name) == 0) {
            return task_load(arena, path_join(arena, root, name), task, err);
        }
    }
    const char *nearest = nearest_task(arena, name, names, count);
    if (nearest) {
        return error_input(err, "unknown task '%s'; did you mean %s?", name, nearest);
    }
    return error_input(err,
                       "unknown task '%s': give a task.yaml, a directory that holds one, or a "
                       "name that 'cutegen tasks' lists",
                       name);
}

bool run_find(Arena *arena, const Options *options, const char *name, char **directory,
              Error *err) {
    const char *state_dir = options->state_dir ? options->state_dir : "cutegen-runs";
    const char *places[] = {name, path_join(arena, state_dir, name)};
    if (strcmp(path_base(name), "run.db") == 0) places[0] = path_directory(arena, name);
    for (size_t i = 0; i < COUNT_OF(places); i++) {
        if (path_exists(path_join(arena, places[i], "run.db"))) {
            *directory = arena_string(arena, places[i]);
            return true;
        }
    }
    if (path_is_directory(name)) {
        return error_input(err, "%s holds no run: there is no run.db in it", name);
    }
    return error_input(err, "no run '%s', neither as a directory nor in %s", name, state_dir);
}

bool workplace_find(Arena *arena, const Options *options, const char *task, const char *device,
                    Workplace *place, Error *err) {
    *place = (Workplace){.device_asked = device != NULL};
    if (!installation_find(arena, &place->installation, err) ||
        !task_find(arena, &place->installation, task, &place->task, err) ||
        !device_parse(arena, device ? device : "sim", &place->device, err)) {
        return false;
    }
    ReportOptions report = report_options(options->json ? stderr : stdout);
    report.quiet = options->quiet;
    report.verbose = options->verbose;
    place->reporter = reporter_new(&report);
    return true;
}

static const char *device_phrase(Arena *arena, const Workplace *place) {
    const DeviceSpec *device = &place->device;
    const char *via = device->via ? arena_printf(arena, " via %s", device->via) : "";
    if (device->simulated) {
        return arena_printf(arena, "simulated %s%s%s", place->toolchain.arch, via,
                            place->device_asked ? "" : " (no GPU asked for)");
    }
    return arena_printf(arena, "cuda:%d as %s%s", device->index, place->toolchain.arch, via);
}

static void announce(Arena *arena, const Workplace *place) {
    int version = place->toolchain.version;
    reporter_line(place->reporter,
                  arena_printf(arena, "%s; builds use nvcc %d.%d", device_phrase(arena, place),
                               version / 1000, version % 1000 / 10));
    reporter_line(place->reporter,
                  "sandbox: own process group, rlimits, scrubbed environment; no file-system or "
                  "network isolation yet");
}

void judging_from_options(const Options *options, JudgeOptions *judging) {
    if (options->seeds > 0) judging->seeds = (int)options->seeds;
    if (options->seed > 0) judging->first_seed = (uint64_t)options->seed;
    if (options->timeout_s > 0) judging->call_timeout_s = (double)options->timeout_s;
    if (options->reference_timeout_s > 0) {
        judging->reference_timeout_s = (double)options->reference_timeout_s;
    }
    if (options->quick) judging->quick = true;
}

bool workplace_open_judge(Arena *arena, const JudgeOptions *judging, const char *arch,
                          Cancel *cancel, Workplace *place, Error *err) {
    if (!toolchain_find(arena, arch, &place->toolchain, err)) return false;
    announce(arena, place);
    JudgeOptions options = *judging;
    options.cancel = cancel;
    options.progress = reporter_progress;
    options.progress_context = place->reporter;
    reporter_progress(place->reporter, "preparing the reference");
    return judge_open(arena, &place->task, &place->toolchain, &place->installation, &place->device,
                      &options, &place->judge, err);
}

void workplace_close(Workplace *place) {
    judge_close(place->judge);
    reporter_free(place->reporter);
    place->judge = NULL;
    place->reporter = NULL;
}

Json *workplace_json(const Workplace *place) {
    return json_pack("{s:s, s:b, s:s, s:s}", "name", place->device.text, "simulated",
                     place->device.simulated, "arch", place->toolchain.arch, "compiler",
                     place->toolchain.identity);
}

void print_json(Json *object) {
    json_dumpf(object, stdout, JSON_COMPACT);
    fputc('\n', stdout);
    json_decref(object);
}
