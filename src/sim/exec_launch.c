/* exec_launch.c - a launch: blocks handed to workers, their memory, and what ends them.
 *
 * Each worker is a thread with room for a few blocks. It runs a block to its end; one that is
 * still busy after a while (it may be waiting for another block) is joined by the next, and all
 * get their turn. A cooperative launch has all its blocks resident from the start. Where the order
 * of blocks could show in the result, one worker runs them all, so a launch always gives the same
 * bits.
 */
#include "sim/exec.h"
#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define WARP_QUANTUM         8192
#define PATIENCE             64 // slices before a block gets company
#define MAX_RESIDENT         32 // blocks of one worker, unless cooperative
#define MAX_COOPERATIVE      4096
#define MAX_WORKERS          256
#define BLOCKS_AFTER_FAILURE 64
#define SHARED_POISON        0xff

/* ---- frames ---------------------------------------------------------------------------------- */

static uint32_t special_value(const Warp *w, Special special, int lane) {
    const Run *run = w->worker->run;
    const Launch *l = run->launch;
    uint32_t thread = w->index * LANES + (uint32_t)lane;
    switch (special) {
    case SPECIAL_TID_X:
        return thread % l->block[0];
    case SPECIAL_TID_Y:
        return thread / l->block[0] % l->block[1];
    case SPECIAL_TID_Z:
        return thread / l->block[0] / l->block[1];
    case SPECIAL_NTID_X:
    case SPECIAL_NTID_Y:
    case SPECIAL_NTID_Z:
        return l->block[special - SPECIAL_NTID_X];
    case SPECIAL_CTAID_X:
    case SPECIAL_CTAID_Y:
    case SPECIAL_CTAID_Z:
        return w->block->ctaid[special - SPECIAL_CTAID_X];
    case SPECIAL_NCTAID_X:
    case SPECIAL_NCTAID_Y:
    case SPECIAL_NCTAID_Z:
        return l->grid[special - SPECIAL_NCTAID_X];
    case SPECIAL_LANEID:
        return (uint32_t)lane;
    case SPECIAL_WARPID:
        return w->index;
    case SPECIAL_NWARPID:
        return run->warps_per_block;
    case SPECIAL_SMID:
        return w->block->index % 132;
    case SPECIAL_NSMID:
        return 132;
    case SPECIAL_LANEMASK_EQ:
        return 1u << lane;
    case SPECIAL_LANEMASK_LE:
        return (uint32_t)((UINT64_C(2) << lane) - 1);
    case SPECIAL_LANEMASK_LT:
        return (1u << lane) - 1;
    case SPECIAL_LANEMASK_GE:
        return ~((1u << lane) - 1);
    case SPECIAL_LANEMASK_GT:
        return (uint32_t) ~((UINT64_C(2) << lane) - 1);
    case SPECIAL_DYNAMIC_SMEM:
        return l->dynamic_shared;
    case SPECIAL_TOTAL_SMEM:
        return run->shared_bytes;
    case SPECIAL_ONE:
        return 1;
    default:
        return 0;
    }
}

static bool depends_on_block(Special special) {
    return (special >= SPECIAL_CTAID_X && special <= SPECIAL_CTAID_Z) || special == SPECIAL_SMID;
}

void exec_fill_frame(Warp *w, const Code *code, uint8_t *regs, bool first) {
    for (uint32_t i = 0; first && i < code->constant_count; i++) {
        const Constant *c = &code->constants[i];
        if (!c->bytes) *predicate(regs, c->slot) = (uint32_t)c->value;
        for (int lane = 0; lane < LANES && c->bytes; lane++)
            memcpy(regs + c->slot + lane * c->bytes, &c->value, c->bytes);
    }
    for (uint32_t i = 0; i < code->special_count; i++) {
        const SpecialSlot *s = &code->specials[i];
        if (!first && !depends_on_block(s->special)) continue;
        bool varies = s->special <= SPECIAL_TID_Z || s->special == SPECIAL_LANEID ||
                      (s->special >= SPECIAL_LANEMASK_EQ && s->special <= SPECIAL_LANEMASK_GT);
        uint64_t value = special_value(w, s->special, 0);
        for (int lane = 0; lane < LANES; lane++) {
            if (varies) value = special_value(w, s->special, lane);
            memcpy(regs + s->slot + lane * s->bytes, &value, s->bytes);
        }
    }
}

static size_t frame_size(const Run *run, const Code *code) {
    return code->frame_bytes + (run->initialized ? code->frame_bytes / 8 : 0) + 256;
}

/* Registers that may be read before they are written hold zeros, and count as not initialised. */
static void reset_undefined(Warp *w, const Code *code, uint8_t *regs) {
    for (uint32_t i = 0; i < code->undefined_count; i++) {
        uint32_t slot = code->undefined[2 * i], bytes = code->undefined[2 * i + 1];
        memset(regs + slot, 0, bytes ? LANES * bytes : 4);
        if (w->worker->run->initialized) {
            memset(regs + code->frame_bytes + slot / 8, 0xff, bytes ? 4 * bytes : 4);
            w->tainted = true;
        }
    }
}

Activation *exec_activation_new(Warp *w, const Code *code) {
    Worker *worker = w->worker;
    Activation **at = &worker->free_activations, *found = NULL;
    while (*at && (*at)->code != code)
        at = &(*at)->next_free;
    if (*at) {
        found = *at;
        *at = found->next_free;
    } else {
        found = calloc(1, sizeof *found);
        void *regs = aligned_alloc(256, (frame_size(worker->run, code) + 255) & ~(size_t)255);
        if (!found || !regs) abort();
        found->code = code;
        found->regs = regs;
        found->next_made = worker->made_activations;
        worker->made_activations = found;
    }
    memset(found->regs + code->frame_bytes, 0, frame_size(worker->run, code) - code->frame_bytes);
    exec_fill_frame(w, code, found->regs, true);
    reset_undefined(w, code, found->regs);
    return found;
}

void exec_activation_free(Worker *worker, Activation *activation) {
    activation->next_free = worker->free_activations;
    worker->free_activations = activation;
}

/* ---- blocks ---------------------------------------------------------------------------------- */

static size_t round256(size_t bytes) {
    return (bytes + 255) & ~(size_t)255;
}

typedef struct {
    size_t warps, shared, shared_marks, frames, locals, local_marks, total;
} BlockLayout;

static BlockLayout block_layout(const Run *run) {
    BlockLayout l = {0};
    size_t warps = run->warps_per_block, local = (size_t)run->local_stride * LANES;
    l.warps = 0;
    l.shared = round256(warps * sizeof(Warp));
    l.shared_marks = l.shared + round256(run->shared_bytes + 64u);
    l.frames = l.shared_marks + round256(run->shared_bytes / 8 + 64u);
    l.locals = l.frames + warps * run->frame_stride;
    l.local_marks = l.locals + round256(warps * local + 64);
    l.total = l.local_marks + round256(warps * local / 8 + 64);
    return l;
}

/* Room for one block; pages come when they are touched. NULL: the machine has no more memory. */
static bool block_make(Worker *worker, Block *block) {
    Run *run = worker->run;
    BlockLayout layout = block_layout(run);
    uint8_t *memory = mmap(NULL, layout.total, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) return false;
    *block =
        (Block){.memory = memory, .memory_bytes = layout.total, .warp_count = run->warps_per_block};
    block->warps = (Warp *)(void *)(memory + layout.warps);
    block->shared = memory + layout.shared;
    block->shared_marks = memory + layout.shared_marks;
    size_t local = (size_t)run->local_stride * LANES;
    for (uint32_t i = 0; i < run->warps_per_block; i++) {
        Warp *w = &block->warps[i];
        w->block = block;
        w->worker = worker;
        w->index = i;
        w->frame = memory + layout.frames + (size_t)i * run->frame_stride;
        w->local = memory + layout.locals + i * local;
        w->local_marks = run->initialized ? memory + layout.local_marks + i * local / 8 : NULL;
        uint32_t first = i * LANES, rest = run->threads_per_block - first;
        w->lanes = rest >= LANES ? FULL_MASK : (1u << rest) - 1;
    }
    return true;
}

void exec_start_warp(Warp *w) {
    Run *run = w->worker->run;
    const Code *code = run->code;
    bool fresh = w->root.code == NULL;
    w->root = (Activation){.code = code, .regs = w->frame};
    w->activation = &w->root;
    if (run->initialized && (w->tainted || fresh))
        memset(w->frame + code->frame_bytes, 0, code->frame_bytes / 8);
    w->tainted = false;
    exec_fill_frame(w, code, w->frame, fresh);
    reset_undefined(w, code, w->frame);
    w->live = w->lanes;
    w->stalled = 0;
    w->strong = 0;
    for (uint32_t i = 0; i < w->join_count; i++) // a block that was stopped left them
        if (w->joins[i].used && w->joins[i].callee)
            exec_activation_free(w->worker, w->joins[i].callee);
    w->join_count = 0;
    w->free_join = -1;
    w->split_count = 1;
    w->splits[0] = (Split){.mask = w->lanes, .join = -1, .activation = &w->root};
    if (run->local_stride) {
        size_t local = (size_t)run->local_stride * LANES;
        memset(w->local, SHARED_POISON, local);
        if (w->local_marks) memset(w->local_marks, 0xff, local / 8);
    }
}

static void block_start(Worker *worker, Block *block, uint64_t index) {
    Run *run = worker->run;
    const uint32_t *grid = run->launch->grid;
    block->index = (uint32_t)index;
    block->ctaid[0] = (uint32_t)(index % grid[0]);
    block->ctaid[1] = (uint32_t)(index / grid[0] % grid[1]);
    block->ctaid[2] = (uint32_t)(index / grid[0] / grid[1]);
    block->live_threads = run->threads_per_block;
    block->in_use = true;
    block->faulted = false;
    block->findings = 0;
    block->slices = 0;
    memset(block->barriers, 0, sizeof block->barriers);
    block->busy_barriers = 0;
    if (run->shared_bytes) {
        memset(block->shared, SHARED_POISON, run->shared_bytes);
        if (run->initialized) memset(block->shared_marks, 0xff, (run->shared_bytes + 7) / 8);
    }
    for (uint32_t i = 0; i < block->warp_count; i++)
        exec_start_warp(&block->warps[i]);
}

/* ---- endings --------------------------------------------------------------------------------- */

/* Nobody in the block can go on: each warp's first waiting lanes are told. */
static void report_deadlock(Block *block) {
    uint32_t arrived = 0;
    for (uint32_t i = 0; i < block->warp_count; i++)
        for (int k = 0; k < block->warps[i].split_count; k++)
            if (block->warps[i].splits[k].state == SPLIT_AT_BARRIER)
                arrived += (uint32_t)__builtin_popcount(block->warps[i].splits[k].mask);
    for (uint32_t i = 0; i < block->warp_count; i++) {
        Warp *w = &block->warps[i];
        for (int k = 0; k < w->split_count; k++) {
            Split *s = &w->splits[k];
            w->activation = s->activation;
            w->inst = &s->activation->code->insts[s->pc];
            SimReport report = {0};
            if (s->state == SPLIT_AT_BARRIER)
                snprintf(report.message, sizeof report.message,
                         "waits at a barrier that %u of the block's %u remaining threads reach",
                         arrived, block->live_threads);
            else
                snprintf(report.message, sizeof report.message,
                         "waits for lanes 0x%x of its warp, which never come",
                         s->members & ~s->mask);
            exec_find(w, SIM_BARRIER, (uint32_t)__builtin_ctz(s->mask), 0, &report);
        }
    }
    block->faulted = true;
}

#define TRACE_INSTRUCTIONS 20000
#define TRACE_LINES        64

/* The budget is spent: the lines that the warp still goes through are those of its loop. */
static void report_budget(Block *block) {
    Run *run = block->warps[0].worker->run;
    for (uint32_t i = 0; i < block->warp_count; i++) {
        Warp *w = &block->warps[i];
        if (!w->split_count) continue;
        uint32_t lines[TRACE_LINES], count = 0, least = UINT32_MAX, most = 0;
        SimReport place = {0}, report = {0};
        for (uint32_t n = 0; n < TRACE_INSTRUCTIONS && w->split_count && !block->faulted; n++) {
            const Split *s = &w->splits[0];
            if (s->state != SPLIT_READY) break;
            w->activation = s->activation;
            w->inst = &s->activation->code->insts[s->pc];
            exec_locate(s->activation->code, s->pc, &place);
            uint32_t line = place.line;
            bool known = false;
            for (uint32_t k = 0; k < count; k++)
                known |= lines[k] == line;
            if (!known && count < TRACE_LINES && line) {
                lines[count++] = line;
                least = line < least ? line : least;
                most = line > most ? line : most;
                n = 0;
            }
            if (n > 2000) break;
            exec_warp(w, 1);
        }
        if (!w->split_count) continue;
        w->activation = w->splits[0].activation;
        w->inst = &w->activation->code->insts[w->splits[0].pc];
        if (count)
            snprintf(report.message, sizeof report.message,
                     "still runs after %llu lane instructions, going through lines %u to %u",
                     (unsigned long long)run->budget, least, most);
        else
            snprintf(report.message, sizeof report.message,
                     "still runs after %llu lane instructions", (unsigned long long)run->budget);
        exec_find(w, SIM_BUDGET, (uint32_t)__builtin_ctz(w->splits[0].mask), 0, &report);
        return;
    }
}

/* ---- workers --------------------------------------------------------------------------------- */

/* One turn for every warp. */
static void block_slice(Block *block) {
    bool progress = false;
    for (uint32_t i = 0; i < block->warp_count && !block->faulted; i++)
        if (block->warps[i].split_count) progress |= exec_warp(&block->warps[i], WARP_QUANTUM);
    block->slices++;
    if (progress || block->faulted || !block->live_threads) return;
    for (uint32_t i = 0; i < block->warp_count; i++)
        progress |= exec_release_joins(&block->warps[i]);
    if (!progress) report_deadlock(block);
}

static bool spend(Worker *worker, uint64_t *seen, Block *block) {
    Run *run = worker->run;
    uint64_t now = worker->tally.lane_insts, spent = now - *seen;
    *seen = now;
    uint64_t total = atomic_fetch_add(&run->lanes_spent, spent) + spent;
    if (!run->budget || total <= run->budget) return true;
    bool first = !atomic_exchange(&run->stop, true);
    if (first) report_budget(block);
    return false;
}

static bool next_block(Run *run, uint64_t *index) {
    *index = atomic_fetch_add(&run->next_block, 1);
    return *index < run->block_count &&
           *index <= atomic_load(&run->first_failed_block) + BLOCKS_AFTER_FAILURE;
}

static void *worker_run(void *argument) {
    Worker *worker = argument;
    Run *run = worker->run;
    uint64_t seen = 0, index;
    uint32_t resident = 0;
    bool more = true;
    while (!atomic_load(&run->stop)) {
        bool patient = resident && !run->launch->cooperative;
        for (uint32_t i = 0; i < resident && patient; i++)
            patient = worker->blocks[i].slices < PATIENCE || !worker->blocks[i].in_use;
        if (more && !(patient && resident) && resident < worker->block_count) {
            more = next_block(run, &index);
            if (more) {
                Block *block = &worker->blocks[resident];
                if (!block->memory && !block_make(worker, block)) {
                    atomic_store(&run->out_of_memory, true);
                    atomic_store(&run->stop, true);
                    break;
                }
                block_start(worker, block, index);
                resident++;
                if (run->launch->cooperative) continue;
            }
        }
        if (!resident) break;
        for (uint32_t i = 0; i < resident; i++) {
            Block *block = &worker->blocks[i];
            if (block->in_use) {
                block_slice(block);
                if (!block->live_threads || block->faulted) block->in_use = false;
                if (!spend(worker, &seen, block)) return NULL;
            }
            if (!block->in_use && more && next_block(run, &index))
                block_start(worker, block, index);
        }
        while (resident && !worker->blocks[resident - 1].in_use)
            resident--;
    }
    return NULL;
}

static void worker_free(Worker *worker) {
    exec_flush_findings(worker);
    for (uint32_t i = 0; i < worker->block_count; i++) {
        Block *block = &worker->blocks[i];
        for (uint32_t k = 0; block->memory && k < block->warp_count; k++)
            free(block->warps[k].joins);
        if (block->memory) munmap(block->memory, block->memory_bytes);
    }
    free(worker->blocks);
    while (worker->made_activations) {
        Activation *next = worker->made_activations->next_made;
        free(worker->made_activations->regs);
        free(worker->made_activations);
        worker->made_activations = next;
    }
}

static void publish(const Run *run, const Worker *workers, uint32_t count) {
    Tally t = {0};
    for (uint32_t i = 0; i < count; i++) {
        const uint64_t *from = (const uint64_t *)(const void *)&workers[i].tally;
        uint64_t *to = (uint64_t *)(void *)&t;
        for (size_t k = 0; k < sizeof t / sizeof *to; k++)
            to[k] += from[k];
    }
    const struct {
        const char *name;
        uint64_t value;
    } counters[] = {
        {"smsp__inst_executed.sum", t.warp_insts},
        {"smsp__thread_inst_executed.sum", t.lane_insts},
        {"sim__lane_instructions.sum", t.lane_insts},
        {"l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum", t.global_load_requests},
        {"l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum", t.global_load_sectors},
        {"l1tex__t_requests_pipe_lsu_mem_global_op_st.sum", t.global_store_requests},
        {"l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum", t.global_store_sectors},
        {"smsp__inst_executed_op_shared_ld.sum", t.shared_load_requests},
        {"smsp__inst_executed_op_shared_st.sum", t.shared_store_requests},
        {"l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum", t.shared_conflicts},
        {"smsp__inst_executed_op_branch.sum", t.branches},
        {"smsp__sass_branch_targets_threads_divergent.sum", t.divergent_branches},
        {"launch__grid_size", run->block_count},
        {"launch__block_size", run->threads_per_block},
    };
    for (size_t i = 0; i < sizeof counters / sizeof counters[0]; i++)
        counter_add(run->code->function->name, counters[i].name, (double)counters[i].value);
}

static uint32_t choose_workers(const Run *run) {
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    int asked = run->launch->options ? run->launch->options->threads : 0;
    uint64_t count = asked > 0 ? (uint64_t)asked : cores > 0 ? (uint64_t)cores : 1;
    if (run->code->ordered) count = 1;
    count = count > run->block_count ? run->block_count : count;
    return count > MAX_WORKERS ? MAX_WORKERS : (uint32_t)count;
}

/* The kernel's fault; those of the machine are told from it by their message. */
static void report_machine(const Run *run, const char *message) {
    SimReport report = {.kind = SIM_UNSUPPORTED, .count = 1};
    snprintf(report.kernel, sizeof report.kernel, "%s", run->code->function->name);
    snprintf(report.message, sizeof report.message, "%s", message);
    report_add(&report);
}

ExecStatus exec_launch(PtxKernel *kernel, const Launch *launch) {
    const Code *code = (const Code *)kernel;
    static const SimOptions defaults = {.check_bounds = 1, .check_initialized = 1};
    const SimOptions *options = launch->options ? launch->options : &defaults;
    Run run = {.code = code,
               .launch = launch,
               .bounds = options->check_bounds,
               .initialized = options->check_initialized,
               .budget = options->budget};
    run.threads_per_block = launch->block[0] * launch->block[1] * launch->block[2];
    run.warps_per_block = (run.threads_per_block + LANES - 1) / LANES;
    run.block_count = (uint64_t)launch->grid[0] * launch->grid[1] * launch->grid[2];
    if (!run.threads_per_block || !run.block_count) return EXEC_OK;
    uint32_t dynamic_align = launch->dynamic_shared ? 16 : 1;
    run.shared_bytes = (code->static_shared + dynamic_align - 1) / dynamic_align * dynamic_align +
                       launch->dynamic_shared;
    run.local_stride = code->stack_bytes;
    run.frame_stride = (uint32_t)round256(frame_size(&run, code));
    atomic_store(&run.first_failed_block, ~0ull - BLOCKS_AFTER_FAILURE - 1);
    uint32_t count = choose_workers(&run);
    assert(count > 0);
    Worker *workers = calloc(count, sizeof *workers);
    pthread_t *threads = calloc(count, sizeof *threads);
    if (!workers || !threads) abort();
    for (uint32_t i = 0; i < count; i++) {
        workers[i].run = &run;
        workers[i].index = i;
        uint64_t share = (run.block_count + count - 1) / count;
        uint64_t most = launch->cooperative ? MAX_COOPERATIVE : MAX_RESIDENT;
        workers[i].block_count = (uint32_t)(share < most ? share : most);
        workers[i].blocks = calloc(workers[i].block_count, sizeof(Block));
        if (!workers[i].blocks) abort();
    }
    uint32_t started = 0;
    for (uint32_t i = 1; i < count; i++, started++)
        if (pthread_create(&threads[i], NULL, worker_run, &workers[i])) break;
    worker_run(&workers[0]);
    for (uint32_t i = 1; i <= started; i++)
        pthread_join(threads[i], NULL);
    publish(&run, workers, count);
    for (uint32_t i = 0; i < count; i++)
        worker_free(&workers[i]);
    free(workers);
    free(threads);
    if (atomic_load(&run.out_of_memory)) {
        report_machine(&run, "this machine has no memory left for the blocks of the launch");
        return EXEC_UNSUPPORTED;
    }
    return (ExecStatus)atomic_load(&run.status);
}
