/* cases.c - all cases: those of cases.def, then one for each spelling of each row of the
 * simulator's table whose operands follow from the row's types.
 */
#include "golden/golden.h"
#include "sim/decode.h"
#include <stdlib.h>
#include <string.h>

typedef struct {
    GoldenCases list;
    size_t capacity;
    const GoldenCase *shape; // what the spellings of one pattern share
    const char *body, *tag;
    int row;
} Builder;

static void fail_without_memory(const void *pointer) {
    if (!pointer) abort();
}

/* `body` with the opcode in place of $. */
static char *with_opcode(const char *body, const char *opcode) {
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    fail_without_memory(out);
    for (; *body; body++)
        if (*body == '$')
            fputs(opcode, out);
        else
            fputc(*body, out);
    if (fclose(out)) abort();
    return text;
}

static bool has_name(const GoldenCases *list, const char *name) {
    for (size_t i = 0; i < list->count; i++)
        if (!strcmp(list->all[i].name, name)) return true;
    return false;
}

/* As many as there are, and one more where 64-bit results would not be aligned without it. */
static uint32_t words_of(const char *results) {
    uint32_t words = 0;
    for (const char *at = results; *at; at += strcspn(at, " "), at += *at == ' ')
        words += *at == 'l' ? 2 : 1;
    return strchr(results, 'l') ? (words + 1) / 2 * 2 : words;
}

static void add(Builder *b, const char *opcode) {
    GoldenCase c = *b->shape;
    int length = snprintf(c.name, sizeof c.name, "%s%s%s", opcode, *b->tag ? "/" : "", b->tag);
    if (length >= (int)sizeof c.name) abort();
    if (has_name(&b->list, c.name)) return;
    c.body = with_opcode(b->body, opcode);
    c.approximate = strstr(opcode, ".approx") || !strncmp(opcode, "div.full", 8);
    size_t sources = strlen(c.sources);
    c.lanes = c.approximate || (sources == 1 && strchr("fdbg", c.sources[0])) ? 1024
              : sources == 1                                                  ? 512
                                                                              : GOLDEN_MAX_LANES;
    c.words = words_of(c.results);
    c.row = b->row;
    if (b->list.count == b->capacity) {
        b->capacity = b->capacity ? 2 * b->capacity : 256;
        b->list.all = realloc(b->list.all, b->capacity * sizeof *b->list.all);
        fail_without_memory(b->list.all);
    }
    b->list.all[b->list.count++] = c;
}

/* Writes out a pattern, see instructions.def. */
static void add_spellings(Builder *b, const char *pattern, const char *so_far) {
    size_t plain = strcspn(pattern, "{[");
    char text[192];
    if (!pattern[plain]) {
        snprintf(text, sizeof text, "%s%s", so_far, pattern);
        add(b, text);
        return;
    }
    char close = pattern[plain] == '{' ? '}' : ']';
    const char *end = strchr(pattern, close);
    if (close == '}') {
        snprintf(text, sizeof text, "%s%.*s", so_far, (int)plain, pattern);
        add_spellings(b, end + 1, text);
    }
    for (const char *choice = pattern + plain + 1; choice <= end;) {
        size_t length = strcspn(choice, close == '}' ? "|}" : "|]");
        snprintf(text, sizeof text, "%s%.*s%.*s", so_far, (int)plain, pattern, (int)length, choice);
        add_spellings(b, end + 1, text);
        choice += length + 1;
    }
}

static void by_hand(Builder *b, const char *pattern, const char *tag, const char *sources,
                    const char *results, const char *body) {
    GoldenCase shape = {0};
    snprintf(shape.sources, sizeof shape.sources, "%s", sources);
    snprintf(shape.results, sizeof shape.results, "%s", results);
    b->shape = &shape;
    b->body = body;
    b->tag = tag;
    b->row = -1;
    add_spellings(b, pattern, "");
}

/* ---- rows ----------------------------------------------------------------------------------- */

/* What an operand is like, where its width alone does not say. */
static char kind_of(uint8_t bytes, bool is_float, const char *pattern) {
    const char *last = strrchr(pattern, '.');
    bool brain = last && strstr(last, "bf16");
    if (bytes <= 2) return !is_float ? 'h' : brain ? 'g' : 'b';
    if (bytes == 4)
        return is_float || !strcmp(last, ".f32") ? 'f'
               : strstr(last, "f16x2")           ? (brain ? 'G' : 'B')
               : strstr(last, "16x2")            ? 'q'
                                                 : 'i';
    return is_float || !strcmp(last, ".f64") ? 'd' : 'l';
}

static char register_of(uint8_t bytes) {
    return bytes <= 2 ? 'h' : bytes == 4 ? 'r' : 'l';
}

static void append(char *text, size_t size, const char *part) {
    size_t length = strlen(text);
    snprintf(text + length, size - length, "%s", part);
}

/* A carry is made by adding 0 or 1 to the largest number, and seen by adding it to nothing; of
 * subtractions it is a borrow. */
static void carry_body(const Row *row, char *body, size_t size, char *sources, char *results) {
    bool uses = row->arg & 1, makes = row->arg & 2, borrow = !strncmp(row->pattern, "sub", 3);
    char line[96];
    if (uses) {
        sources[row->count] = 'c';
        snprintf(line, sizeof line,
                 borrow ? "sub.cc.u32 %%r14, 0, %%r%d;\n"
                        : "add.cc.u32 %%r14, %%r%d, 0xffffffff;\n",
                 row->count + 1);
        append(body, size, line);
    }
    append(body, size, "$ %0");
    for (int i = 1; i <= row->count; i++) {
        snprintf(line, sizeof line, ", %%%c%d", register_of(row->type_bytes[i]), i);
        append(body, size, line);
    }
    append(body, size, ";");
    if (makes) {
        append(body, size, borrow ? "\nsubc.u32 %r5, 0, 0;" : "\naddc.u32 %r5, 0, 0;");
        append(results, 48, " r5");
    }
}

static void from_row(Builder *b, int index) {
    const Row *row = &sim_rows[index];
    GoldenCase shape = {0};
    uint8_t bytes[5], count = row->count;
    char text[256] = "", body[320] = "", part[16];
    memcpy(bytes, row->type_bytes, 4);
    if (row->family == FAMILY_BFI) {
        count = 4;
        bytes[0] = bytes[1] = bytes[2] = row->arg;
        bytes[3] = bytes[4] = 4;
    } else if (row->family == FAMILY_SELECT) {
        count = 2;
        bytes[0] = bytes[1] = bytes[2] = strstr(row->pattern, "16") ? 2 : row->arg;
    } else if (row->family == FAMILY_TESTP) {
        count = 1;
        bytes[1] = row->arg;
    } else if (row->family != FAMILY_LANES && row->family != FAMILY_COMPARE &&
               row->family != FAMILY_CARRY) {
        return;
    }
    if (!*row->pattern) return;
    for (int i = 1; i <= count; i++) {
        shape.sources[i - 1] = kind_of(bytes[i], row->floats >> i & 1, row->pattern);
        snprintf(part, sizeof part, ", %%%c%d", register_of(bytes[i]), i);
        append(text, sizeof text, part);
    }
    bool predicate = row->family == FAMILY_COMPARE || row->family == FAMILY_TESTP;
    snprintf(shape.results, sizeof shape.results, "%c0", predicate ? 'p' : register_of(bytes[0]));
    if (row->family == FAMILY_CARRY) {
        carry_body(row, body, sizeof body, shape.sources, shape.results);
        b->body = body;
        char *at = strstr(body, "%0"); // the target, whose width shape.results knows
        memmove(at + 2, at + 1, strlen(at + 1) + 1);
        at[1] = shape.results[0];
    } else if (row->family == FAMILY_COMPARE) {
        bool both = bytes[1] > 2 || shape.sources[0] == 'h'; // of halves there is no second result
        append(shape.results, sizeof shape.results, both ? " p5" : "");
        snprintf(body, sizeof body, "$ %%p0%s%s;", both ? "|%p5" : "", text);
    } else if (row->family == FAMILY_SELECT) {
        append(shape.sources, sizeof shape.sources, "p");
        snprintf(body, sizeof body, "$ %%%.2s%s, %%p3;", shape.results, text);
    } else {
        snprintf(body, sizeof body, "$ %%%.2s%s;", shape.results, text);
    }
    b->shape = &shape;
    b->body = body;
    b->tag = "";
    b->row = index;
    add_spellings(b, row->pattern, "");
}

GoldenCases golden_cases(void) {
    Builder b = {0};
#define CASE(pattern, tag, sources, results, body)                                                 \
    by_hand(&b, pattern, tag, sources, results, body);
#include "golden/cases.def"
    for (int row = 0; row < ROW_COUNT; row++)
        from_row(&b, row);
    return b.list;
}

void golden_cases_free(GoldenCases *cases) {
    for (size_t i = 0; i < cases->count; i++)
        free(cases->all[i].body);
    free(cases->all);
    *cases = (GoldenCases){0};
}
