/* dryrun.c - reads the steps that nvcc would run.
 *
 * `nvcc --dryrun` prints assignments (`#$ PATH=…`) and then shell commands (`#$ cicc …`). The
 * commands are told apart by what they read and write, never by their position: a file that
 * cudafe++ reads was preprocessed for the host, one that cicc reads for the device. The device
 * link of a build without -rdc links nothing into an empty image, so its three steps and their
 * object are left out. Any command that has no part to play means that this nvcc is not the one
 * we know, and plain nvcc has to do the work.
 */
#include "build/nvcc.h"

#include <ctype.h>
#include <string.h>

#define MAX_STEPS     32
#define MAX_VARIABLES 64
#define MAX_WORDS     256

typedef struct {
    const char *name, *value;
} Variable;

typedef struct {
    Arena *arena;
    Variable variables[MAX_VARIABLES];
    int variable_count;
    Step steps[MAX_STEPS];
    int step_count;
    const char *why; // first thing that was not as expected
} Reader;

static bool unexpected(Reader *reader, const char *why) {
    if (!reader->why) reader->why = why;
    return false;
}

static const char *variable_value(const Reader *reader, const char *name, size_t length) {
    for (int i = reader->variable_count - 1; i >= 0; i--) {
        const Variable *variable = &reader->variables[i];
        if (strlen(variable->name) == length && memcmp(variable->name, name, length) == 0)
            return variable->value;
    }
    return NULL;
}

static size_t name_length(const char *text) {
    size_t length = 0;
    while (isalnum((unsigned char)text[length]) || text[length] == '_')
        length++;
    return isdigit((unsigned char)text[0]) ? 0 : length;
}

/* Splits one line as a shell would, as far as nvcc uses a shell: double quotes, backslashes
 * before quotes, $NAME. Anything more (pipes, back quotes, substitution) is not expected. */
static bool split_words(Reader *reader, const char *at, size_t bytes, Step *step) {
    const char *end = at + bytes;
    const char *words[MAX_WORDS];
    int count = 0;
    while (at < end) {
        while (at < end && isspace((unsigned char)*at))
            at++;
        if (at == end) break;
        Buf word = {0};
        buf_puts(&word, "");
        bool quoted = false, good = true;
        for (; good && at < end && (quoted || !isspace((unsigned char)*at)); at++) {
            if (*at == '"') {
                quoted = !quoted;
            } else if (*at == '\\' && at + 1 < end) {
                buf_append(&word, ++at, 1);
            } else if (*at == '$') {
                size_t length = name_length(at + 1);
                const char *value = length ? variable_value(reader, at + 1, length) : NULL;
                good = value != NULL;
                if (good) buf_puts(&word, value);
                at += length;
            } else if (!quoted && strchr("|&;<>`()'", *at)) {
                good = false;
            } else {
                buf_append(&word, at, 1);
            }
        }
        char *text = buf_take(reader->arena, &word);
        if (!good || quoted) return unexpected(reader, "a command needs a real shell");
        if (count + 1 == MAX_WORDS) return unexpected(reader, "a command is very long");
        words[count++] = text;
    }
    step->argc = count;
    step->argv = arena_array_of(reader->arena, const char *, (size_t)count + 1);
    memcpy(step->argv, words, sizeof *words * (size_t)count);
    return true;
}

static bool read_line(Reader *reader, const char *line, size_t bytes) {
    size_t name = name_length(line);
    if (name > 0 && name < bytes && line[name] == '=') {
        if (reader->variable_count == MAX_VARIABLES) return unexpected(reader, "many variables");
        Variable *variable = &reader->variables[reader->variable_count++];
        variable->name = arena_string_n(reader->arena, line, name);
        variable->value = arena_string_n(reader->arena, line + name + 1, bytes - name - 1);
        return true;
    }
    if (reader->step_count == MAX_STEPS) return unexpected(reader, "many commands");
    Step *step = &reader->steps[reader->step_count];
    if (!split_words(reader, line, bytes, step)) return false;
    if (step->argc == 0 || strcmp(path_base(step->argv[0]), "rm") == 0) return true;
    reader->step_count++;
    return true;
}

/* ---- what a command reads and writes ------------------------------------------------------ */

static bool program_is(const Step *step, const char *name) {
    return strcmp(path_base(step->argv[0]), name) == 0;
}

static bool has_word(const Step *step, const char *word) {
    for (int i = 1; i < step->argc; i++)
        if (strcmp(step->argv[i], word) == 0) return true;
    return false;
}

/* The word after `option`, or what follows "option=". */
static const char *option_value(const Step *step, const char *option) {
    size_t length = strlen(option);
    for (int i = 1; i < step->argc; i++) {
        const char *word = step->argv[i];
        if (strcmp(word, option) == 0 && i + 1 < step->argc) return step->argv[i + 1];
        if (strncmp(word, option, length) == 0 && word[length] == '=') return word + length + 1;
    }
    return NULL;
}

static const char *word_ending(const Step *step, const char *suffix) {
    for (int i = step->argc - 1; i > 0; i--)
        if (text_ends_with(step->argv[i], suffix) && strcmp(step->argv[i - 1], "-o") != 0)
            return step->argv[i];
    return NULL;
}

static void remove_word(Step *step, const char *word) {
    int kept = 0;
    for (int i = 0; i < step->argc; i++)
        if (i == 0 || strcmp(step->argv[i], word) != 0) step->argv[kept++] = step->argv[i];
    step->argc = kept;
    step->argv[kept] = NULL;
}

/* Moves the only remaining step that `matches` into `place`. */
typedef bool StepTest(const Step *step, const void *context);

static bool take_step(Reader *reader, StepTest *matches, const void *context, Step *place,
                      const char *what) {
    for (int i = 0; i < reader->step_count; i++) {
        if (reader->steps[i].argc == 0 || !matches(&reader->steps[i], context)) continue;
        *place = reader->steps[i];
        reader->steps[i].argc = 0;
        return true;
    }
    return unexpected(reader, what);
}

static bool runs_program(const Step *step, const void *name) {
    return program_is(step, name);
}

static bool preprocesses_into(const Step *step, const void *path) {
    const char *output = option_value(step, "-o");
    return has_word(step, "-E") && output && path && strcmp(output, path) == 0;
}

static bool embeds_fatbinary(const Step *step, const void *unused) {
    (void)unused;
    return program_is(step, "fatbinary") && !has_word(step, "-link") &&
           option_value(step, "--embedded-fatbin");
}

static bool compiles(const Step *step, const void *path) {
    return has_word(step, "-c") && path && has_word(step, path) && option_value(step, "-o");
}

static bool links_shared(const Step *step, const void *unused) {
    (void)unused;
    return has_word(step, "-shared") && !has_word(step, "-c") && option_value(step, "-o");
}

static bool is_device_link(const Step *step, const void *unused) {
    (void)unused;
    return program_is(step, "nvlink") ||
           (program_is(step, "fatbinary") && has_word(step, "-link")) ||
           (has_word(step, "-c") && word_ending(step, "link.stub"));
}

static bool drop_device_link(Reader *reader, Plan *plan) {
    for (int i = 0; i < reader->step_count; i++) {
        Step *step = &reader->steps[i];
        if (step->argc == 0 || !is_device_link(step, NULL)) continue;
        const char *output = option_value(step, "-o");
        if (output && text_ends_with(output, ".o")) remove_word(&plan->link, output);
        step->argc = 0;
    }
    return true;
}

static void collect_environment(Reader *reader, Plan *plan) {
    static const char *const kPassed[] = {"PATH", "LD_LIBRARY_PATH", "CICC_PATH", "TOP",
                                          "NVVMIR_LIBRARY_DIR"};
    plan->env = arena_array_of(reader->arena, const char *, COUNT_OF(kPassed) + 1);
    int count = 0;
    for (size_t i = 0; i < COUNT_OF(kPassed); i++) {
        const char *value = variable_value(reader, kPassed[i], strlen(kPassed[i]));
        if (value) plan->env[count++] = arena_printf(reader->arena, "%s=%s", kPassed[i], value);
    }
    plan->path = variable_value(reader, "PATH", strlen("PATH"));
}

static bool assign_parts(Reader *reader, Plan *plan) {
    if (!take_step(reader, runs_program, "cudafe++", &plan->cudafe, "no cudafe++") ||
        !take_step(reader, runs_program, "cicc", &plan->cicc, "no cicc") ||
        !take_step(reader, runs_program, "ptxas", &plan->ptxas, "no ptxas") ||
        !take_step(reader, embeds_fatbinary, NULL, &plan->fatbinary, "no fatbinary"))
        return false;
    plan->host_ii = word_ending(&plan->cudafe, ".ii");
    plan->device_ii = word_ending(&plan->cicc, ".ii");
    plan->stub = option_value(&plan->cicc, "--gen_c_file_name");
    plan->ptx = option_value(&plan->cicc, "-o");
    const char *host_cpp = option_value(&plan->cudafe, "--gen_c_file_name");
    if (!take_step(reader, preprocesses_into, plan->host_ii, &plan->preprocess_host,
                   "nothing preprocesses for the host") ||
        !take_step(reader, preprocesses_into, plan->device_ii, &plan->preprocess_device,
                   "nothing preprocesses for the device") ||
        !take_step(reader, compiles, host_cpp, &plan->compile, "nothing compiles the host side") ||
        !take_step(reader, links_shared, NULL, &plan->link, "no link step"))
        return false;
    drop_device_link(reader, plan);
    for (int i = 0; i < reader->step_count; i++)
        if (reader->steps[i].argc > 0) return unexpected(reader, "a command of unknown purpose");

    const char *host_id = option_value(&plan->cudafe, "--module_id_file_name");
    plan->module_id = option_value(&plan->cicc, "--module_id_file_name");
    if (!plan->stub || !plan->ptx || !host_id || !plan->module_id ||
        strcmp(host_id, plan->module_id) != 0)
        return unexpected(reader, "the passes do not share a module id");
    // Whichever pass nvcc runs first makes up the id.
    if (has_word(&plan->cudafe, "--gen_module_id_file") ==
        has_word(&plan->cicc, "--gen_module_id_file"))
        return unexpected(reader, "not one of the passes writes the module id");
    remove_word(&plan->cudafe, "--gen_module_id_file");
    remove_word(&plan->cicc, "--gen_module_id_file");
    return true;
}

bool plan_parse(Arena *arena, const char *dryrun, Plan *plan, const char **why) {
    *plan = (Plan){0};
    Reader reader = {.arena = arena};
    bool good = true;
    for (const char *line = dryrun; good && *line;) {
        size_t bytes = strcspn(line, "\n");
        if (bytes > 3 && memcmp(line, "#$ ", 3) == 0)
            good = read_line(&reader, line + 3, bytes - 3);
        line += bytes + (line[bytes] == '\n');
    }
    if (good) {
        good = assign_parts(&reader, plan);
        collect_environment(&reader, plan);
        if (good && !plan->path) good = unexpected(&reader, "no PATH");
    }
    *why = reader.why;
    return good;
}
