/* cmd_show.c - cutegen show RUN and cutegen export-journal RUN: reading a run's record.
 *
 * Neither owns the journal, so both work while the run goes on.
 */
#include "cli/cli.h"

static bool open_record(Arena *arena, const Options *options, char **directory, Journal **journal,
                        Error *err) {
    return run_find(arena, options, options->operands[0], directory, err) &&
           journal_open_read_only(path_join(arena, *directory, "run.db"), journal, err);
}

static bool show_json(Arena *arena, const Options *options, const char *directory, Journal *journal,
                      Error *err) {
    (void)options;
    Json *json;
    if (!report_json(journal, &json, err)) return false;
    const char *best = path_join(arena, directory, "best.cu");
    json_object_set_new(json, "run", json_string(directory));
    json_object_set_new(json, "best_path", path_exists(best) ? json_string(best) : json_null());
    print_json(json);
    return true;
}

static bool show_story(Arena *arena, const Options *options, const char *directory,
                       Journal *journal, Error *err) {
    ReportOptions report = report_options(stdout);
    report.verbose = options->verbose;
    if (!report_story(journal, &report, err)) return false;
    const char *best = path_join(arena, directory, "best.cu");
    if (path_exists(best)) printf("kernel: %s\n", best);
    return true;
}

bool command_show(Arena *arena, const Options *options, Cancel *cancel, int *exit_code,
                  Error *err) {
    (void)cancel;
    Journal *journal = NULL;
    char *directory;
    bool ok = open_record(arena, options, &directory, &journal, err) &&
              (options->json ? show_json : show_story)(arena, options, directory, journal, err);
    journal_close(journal);
    *exit_code = EXIT_PASS;
    return ok;
}

bool command_export_journal(Arena *arena, const Options *options, Cancel *cancel, int *exit_code,
                            Error *err) {
    (void)cancel;
    Journal *journal = NULL;
    char *directory;
    Buf lines = {0};
    bool ok = open_record(arena, options, &directory, &journal, err) &&
              journal_export(journal, &lines, err);
    if (ok && options->operand_count == 2) {
        ok = file_write_atomic(options->operands[1], lines.data, lines.length, err);
    } else if (ok) {
        fwrite(lines.data, 1, lines.length, stdout);
    }
    buf_free(&lines);
    journal_close(journal);
    *exit_code = EXIT_PASS;
    return ok;
}
