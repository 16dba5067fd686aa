/* exec_warp.c - the loop that executes a warp, its diverging lanes, calls and barriers.
 *
 * Lanes that run together are a split. At a divergent branch a split parts in two, and both owe
 * their lanes to a join at the branch's post-dominator; when all expected lanes have arrived, one
 * split goes on from there. All splits of a warp get their turn, so lanes that spin until another
 * lane of the same warp acts do not starve it; should that lane be waiting at a join for the ones
 * that spin, the join lets its lanes go on by themselves after a while.
 */
#include "sim/decode.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SPLIT_QUANTUM  1024 // instructions, while a warp has several splits
#define STALLED_SLICES 256  // slices without an arrival before waiting lanes are let go
#define SPINS          64   // the same in atomic and volatile accesses: somebody is waiting

/* ---- joins ----------------------------------------------------------------------------------- */

static int32_t join_new(Warp *w, Join join) {
    int32_t index = w->free_join;
    if (index >= 0) {
        w->free_join = w->joins[index].parent;
    } else {
        if (w->join_count >= MAX_JOINS) return -1;
        w->joins = ptx_grow(w->joins, w->join_count, &w->join_capacity, sizeof *w->joins);
        index = (int32_t)w->join_count++;
    }
    w->joins[index] = join;
    w->joins[index].used = true;
    return index;
}

static void join_free(Warp *w, int32_t index) {
    w->joins[index].used = false;
    w->joins[index].parent = w->free_join;
    w->free_join = index;
}

static void split_add(Warp *w, Split split) {
    w->splits[w->split_count++] = split;
}

/* Goes on with the lanes that have arrived, if they are all; a join nobody can reach any more goes
 * away. */
static void join_check(Warp *w, int32_t index) {
    Join join = w->joins[index];
    if (!join.used || join.arrived != join.expected) return;
    join_free(w, index);
    if (join.callee) exec_activation_free(w->worker, join.callee);
    if (join.expected)
        split_add(w, (Split){.pc = join.pc,
                             .mask = join.expected,
                             .join = join.parent,
                             .activation = join.activation});
}

static void join_arrive(Warp *w, int32_t index, uint32_t lanes) {
    w->stalled = w->strong = 0;
    w->joins[index].arrived |= lanes;
    join_check(w, index);
}

/* Lanes leave all joins from `index` up to (not including) `end`. */
static void joins_leave(Warp *w, int32_t index, int32_t end, uint32_t lanes) {
    while (index != end && index >= 0) {
        int32_t parent = w->joins[index].parent;
        w->joins[index].expected &= ~lanes;
        join_check(w, index);
        index = parent;
    }
}

bool exec_release_joins(Warp *w) {
    for (int32_t i = 0; i < (int32_t)w->join_count; i++) {
        Join *join = &w->joins[i];
        if (!join->used || !join->arrived || join->callee || w->split_count >= LANES) continue;
        uint32_t lanes = join->arrived;
        join->arrived = 0;
        join->expected &= ~lanes;
        split_add(w, (Split){.pc = join->pc,
                             .mask = lanes,
                             .join = join->parent,
                             .activation = join->activation});
        join_check(w, i);
        w->stalled = w->strong = 0;
        return true;
    }
    return false;
}

/* Where the lanes of a divergent branch meet. The join of an outer branch serves when it is at the
 * same place: lanes that leave a loop one by one all wait at one join. */
static int32_t join_for(Warp *w, const Split *s, uint32_t pc) {
    if (pc == NO_PC) return s->join;
    if (s->join >= 0 && !w->joins[s->join].callee && w->joins[s->join].pc == pc &&
        w->joins[s->join].activation == s->activation)
        return s->join;
    int32_t join = join_new(
        w, (Join){.pc = pc, .expected = s->mask, .parent = s->join, .activation = s->activation});
    return join < 0 ? s->join : join;
}

static uint32_t stop_pc(const Warp *w, const Split *s) {
    if (s->join < 0 || w->joins[s->join].callee || w->joins[s->join].activation != s->activation)
        return NO_PC;
    return w->joins[s->join].pc;
}

static void split_remove(Warp *w, int index) {
    w->splits[index] = w->splits[--w->split_count];
}

/* ---- leaving --------------------------------------------------------------------------------- */

static void lanes_exit(Warp *w, int index, uint32_t lanes) {
    Split s = w->splits[index];
    w->splits[index].mask &= ~lanes;
    if (!w->splits[index].mask) split_remove(w, index);
    w->live &= ~lanes;
    w->stalled = w->strong = 0;
    w->block->live_threads -= (uint32_t)__builtin_popcount(lanes);
    joins_leave(w, s.join, -1, lanes);
    exec_check_barriers(w->block);
}

/* ---- barriers of the block ------------------------------------------------------------------- */

static void barrier_result(Split *s, const Inst *inst, const Barrier *b) {
    uint8_t *regs = s->activation->regs;
    if (inst->aux == 2) {
        uint32_t *d = (uint32_t *)(void *)(regs + inst->d);
        for (int lane = 0; lane < LANES; lane++)
            if (s->mask >> lane & 1) d[lane] = b->popc;
    } else if (inst->aux >= 3) {
        bool value = inst->aux == 3 ? b->all : b->any;
        uint32_t *p = predicate(regs, inst->d);
        *p = value ? *p | s->mask : *p & ~s->mask;
    }
}

static void barrier_check(Block *block, uint32_t id) {
    Barrier *b = &block->barriers[id];
    if (!b->busy || b->arrived < (b->wanted ? b->wanted : block->live_threads)) return;
    for (uint32_t i = 0; i < block->warp_count; i++)
        for (int k = 0; k < block->warps[i].split_count; k++) {
            Split *s = &block->warps[i].splits[k];
            if (s->state != SPLIT_AT_BARRIER || s->barrier != id) continue;
            barrier_result(s, &s->activation->code->insts[s->pc], b);
            s->state = SPLIT_READY;
            s->pc++;
        }
    *b = (Barrier){0};
    block->busy_barriers--;
}

void exec_check_barriers(Block *block) {
    if (!block->busy_barriers) return;
    for (uint32_t id = 0; id < 16; id++)
        if (block->barriers[id].busy && !block->barriers[id].wanted) barrier_check(block, id);
}

/* True if the split goes on at once (bar.arrive). */
static bool barrier_arrive(Warp *w, Split *s, const Inst *inst, uint8_t *regs, uint32_t lanes) {
    int first = __builtin_ctz(lanes);
    uint32_t id = ((const uint32_t *)(const void *)(regs + inst->a))[first];
    if (id >= 16) {
        SimReport report = {.message = "uses a barrier beyond the 16 that a block has"};
        exec_find(w, SIM_BARRIER, (uint32_t)first, 0, &report);
        return false;
    }
    Barrier *b = &w->block->barriers[id];
    if (!b->busy) {
        *b = (Barrier){.busy = true, .all = 1};
        w->block->busy_barriers++;
    }
    b->arrived += (uint32_t)__builtin_popcount(lanes);
    if (inst->flags & INST_HAS_COUNT) {
        b->wanted = ((const uint32_t *)(const void *)(regs + inst->b))[first];
        if (lanes == w->live) // counts are in whole warps
            b->arrived += LANES - (uint32_t)__builtin_popcount(lanes);
    }
    if (inst->aux >= 2) {
        uint32_t p = *predicate(regs, inst->e) ^ (inst->flags & INST_NEGATE_E ? FULL_MASK : 0);
        b->popc += (uint32_t)__builtin_popcount(p & lanes);
        b->all &= (p & lanes) == lanes;
        b->any |= (p & lanes) != 0;
    }
    if (inst->aux != 1) {
        s->state = SPLIT_AT_BARRIER;
        s->barrier = (uint8_t)id;
    }
    barrier_check(w->block, id);
    return inst->aux == 1;
}

/* ---- lanes that wait for each other ---------------------------------------------------------- */

/* Which of `lanes` name the same members as `wanted`. */
static uint32_t lanes_naming(const uint32_t *members, uint32_t wanted, uint32_t lanes) {
    uint32_t same = 0;
    for (int lane = 0; lane < LANES; lane++)
        same |= (uint32_t)(members[lane] == wanted) << lane;
    return same & lanes;
}

/* Runs a .sync instruction for all splits that wait at it, when no member is missing. */
static bool sync_try(Warp *w, Split *s, const Inst *inst) {
    uint32_t together = 0;
    for (int i = 0; i < w->split_count; i++) {
        Split *other = &w->splits[i];
        if (other->state == SPLIT_AT_SYNC && other->pc == s->pc &&
            other->activation == s->activation && other->members == s->members)
            together |= other->mask;
    }
    if (s->members & w->live & ~together) return false;
    uint32_t pc = s->pc, members = s->members;
    Activation *activation = s->activation;
    inst->run(w, inst, activation->regs, together);
    for (int i = 0; i < w->split_count; i++) {
        Split *other = &w->splits[i];
        if (other->state == SPLIT_AT_SYNC && other->pc == pc && other->activation == activation &&
            other->members == members) {
            other->state = SPLIT_READY;
            other->pc++;
        }
    }
    return true;
}

/* Splits that wait at different bar.warp.sync of the same members meet as well; so does a split
 * whose missing members have exited meanwhile. */
static bool sync_any(Warp *w) {
    for (int i = 0; i < w->split_count; i++) {
        Split *s = &w->splits[i];
        if (s->state != SPLIT_AT_SYNC) continue;
        const Inst *inst = &s->activation->code->insts[s->pc];
        w->activation = s->activation;
        w->inst = inst;
        if (sync_try(w, s, inst)) return true;
        uint32_t together = 0, members = s->members;
        uint16_t row = inst->row;
        for (int k = 0; k < w->split_count; k++) {
            Split *other = &w->splits[k];
            if (other->state == SPLIT_AT_SYNC && other->members == members &&
                other->activation->code->insts[other->pc].row == row)
                together |= other->mask;
        }
        if (members & w->live & ~together) continue;
        if (row != ROW_warp_sync) {
            SimReport report = {.message = "exchanges data with lanes at another instruction"};
            exec_find(w, SIM_UNSUPPORTED, (uint32_t)__builtin_ctz(s->mask), 0, &report);
            return true;
        }
        for (int k = 0; k < w->split_count; k++) {
            Split *other = &w->splits[k];
            const Inst *at = &other->activation->code->insts[other->pc];
            if (other->state != SPLIT_AT_SYNC || other->members != members || at->row != row)
                continue;
            w->activation = other->activation;
            at->run(w, at, other->activation->regs, other->mask);
            other->state = SPLIT_READY;
            other->pc++;
        }
        return true;
    }
    return false;
}

/* ---- calls ----------------------------------------------------------------------------------- */

static void copy_local(Warp *w, uint32_t lanes, uint32_t to, uint32_t from, uint32_t bytes) {
    uint32_t stride = w->worker->run->local_stride;
    for (uint32_t rest = lanes; rest; rest &= rest - 1) {
        uint32_t base = (uint32_t)__builtin_ctz(rest) * stride;
        memcpy(w->local + base + to, w->local + base + from, bytes);
        for (uint32_t i = 0; w->local_marks && i < bytes; i++) {
            uint32_t target = base + to + i, source = base + from + i;
            uint8_t mark = w->local_marks[source / 8] >> (source % 8) & 1;
            w->local_marks[target / 8] =
                (uint8_t)((w->local_marks[target / 8] & ~(1u << (target % 8))) |
                          mark << (target % 8));
        }
    }
}

static uint64_t argument(const Warp *w, uint32_t lane, uint32_t offset) {
    uint64_t value;
    memcpy(&value,
           w->local + (size_t)lane * w->worker->run->local_stride + w->activation->local_base +
               offset,
           sizeof value);
    return value;
}

/* Functions that the CUDA runtime brings. True if the lanes go on. */
static bool call_outside(Warp *w, const Inst *inst, const Code *callee, uint32_t lanes) {
    const uint32_t *list = w->activation->code->lists + inst->list;
    const char *name = callee->function->name;
    SimReport report = {0};
    bool print = !strcmp(name, "vprintf") && inst->count == 2 && inst->aux == 1;
    for (uint32_t rest = lanes; rest && print; rest &= rest - 1) {
        uint32_t lane = (uint32_t)__builtin_ctz(rest);
        int printed = exec_print(w, lane, argument(w, lane, list[0]), argument(w, lane, list[2]));
        uint32_t at = lane * w->worker->run->local_stride + w->activation->local_base + list[4];
        memcpy(w->local + at, &printed, sizeof printed);
        if (w->local_marks) w->local_marks[at / 8] &= (uint8_t) ~(0xfu << (at % 8));
    }
    if (print) return true;
    if (!strcmp(name, "__assertfail") && inst->count >= 3) {
        for (uint32_t rest = lanes; rest; rest &= rest - 1) {
            uint32_t lane = (uint32_t)__builtin_ctz(rest);
            char condition[256];
            exec_read_text(w, lane, argument(w, lane, list[0]), condition, sizeof condition);
            snprintf(report.message, sizeof report.message, "assertion '%s' failed", condition);
            exec_find(w, SIM_ASSERT, lane, 0, &report);
        }
        return false;
    }
    snprintf(report.message, sizeof report.message, "calls '%.200s', which the simulator lacks",
             name);
    exec_find(w, SIM_UNSUPPORTED, (uint32_t)__builtin_ctz(lanes), 0, &report);
    return false;
}

static void call_enter(Warp *w, Split *s, const Inst *inst) {
    Activation *caller = s->activation;
    const Code *callee = caller->code->callees[inst->target];
    if (!callee->function->has_body) {
        if (call_outside(w, inst, callee, s->mask)) s->pc++;
        return;
    }
    const uint32_t *list = caller->code->lists + inst->list;
    uint32_t base = caller->local_base + caller->code->local_bytes;
    Activation *activation = NULL;
    if (base + callee->local_bytes <= w->worker->run->local_stride)
        activation = exec_activation_new(w, callee);
    int32_t join = activation ? join_new(w, (Join){.pc = s->pc + 1,
                                                   .expected = s->mask,
                                                   .parent = s->join,
                                                   .activation = caller,
                                                   .callee = activation})
                              : -1;
    if (join < 0) {
        SimReport report = {.message = "calls functions too deep: the stack is full"};
        exec_find(w, SIM_UNSUPPORTED, (uint32_t)__builtin_ctz(s->mask), 0, &report);
        return;
    }
    activation->caller = caller;
    activation->local_base = base;
    for (uint32_t i = 0; i < inst->count; i++)
        copy_local(w, s->mask, base + callee->param_offsets[i], caller->local_base + list[2 * i],
                   list[2 * i + 1]);
    s->activation = activation;
    s->pc = 0;
    s->join = join;
}

/* Lanes of split `index` return from a function; false: they left the kernel. */
static bool call_return(Warp *w, int index, uint32_t lanes) {
    Split s = w->splits[index];
    if (!s.activation->caller) return false;
    Activation *caller = s.activation->caller;
    int32_t join = s.join;
    while (join >= 0 && w->joins[join].callee != s.activation)
        join = w->joins[join].parent;
    if (join < 0) return false;
    const Code *callee = s.activation->code;
    const Inst *call = &caller->code->insts[w->joins[join].pc - 1];
    const uint32_t *list = caller->code->lists + call->list + 2 * call->count;
    for (uint32_t i = 0; i < call->aux; i++)
        copy_local(w, lanes, caller->local_base + list[2 * i],
                   s.activation->local_base + callee->return_offsets[i], list[2 * i + 1]);
    w->splits[index].mask &= ~lanes;
    if (!w->splits[index].mask) split_remove(w, index);
    joins_leave(w, s.join, join, lanes);
    join_arrive(w, join, lanes);
    return true;
}

/* ---- divergence ------------------------------------------------------------------------------ */

/* Sends `lanes` of split `index` to `pc`; they and the others meet at `meet`. */
static void part(Warp *w, int index, uint32_t lanes, uint32_t pc, uint32_t meet) {
    Split *s = &w->splits[index];
    int32_t join = join_for(w, s, meet);
    s->join = join;
    s->mask &= ~lanes;
    bool at_once = join >= 0 && pc == meet && w->joins[join].pc == pc &&
                   w->joins[join].activation == s->activation && !w->joins[join].callee;
    if (at_once)
        join_arrive(w, join, lanes);
    else
        split_add(w, (Split){.pc = pc, .mask = lanes, .join = join, .activation = s->activation});
}

static void branch_by_index(Warp *w, int index, const Inst *inst, uint8_t *regs, uint32_t active) {
    const uint32_t *selector = (const uint32_t *)(const void *)(regs + inst->a);
    const uint32_t *targets = w->activation->code->lists + inst->list;
    uint32_t next = w->splits[index].pc + 1, all = w->splits[index].mask;
    if (active != all) part(w, index, all & ~active, next, inst->reconverge);
    uint32_t rest = active;
    while (rest) {
        uint32_t value = selector[__builtin_ctz(rest)], same = 0;
        for (uint32_t r = rest; r; r &= r - 1)
            same |= (uint32_t)(selector[__builtin_ctz(r)] == value) << __builtin_ctz(r);
        if (value >= inst->count) {
            SimReport report = {.message = "jumps beyond its table of branch targets"};
            exec_find(w, SIM_TRAP, (uint32_t)__builtin_ctz(same), 0, &report);
            return;
        }
        rest &= ~same;
        if (rest)
            part(w, index, same, targets[value], inst->reconverge);
        else
            w->splits[index].pc = targets[value];
    }
}

static void report_predicate(Warp *w, const Inst *inst, uint8_t *regs, uint32_t mask) {
    uint32_t unknown = *shadow_planes(w, regs, inst->guard) & mask;
    for (; unknown; unknown &= unknown - 1) {
        SimReport report = {0};
        snprintf(report.message, sizeof report.message,
                 "%s on a condition computed from data that was never written",
                 inst->control == CONTROL_BRANCH ? "branches" : "depends");
        exec_find(w, SIM_UNINITIALIZED, (uint32_t)__builtin_ctz(unknown), 0, &report);
    }
}

/* ---- the loop -------------------------------------------------------------------------------- */

/* Runs split `index` until it waits, parts, ends, or has used up its quantum. */
static inline __attribute__((always_inline)) uint32_t
run_split(Warp *w, int index, uint32_t quantum, const bool checked) {
    Split *s = &w->splits[index];
    const Inst *code = s->activation->code->insts;
    uint8_t *regs = s->activation->regs;
    uint32_t pc = s->pc, mask = s->mask, stop = stop_pc(w, s), left = quantum;
    uint64_t lanes = 0;
    Tally *tally = &w->worker->tally;
    uint64_t insts_before = tally->warp_insts;
    w->activation = s->activation;
    while (left) {
        if (pc == stop) {
            int32_t join = s->join;
            split_remove(w, index);
            join_arrive(w, join, mask);
            goto out;
        }
        const Inst *inst = &code[pc];
        uint32_t active = mask;
        if (inst->guard_kind) {
            uint32_t p = *(const uint32_t *)(const void *)(regs + inst->guard);
            active &= inst->guard_kind == GUARD_IF ? p : ~p;
        }
        left--;
        lanes += active == FULL_MASK ? LANES : (uint32_t)__builtin_popcount(active);
        if (inst->control == CONTROL_NONE) {
            if (active) {
                if (checked && __builtin_expect(w->tainted, 0))
                    exec_propagate(w, inst, regs, active);
                inst->run(w, inst, regs, active);
            }
            pc++;
            continue;
        }
        w->inst = inst;
        if (checked && w->tainted && inst->guard_kind && inst->control != CONTROL_SYNC)
            report_predicate(w, inst, regs, mask);
        if (inst->control == CONTROL_MEMORY) {
            if (active) inst->run(w, inst, regs, active);
            pc++;
            if (__builtin_expect(w->block->faulted, 0)) goto stopped;
            if (inst->flags & INST_STRONG && ++w->strong >= SPINS)
                goto stopped; // others may have what it is waiting for
            continue;
        }
        if (inst->control == CONTROL_BRANCH) {
            tally->branches++;
            if (active == mask) {
                pc = inst->target;
            } else if (!active) {
                pc++;
            } else {
                tally->divergent_branches++;
                s->pc = pc + 1;
                if (inst->reconverge == pc + 1) { // the lanes that fall through are there already
                    s->pc = inst->target;
                    part(w, index, mask & ~active, pc + 1, inst->reconverge);
                } else {
                    part(w, index, active, inst->target, inst->reconverge);
                }
                s = &w->splits[index];
                pc = s->pc;
                mask = s->mask;
                stop = stop_pc(w, s);
            }
            continue;
        }
        if (!active) {
            pc++;
            continue;
        }
        s->pc = pc;
        if (inst->control == CONTROL_SYNC) {
            const uint32_t *members =
                (const uint32_t *)(const void *)(regs + s->activation->code->lists[inst->list]);
            uint32_t wanted = members[__builtin_ctz(active)];
            uint32_t group = lanes_naming(members, wanted, active);
            if (group != active) { // groups that did not part go one after another
                part(w, index, mask & ~group, pc, pc + 1);
                s = &w->splits[index];
                mask = s->mask;
                stop = stop_pc(w, s);
                continue;
            }
            if (!(wanted & w->live & ~mask)) {
                inst->run(w, inst, regs, active);
                pc++;
                continue;
            }
            s->state = SPLIT_AT_SYNC;
            s->members = wanted;
            sync_try(w, s, inst);
            goto out;
        }
        if (inst->control == CONTROL_RETURN || inst->control == CONTROL_EXIT) {
            s->pc = pc + 1;
            if (inst->control == CONTROL_EXIT || !call_return(w, index, active))
                lanes_exit(w, index, active);
            goto out;
        }
        if (inst->control == CONTROL_BRANCH_INDEX) {
            branch_by_index(w, index, inst, regs, active);
            goto out;
        }
        if (active != mask && inst->control != CONTROL_YIELD) // the others go around
            part(w, index, mask & ~active, pc + 1, pc + 1);
        s = &w->splits[index];
        if (inst->control == CONTROL_BARRIER) {
            if (barrier_arrive(w, s, inst, regs, active)) s->pc++;
        } else if (inst->control == CONTROL_CALL) {
            call_enter(w, s, inst);
        } else if (inst->control == CONTROL_TRAP) {
            SimReport report = {.message = "executes a trap"};
            exec_find(w, SIM_TRAP, (uint32_t)__builtin_ctz(active), 0, &report);
        } else { // CONTROL_YIELD
            s->pc++;
            w->strong += SPINS / 4;
        }
        goto out;
    }
stopped:
    s->pc = pc;
out:
    tally->lane_insts += lanes;
    tally->warp_insts = insts_before + (quantum - left);
    return left;
}

static uint32_t run_split_checked(Warp *w, int index, uint32_t quantum) {
    return run_split(w, index, quantum, true);
}
static uint32_t run_split_plain(Warp *w, int index, uint32_t quantum) {
    return run_split(w, index, quantum, false);
}

static int next_ready(const Warp *w, int after) {
    for (int i = 1; i <= w->split_count; i++) {
        int k = (after + i) % w->split_count;
        if (w->splits[k].state == SPLIT_READY) return k;
    }
    return -1;
}

bool exec_warp(Warp *w, uint32_t quantum) {
    bool checked = w->worker->run->initialized, ran = false;
    int index = -1;
    uint32_t left = quantum;
    while (left && w->split_count && !w->block->faulted) {
        index = index >= w->split_count ? -1 : index;
        index = next_ready(w, index);
        if (index < 0) {
            if (!sync_any(w)) break;
            ran = true;
            continue;
        }
        uint32_t slice = w->split_count > 1 && left > SPLIT_QUANTUM ? SPLIT_QUANTUM : left;
        uint32_t unused =
            checked ? run_split_checked(w, index, slice) : run_split_plain(w, index, slice);
        left -= slice - unused;
        left -= left && slice == unused; // something that is no instruction, such as an arrival
        ran = true;
        if (w->strong >= SPINS || (!unused && ++w->stalled > STALLED_SLICES)) {
            exec_release_joins(w);
            if (w->strong && w->split_count == 1) left = 0; // the other warps' turn
            w->strong = 0;
        }
    }
    return ran;
}
