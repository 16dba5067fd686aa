/* exec_report.c - turns what went wrong in a lane into a report that names the user's line. */
#include "sim/exec.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_FINDINGS_PER_BLOCK 256
#define MAX_FRAMES             32

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
        if (blank && (!length || report->instruction[length - 1] == ' ')) continue;
        report->instruction[length++] = blank ? ' ' : c;
    }
    report->instruction[length] = 0;
    uint32_t frames[MAX_FRAMES], count = 0;
    for (uint32_t at = origin->loc; at != PTX_NO_LOC && count < MAX_FRAMES;
         at = f->locs[at].inlined)
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
        if (written < 0 || (size_t)written >= sizeof report->chain - length) break;
        length += (size_t)written;
    }
}

static ExecStatus status_of(SimReportKind kind) {
    switch (kind) {
    case SIM_OUT_OF_BOUNDS:
        return EXEC_ILLEGAL_ADDRESS;
    case SIM_MISALIGNED:
        return EXEC_MISALIGNED;
    case SIM_TRAP:
        return EXEC_TRAP;
    case SIM_ASSERT:
        return EXEC_ASSERT;
    case SIM_BUDGET:
        return EXEC_BUDGET;
    case SIM_BARRIER:
        return EXEC_DEADLOCK;
    case SIM_UNSUPPORTED:
        return EXEC_UNSUPPORTED;
    default:
        return EXEC_OK;
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

static uint64_t launch_order(const Warp *warp, uint32_t lane) {
    return (uint64_t)warp->block->index << 16 | (warp->index * LANES + lane);
}

/* By place in the code, not by address: which findings meet in a slot is the same in every run. */
static Finding *finding_slot(Warp *warp, uint64_t key) {
    Worker *worker = warp->worker;
    if (!worker->findings) {
        worker->findings = calloc(FINDING_CACHE, sizeof *worker->findings);
        if (!worker->findings) abort();
    }
    uint64_t pc = (uint64_t)(warp->inst - warp->activation->code->insts);
    return &worker->findings[(pc + key % 7) % FINDING_CACHE];
}

/* What a finding means for its block and the launch. */
static void take_consequences(Warp *warp, SimReportKind kind) {
    ExecStatus status = status_of(kind);
    Block *block = warp->block;
    if (status != EXEC_OK) exec_block_fault(block, status, warp->worker->run);
    bool goes_on = kind == SIM_OUT_OF_BOUNDS || kind == SIM_MISALIGNED || kind == SIM_UNINITIALIZED;
    if (!goes_on || (status != EXEC_OK && ++block->findings >= MAX_FINDINGS_PER_BLOCK))
        block->faulted = true;
}

bool exec_found_before(Warp *warp, SimReportKind kind, uint32_t lane, uint64_t key) {
    Finding *found = finding_slot(warp, key);
    if (!found->report.count || found->inst != warp->inst || found->key != key ||
        found->report.kind != kind || launch_order(warp, lane) < found->first)
        return false;
    found->report.count++;
    take_consequences(warp, kind);
    return true;
}

void exec_find(Warp *warp, SimReportKind kind, uint32_t lane, uint64_t key,
               const SimReport *details) {
    if (exec_found_before(warp, kind, lane, key)) return;
    const Run *run = warp->worker->run;
    const Code *code = warp->activation->code;
    Finding *found = finding_slot(warp, key);
    if (found->report.count) report_add(&found->report);
    found->inst = warp->inst;
    found->key = key;
    found->first = launch_order(warp, lane);
    SimReport *report = &found->report;
    *report = *details;
    report->kind = kind;
    report->count = 1;
    exec_locate(code, (uint32_t)(warp->inst - code->insts), report);
    snprintf(report->kernel, sizeof report->kernel, "%s", run->code->function->name);
    const uint32_t *size = run->launch->block;
    uint32_t thread = warp->index * LANES + lane;
    report->thread[0] = thread % size[0];
    report->thread[1] = thread / size[0] % size[1];
    report->thread[2] = thread / size[0] / size[1];
    memcpy(report->block, warp->block->ctaid, sizeof report->block);
    take_consequences(warp, kind);
}

/* First in launch order, then in the code. */
static int compare_findings(const void *a, const void *b) {
    const Finding *x = a, *y = b;
    if (x->first != y->first) return x->first < y->first ? -1 : 1;
    return x->inst == y->inst ? 0 : x->inst < y->inst ? -1 : 1;
}

void exec_flush_findings(Worker *worker) {
    if (!worker->findings) return;
    qsort(worker->findings, FINDING_CACHE, sizeof *worker->findings, compare_findings);
    for (int i = 0; i < FINDING_CACHE; i++)
        if (worker->findings[i].report.count) report_add(&worker->findings[i].report);
    free(worker->findings);
    worker->findings = NULL;
}
