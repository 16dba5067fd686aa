/* figures.c - registers, shared memory, spills and stack of each kernel, from `ptxas -v`.
 *
 * ptxas prints a few lines for each entry function:
 *     ptxas info    : Compiling entry function '_Z6kernelPKfPf' for 'sm_90a'
 *     ptxas info    : Function properties for _Z6kernelPKfPf
 *         0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
 *     ptxas info    : Used 10 registers, used 1 barriers, 16384 bytes smem
 * Function properties are also printed for device functions that were not inlined; what counts
 * is the entry that was named last.
 */
#include "build/figures.h"

#include "build/diagnostics.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_KERNELS    64
#define MAX_NAME_BYTES 160

/* The number before `unit` in a line such as "0 bytes stack frame, 8 bytes spill stores". */
static int number_before(const char *line, const char *line_end, const char *unit) {
    const char *at = memmem(line, (size_t)(line_end - line), unit, strlen(unit));
    if (!at) return 0;
    while (at > line && at[-1] == ' ')
        at--;
    const char *start = at;
    while (start > line && start[-1] >= '0' && start[-1] <= '9')
        start--;
    return start == at ? 0 : atoi(start);
}

static const char *after(const char *line, const char *line_end, const char *prefix) {
    size_t bytes = strlen(prefix);
    return (size_t)(line_end - line) > bytes && memcmp(line, prefix, bytes) == 0 ? line + bytes
                                                                                 : NULL;
}

const KernelFigures *figures_parse(Arena *arena, const char *log, int *count) {
    KernelFigures *items = arena_array_of(arena, KernelFigures, MAX_KERNELS);
    const char *names[MAX_KERNELS];
    int kernels = 0;
    for (const char *line = log; *line;) {
        const char *end = line + strcspn(line, "\n");
        const char *entry = after(line, end, "ptxas info    : Compiling entry function '");
        KernelFigures *last = kernels ? &items[kernels - 1] : NULL;
        if (entry && kernels < MAX_KERNELS) {
            names[kernels++] = arena_string_n(arena, entry, strcspn(entry, "'\n"));
        } else if (last && after(line, end, "ptxas info    : Used ")) {
            last->registers = number_before(line, end, "registers");
            last->shared_bytes = number_before(line, end, "bytes smem");
        } else if (last && after(line, end, "    ") &&
                   memmem(line, (size_t)(end - line), "bytes stack frame", 17)) {
            last->stack_bytes = number_before(line, end, "bytes stack frame");
            last->spill_store_bytes = number_before(line, end, "bytes spill stores");
            last->spill_load_bytes = number_before(line, end, "bytes spill loads");
        }
        line = *end ? end + 1 : end;
    }
    demangle_names(arena, names, kernels);
    for (int i = 0; i < kernels; i++)
        items[i].kernel = names[i];
    *count = kernels;
    return items;
}

/* "void relu<cute::C<1>>(float const*, float*)" gives "relu<_1>": the return type and parameters
 * of a template instance say nothing that its name does not. */
static char *kernel_name(Arena *arena, const char *demangled) {
    char *text = cute_notation(arena, demangled, 4 * MAX_NAME_BYTES);
    int depth = 0;
    size_t end = strlen(text);
    for (size_t i = 0; text[i]; i++) {
        if (text[i] == '<') depth++;
        if (text[i] == '>' && depth > 0) depth--;
        if (text[i] == '(' && depth == 0 && i > 0 && strncmp(text + i, "(anonymous", 10) != 0) {
            end = i;
            break;
        }
    }
    text[end] = '\0';
    char *name = text_starts_with(text, "void ") ? text + strlen("void ") : text;
    return cute_notation(arena, name, MAX_NAME_BYTES);
}

/* A symbol may be named anything: extern "C" void f() asm("\xff\n"). */
static char *printable(Arena *arena, const char *name) {
    char *text = clean_text(arena, name);
    for (char *c = text; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 0x7F) *c = '?';
    return text;
}

void demangle_names(Arena *arena, const char **names, int count) {
    if (count == 0) return;
    Buf input = {0};
    for (int i = 0; i < count; i++) {
        names[i] = printable(arena, names[i]);
        buf_printf(&input, "%s\n", names[i]);
    }
    const char *argv[] = {"c++filt", NULL};
    ProcessOptions options = {
        .argv = argv, .input = input.data, .input_bytes = input.length, .timeout_s = 60};
    ProcessResult result;
    Error ignored;
    if (process_run(arena, &options, &result, &ignored) && result.exit_code == 0) {
        char *line = result.out;
        for (int i = 0; i < count && *line; i++) {
            size_t bytes = strcspn(line, "\n");
            names[i] = kernel_name(arena, arena_string_n(arena, line, bytes));
            line += bytes + (line[bytes] == '\n');
        }
    }
    buf_free(&input);
}
