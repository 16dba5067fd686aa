/* decode.c - a parsed kernel becomes compact instructions.
 *
 * Each statement is matched with a row of instructions.def; the row's family knows where the
 * operands are. Operands are first references (to registers, constants, special registers); when
 * all instructions are known, registers get slots (decode_flow.c) and references become offsets
 * into the frame.
 */
#include "sim/decode.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_FRAME_BYTES (64u << 20)

bool decode_fail(Decoder *d, const char *format, ...) {
    if (d->failed) return false;
    d->failed = true;
    char what[320];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    snprintf(d->message, 512, "%s at PTX line %u", what, d->statement ? d->statement->line : 0);
    return false;
}

/* ---- emitting -------------------------------------------------------------------------------- */

static void append_usage(Decoder *d) {
    Code *c = d->code;
    uint32_t need = d->pending_read_count + d->pending_write_count;
    while (d->usage_count + need > d->usage_data_capacity)
        d->usage_data = ptx_grow(d->usage_data, d->usage_data_capacity, &d->usage_data_capacity,
                                 sizeof(uint32_t));
    if (c->count >= d->usage_capacity) {
        d->usages = ptx_grow(d->usages, c->count, &d->usage_capacity, sizeof *d->usages);
        d->usage_first = realloc(d->usage_first, d->usage_capacity * sizeof *d->usage_first);
        if (!d->usage_first) abort();
    }
    d->usage_first[c->count] = d->usage_count;
    uint32_t at = d->usage_count;
    for (uint32_t i = 0; i < d->pending_read_count; i++)
        d->usage_data[at++] = d->pending_reads[i];
    for (uint32_t i = 0; i < d->pending_write_count; i++)
        d->usage_data[at++] = d->pending_writes[i];
    d->usages[c->count] = (Usage){.read_count = (uint16_t)d->pending_read_count,
                                  .write_count = (uint16_t)d->pending_write_count,
                                  .crosses_lanes = d->crosses};
    d->usage_count += need;
    d->pending_read_count = d->pending_write_count = 0;
}

Inst decode_inst(const Decoder *d) {
    return (Inst){.row = (uint16_t)d->row_id,
                  .d = REF_NONE,
                  .a = REF_NONE,
                  .b = REF_NONE,
                  .c = REF_NONE,
                  .e = REF_NONE,
                  .control = d->row->control,
                  .shadow = d->row->shadow,
                  .target = NO_PC};
}

Inst *decode_emit(Decoder *d, Inst inst) {
    Code *c = d->code;
    const PtxStatement *s = d->statement;
    if (c->count >= d->inst_capacity) {
        c->insts = ptx_grow(c->insts, c->count, &d->inst_capacity, sizeof *c->insts);
        c->origins = realloc(c->origins, d->inst_capacity * sizeof *c->origins);
        if (!c->origins) abort();
    }
    inst.guard = REF_NONE;
    if (s->guard != PTX_NO_GUARD) {
        inst.guard = decode_read(d, s->guard);
        inst.guard_kind = s->guard_negated ? GUARD_UNLESS : GUARD_IF;
        /* Where the guard fails the old value lives on, as if it were read and written back. A
         * temporary is only read under the same guard. */
        for (uint32_t i = 0; i < d->pending_write_count; i++)
            if (d->pending_writes[i] < d->function->register_count)
                decode_read(d, d->pending_writes[i]);
    }
    append_usage(d);
    c->insts[c->count] = inst;
    c->origins[c->count] = (Origin){s->loc, s->line, s->text, s->text_bytes};
    return &c->insts[c->count++];
}

static void emit_widenings(Decoder *d) {
    for (uint32_t i = 0; i < d->widen_count; i++) {
        Inst inst = {.row = d->widen[i].is_signed ? ROW_widen_s : ROW_widen_u,
                     .d = decode_write(d, d->widen[i].wide),
                     .a = decode_read(d, d->widen[i].reg),
                     .shadow = d->widen[i].is_signed ? SHADOW_SIGNED : SHADOW_COPY,
                     .source_count = 1,
                     .widths = 3 | 2 << 2};
        inst.b = inst.c = inst.e = REF_NONE;
        decode_emit(d, inst);
    }
    d->widen_count = 0;
}

static bool decode_statement(Decoder *d) {
    if (!opcode_split(d->statement->opcode, &d->opcode))
        return decode_fail(d, "unknown instruction '%.100s'", d->statement->opcode);
    d->row_id = row_for(d->statement->opcode, &d->opcode);
    if (d->row_id < 0) return decode_fail(d, "unknown instruction '%.100s'", d->statement->opcode);
    d->row = &sim_rows[d->row_id];
    d->crosses = d->row->family != FAMILY_LANES && d->row->family != FAMILY_CARRY;
    d->pending_read_count = d->pending_write_count = 0;
    if (!family_decoders[d->row->family](d) || d->failed) return false;
    emit_widenings(d);
    return !d->failed;
}

/* ---- the pieces become a Code ---------------------------------------------------------------- */

static FlowEdge *flow_edges(const Code *c) {
    FlowEdge *edges = calloc(c->count ? c->count : 1, sizeof *edges);
    if (!edges) abort();
    for (uint32_t i = 0; i < c->count; i++) {
        const Inst *inst = &c->insts[i];
        bool conditional = inst->guard_kind != GUARD_NONE;
        edges[i] = (FlowEdge){i, {i + 1 < c->count ? i + 1 : NO_PC, NO_PC}, NULL, 0};
        if (inst->control == CONTROL_BRANCH) {
            edges[i].next[conditional ? 1 : 0] = inst->target;
        } else if (inst->control == CONTROL_BRANCH_INDEX) {
            edges[i].more = c->lists + inst->list;
            edges[i].more_count = inst->count;
            if (!conditional) edges[i].next[0] = NO_PC;
        } else if ((inst->control == CONTROL_RETURN || inst->control == CONTROL_EXIT ||
                    inst->control == CONTROL_TRAP) &&
                   !conditional) {
            edges[i].next[0] = NO_PC;
        }
    }
    return edges;
}

static void layout_fixed(Decoder *d) {
    Code *c = d->code;
    c->constants = calloc(d->fixed_count + 1, sizeof *c->constants);
    c->specials = calloc(d->fixed_count + 1, sizeof *c->specials);
    if (!c->constants || !c->specials) abort();
    uint32_t at = 0;
    for (int pass = 0; pass < 2; pass++) {
        for (uint32_t i = 0; i < d->fixed_count; i++) {
            FixedSlot *f = &d->fixed[i];
            if ((f->bytes == 0) != (pass == 0)) continue;
            f->slot = at;
            at += f->bytes ? 32u * f->bytes : 32u;
            if (f->kind == 'c')
                c->constants[c->constant_count++] = (Constant){f->slot, f->bytes, f->value};
            else if (f->kind == 's')
                c->specials[c->special_count++] = (SpecialSlot){f->slot, f->special, f->bytes};
        }
        at = (at + 127) & ~127u;
    }
    c->frame_bytes = at;
}

static void resolve(const Decoder *d, const uint32_t *slots, uint32_t *ref) {
    if (*ref == REF_NONE)
        *ref = 0;
    else if (*ref & REF_FIXED)
        *ref = d->fixed[*ref & ~REF_FIXED].slot;
    else
        *ref = slots[*ref & ~REF_UPPER] + (*ref & REF_UPPER ? 256 : 0);
}

static bool assign_slots(Decoder *d, FlowEdge *edges) {
    Code *c = d->code;
    for (uint32_t i = 0; i < c->count; i++) {
        if (!d->usages[i].read_count && !d->usages[i].write_count) continue;
        d->usages[i].reads = d->usage_data + d->usage_first[i];
        d->usages[i].writes = d->usages[i].reads + d->usages[i].read_count;
    }
    layout_fixed(d);
    uint32_t *slots = calloc(d->register_count + 1, sizeof *slots);
    bool *undefined = calloc(d->register_count + 1, sizeof *undefined);
    if (!slots || !undefined) abort();
    if ((uint64_t)d->register_count * 64 > MAX_FRAME_BYTES) {
        free(slots);
        free(undefined);
        return decode_fail(d, "'%.120s' uses too many registers", d->function->name);
    }
    c->frame_bytes = flow_assign_slots(edges, d->usages, c->count, d->register_bytes,
                                       d->register_count, c->frame_bytes, slots, undefined);
    c->frame_bytes = (c->frame_bytes + 255) & ~255u;
    const RunFn *handlers = exec_handlers();
    for (uint32_t i = 0; i < c->count; i++) {
        Inst *inst = &c->insts[i];
        uint32_t *refs[] = {&inst->d, &inst->a, &inst->b, &inst->c, &inst->e, &inst->guard};
        for (size_t k = 0; k < sizeof refs / sizeof refs[0]; k++)
            resolve(d, slots, refs[k]);
        inst->run = handlers[inst->row];
        bool data_list = inst->control != CONTROL_BRANCH_INDEX && inst->control != CONTROL_CALL;
        uint32_t entries = inst->control == CONTROL_SYNC ? 1 : inst->count;
        for (uint32_t k = 0; data_list && k < entries; k++)
            resolve(d, slots, &c->lists[inst->list + k]);
    }
    c->undefined = calloc((size_t)d->register_count * 2 + 2, sizeof *c->undefined);
    if (!c->undefined) abort();
    for (uint32_t reg = 0; reg < d->register_count; reg++)
        if (undefined[reg]) {
            c->undefined[c->undefined_count * 2] = slots[reg];
            c->undefined[c->undefined_count++ * 2 + 1] = d->register_bytes[reg];
        }
    free(slots);
    free(undefined);
    return true;
}

void decoder_free(Decoder *d) {
    free(d->usages);
    free(d->usage_data);
    free(d->usage_first);
    free(d->pending_reads);
    free(d->pending_writes);
    free(d->register_bytes);
    free(d->fixed);
    free(d->fixed_index);
    free(d->labels);
    free(d->statement_start);
}

static int compare_labels(const void *a, const void *b) {
    const PtxLabel *x = a, *y = b;
    if (x->name != y->name) return (uintptr_t)x->name < (uintptr_t)y->name ? -1 : 1;
    return x->scope == y->scope ? 0 : x->scope < y->scope ? -1 : 1;
}

/* The label of that name in `scope` or the nearest one around it. Names are interned. */
static const PtxLabel *find_label(Decoder *d, const char *name, uint32_t scope) {
    const PtxFunction *f = d->function;
    if (!d->labels) {
        d->labels = calloc(f->label_count + 1, sizeof *d->labels);
        if (!d->labels) abort();
        for (uint32_t i = 0; i < f->label_count; i++)
            d->labels[i] = f->labels[i];
        qsort(d->labels, f->label_count, sizeof *d->labels, compare_labels);
    }
    while (name && scope < f->scope_count) {
        PtxLabel key = {.name = name, .scope = scope};
        const PtxLabel *found =
            bsearch(&key, d->labels, f->label_count, sizeof key, compare_labels);
        if (found) return found;
        scope = f->scope_parents[scope];
    }
    return NULL;
}

static bool label_target(Decoder *d, const PtxOperand *o, uint32_t *target) {
    const PtxLabel *label =
        o && o->kind == OPERAND_NAME ? find_label(d, o->name, d->statement->scope) : NULL;
    if (!label || label->is_branch_targets)
        return decode_fail(d, "unknown label '%.120s'", o && o->name ? o->name : "?");
    *target = d->statement_start[label->statement];
    return true;
}

/* Branches were emitted with statement numbers; names become instructions now. */
static bool resolve_branches(Decoder *d) {
    Code *c = d->code;
    PtxFunction *f = d->function;
    uint32_t statement = 0;
    for (uint32_t i = 0; i < c->count; i++) {
        Inst *inst = &c->insts[i];
        while (statement + 1 < f->statement_count && d->statement_start[statement + 1] <= i)
            statement++;
        if (statement < f->statement_count) d->statement = &f->statements[statement];
        if (inst->control == CONTROL_BRANCH) {
            if (!label_target(d, decode_operand(d, 0), &inst->target)) return false;
        } else if (inst->control == CONTROL_BRANCH_INDEX) {
            const PtxOperand *o = decode_operand(d, 1);
            const PtxLabel *table =
                o && o->kind == OPERAND_NAME ? find_label(d, o->name, d->statement->scope) : NULL;
            if (!table || !table->is_branch_targets || !table->target_count ||
                table->target_count > 255)
                return decode_fail(d, "unknown list of branch targets");
            inst->count = (uint8_t)table->target_count;
            inst->list = d->list_count;
            for (uint32_t k = 0; k < inst->count; k++) {
                uint32_t target = 0;
                if (!label_target(d, &table->targets[k], &target)) return false;
                decode_list(d, target);
            }
        }
    }
    return true;
}

bool decode_body(Decoder *d) {
    PtxFunction *f = d->function;
    Code *c = d->code;
    for (uint32_t i = 0; i < f->register_count; i++)
        decode_temp(d, decode_lane_bytes(f->registers[i].type));
    decode_list(d, 0); // so that there always is a list
    d->sink = decode_own_predicate(d, 0);
    d->carry = decode_own_predicate(d, 1);
    d->statement_start = calloc(f->statement_count + 2, sizeof(uint32_t));
    if (!d->statement_start) abort();
    for (uint32_t i = 0; i < f->statement_count; i++) {
        d->statement = &f->statements[i];
        d->statement_index = i;
        d->statement_start[i] = c->count;
        if (!decode_statement(d)) return false;
    }
    /* Falling off the end is a return; labels at the end have something to stand for. */
    static const PtxStatement end = {
        .opcode = "ret", .guard = PTX_NO_GUARD, .loc = PTX_NO_LOC, .text = "", .text_bytes = 0};
    d->statement_start[f->statement_count] = c->count;
    d->statement = &end;
    if (!decode_statement(d)) return false;
    if (!resolve_branches(d)) return false;
    FlowEdge *edges = flow_edges(c);
    uint32_t *reconverge = calloc(c->count, sizeof *reconverge);
    if (!reconverge) abort();
    flow_reconvergence(edges, c->count, reconverge);
    for (uint32_t i = 0; i < c->count; i++)
        c->insts[i].reconverge = reconverge[i];
    free(reconverge);
    bool ok = assign_slots(d, edges);
    free(edges);
    return ok;
}
