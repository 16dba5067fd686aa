/* decode_rows.c - the table of instructions as data, and finding the row of an opcode.
 *
 * A pattern such as "add{.rn}.[u32|s32]" stands for several texts. They are all written out once,
 * sorted, and looked up by bisection.
 */
#include "sim/decode.h"
#include "sim/exec_math.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SLOT(T)        (sizeof(T) > 4 ? 8 : 4)
#define IS_FLOAT_u8    0
#define IS_FLOAT_s8    0
#define IS_FLOAT_u16   0
#define IS_FLOAT_s16   0
#define IS_FLOAT_u32   0
#define IS_FLOAT_s32   0
#define IS_FLOAT_u64   0
#define IS_FLOAT_s64   0
#define IS_FLOAT_h16   1
#define IS_FLOAT_b16f  1
#define IS_FLOAT_f32   1
#define IS_FLOAT_f64   1
#define IS_SIGNED_u8   0
#define IS_SIGNED_s8   1
#define IS_SIGNED_u16  0
#define IS_SIGNED_s16  1
#define IS_SIGNED_u32  0
#define IS_SIGNED_s32  1
#define IS_SIGNED_u64  0
#define IS_SIGNED_s64  1
#define IS_SIGNED_h16  0
#define IS_SIGNED_b16f 0
#define IS_SIGNED_f32  0
#define IS_SIGNED_f64  0
#define FLOATS(D, A, B, C)                                                                         \
    (IS_FLOAT_##D | IS_FLOAT_##A << 1 | IS_FLOAT_##B << 2 | IS_FLOAT_##C << 3)

#define LANES_ROW(id, pattern, shadow, n, D, A, B, C)                                              \
    {#id,                                                                                          \
     pattern,                                                                                      \
     FAMILY_LANES,                                                                                 \
     IS_SIGNED_##D,                                                                                \
     CONTROL_NONE,                                                                                 \
     shadow,                                                                                       \
     n,                                                                                            \
     {SLOT(D), SLOT(A), SLOT(B), SLOT(C)},                                                         \
     {sizeof(D), sizeof(A), sizeof(B), sizeof(C)},                                                 \
     FLOATS(D, A, B, C)},

#define LANE1(id, pattern, D, A, expr)           LANES_ROW(id, pattern, SHADOW_ANY, 1, D, A, A, A)
#define LANE2(id, pattern, D, A, B, expr)        LANES_ROW(id, pattern, SHADOW_ANY, 2, D, A, B, B)
#define LANE3(id, pattern, D, A, B, C, expr)     LANES_ROW(id, pattern, SHADOW_ANY, 3, D, A, B, C)
#define BITS1(id, pattern, rule, D, A, expr)     LANES_ROW(id, pattern, SHADOW_##rule, 1, D, A, A, A)
#define BITS2(id, pattern, rule, D, A, B, expr)  LANES_ROW(id, pattern, SHADOW_##rule, 2, D, A, B, B)
#define BITS3(id, pattern, rule, D, A, B, C, expr)                                                  \
    LANES_ROW(id, pattern, SHADOW_##rule, 3, D, A, B, C)
#define ROUND1(id, pattern, D, A, mode, expr)    LANES_ROW(id, pattern, SHADOW_ANY, 1, D, A, A, A)
#define ROUND2(id, pattern, D, A, B, mode, expr) LANES_ROW(id, pattern, SHADOW_ANY, 2, D, A, B, B)
#define ROUND3(id, pattern, D, A, B, C, mode, expr)                                                \
    LANES_ROW(id, pattern, SHADOW_ANY, 3, D, A, B, C)
#define COMPARE(id, pattern, A, expr)                                                              \
    {#id,                                                                                          \
     pattern,                                                                                      \
     FAMILY_COMPARE,                                                                               \
     0,                                                                                            \
     CONTROL_NONE,                                                                                 \
     SHADOW_COMPARE,                                                                               \
     2,                                                                                            \
     {0, SLOT(A), SLOT(A), 0},                                                                     \
     {0, sizeof(A), sizeof(A), 0},                                                                 \
     FLOATS(u32, A, A, u32)},
#define SETREG(id, pattern, D, A, expr) LANES_ROW(id, pattern, SHADOW_ANY, 2, D, A, A, A)
#define CARRY2(id, pattern, T, uses, makes, expr)                                                  \
    {#id,                                                                                          \
     pattern,                                                                                      \
     FAMILY_CARRY,                                                                                 \
     (uses) | (makes) << 1,                                                                        \
     CONTROL_NONE,                                                                                 \
     SHADOW_CARRY,                                                                                 \
     2,                                                                                            \
     {sizeof(T), sizeof(T), sizeof(T), sizeof(T)},                                                 \
     {sizeof(T), sizeof(T), sizeof(T), sizeof(T)},                                                 \
     0},
#define CARRY3(id, pattern, T, uses, makes, expr)                                                  \
    {#id,                                                                                          \
     pattern,                                                                                      \
     FAMILY_CARRY,                                                                                 \
     (uses) | (makes) << 1,                                                                        \
     CONTROL_NONE,                                                                                 \
     SHADOW_CARRY,                                                                                 \
     3,                                                                                            \
     {sizeof(T), sizeof(T), sizeof(T), sizeof(T)},                                                 \
     {sizeof(T), sizeof(T), sizeof(T), sizeof(T)},                                                 \
     0},
#define OTHER(id, pattern, family, arg, control)                                                   \
    {#id, pattern, FAMILY_##family, arg, CONTROL_##control, SHADOW_OWN, 0, {0}, {0}, 0},

#define ROWS_ALL
const Row sim_rows[ROW_COUNT] = {
#include "sim/instructions.def"
};

typedef struct {
    char *text;
    uint16_t row;
} Spelling;

static struct {
    pthread_once_t once;
    Spelling *all;
    uint32_t count, capacity;
} spellings = {.once = PTHREAD_ONCE_INIT};

/* Writes out `pattern` from `at`; `text` holds `length` characters so far. */
static void spell(const char *pattern, char *text, size_t length, uint16_t row) {
    while (*pattern && *pattern != '{' && *pattern != '[' && length < 95)
        text[length++] = *pattern++;
    if (!*pattern) {
        text[length] = 0;
        spellings.all =
            ptx_grow(spellings.all, spellings.count, &spellings.capacity, sizeof *spellings.all);
        spellings.all[spellings.count++] = (Spelling){strdup(text), row};
        if (!spellings.all[spellings.count - 1].text) abort();
        return;
    }
    char close = *pattern == '{' ? '}' : ']';
    const char *end = strchr(pattern, close);
    if (*pattern == '{') spell(end + 1, text, length, row); // left out
    for (const char *choice = pattern + 1; choice <= end;) {
        size_t size = strcspn(choice, close == '}' ? "|}" : "|]");
        memcpy(text + length, choice, size);
        spell(end + 1, text, length + size, row);
        choice += size + 1;
    }
}

static int compare_spellings(const void *a, const void *b) {
    return strcmp(((const Spelling *)a)->text, ((const Spelling *)b)->text);
}

static void spell_all(void) {
    char text[256];
    for (uint32_t row = 0; row < ROW_COUNT; row++)
        if (*sim_rows[row].pattern) spell(sim_rows[row].pattern, text, 0, (uint16_t)row);
    qsort(spellings.all, spellings.count, sizeof *spellings.all, compare_spellings);
}

int row_find(const char *text) {
    pthread_once(&spellings.once, spell_all);
    Spelling key = {(char *)(uintptr_t)text, 0};
    Spelling *found = bsearch(&key, spellings.all, spellings.count, sizeof key, compare_spellings);
    return found ? found->row : -1;
}

bool opcode_split(const char *text, Opcode *opcode) {
    size_t length = strlen(text);
    opcode->count = 0;
    if (length >= sizeof opcode->text) return false;
    memcpy(opcode->text, text, length + 1);
    for (char *at = opcode->text; at;) {
        if (opcode->count == OPCODE_PARTS) return false;
        opcode->part[opcode->count++] = at;
        at = strchr(at, '.');
        if (at) *at++ = 0;
    }
    return true;
}

bool opcode_has(const Opcode *opcode, const char *part) {
    for (uint32_t i = 1; i < opcode->count; i++)
        if (!strcmp(opcode->part[i], part)) return true;
    return false;
}

/* Opcodes whose modifiers are their family's business. */
static const char *const by_first_part[] = {
    "ld",
    "ldu",
    "st",
    "atom",
    "red",
    "isspacep",
    "membar",
    "fence",
    "prefetch",
    "prefetchu",
    "applypriority",
    "discard",
    "createpolicy",
    "griddepcontrol",
    "setmaxnreg",
    "pmevent",
};

static void append(char *text, size_t size, const char *part) {
    size_t length = strlen(text);
    if (length + 1 < size) snprintf(text + length, size - length, "%s%s", length ? "." : "", part);
}

int row_for(const char *text, const Opcode *opcode) {
    const char *first = opcode->part[0];
    char key[192] = "";
    for (size_t i = 0; i < sizeof by_first_part / sizeof by_first_part[0]; i++)
        if (!strcmp(first, by_first_part[i])) return row_find(first);
    if (!strcmp(first, "cvta")) return row_find(opcode_has(opcode, "to") ? "cvta.to" : "cvta");
    if (!strcmp(first, "cp") && opcode->count > 2 && !strcmp(opcode->part[1], "async")) {
        const char *second = opcode->part[2];
        if (!strcmp(second, "ca") || !strcmp(second, "cg")) return row_find("cp.async");
        return row_find(text);
    }
    if (!strcmp(first, "setp")) { // boolean operator left out
        for (uint32_t i = 0; i < opcode->count; i++)
            if (strcmp(opcode->part[i], "and") && strcmp(opcode->part[i], "or") &&
                strcmp(opcode->part[i], "xor"))
                append(key, sizeof key, opcode->part[i]);
        return row_find(key);
    }
    if (!strcmp(first, "barrier") || !strcmp(first, "bar")) {
        append(key, sizeof key, "bar"); // barrier{.cta}.sync{.aligned} is bar.sync
        for (uint32_t i = 1; i < opcode->count; i++)
            if (strcmp(opcode->part[i], "cta") && strcmp(opcode->part[i], "aligned"))
                append(key, sizeof key, opcode->part[i]);
        return row_find(key);
    }
    if (!strcmp(first, "vote") && opcode->count == 4) { // ptxas takes .sync and mode in any order
        bool sync_first = !strcmp(opcode->part[1], "sync");
        snprintf(key, sizeof key, "vote.%.30s.%.30s", opcode->part[sync_first ? 1 : 2],
                 opcode->part[sync_first ? 2 : 1]);
        return row_find(key);
    }
    return row_find(text);
}
