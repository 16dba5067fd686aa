/* decode_flow.c - control flow of a function: where diverged lanes meet again, and which registers
 * may share a slot.
 *
 * Lanes that part at a branch meet at its immediate post-dominator, found on the reversed graph
 * with the iteration of Cooper, Harvey and Kennedy. Registers get slots by a linear scan over their
 * live intervals: nvcc's PTX names every value anew, and a kernel that needs 120 slots at a time
 * names thousands. Small frames are what keeps the lanes in the first-level cache.
 */
#include "sim/exec.h"
#include <stdlib.h>
#include <string.h>

typedef struct {
    uint32_t first, last; // instructions
    uint32_t *next;
    uint32_t next_count;
} Region;

typedef struct {
    Region *blocks;
    uint32_t block_count;
    uint32_t *block_of; // by instruction
    uint32_t *edges;
} Graph;

static void *must_calloc(size_t count, size_t bytes) {
    void *memory = calloc(count ? count : 1, bytes);
    if (!memory) abort();
    return memory;
}

static uint32_t edge_count(const FlowEdge *edge) {
    return (edge->next[0] != NO_PC) + (edge->next[1] != NO_PC) + edge->more_count;
}

static void graph_build(Graph *g, const FlowEdge *edges, uint32_t count) {
    uint8_t *leader = must_calloc(count + 1, 1);
    leader[0] = 1;
    size_t total = 0;
    for (uint32_t i = 0; i < count; i++) {
        const FlowEdge *e = &edges[i];
        bool falls_through = e->next[0] == i + 1 && e->next[1] == NO_PC && !e->more_count;
        if (falls_through) continue;
        leader[i + 1] = 1;
        for (int k = 0; k < 2; k++)
            if (e->next[k] < count) leader[e->next[k]] = 1;
        for (uint32_t k = 0; k < e->more_count; k++)
            if (e->more[k] < count) leader[e->more[k]] = 1;
        total += edge_count(e);
    }
    uint32_t blocks = 0;
    for (uint32_t i = 0; i < count; i++)
        blocks += leader[i];
    g->blocks = must_calloc(blocks, sizeof *g->blocks);
    g->block_of = must_calloc(count, sizeof *g->block_of);
    g->edges = must_calloc(total + blocks, sizeof *g->edges);
    g->block_count = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (leader[i]) g->blocks[g->block_count++].first = i;
        g->block_of[i] = g->block_count - 1;
        g->blocks[g->block_count - 1].last = i;
    }
    uint32_t *at = g->edges;
    for (uint32_t b = 0; b < g->block_count; b++) {
        const FlowEdge *e = &edges[g->blocks[b].last];
        g->blocks[b].next = at;
        for (int k = 0; k < 2; k++)
            if (e->next[k] < count) *at++ = g->block_of[e->next[k]];
        for (uint32_t k = 0; k < e->more_count; k++)
            if (e->more[k] < count) *at++ = g->block_of[e->more[k]];
        g->blocks[b].next_count = (uint32_t)(at - g->blocks[b].next);
    }
    free(leader);
}

static void graph_free(Graph *g) {
    free(g->blocks);
    free(g->block_of);
    free(g->edges);
}

/* ---- post-dominators ------------------------------------------------------------------------- */

/* Blocks in an order in which a block comes before those it can be reached from, as far as loops
 * allow: depth-first over the reversed edges from the exits. */
typedef struct {
    uint32_t *first, *from; // predecessors of each block
    uint32_t *number;       // position in postorder of the reversed graph; exit is highest
    uint32_t *order;
    uint32_t count; // reached
} Reverse;

static void reverse_build(Reverse *r, const Graph *g) {
    uint32_t n = g->block_count;
    r->first = must_calloc(n + 2, sizeof *r->first);
    uint32_t total = 0;
    for (uint32_t b = 0; b < n; b++)
        for (uint32_t k = 0; k < g->blocks[b].next_count; k++, total++)
            r->first[g->blocks[b].next[k] + 2]++;
    for (uint32_t b = 0; b < n; b++)
        r->first[b + 2] += r->first[b + 1];
    r->from = must_calloc(total, sizeof *r->from);
    for (uint32_t b = 0; b < n; b++)
        for (uint32_t k = 0; k < g->blocks[b].next_count; k++)
            r->from[r->first[g->blocks[b].next[k] + 1]++] = b;
    r->number = must_calloc(n + 1, sizeof *r->number);
    r->order = must_calloc(n + 1, sizeof *r->order);
    memset(r->number, 0xff, (n + 1) * sizeof *r->number);
    uint32_t *stack = must_calloc(n + 1, sizeof *stack), *child = must_calloc(n + 1, sizeof *child);
    bool *seen = must_calloc(n, sizeof *seen);
    for (uint32_t exit = 0; exit < n; exit++) {
        if (g->blocks[exit].next_count || seen[exit]) continue;
        uint32_t depth = 1;
        stack[0] = exit;
        child[0] = r->first[exit];
        seen[exit] = true;
        while (depth) {
            uint32_t b = stack[depth - 1];
            if (child[depth - 1] < r->first[b + 1]) {
                uint32_t next = r->from[child[depth - 1]++];
                if (!seen[next]) {
                    seen[next] = true;
                    stack[depth] = next;
                    child[depth++] = r->first[next];
                }
            } else {
                r->number[b] = r->count;
                r->order[r->count++] = b;
                depth--;
            }
        }
    }
    r->number[n] = r->count; // the common exit
    free(stack);
    free(child);
    free(seen);
}

void flow_reconvergence(const FlowEdge *edges, uint32_t count, uint32_t *reconverge) {
    for (uint32_t i = 0; i < count; i++)
        reconverge[i] = NO_PC;
    if (!count) return;
    Graph g;
    Reverse r = {0};
    graph_build(&g, edges, count);
    reverse_build(&r, &g);
    uint32_t exit = g.block_count;
    uint32_t *dominator = must_calloc(exit + 1, sizeof *dominator);
    memset(dominator, 0xff, (exit + 1) * sizeof *dominator);
    dominator[exit] = exit;
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t i = r.count; i-- > 0;) {
            uint32_t b = r.order[i], found = UINT32_MAX;
            const Region *block = &g.blocks[b];
            uint32_t ways = block->next_count ? block->next_count : 1;
            for (uint32_t k = 0; k < ways; k++) {
                uint32_t s = block->next_count ? block->next[k] : exit;
                if (dominator[s] == UINT32_MAX) continue;
                if (found == UINT32_MAX) {
                    found = s;
                    continue;
                }
                while (found != s) { // meet on the way to the exit
                    while (r.number[found] < r.number[s])
                        found = dominator[found];
                    while (r.number[s] < r.number[found])
                        s = dominator[s];
                }
            }
            if (found != dominator[b]) {
                dominator[b] = found;
                changed = true;
            }
        }
    }
    for (uint32_t b = 0; b < exit; b++)
        if (g.blocks[b].next_count > 1 && dominator[b] < exit)
            reconverge[g.blocks[b].last] = g.blocks[dominator[b]].first;
    free(dominator);
    free(r.first);
    free(r.from);
    free(r.number);
    free(r.order);
    graph_free(&g);
}

/* ---- live ranges ----------------------------------------------------------------------------- */

typedef struct {
    uint32_t begin, end;
} Interval;

#define MAX_LIVENESS_WORDS ((size_t)64 << 20)

static void extend(Interval *interval, uint32_t at) {
    if (at < interval->begin) interval->begin = at;
    if (at > interval->end) interval->end = at;
}

/* Positions: an instruction reads at 4i, writes at 4i + 2 (at 4i + 1 reading still goes on where
 * lanes are crossed). */
static void live_intervals(const Graph *g, const Usage *usages, uint32_t registers,
                           Interval *intervals, bool *undefined) {
    uint32_t n = g->block_count;
    size_t words = (registers + 63) / 64;
    uint64_t *in = must_calloc(n * words, 8), *kill = must_calloc(n * words, 8);
    uint64_t *out = must_calloc(words, 8);
    for (uint32_t b = 0; b < n; b++) {
        uint64_t *gen = in + b * words, *dead = kill + b * words;
        for (uint32_t i = g->blocks[b].first; i <= g->blocks[b].last; i++) {
            const Usage *u = &usages[i];
            for (uint32_t k = 0; k < u->read_count; k++)
                if (!(dead[u->reads[k] / 64] >> (u->reads[k] % 64) & 1))
                    gen[u->reads[k] / 64] |= UINT64_C(1) << (u->reads[k] % 64);
            for (uint32_t k = 0; k < u->write_count; k++)
                dead[u->writes[k] / 64] |= UINT64_C(1) << (u->writes[k] % 64);
        }
    }
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t b = n; b-- > 0;) {
            memset(out, 0, words * 8);
            for (uint32_t k = 0; k < g->blocks[b].next_count; k++)
                for (size_t w = 0; w < words; w++)
                    out[w] |= in[g->blocks[b].next[k] * words + w];
            for (size_t w = 0; w < words; w++) {
                uint64_t live = in[b * words + w] | (out[w] & ~kill[b * words + w]);
                changed |= live != in[b * words + w];
                in[b * words + w] = live;
            }
        }
    }
    for (uint32_t reg = 0; reg < registers && n; reg++)
        undefined[reg] = in[reg / 64] >> (reg % 64) & 1;
    for (uint32_t b = 0; b < n; b++) {
        for (uint32_t i = g->blocks[b].first; i <= g->blocks[b].last; i++) {
            const Usage *u = &usages[i];
            for (uint32_t k = 0; k < u->read_count; k++)
                extend(&intervals[u->reads[k]], 4 * i + (u->crosses_lanes ? 3 : 0));
            for (uint32_t k = 0; k < u->write_count; k++)
                extend(&intervals[u->writes[k]], 4 * i + 2);
        }
        for (size_t w = 0; w < words; w++)
            for (uint64_t bits = in [b * words + w]; bits; bits &= bits - 1)
                extend(&intervals[w * 64 + (size_t)__builtin_ctzll(bits)], 4 * g->blocks[b].first);
        for (uint32_t k = 0; k < g->blocks[b].next_count; k++)
            for (size_t w = 0; w < words; w++)
                for (uint64_t bits = in [g->blocks[b].next[k] * words + w]; bits; bits &= bits - 1)
                    extend(&intervals[w * 64 + (size_t)__builtin_ctzll(bits)],
                           4 * g->blocks[b].last + 3);
    }
    free(in);
    free(kill);
    free(out);
}

static uint32_t size_class(uint8_t bytes) {
    return bytes == 0 ? 0 : bytes == 4 ? 1 : bytes == 8 ? 2 : 3;
}

typedef struct {
    uint32_t at, reg;
    bool is_end;
} Event;

static int compare_events(const void *a, const void *b) {
    const Event *x = a, *y = b;
    if (x->at != y->at) return x->at < y->at ? -1 : 1;
    return x->is_end == y->is_end ? (x->reg < y->reg ? -1 : x->reg > y->reg) : (x->is_end ? -1 : 1);
}

static uint32_t linear_scan(const Interval *intervals, const uint8_t *register_bytes,
                            uint32_t register_count, uint32_t frame, uint32_t *slots) {
    static const uint32_t class_bytes[4] = {32, 128, 256, 512};
    Event *events = must_calloc((size_t)register_count * 2, sizeof *events);
    uint32_t *spare[4], spare_count[4] = {0}, event_count = 0;
    for (int c = 0; c < 4; c++)
        spare[c] = must_calloc(register_count, sizeof **spare);
    for (uint32_t reg = 0; reg < register_count; reg++) {
        slots[reg] = frame;
        if (intervals[reg].begin > intervals[reg].end) continue; // nobody touches it
        events[event_count++] = (Event){intervals[reg].begin, reg, false};
        events[event_count++] = (Event){intervals[reg].end + 1, reg, true};
    }
    qsort(events, event_count, sizeof *events, compare_events);
    /* Predicates are small: a region of them first keeps the rest aligned. */
    for (int pass = 0; pass < 2; pass++) {
        for (uint32_t e = 0; e < event_count; e++) {
            uint32_t reg = events[e].reg, c = size_class(register_bytes[reg]);
            if ((c == 0) != (pass == 0)) continue;
            if (events[e].is_end) {
                spare[c][spare_count[c]++] = slots[reg];
            } else if (spare_count[c]) {
                slots[reg] = spare[c][--spare_count[c]];
            } else {
                slots[reg] = frame;
                frame += class_bytes[c];
            }
        }
        frame = (frame + 127) & ~127u;
    }
    for (int c = 0; c < 4; c++)
        free(spare[c]);
    free(events);
    return frame;
}

uint32_t flow_assign_slots(const FlowEdge *edges, const Usage *usages, uint32_t count,
                           const uint8_t *register_bytes, uint32_t register_count,
                           uint32_t first_slot, uint32_t *slots, bool *undefined) {
    Interval *intervals = must_calloc(register_count, sizeof *intervals);
    for (uint32_t reg = 0; reg < register_count; reg++)
        intervals[reg] = (Interval){UINT32_MAX, 0};
    if (count) {
        Graph g;
        graph_build(&g, edges, count);
        if ((size_t)g.block_count * ((register_count + 63) / 64) <= MAX_LIVENESS_WORDS) {
            live_intervals(&g, usages, register_count, intervals, undefined);
        } else { // too large to analyse: every register keeps a slot of its own
            for (uint32_t reg = 0; reg < register_count; reg++) {
                intervals[reg] = (Interval){0, UINT32_MAX - 1};
                undefined[reg] = true;
            }
        }
        graph_free(&g);
    }
    uint32_t frame = linear_scan(intervals, register_bytes, register_count, first_slot, slots);
    free(intervals);
    return frame;
}
