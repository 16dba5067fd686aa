/* exec_report.c - turns what went wrong in a lane into a report that names the user's line. */
#include "sim/exec.h"
#include <stdio.h>
#include <string.h>

#define MAX_FINDINGS_PER_BLOCK 256
#define MAX_FRAMES 32

static const char *file_name(const PtxModule *m, uint32_t file) {
    return file < m->file_count && m->files[file] ? m->files[file] : "";
}

static const char *base_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* The innermost .loc is nearly always in a CuTe header; the user's line is that of the innermost
 * frame which still lies in the file of the outermost one: the helper that reads, not the line of
 * the kernel that calls it. Statements without a .loc of their own take the one before. */
void exec_locate(const Code *code, uint32_t pc, SimReport *report) {
    const Origin *origin = &code->origins[pc];
    const PtxFunction *f = code->function;
    snprintf(report->kernel, sizeof report->kernel, "%s", f->name);
    size_t length = 0;
    for (uint32_t i = 0; i < origin->text_bytes && length < sizeof report->instruction - 1; i++) {
        char c = origin->text[i];
        bool blank = c == ' ' || c == '\t' || c == '\n' || c == '\r';
        if (blank && (!length || report->instruction[length - 1] == ' '))
            continue;
        report->instruction[length++] = blank ? ' ' : c;
    }
    report->instruction[length] = 0;
    uint32_t frames[MAX_FRAMES], count = 0;
    for (uint32_t at = origin->loc; at != PTX_NO_LOC && count < MAX_FRAMES; at = f->locs[at].inlined)
        frames[count++] = at;
    length = 0;
    for (uint32_t i = count; i-- > 0;) {
        const PtxLoc *loc = &f->locs[frames[i]];
        const char *file = file_name(code->module, loc->file);
        if (loc->file == f->locs[frames[count - 1]].file) {
            snprintf(report->file, sizeof report->file, "%s", file);
            report->line = loc->line;
        }
        int written = snprintf(report->chain + length, sizeof report->chain - length, "%s%s:%u",
                               length ? " < " : "", base_name(file), loc->line);
        if (written < 0 || (size_t)written >= sizeof report->chain - length)
            break;
        length += (size_t)written;
    }
}

static ExecStatus status_of(SimReportKind kind) {
    switch (kind) {
    case SIM_OUT_OF_BOUNDS: return EXEC_ILLEGAL_ADDRESS;
    case SIM_MISALIGNED: return EXEC_MISALIGNED;
    case SIM_TRAP: return EXEC_TRAP;
    case SIM_ASSERT: return EXEC_ASSERT;
    case SIM_BUDGET: return EXEC_BUDGET;
    case SIM_BARRIER: return EXEC_DEADLOCK;
    case SIM_UNSUPPORTED: return EXEC_UNSUPPORTED;
    default: return EXEC_OK;
    }
}

void exec_block_fault(Block *block, ExecStatus status, Run *run) {
    int expected = EXEC_OK;
    atomic_compare_exchange_strong(&run->status, &expected, (int)status);
    unsigned long long first = atomic_load(&run->first_failed_block);
    while (block->index < first &&
           !atomic_compare_exchange_weak(&run->first_failed_block, &first, block->index))
        continue;
}

void exec_find(Warp *warp, SimReportKind kind, uint32_t lane, const SimReport *details) {
    Block *block = warp->block;
    Run *run = warp->worker->run;
    const Code *code = warp->activation->code;
    SimReport report = *details;
    report.kind = kind;
    report.count = 1;
    exec_locate(code, (uint32_t)(warp->inst - code->insts), &report);
    snprintf(report.kernel, sizeof report.kernel, "%s", run->code->function->name);
    const uint32_t *size = run->launch->block;
    uint32_t thread = warp->index * LANES + lane;
    report.thread[0] = thread % size[0];
    report.thread[1] = thread / size[0] % size[1];
    report.thread[2] = thread / size[0] / size[1];
    memcpy(report.block, block->ctaid, sizeof report.block);
    report_add(&report);
    ExecStatus status = status_of(kind);
    if (status != EXEC_OK)
        exec_block_fault(block, status, run);
    bool goes_on = kind == SIM_OUT_OF_BOUNDS || kind == SIM_MISALIGNED || kind == SIM_UNINITIALIZED;
    if (!goes_on || (status != EXEC_OK && ++block->findings >= MAX_FINDINGS_PER_BLOCK))
        block->faulted = true;
}
