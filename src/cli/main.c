/* main.c - where the program starts: the table of subcommands, signals, exit codes.
 *
 * A first Ctrl-C (or SIGTERM) sets a flag that everything that waits looks at, so that a run can
 * keep its best kernel and say how to resume; a second one kills at once. Nothing is lost then
 * either, because each event was durable before it took effect. Failures are printed here and
 * nowhere else.
 */
#include "cli/cli.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

const Command commands[] = {
    {"run", "TASK", 1, 1,
     ACCEPTS(OPTION_MODEL) | ACCEPTS(OPTION_DEVICE) | ACCEPTS(OPTION_ARCH) |
         ACCEPTS(OPTION_STATE_DIR) | ACCEPTS(OPTION_START) | ACCEPTS(OPTION_HINT) |
         ACCEPTS(OPTION_MAX_ROUNDS) | ACCEPTS(OPTION_MAX_EDITS) | ACCEPTS(OPTION_MAX_DRAFTS) |
         ACCEPTS(OPTION_SEEDS) | ACCEPTS(OPTION_TIMEOUT) | ACCEPTS(OPTION_REFERENCE_TIMEOUT) |
         ACCEPTS(OPTION_JSON) | ACCEPTS(OPTION_QUIET) | ACCEPTS(OPTION_VERBOSE) |
         ACCEPTS(OPTION_HELP),
     "let a model write a kernel for a task, and judge and repair it",
     "Asks the model for a draft, builds and judges it, and has it repaired by small\n"
     "edits until it passes. TASK is a task.yaml, a directory that holds one, or the\n"
     "name of a task that 'cutegen tasks' lists. Everything is recorded in\n"
     "./cutegen-runs/<run>/run.db; the best kernel is best.cu beside it.\n"
     "\n"
     "models:\n"
     "  manual:DIR     you (or any chat window) are the model: each prompt is written\n"
     "                 to DIR/0001.prompt.md, and the reply counts once it is there as\n"
     "                 DIR/0001.reply.md (write it under another name, then rename it)\n"
     "  exec:CMD       CMD reads the prompt on standard input and writes the reply\n"
     "  replay:FILE    the replies of a recorded run (cutegen export-journal)\n"
     "\n"
     "examples:\n"
     "  cutegen run row_softmax --model manual:chat\n"
     "  cutegen run ./mytask --model 'exec:llm -m some-model' --max-edits 8\n"
     "  cutegen run sgemm --model replay:demo/sgemm.jsonl --json\n"
     "  cutegen run relu --model manual:chat --start mine.cu --hint 'keep the copy'\n",
     command_run},
    {"resume", "RUN", 1, 1,
     ACCEPTS(OPTION_MODEL) | ACCEPTS(OPTION_STATE_DIR) | ACCEPTS(OPTION_MAX_ROUNDS) |
         ACCEPTS(OPTION_MAX_EDITS) | ACCEPTS(OPTION_MAX_DRAFTS) | ACCEPTS(OPTION_TIMEOUT) |
         ACCEPTS(OPTION_REFERENCE_TIMEOUT) | ACCEPTS(OPTION_JSON) | ACCEPTS(OPTION_QUIET) |
         ACCEPTS(OPTION_VERBOSE) | ACCEPTS(OPTION_HELP),
     "go on with a run where it was stopped or killed",
     "Goes on at the very step where the record ends; a model's reply that had arrived\n"
     "is not asked for again. RUN is a run's directory, or its name below\n"
     "./cutegen-runs. Task and device are those of the run; so are model, limits and\n"
     "timeouts, unless given anew.\n"
     "\n"
     "examples:\n"
     "  cutegen resume cutegen-runs/relu-20260131-123456-1a2b3c\n"
     "  cutegen resume relu-20260131-123456-1a2b3c --max-edits 10\n",
     command_resume},
    {"check", "TASK KERNEL.cu", 2, 2,
     ACCEPTS(OPTION_DEVICE) | ACCEPTS(OPTION_ARCH) | ACCEPTS(OPTION_SEEDS) |
         ACCEPTS(OPTION_TIMEOUT) | ACCEPTS(OPTION_REFERENCE_TIMEOUT) | ACCEPTS(OPTION_SEED) |
         ACCEPTS(OPTION_QUICK) | ACCEPTS(OPTION_JSON) | ACCEPTS(OPTION_QUIET) |
         ACCEPTS(OPTION_VERBOSE) | ACCEPTS(OPTION_HELP),
     "judge one kernel, without any model",
     "Builds KERNEL.cu and judges it as an answer to TASK: every check shape of the\n"
     "task, then its simulated size, each with several sets of random inputs. Says\n"
     "what is wrong and where.\n"
     "\n"
     "examples:\n"
     "  cutegen check sgemm mine.cu\n"
     "  cutegen check ./mytask kernel.cu --quick\n"
     "  cutegen check relu kernel.cu --seed 212387123875392\n"
     "  cutegen check relu kernel.cu --json | jq -r .verdict.verdict\n",
     command_check},
    {"show", "RUN", 1, 1,
     ACCEPTS(OPTION_STATE_DIR) | ACCEPTS(OPTION_JSON) | ACCEPTS(OPTION_VERBOSE) |
         ACCEPTS(OPTION_HELP),
     "tell the story of a run from its record",
     "What was asked, what came back, what was built and judged, with the edits as\n"
     "diffs. Works while the run goes on. RUN is a run's directory, or its name below\n"
     "./cutegen-runs.\n"
     "\n"
     "examples:\n"
     "  cutegen show cutegen-runs/relu-20260131-123456-1a2b3c\n"
     "  cutegen show relu-20260131-123456-1a2b3c --json | jq .totals\n",
     command_show},
    {"export-journal", "RUN [FILE]", 1, 2, ACCEPTS(OPTION_STATE_DIR) | ACCEPTS(OPTION_HELP),
     "write a run's record as JSON lines, to be replayed",
     "Writes every event of the run, one JSON object a line, to FILE or standard\n"
     "output. The file is all that 'cutegen run TASK --model replay:FILE' needs.\n"
     "\n"
     "examples:\n"
     "  cutegen export-journal relu-20260131-123456-1a2b3c relu.jsonl\n"
     "  cutegen export-journal relu-20260131-123456-1a2b3c | jq -r .kind\n",
     command_export_journal},
    {"tasks", "", 0, 0, ACCEPTS(OPTION_JSON) | ACCEPTS(OPTION_HELP),
     "list the tasks that come with cutegen",
     "Each line is a name that 'run' and 'check' understand.\n"
     "\n"
     "examples:\n"
     "  cutegen tasks\n"
     "  cutegen tasks --json | jq -r '.tasks[].name'\n",
     command_tasks},
};
const size_t command_count = COUNT_OF(commands);

/* The one variable of the process that is neither constant nor local: signal handlers have no
 * other way to speak. Holds the signal that asked us to stop. */
static atomic_int stop_signal;

static void on_stop_signal(int number) {
    int none = 0;
    if (!atomic_compare_exchange_strong(&stop_signal, &none, number)) {
        signal(number, SIG_DFL); // the second one: die of it once this handler returns
        raise(number);
    }
}

static void set_signals(void) {
    struct sigaction stop = {.sa_handler = on_stop_signal, .sa_flags = SA_RESTART};
    sigaction(SIGINT, &stop, NULL);
    sigaction(SIGTERM, &stop, NULL);
    // A closed pipe and a file at its size limit are errors of write(), with something to say.
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    sigaction(SIGPIPE, &ignore, NULL);
    sigaction(SIGXFSZ, &ignore, NULL);
}

/* A program started with a standard stream closed would open its journal as descriptor 1 and
 * print into it. */
static void fill_standard_descriptors(void) {
    int fd;
    do {
        fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    } while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd >= 0) close(fd);
    for (int standard = 0; standard <= STDERR_FILENO; standard++) {
        int flags = fcntl(standard, F_GETFD);
        if (flags >= 0) fcntl(standard, F_SETFD, flags & ~FD_CLOEXEC);
    }
}

/* Kernels run as the same user: they shall not read our environment, where a model's keys may be,
 * from /proc, nor look into our memory. */
static void hide_from_other_processes(void) {
    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0); // cannot fail with these arguments
}

static int exit_code_of(ErrorKind kind) {
    switch (kind) {
    case ERROR_INPUT:
        return EXIT_INPUT;
    case ERROR_STOPPED:
        return EXIT_STOPPED;
    case ERROR_INTERRUPTED:
        return atomic_load(&stop_signal) == SIGTERM ? 128 + SIGTERM : 128 + SIGINT;
    case ERROR_NONE:
    case ERROR_HARNESS:
        break;
    }
    return EXIT_HARNESS;
}

static const char *error_kind_name(ErrorKind kind) {
    switch (kind) {
    case ERROR_INPUT:
        return "input";
    case ERROR_STOPPED:
        return "stopped";
    case ERROR_INTERRUPTED:
        return "interrupted";
    case ERROR_NONE:
    case ERROR_HARNESS:
        break;
    }
    return "harness";
}

static int fail(const Error *err, bool json) {
    fflush(stdout);
    fprintf(stderr, "%s\n", err->message);
    if (json) {
        const char *message = text_is_utf8(err->message, strlen(err->message))
                                  ? err->message
                                  : "the message is not valid UTF-8; see standard error";
        print_json(json_pack("{s:i, s:{s:s, s:s}}", "schema", 1, "error", "kind",
                             error_kind_name(err->kind), "message", message));
    }
    return exit_code_of(err->kind);
}

/* A reader that went away (`cutegen show RUN | head`) is its own choice; output that could not be
 * written for another reason is not what was asked for. */
static int close_output(int code) {
    bool failed = ferror(stdout) != 0;
    errno = 0;
    failed |= fclose(stdout) != 0;
    if (failed && errno != EPIPE && errno != 0) {
        fprintf(stderr, "cannot write to standard output: %s\n", strerror(errno));
        return EXIT_HARNESS;
    }
    return code;
}

static bool wants_json(int argc, char **argv) {
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
        if (strcmp(argv[i], "--json") == 0) return true;
    }
    return false;
}

static const Command *find_command(const char *name, Error *err) {
    const char *names[COUNT_OF(commands)];
    for (size_t i = 0; i < command_count; i++) {
        if (strcmp(commands[i].name, name) == 0) return &commands[i];
        names[i] = commands[i].name;
    }
    const char *nearest = text_nearest(name, names, command_count);
    if (nearest) {
        error_input(err, "cutegen: unknown command '%s'; did you mean %s?", name, nearest);
    } else {
        error_input(err, "cutegen: unknown command '%s'; see cutegen --help", name);
    }
    return NULL;
}

static int dispatch(Arena *arena, int argc, char **argv) {
    Error err = {0};
    bool json = wants_json(argc, argv);
    if (argc < 2) {
        error_input(&err, "usage: cutegen COMMAND [OPTION]... [ARGUMENT]...; see cutegen --help");
        return fail(&err, json);
    }
    const char *name = argv[1];
    if (strcmp(name, "--version") == 0) {
        puts("cutegen " CUTEGEN_VERSION);
        return EXIT_PASS;
    }
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0) {
        print_usage(stdout);
        return EXIT_PASS;
    }
    const Command *command = find_command(name, &err);
    Options options;
    if (!command || !options_parse(arena, command, argc - 2, argv + 2, &options, &err)) {
        return fail(&err, json);
    }
    if (options.help) {
        print_command_help(stdout, command);
        return EXIT_PASS;
    }
    int code = EXIT_HARNESS;
    if (!command->run(arena, &options, &stop_signal, &code, &err)) return fail(&err, json);
    return code;
}

int main(int argc, char **argv) {
    hide_from_other_processes();
    fill_standard_descriptors();
    set_signals();
    Arena *arena = arena_new();
    int code = dispatch(arena, argc, argv);
    arena_free(arena);
    return close_output(code);
}
