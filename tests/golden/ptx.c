/* ptx.c - cases as a PTX module, a kernel each. */
#include "golden/golden.h"
#include <stdlib.h>
#include <string.h>

/* How an operand of a kind is loaded. */
static void load(FILE *out, char kind, size_t number) {
    size_t offset = 8 * (number - 1);
    if (strchr("hbg", kind))
        fprintf(out, "ld.global.b16 %%h%zu, [%%l10+%zu];\n", number, offset);
    else if (strchr("ldN", kind))
        fprintf(out, "ld.global.b64 %%l%zu, [%%l10+%zu];\n", number, offset);
    else if (strchr("pvV", kind))
        fprintf(out, "ld.global.b32 %%r15, [%%l10+%zu];\nsetp.ne.u32 %%p%zu, %%r15, 0;\n", offset,
                number);
    else
        fprintf(out, "ld.global.b32 %%r%zu, [%%l10+%zu];\n", number, offset);
}

static void store(FILE *out, const char *results) {
    unsigned offset = 0;
    for (const char *at = results; *at; at += strcspn(at, " "), at += *at == ' ') {
        if (*at == 'p')
            fprintf(out, "selp.u32 %%r15, 1, 0, %%%.2s;\nst.global.b32 [%%l11+%u], %%r15;\n", at,
                    offset);
        else
            fprintf(out, "st.global.b%d [%%l11+%u], %%%.2s;\n",
                    *at == 'h'   ? 16
                    : *at == 'r' ? 32
                                 : 64,
                    offset, at);
        offset += *at == 'l' ? 8 : 4;
    }
}

static void kernel(FILE *out, const GoldenCase *c, size_t index) {
    fprintf(out,
            "// %s\n.visible .entry k%zu(.param .u64 in, .param .u64 out)\n{\n"
            ".reg .pred %%p<8>;\n.reg .b16 %%h<8>;\n.reg .b32 %%r<16>;\n.reg .b64 %%l<12>;\n",
            c->name, index);
    bool shared = strstr(c->body, "%r12");
    if (shared) fprintf(out, ".shared .align 16 .b8 own_shared[%d];\n", 32 * GOLDEN_BLOCK);
    fprintf(out,
            "ld.param.u64 %%l8, [in];\nld.param.u64 %%l9, [out];\nmov.u32 %%r8, %%ctaid.x;\n"
            "mov.u32 %%r10, %%tid.x;\nmov.u32 %%r13, %%laneid;\n"
            "mad.lo.u32 %%r11, %%r8, %d, %%r10;\nmad.wide.u32 %%l10, %%r11, 32, %%l8;\n"
            "mad.wide.u32 %%l11, %%r11, %u, %%l9;\n",
            GOLDEN_BLOCK, 4 * c->words);
    if (shared) fprintf(out, "mov.u32 %%r12, own_shared;\nmad.lo.u32 %%r12, %%r10, 32, %%r12;\n");
    for (size_t i = 0; c->sources[i]; i++)
        load(out, c->sources[i], i + 1);
    fprintf(out, "%s\n", c->body);
    store(out, c->results);
    fputs("ret;\n}\n", out);
}

bool golden_is_named(const char *list, const char *name) {
    size_t length = strlen(name);
    for (const char *line = list; line && *line; line += strcspn(line, "\n"), line += *line == '\n')
        if (!strncmp(line, name, length) && line[length] == '\t') return true;
    return false;
}

char *golden_ptx(const GoldenCases *cases, const char *refused) {
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    if (!out) abort();
    fputs(".version 9.0\n.target sm_90a\n.address_size 64\n", out);
    for (size_t i = 0; i < cases->count; i++)
        if (!golden_is_named(refused, cases->all[i].name)) kernel(out, &cases->all[i], i);
    if (fclose(out)) abort();
    return text;
}
