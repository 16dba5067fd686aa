/* options.c - one table of all options; each subcommand names those it accepts.
 *
 * A row says where the value goes and what it may be, and --help is printed from the same row,
 * so an option cannot exist without being parsed, checked and explained.
 */
#include "cli/cli.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

typedef enum { VALUE_NONE, VALUE_TEXT, VALUE_NUMBER } ValueKind;

typedef struct {
    const char *name; // without dashes
    char letter;      // 0: none
    ValueKind kind;
    const char *argument; // how help names the value
    size_t offset;        // in Options
    int64_t least, most;  // numbers
    const char *help;
} OptionRow;

#define FIELD(field) offsetof(Options, field)
static const OptionRow option_table[OPTION_COUNT] = {
    [OPTION_MODEL] = {"model", 'm', VALUE_TEXT, "SPEC", FIELD(model), 0, 0,
                      "who writes: manual:DIR, exec:CMD or replay:FILE"},
    [OPTION_DEVICE] = {"device", 'd', VALUE_TEXT, "DEVICE", FIELD(device), 0, 0,
                       "sim (default) or cuda[:N]; also 'DEVICE via CMD'"},
    [OPTION_ARCH] = {"arch", 0, VALUE_TEXT, "ARCH", FIELD(arch), 0, 0,
                     "sm_80, sm_86, sm_89 or sm_90a (default sm_90a)"},
    [OPTION_STATE_DIR] = {"state-dir", 0, VALUE_TEXT, "DIR", FIELD(state_dir), 0, 0,
                          "where runs are kept (default ./cutegen-runs)"},
    [OPTION_START] = {"start", 0, VALUE_TEXT, "KERNEL.cu", FIELD(start), 0, 0,
                      "begin with this kernel instead of asking for a draft"},
    [OPTION_HINT] = {"hint", 0, VALUE_TEXT, "TEXT", FIELD(hint), 0, 0,
                     "advice that joins every prompt"},
    [OPTION_MAX_ROUNDS] = {"max-rounds", 0, VALUE_NUMBER, "N", FIELD(max_rounds), 0, 1000,
                           "optimisation rounds after the first pass"},
    [OPTION_MAX_EDITS] = {"max-edits", 0, VALUE_NUMBER, "N", FIELD(max_edits), 1, 1000,
                          "edits to repair one draft with (default 5)"},
    [OPTION_MAX_DRAFTS] = {"max-drafts", 0, VALUE_NUMBER, "N", FIELD(max_drafts), 1, 1000,
                           "drafts before the run gives up (default 3)"},
    [OPTION_SEEDS] = {"seeds", 0, VALUE_NUMBER, "N", FIELD(seeds), 1, 1000,
                      "sets of random inputs per shape (default 3)"},
    [OPTION_SEED] = {"seed", 0, VALUE_NUMBER, "N", FIELD(seed), 1, (1ll << 48) - 1,
                     "where those begin, to repeat a verdict"},
    [OPTION_TIMEOUT] = {"timeout", 0, VALUE_NUMBER, "S", FIELD(timeout_s), 1, 86400,
                        "seconds one launch may take (default 60 simulated)"},
    [OPTION_REFERENCE_TIMEOUT] = {"reference-timeout", 0, VALUE_NUMBER, "S",
                                  FIELD(reference_timeout_s), 1, 86400,
                                  "seconds the reference may take (default 300)"},
    [OPTION_QUICK] = {"quick", 0, VALUE_NONE, NULL, FIELD(quick), 0, 0,
                      "judge the check shapes alone, if there are any"},
    [OPTION_JSON] = {"json", 0, VALUE_NONE, NULL, FIELD(json), 0, 0,
                     "JSON on standard output, progress on standard error"},
    [OPTION_QUIET] = {"quiet", 'q', VALUE_NONE, NULL, FIELD(quiet), 0, 0,
                      "print the outcome alone"},
    [OPTION_VERBOSE] = {"verbose", 'v', VALUE_NONE, NULL, FIELD(verbose), 0, 0,
                        "also show what the model is told to repair"},
    [OPTION_HELP] = {"help", 'h', VALUE_NONE, NULL, FIELD(help), 0, 0, "print this"},
};

static void *field_of(Options *options, const OptionRow *row) {
    return (char *)options + row->offset;
}

static bool set_number(const Command *command, const OptionRow *row, const char *value,
                       Options *options, Error *err) {
    char *end;
    errno = 0;
    int64_t number = strtoll(value, &end, 10);
    if (errno || end == value || *end || number < row->least || number > row->most) {
        return error_input(err, "cutegen %s: --%s takes a whole number from %lld to %lld, not '%s'",
                           command->name, row->name, (long long)row->least, (long long)row->most,
                           value);
    }
    *(int64_t *)field_of(options, row) = number;
    return true;
}

static const OptionRow *find_option(const Command *command, const char *name, size_t length,
                                    char letter) {
    for (int id = 0; id < OPTION_COUNT; id++) {
        const OptionRow *row = &option_table[id];
        if (!(command->options & ACCEPTS(id))) continue;
        if (letter ? row->letter == letter
                   : strlen(row->name) == length && memcmp(row->name, name, length) == 0) {
            return row;
        }
    }
    return NULL;
}

static bool unknown_option(Arena *arena, const Command *command, const char *word, Error *err) {
    const char *names[OPTION_COUNT];
    size_t count = 0;
    for (int id = 0; id < OPTION_COUNT; id++) {
        if (command->options & ACCEPTS(id)) {
            names[count++] = arena_printf(arena, "--%s", option_table[id].name);
        }
    }
    const char *given = arena_string_n(arena, word, strcspn(word, "="));
    const char *nearest = text_nearest(given, names, count);
    if (nearest) {
        return error_input(err, "cutegen %s: unknown option '%s'; did you mean %s?", command->name,
                           given, nearest);
    }
    return error_input(err, "cutegen %s: unknown option '%s'; see cutegen %s --help", command->name,
                       given, command->name);
}

static bool add_operand(const Command *command, const char *word, Options *options, Error *err) {
    if (options->operand_count == command->most_operands) {
        return error_input(err, "cutegen %s: '%s' is one argument too many; usage: cutegen %s%s%s",
                           command->name, word, command->name, *command->operands ? " " : "",
                           command->operands);
    }
    options->operands[options->operand_count++] = word;
    return true;
}

bool options_parse(Arena *arena, const Command *command, int argc, char **argv, Options *options,
                   Error *err) {
    *options = (Options){.max_rounds = -1,
                         .max_edits = -1,
                         .max_drafts = -1,
                         .seeds = -1,
                         .seed = -1,
                         .timeout_s = -1,
                         .reference_timeout_s = -1};
    bool only_operands = false;
    for (int i = 0; i < argc; i++) {
        const char *word = argv[i];
        if (only_operands || word[0] != '-' || !word[1]) {
            if (!add_operand(command, word, options, err)) return false;
            continue;
        }
        if (strcmp(word, "--") == 0) {
            only_operands = true;
            continue;
        }
        bool is_long = word[1] == '-';
        const char *equals = is_long ? strchr(word, '=') : NULL;
        size_t length = equals ? (size_t)(equals - word) - 2 : strlen(word) - (is_long ? 2 : 1);
        const OptionRow *row = is_long       ? find_option(command, word + 2, length, 0)
                               : length == 1 ? find_option(command, NULL, 0, word[1])
                                             : NULL;
        if (!row) return unknown_option(arena, command, word, err);
        if (row->kind == VALUE_NONE) {
            if (equals) {
                return error_input(err, "cutegen %s: --%s takes no value", command->name,
                                   row->name);
            }
            *(bool *)field_of(options, row) = true;
            continue;
        }
        const char *value = equals ? equals + 1 : i + 1 < argc ? argv[++i] : NULL;
        if (!value || (!*value && row->kind == VALUE_TEXT)) {
            return error_input(err, "cutegen %s: --%s needs a value: --%s %s", command->name,
                               row->name, row->name, row->argument);
        }
        if (row->kind == VALUE_TEXT) {
            *(const char **)field_of(options, row) = value;
        } else if (!set_number(command, row, value, options, err)) {
            return false;
        }
    }
    if (options->help) return true;
    if (options->operand_count < command->least_operands) {
        return error_input(err, "usage: cutegen %s %s; see cutegen %s --help", command->name,
                           command->operands, command->name);
    }
    return true;
}

void print_usage(FILE *out) {
    fputs("usage: cutegen COMMAND [OPTION]... [ARGUMENT]...\n"
          "\n"
          "Turns a task (what an operator computes, on which shapes) into a verified GPU\n"
          "kernel written in C++ with CuTe, by driving a language model through draft,\n"
          "build, judge and repair. Without a GPU, kernels run on a simulator.\n"
          "\n"
          "commands:\n",
          out);
    for (size_t i = 0; i < command_count; i++) {
        fprintf(out, "  %-15s %s\n", commands[i].name, commands[i].summary);
    }
    fputs("\n"
          "  --version       print the version\n"
          "  --help          print this; 'cutegen COMMAND --help' explains one command\n"
          "\n"
          "exit status:\n"
          "  0  pass          the kernel passes (or the command did what it was asked)\n"
          "  1  verdict       the kernel was judged and does not pass\n"
          "  2  input         usage, an input file or the set-up is wrong\n"
          "  3  harness       cutegen or the machine failed; the kernel is not to blame\n"
          "  4  stopped       a run ended without a passing kernel; it can be resumed\n"
          "  130, 143         interrupted by SIGINT or SIGTERM; a run can be resumed\n",
          out);
}

void print_command_help(FILE *out, const Command *command) {
    fprintf(out, "usage: cutegen %s%s%s [OPTION]...\n\n%s\noptions:\n", command->name,
            *command->operands ? " " : "", command->operands, command->help);
    for (int id = 0; id < OPTION_COUNT; id++) {
        const OptionRow *row = &option_table[id];
        if (!(command->options & ACCEPTS(id))) continue;
        char name[48];
        snprintf(name, sizeof name, "--%s%s%s", row->name, row->argument ? " " : "",
                 row->argument ? row->argument : "");
        if (row->letter) {
            fprintf(out, "  -%c, %-21s %s\n", row->letter, name, row->help);
        } else {
            fprintf(out, "      %-21s %s\n", name, row->help);
        }
    }
}
