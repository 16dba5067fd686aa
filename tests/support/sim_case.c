/* sim_case.c - one instruction, run with all lanes active and with every other one. */
#include "support/sim_case.h"

#include "support/sim_ptx.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

bool case_covered[ROW_COUNT];

/* Operands by letter: h 16, i 32, l 64 bits, p predicate, n an immediate; first the target. */
static void operand_text(char *out, char letter, int index, uint64_t value) {
    if (letter == 'n')
        sprintf(out, "0x%llx", (unsigned long long)value);
    else
        sprintf(out, "%%%c%d", letter == 'i' ? 'r' : letter, index);
}

static char *case_text(const char *opcode, const char *operands, const uint64_t *values) {
    char body[4096] = "ld.param.u64 %l50, [p];\nmov.u32 %r50, %laneid;\n"
                      "mad.wide.u32 %l51, %r50, 64, %l50;\nand.b32 %r51, %r50, 1;\n"
                      "setp.eq.u32 %p15, %r51, 0;\n";
    char list[256] = "", name[64];
    size_t count = strlen(operands);
    for (size_t i = 1; i < count; i++) {
        char line[256] = "";
        int at = (int)i + 1;
        size_t offset = 8 * (i - 1);
        if (operands[i] == 'h')
            sprintf(line, "ld.global.b16 %%h%d, [%%l51+%zu];\n", at, offset);
        else if (operands[i] == 'i')
            sprintf(line, "ld.global.b32 %%r%d, [%%l51+%zu];\n", at, offset);
        else if (operands[i] == 'l')
            sprintf(line, "ld.global.b64 %%l%d, [%%l51+%zu];\n", at, offset);
        else if (operands[i] == 'p')
            sprintf(line, "ld.global.b32 %%r60, [%%l51+%zu];\nsetp.ne.u32 %%p%d, %%r60, 0;\n",
                    offset, at);
        strcat(body, line);
        operand_text(name, operands[i], at, values[i - 1]);
        strcat(list, ", ");
        strcat(list, name);
    }
    char d = operands[0] == 'i' ? 'r' : operands[0];
    char rest[1024];
    const char *set = d == 'p' ? "setp.eq.u32 %p1, 0, 0" : d == 'h' ? "mov.b16 %h1, 0x5a5a"
                      : d == 'r' ? "mov.b32 %r1, 0x5a5a5a5a" : "mov.b64 %l1, 0x5a5a5a5a5a5a5a5a";
    sprintf(rest, "%s;\n%s %%%c0%s;\n@%%p15 %s %%%c1%s;\n", set, opcode, d, list, opcode, d, list);
    strcat(body, rest);
    if (d == 'p')
        strcat(body, "selp.u32 %r0, 1, 0, %p0;\nselp.u32 %r1, 1, 0, %p1;\n");
    const char *store = d == 'h' ? "st.global.b16 [%l51+40], %h0;\nst.global.b16 [%l51+48], %h1;\n"
                        : d == 'l' ? "st.global.b64 [%l51+40], %l0;\nst.global.b64 [%l51+48], %l1;\n"
                                   : "st.global.b32 [%l51+40], %r0;\nst.global.b32 [%l51+48], %r1;\n";
    strcat(body, store);
    return ptx_around(body);
}

static void note_row(const char *opcode) {
    Opcode parts;
    assert_true(opcode_split(opcode, &parts));
    int row = row_for(opcode, &parts);
    if (row < 0)
        fail_msg("no row for '%s'", opcode);
    case_covered[row] = true;
}

uint64_t case_run(const char *opcode, const char *operands, const uint64_t *values) {
    note_row(opcode);
    uint64_t data[32][8] = {0};
    size_t sources = strlen(operands) - 1;
    for (int lane = 0; lane < 32; lane++)
        memcpy(data[lane], values, sources * sizeof *values);
    void *memory = device_copy(data, sizeof data, "data");
    char *text = case_text(opcode, operands, values);
    PtxRun run = ptx_run(text, "k", &(PtxLaunch){.block = {32}, .params = &memory, .param_bytes = 8,
                                                 .options = {1, 1, 0, 1}});
    if (run.status != EXEC_OK || run.report_count)
        fail_msg("%s: status %d, %s %s", opcode, run.status, run.message,
                 run.report_count ? run.reports[0].message : "");
    memcpy(data, memory, sizeof data);
    memory_free(memory);
    free(text);
    uint64_t untouched = operands[0] == 'p'   ? 1
                         : operands[0] == 'h' ? 0x5a5a
                         : operands[0] == 'i' ? 0x5a5a5a5a
                                              : 0x5a5a5a5a5a5a5a5a;
    for (int lane = 0; lane < 32; lane++) {
        if (data[lane][5] != data[0][5])
            fail_msg("%s: lane %d differs", opcode, lane);
        if (data[lane][6] != (lane % 2 ? untouched : data[0][5]))
            fail_msg("%s under a predicate: lane %d has %llx", opcode, lane,
                     (unsigned long long)data[lane][6]);
    }
    return data[0][5];
}

void expect(const char *opcode, const char *operands, uint64_t expected, uint64_t a,
            uint64_t b, uint64_t c, uint64_t e) {
    uint64_t values[4] = {a, b, c, e};
    uint64_t got = case_run(opcode, operands, values);
    if (got != expected)
        fail_msg("%s %llx, %llx, %llx, %llx: got %llx, expected %llx", opcode,
                 (unsigned long long)a, (unsigned long long)b, (unsigned long long)c,
                 (unsigned long long)e, (unsigned long long)got, (unsigned long long)expected);
}

void expect_all(const Case *cases, size_t count) {
    for (size_t i = 0; i < count; i++)
        expect(cases[i].opcode, cases[i].operands, cases[i].expected, cases[i].a, cases[i].b,
               cases[i].c, cases[i].e);
}
