/* cli.h - private to cli/: the table of subcommands, their options, and what they share.
 *
 * Only main.c prints errors and decides on exit codes of failures; a subcommand returns false
 * with `err` set, or true with the exit code of what it found.
 */
#pragma once
#include "agent/agent.h"
#include "base/base.h"
#include "report/report.h"

enum {
    EXIT_PASS = 0,
    EXIT_VERDICT = 1, // a verdict other than pass
    EXIT_INPUT = 2,   // usage, input file or set-up
    EXIT_HARNESS = 3, // our own fault or the machine's
    EXIT_STOPPED = 4, // no passing kernel yet; resumable
};

typedef enum {
    OPTION_MODEL,
    OPTION_DEVICE,
    OPTION_ARCH,
    OPTION_STATE_DIR,
    OPTION_START,
    OPTION_HINT,
    OPTION_MAX_ROUNDS,
    OPTION_MAX_EDITS,
    OPTION_MAX_DRAFTS,
    OPTION_SEEDS,
    OPTION_SEED,
    OPTION_TIMEOUT,
    OPTION_REFERENCE_TIMEOUT,
    OPTION_QUICK,
    OPTION_JSON,
    OPTION_QUIET,
    OPTION_VERBOSE,
    OPTION_HELP,
    OPTION_COUNT
} OptionId;
#define ACCEPTS(option) (1u << (option))

#define KERNEL_MAX_BYTES ((size_t)4 << 20)

#define MAX_OPERANDS 2
typedef struct {
    const char *operands[MAX_OPERANDS];
    int operand_count;
    const char *model, *device, *arch, *state_dir, *start, *hint; // NULL: not given
    int64_t max_rounds, max_edits, max_drafts, seeds, seed;       // -1: not given
    int64_t timeout_s, reference_timeout_s;                       // -1: not given
    bool quick, json, quiet, verbose, help;
} Options;

typedef struct Command {
    const char *name;
    const char *operands; // as usage shows them: "TASK KERNEL.cu"
    int least_operands, most_operands;
    unsigned options; // a set of ACCEPTS(…)
    const char *summary;
    const char *help; // what it does, with examples
    bool (*run)(Arena *arena, const Options *options, Cancel *cancel, int *exit_code, Error *err);
} Command;

extern const Command commands[];
extern const size_t command_count;

/* Reads what follows the subcommand. Options and operands may be mixed; "--" ends options. */
bool options_parse(Arena *arena, const Command *command, int argc, char **argv, Options *options,
                   Error *err);
void print_usage(FILE *out);
void print_command_help(FILE *out, const Command *command);

bool command_run(Arena *, const Options *, Cancel *, int *exit_code, Error *);
bool command_resume(Arena *, const Options *, Cancel *, int *exit_code, Error *);
bool command_check(Arena *, const Options *, Cancel *, int *exit_code, Error *);
bool command_show(Arena *, const Options *, Cancel *, int *exit_code, Error *);
bool command_export_journal(Arena *, const Options *, Cancel *, int *exit_code, Error *);
bool command_tasks(Arena *, const Options *, Cancel *, int *exit_code, Error *);

/* ---- shared by subcommands (workplace.c) -------------------------------------------------- */

/* A task to work on and the machinery to judge answers to it. */
typedef struct {
    Installation installation;
    DeviceSpec device;
    bool device_asked; // for by the user
    Toolchain toolchain;
    Task task;
    Judge *judge;
    Reporter *reporter;
} Workplace;

/* TASK as users write it: a task.yaml, a directory with one, or the name of a native task. */
bool task_find(Arena *arena, const Installation *installation, const char *name, Task *task,
               Error *err);
/* RUN as users write it: a run's directory, its run.db, or its name below the state directory. */
bool run_find(Arena *arena, const Options *options, const char *name, char **directory, Error *err);

/* Finds companions, task and device; `device` may be NULL. The reporter is there afterwards. */
bool workplace_find(Arena *arena, const Options *options, const char *task, const char *device,
                    Workplace *place, Error *err);
/* What the options say of judging; what they leave open stays. */
void judging_from_options(const Options *options, JudgeOptions *judging);
/* Finds the compiler (`arch` may be NULL), says where kernels will be judged, opens the judge. */
bool workplace_open_judge(Arena *arena, const JudgeOptions *judging, const char *arch,
                          Cancel *cancel, Workplace *place, Error *err);
void workplace_close(Workplace *place); // safe after a failure of the above
/* Where kernels are judged, as --json tells it: docs/schema/check.json. */
Json *workplace_json(const Workplace *place);

/* One JSON object on a line of standard output; takes the reference. */
void print_json(Json *object);
