/* cmd_check.c - cutegen check TASK KERNEL.cu: one kernel, one verdict.
 */
#include "cli/cli.h"

static Json *check_json(const Workplace *place, const char *kernel, Json *verdict) {
    Json *json = json_object();
    json_object_set_new(json, "schema", json_integer(1));
    json_object_set_new(json, "task", json_string(place->task.name));
    json_object_set_new(json, "kernel", json_string(kernel));
    json_object_set_new(json, "device", workplace_json(place));
    json_object_set(json, "verdict", verdict);
    return json;
}

static bool check(Arena *arena, const Options *options, Cancel *cancel, Workplace *place,
                  int *exit_code, Error *err) {
    const char *kernel = options->operands[1];
    char *source;
    size_t bytes;
    JudgeOptions judging = {0};
    judging_from_options(options, &judging);
    if (!workplace_find(arena, options, options->operands[0], options->device, place, err) ||
        !file_read(arena, kernel, KERNEL_MAX_BYTES, &source, &bytes, err) ||
        !workplace_open_judge(arena, &judging, options->arch, cancel, place, err)) {
        return false;
    }
    Verdict verdict;
    if (!judge_kernel(place->judge, arena, source, bytes, &verdict, err)) return false;

    Json *json = json_owned(arena, verdict_json(&verdict));
    if (!options->quiet || !options->json) reporter_verdict(place->reporter, json, source);
    if (options->json) print_json(check_json(place, kernel, json));
    *exit_code = verdict.kind == VERDICT_PASS            ? EXIT_PASS
                 : verdict.kind == VERDICT_HARNESS_FAULT ? EXIT_HARNESS
                                                         : EXIT_VERDICT;
    return true;
}

bool command_check(Arena *arena, const Options *options, Cancel *cancel, int *exit_code,
                   Error *err) {
    Workplace place = {0};
    bool ok = check(arena, options, cancel, &place, exit_code, err);
    workplace_close(&place);
    return ok;
}
