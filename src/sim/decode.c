/* decode.c - a parsed kernel becomes compact instructions.
 *
 * Each statement is matched with a row of instructions.def; the row's family knows where the
 * operands are. Operands are first references (to registers, constants, special registers); when
 * all instructions are known, registers get slots (decode_flow.c) and references become offsets
 * into the frame. What a kernel may call is decoded with it, so that the layout of shared memory
 * is the kernel's own.
 */
#include "sim/decode.h"
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_FRAME_BYTES (64u << 20)

bool decode_fail(Decoder *d, const char *format, ...) {
    if (d->failed)
        return false;
    d->failed = true;
    char what[320];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    snprintf(d->message, 512, "%s at PTX line %u", what, d->statement ? d->statement->line : 0);
    return false;
}

/* ---- references ------------------------------------------------------------------------------------ */

uint32_t decode_temp(Decoder *d, uint8_t bytes) {
    d->register_bytes = ptx_grow(d->register_bytes, d->register_count, &d->register_capacity, 1);
    d->register_bytes[d->register_count] = bytes;
    return d->register_count++;
}

static uint32_t fixed_slot(Decoder *d, FixedSlot wanted) {
    for (uint32_t i = 0; i < d->fixed_count; i++)
        if (d->fixed[i].kind == wanted.kind && d->fixed[i].bytes == wanted.bytes &&
            d->fixed[i].special == wanted.special && d->fixed[i].value == wanted.value)
            return REF_FIXED | i;
    d->fixed = ptx_grow(d->fixed, d->fixed_count, &d->fixed_capacity, sizeof *d->fixed);
    d->fixed[d->fixed_count] = wanted;
    return REF_FIXED | d->fixed_count++;
}

uint32_t decode_constant(Decoder *d, uint8_t bytes, uint64_t value) {
    if (bytes == 4)
        value = (uint32_t)value;
    return fixed_slot(d, (FixedSlot){.kind = 'c', .bytes = bytes, .value = value});
}

static void note(uint32_t **list, uint32_t *count, uint32_t *capacity, uint32_t ref) {
    if (ref == REF_NONE || ref & REF_FIXED)
        return;
    *list = ptx_grow(*list, *count, capacity, sizeof **list);
    (*list)[(*count)++] = ref & ~REF_UPPER;
}

static uint32_t reads(Decoder *d, uint32_t ref) {
    note(&d->pending_reads, &d->pending_read_count, &d->pending_read_capacity, ref);
    return ref;
}

static uint32_t writes(Decoder *d, uint32_t ref) {
    note(&d->pending_writes, &d->pending_write_count, &d->pending_write_capacity, ref);
    return ref;
}

static const struct {
    const char *name;
    Special special;
    uint8_t bytes;
} special_names[] = {
    {"%tid.x", SPECIAL_TID_X, 4}, {"%tid.y", SPECIAL_TID_Y, 4}, {"%tid.z", SPECIAL_TID_Z, 4},
    {"%ntid.x", SPECIAL_NTID_X, 4}, {"%ntid.y", SPECIAL_NTID_Y, 4}, {"%ntid.z", SPECIAL_NTID_Z, 4},
    {"%ctaid.x", SPECIAL_CTAID_X, 4}, {"%ctaid.y", SPECIAL_CTAID_Y, 4},
    {"%ctaid.z", SPECIAL_CTAID_Z, 4}, {"%nctaid.x", SPECIAL_NCTAID_X, 4},
    {"%nctaid.y", SPECIAL_NCTAID_Y, 4}, {"%nctaid.z", SPECIAL_NCTAID_Z, 4},
    {"%laneid", SPECIAL_LANEID, 4}, {"%warpid", SPECIAL_WARPID, 4},
    {"%nwarpid", SPECIAL_NWARPID, 4}, {"%smid", SPECIAL_SMID, 4}, {"%nsmid", SPECIAL_NSMID, 4},
    {"%gridid", SPECIAL_GRIDID, 8}, {"%lanemask_eq", SPECIAL_LANEMASK_EQ, 4},
    {"%lanemask_le", SPECIAL_LANEMASK_LE, 4}, {"%lanemask_lt", SPECIAL_LANEMASK_LT, 4},
    {"%lanemask_ge", SPECIAL_LANEMASK_GE, 4}, {"%lanemask_gt", SPECIAL_LANEMASK_GT, 4},
    {"%dynamic_smem_size", SPECIAL_DYNAMIC_SMEM, 4},
    {"%total_smem_size", SPECIAL_TOTAL_SMEM, 4}, {"%aggr_smem_size", SPECIAL_TOTAL_SMEM, 4},
    {"%clusterid.x", SPECIAL_CTAID_X, 4}, {"%clusterid.y", SPECIAL_CTAID_Y, 4},
    {"%clusterid.z", SPECIAL_CTAID_Z, 4}, {"%nclusterid.x", SPECIAL_NCTAID_X, 4},
    {"%nclusterid.y", SPECIAL_NCTAID_Y, 4}, {"%nclusterid.z", SPECIAL_NCTAID_Z, 4},
    {"%cluster_ctaid.x", SPECIAL_ZERO, 4}, {"%cluster_ctaid.y", SPECIAL_ZERO, 4},
    {"%cluster_ctaid.z", SPECIAL_ZERO, 4}, {"%cluster_nctaid.x", SPECIAL_ONE, 4},
    {"%cluster_nctaid.y", SPECIAL_ONE, 4}, {"%cluster_nctaid.z", SPECIAL_ONE, 4},
    {"%cluster_ctarank", SPECIAL_ZERO, 4}, {"%cluster_nctarank", SPECIAL_ONE, 4},
    {"%reserved_smem_offset_begin", SPECIAL_ZERO, 4}, {"%clock", SPECIAL_CLOCK, 4},
    {"%clock_hi", SPECIAL_CLOCK_HI, 4}, {"%clock64", SPECIAL_CLOCK64, 8},
    {"%globaltimer", SPECIAL_GLOBALTIMER, 8},
};

/* Clocks are read by an instruction of their own; the others lie in the frame. */
uint32_t decode_special(Decoder *d, const char *name, uint8_t bytes) {
    for (size_t i = 0; i < sizeof special_names / sizeof special_names[0]; i++) {
        if (strcmp(special_names[i].name, name))
            continue;
        Special special = special_names[i].special;
        if (special < SPECIAL_CLOCK)
            return fixed_slot(d, (FixedSlot){.kind = 's', .bytes = bytes, .special = special});
        uint32_t temp = decode_temp(d, bytes);
        Inst inst = {.row = ROW_mov_clock, .d = writes(d, temp), .aux = (uint8_t)special,
                     .shadow = SHADOW_CLEAR, .flags = bytes == 8 ? INST_WIDE_DATA : 0};
        decode_emit(d, inst);
        return temp;
    }
    decode_fail(d, "unknown special register '%.60s'", name);
    return REF_NONE;
}

static uint8_t lane_bytes(PtxType type) {
    return type.bytes == 0 ? 0 : type.bytes <= 4 ? 4 : type.bytes;
}

static uint64_t immediate(const PtxOperand *o, uint8_t bytes, bool is_float) {
    uint64_t bits = (uint64_t)o->value;
    if (o->kind == OPERAND_F64 && bytes == 4) {
        double wide;
        memcpy(&wide, &bits, sizeof wide);
        float narrow = (float)wide;
        bits = 0;
        memcpy(&bits, &narrow, sizeof narrow);
    } else if (o->kind == OPERAND_F32 && bytes == 8) {
        float narrow;
        memcpy(&narrow, &bits, sizeof narrow);
        double wide = (double)narrow;
        memcpy(&bits, &wide, sizeof wide);
    } else if (o->kind == OPERAND_INTEGER && is_float && bits) {
        double wide = (double)o->value;
        float narrow = (float)wide;
        bits = 0;
        if (bytes == 8)
            memcpy(&bits, &wide, sizeof wide);
        else
            memcpy(&bits, &narrow, sizeof narrow);
    }
    return bits;
}

uint32_t decode_source(Decoder *d, const PtxOperand *o, uint8_t bytes, bool is_float) {
    if (!o)
        return REF_NONE;
    switch (o->kind) {
    case OPERAND_INTEGER: case OPERAND_F32: case OPERAND_F64:
        return decode_constant(d, bytes, immediate(o, bytes, is_float));
    case OPERAND_SPECIAL:
        return reads(d, decode_special(d, o->name, bytes));
    case OPERAND_VARIABLE: case OPERAND_NAME: {
        uint64_t value;
        bool local = false;
        if (!decode_symbol_value(d, o, &value, &local))
            return REF_NONE;
        if (local) {
            decode_fail(d, "a local variable's address is used directly");
            return REF_NONE;
        }
        return decode_constant(d, bytes, value);
    }
    case OPERAND_REGISTER: {
        PtxType type = d->function->registers[o->index].type;
        uint8_t have = lane_bytes(type);
        if (have == 0 || have < bytes) {
            decode_fail(d, "register '%.60s' is too narrow here",
                        d->function->registers[o->index].name);
            return REF_NONE;
        }
        if (have == bytes)
            return reads(d, o->index);
        if (have > 8) {
            decode_fail(d, "a 128-bit register is not supported here");
            return REF_NONE;
        }
        uint32_t temp = decode_temp(d, bytes);
        Inst inst = {.row = ROW_narrow, .d = writes(d, temp), .a = reads(d, o->index),
                     .shadow = SHADOW_COPY, .source_count = 1};
        inst.widths = 2 | 3 << 2;
        decode_emit(d, inst);
        return reads(d, temp);
    }
    default:
        decode_fail(d, "operand of '%.80s' not understood", d->statement->opcode);
        return REF_NONE;
    }
}

uint32_t decode_target(Decoder *d, const PtxOperand *o, uint8_t bytes, bool is_signed) {
    if (!o)
        return REF_NONE;
    if (o->kind == OPERAND_SINK)
        return writes(d, decode_temp(d, bytes));
    if (o->kind != OPERAND_REGISTER) {
        decode_fail(d, "the target of '%.80s' is not a register", d->statement->opcode);
        return REF_NONE;
    }
    uint8_t have = lane_bytes(d->function->registers[o->index].type);
    if (have == bytes)
        return writes(d, o->index);
    if (have < bytes || have > 8 || d->widen_count == 16) {
        decode_fail(d, "register '%.60s' does not fit '%.80s'",
                    d->function->registers[o->index].name, d->statement->opcode);
        return REF_NONE;
    }
    uint32_t temp = decode_temp(d, bytes);
    d->widen[d->widen_count].reg = temp;
    d->widen[d->widen_count].wide = o->index;
    d->widen[d->widen_count++].is_signed = is_signed;
    return writes(d, temp);
}

uint32_t decode_predicate_source(Decoder *d, const PtxOperand *o, bool *negated) {
    if (!o)
        return REF_NONE;
    *negated = o->negated;
    if (o->kind == OPERAND_INTEGER)
        return decode_constant(d, 0, o->value ? FULL_MASK : 0);
    if (o->kind == OPERAND_SPECIAL && !strcmp(o->name, "%is_explicit_cluster"))
        return decode_constant(d, 0, 0);
    if (o->kind != OPERAND_REGISTER || d->function->registers[o->index].type.letter != 'p') {
        decode_fail(d, "a predicate is expected by '%.80s'", d->statement->opcode);
        return REF_NONE;
    }
    return reads(d, o->index);
}

uint32_t decode_predicate_target(Decoder *d, const PtxOperand *o) {
    if (!o || o->kind == OPERAND_SINK)
        return d->sink;
    if (o->kind != OPERAND_REGISTER || d->function->registers[o->index].type.letter != 'p') {
        decode_fail(d, "a predicate is expected by '%.80s'", d->statement->opcode);
        return REF_NONE;
    }
    return writes(d, o->index);
}

const PtxOperand *decode_operand(Decoder *d, uint32_t index) {
    if (index < d->statement->operand_count)
        return &d->statement->operands[index];
    decode_fail(d, "'%.80s' has too few operands", d->statement->opcode);
    return NULL;
}

uint32_t decode_list(Decoder *d, uint32_t ref) {
    d->code->lists = ptx_grow(d->code->lists, d->list_count, &d->list_capacity,
                              sizeof *d->code->lists);
    d->code->lists[d->list_count] = ref;
    return d->list_count++;
}

/* ---- symbols ------------------------------------------------------------------------------------------ */

static pthread_mutex_t place_lock = PTHREAD_MUTEX_INITIALIZER;

static uint64_t place_variable(PtxModule *module, PtxVariable *v, uint32_t depth) {
    if (v->placed)
        return v->address;
    uint64_t bytes = v->bytes ? v->bytes : 1;
    char *memory = memory_allocate(bytes, v->name);
    if (!memory)
        return 0;
    memset(memory, 0, bytes);
    if (v->data)
        memcpy(memory, v->data, v->data_bytes);
    memory_mark((uint64_t)(uintptr_t)memory, bytes, true);
    v->address = (uint64_t)(uintptr_t)memory;
    v->placed = true;
    for (PtxFixup *fixup = v->fixups; fixup && depth < 64; fixup = fixup->next) {
        PtxVariable *other = ptx_find_variable(module, fixup->symbol);
        if (!other || (other->space != SPACE_GLOBAL && other->space != SPACE_CONST))
            continue;
        uint64_t address = place_variable(module, other, depth + 1) + (uint64_t)fixup->addend;
        memcpy(memory + fixup->offset, &address, fixup->bytes <= 8 ? fixup->bytes : 8);
    }
    return v->address;
}

uint64_t variable_place(PtxModule *module, PtxVariable *variable) {
    pthread_mutex_lock(&place_lock);
    uint64_t address = place_variable(module, variable, 0);
    pthread_mutex_unlock(&place_lock);
    return address;
}

Code *program_code(Program *program, const PtxFunction *function, uint32_t *index) {
    for (uint32_t i = 0; i < program->count; i++)
        if (program->functions[i] == function) {
            *index = i;
            return program->codes[i];
        }
    return NULL;
}

static uint32_t param_index(const PtxFunction *f, const PtxVariable *v) {
    for (uint32_t i = 0; i < f->param_count; i++)
        if (f->params[i] == v)
            return i;
    return UINT32_MAX;
}

/* A variable's address in its own space; `local` when it counts from the frame's local memory. */
bool decode_symbol_value(Decoder *d, const PtxOperand *o, uint64_t *value, bool *local) {
    *local = false;
    PtxVariable *v = o->variable;
    if (o->kind == OPERAND_NAME) {
        PtxFunction *f = ptx_find_function(d->module, o->name);
        uint32_t index;
        v = ptx_find_variable(d->module, o->name);
        if (f && program_code(d->program, f, &index)) {
            *value = WINDOW_FUNCTION + index;
            return true;
        }
        if (!v)
            return decode_fail(d, "unknown name '%.120s'", o->name);
    }
    switch (v->space) {
    case SPACE_GLOBAL: case SPACE_CONST:
        *value = variable_place(d->module, v) + (uint64_t)o->value;
        if (!v->address)
            return decode_fail(d, "no memory for variable '%.120s'", v->name);
        return true;
    case SPACE_SHARED:
        for (uint32_t i = 0; i < d->program->shared_count; i++)
            if (d->program->shared[i].variable == v) {
                *value = d->program->shared[i].offset + (uint64_t)o->value;
                return true;
            }
        return decode_fail(d, "shared variable '%.120s' has no place", v->name);
    case SPACE_PARAM:
        if (d->function->is_entry && param_index(d->function, v) != UINT32_MAX) {
            *value = d->code->params.offset[param_index(d->function, v)] + (uint64_t)o->value;
            return true;
        }
        *local = true;
        *value = v->address + (uint64_t)o->value;
        return true;
    default:
        *local = true;
        *value = v->address + (uint64_t)o->value;
        return true;
    }
}

bool decode_address(Decoder *d, const PtxOperand *o, Inst *inst) {
    if (!o || o->kind != OPERAND_ADDRESS || !o->count)
        return decode_fail(d, "'%.80s' has no address", d->statement->opcode);
    const PtxOperand *base = &o->items[0];
    inst->displacement = o->value;
    inst->a = REF_NONE;
    if (base->kind == OPERAND_REGISTER) {
        PtxType type = d->function->registers[base->index].type;
        if (type.bytes != 4 && type.bytes != 8)
            return decode_fail(d, "an address has 32 or 64 bits");
        inst->a = reads(d, base->index);
        inst->flags |= type.bytes == 8 ? INST_WIDE_ADDRESS : 0;
        return true;
    }
    inst->flags |= INST_FIXED_ADDRESS;
    if (base->kind == OPERAND_INTEGER) {
        inst->displacement += base->value;
        return true;
    }
    if (base->kind != OPERAND_VARIABLE && base->kind != OPERAND_NAME)
        return decode_fail(d, "address of '%.80s' not understood", d->statement->opcode);
    uint64_t value;
    bool local;
    if (!decode_symbol_value(d, base, &value, &local))
        return false;
    inst->displacement += (int64_t)value;
    if (local)
        inst->space = SPACE_LOCAL;
    return true;
}

/* ---- emitting --------------------------------------------------------------------------------------- */

static void append_usage(Decoder *d) {
    Code *c = d->code;
    uint32_t need = d->pending_read_count + d->pending_write_count;
    while (d->usage_count + need > d->usage_data_capacity)
        d->usage_data = ptx_grow(d->usage_data, d->usage_data_capacity, &d->usage_data_capacity,
                                 sizeof(uint32_t));
    if (c->count >= d->usage_capacity) {
        d->usages = ptx_grow(d->usages, c->count, &d->usage_capacity, sizeof *d->usages);
        d->usage_first = realloc(d->usage_first, d->usage_capacity * sizeof *d->usage_first);
        if (!d->usage_first)
            abort();
    }
    d->usage_first[c->count] = d->usage_count;
    uint32_t *data = d->usage_data + d->usage_count;
    for (uint32_t i = 0; i < d->pending_read_count; i++)
        *data++ = d->pending_reads[i];
    for (uint32_t i = 0; i < d->pending_write_count; i++)
        *data++ = d->pending_writes[i];
    d->usages[c->count] = (Usage){.read_count = (uint16_t)d->pending_read_count,
                                  .write_count = (uint16_t)d->pending_write_count,
                                  .crosses_lanes = d->crosses};
    d->usage_count += need;
    d->pending_read_count = d->pending_write_count = 0;
}

Inst decode_inst(const Decoder *d) {
    return (Inst){.row = (uint16_t)d->row_id, .d = REF_NONE, .a = REF_NONE, .b = REF_NONE,
                  .c = REF_NONE, .e = REF_NONE, .control = d->row->control,
                  .shadow = d->row->shadow, .target = NO_PC};
}

Inst *decode_emit(Decoder *d, Inst inst) {
    Code *c = d->code;
    const PtxStatement *s = d->statement;
    if (c->count >= d->inst_capacity) {
        c->insts = ptx_grow(c->insts, c->count, &d->inst_capacity, sizeof *c->insts);
        c->origins = realloc(c->origins, d->inst_capacity * sizeof *c->origins);
        if (!c->origins)
            abort();
    }
    inst.guard = REF_NONE;
    if (s->guard != PTX_NO_GUARD) {
        inst.guard = reads(d, s->guard);
        inst.guard_kind = s->guard_negated ? GUARD_UNLESS : GUARD_IF;
        /* Where the guard fails the old value lives on, as if it were read and written back. A
         * temporary is only read under the same guard. */
        for (uint32_t i = 0; i < d->pending_write_count; i++)
            if (d->pending_writes[i] < d->function->register_count)
                reads(d, d->pending_writes[i]);
    }
    append_usage(d);
    c->insts[c->count] = inst;
    c->origins[c->count] = (Origin){s->loc, s->line, s->text, s->text_bytes};
    return &c->insts[c->count++];
}

static void emit_widenings(Decoder *d) {
    for (uint32_t i = 0; i < d->widen_count; i++) {
        Inst inst = {.row = d->widen[i].is_signed ? ROW_widen_s : ROW_widen_u,
                     .d = writes(d, d->widen[i].wide), .a = reads(d, d->widen[i].reg),
                     .shadow = d->widen[i].is_signed ? SHADOW_SIGNED : SHADOW_COPY,
                     .source_count = 1, .widths = 3 | 2 << 2};
        inst.b = inst.c = inst.e = REF_NONE;
        decode_emit(d, inst);
    }
    d->widen_count = 0;
}

static bool decode_statement(Decoder *d) {
    if (!opcode_split(d->statement->opcode, &d->opcode))
        return decode_fail(d, "unknown instruction '%.100s'", d->statement->opcode);
    d->row_id = row_for(d->statement->opcode, &d->opcode);
    if (d->row_id < 0)
        return decode_fail(d, "unknown instruction '%.100s'", d->statement->opcode);
    d->row = &sim_rows[d->row_id];
    d->crosses = d->row->family != FAMILY_LANES && d->row->family != FAMILY_CARRY;
    d->pending_read_count = d->pending_write_count = 0;
    if (!family_decoders[d->row->family](d) || d->failed)
        return false;
    emit_widenings(d);
    return !d->failed;
}

/* ---- the pieces become a Code ---------------------------------------------------------------------------- */

static FlowEdge *flow_edges(const Code *c) {
    FlowEdge *edges = calloc(c->count ? c->count : 1, sizeof *edges);
    if (!edges)
        abort();
    for (uint32_t i = 0; i < c->count; i++) {
        const Inst *inst = &c->insts[i];
        bool conditional = inst->guard_kind != GUARD_NONE;
        edges[i] = (FlowEdge){i, {i + 1 < c->count ? i + 1 : NO_PC, NO_PC}, NULL, 0};
        if (inst->control == CONTROL_BRANCH) {
            edges[i].next[conditional ? 1 : 0] = inst->target;
        } else if (inst->control == CONTROL_BRANCH_INDEX) {
            edges[i].more = c->lists + inst->list;
            edges[i].more_count = inst->count;
            if (!conditional)
                edges[i].next[0] = NO_PC;
        } else if ((inst->control == CONTROL_RETURN || inst->control == CONTROL_EXIT ||
                    inst->control == CONTROL_TRAP) && !conditional) {
            edges[i].next[0] = NO_PC;
        }
    }
    return edges;
}

static void layout_fixed(Decoder *d) {
    Code *c = d->code;
    c->constants = calloc(d->fixed_count + 1, sizeof *c->constants);
    c->specials = calloc(d->fixed_count + 1, sizeof *c->specials);
    if (!c->constants || !c->specials)
        abort();
    uint32_t at = 0;
    for (int pass = 0; pass < 2; pass++) {
        for (uint32_t i = 0; i < d->fixed_count; i++) {
            FixedSlot *f = &d->fixed[i];
            if ((f->bytes == 0) != (pass == 0))
                continue;
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
        if (!d->usage_data)
            break;
        d->usages[i].reads = d->usage_data + d->usage_first[i];
        d->usages[i].writes = d->usages[i].reads + d->usages[i].read_count;
    }
    layout_fixed(d);
    uint32_t *slots = calloc(d->register_count + 1, sizeof *slots);
    bool *undefined = calloc(d->register_count + 1, sizeof *undefined);
    if (!slots || !undefined)
        abort();
    if ((uint64_t)d->register_count * 64 > MAX_FRAME_BYTES) {
        free(slots);
        free(undefined);
        return decode_fail(d, "'%.120s' uses too many registers", d->function->name);
    }
    c->frame_bytes = flow_assign_slots(edges, d->usages, c->count, d->register_bytes,
                                       d->register_count, c->frame_bytes, slots, undefined);
    c->frame_bytes = (c->frame_bytes + 255) & ~255u;
    for (uint32_t i = 0; i < c->count; i++) {
        Inst *inst = &c->insts[i];
        uint32_t *refs[] = {&inst->d, &inst->a, &inst->b, &inst->c, &inst->e, &inst->guard};
        for (size_t k = 0; k < sizeof refs / sizeof refs[0]; k++)
            resolve(d, slots, refs[k]);
        inst->run = exec_handlers()[inst->row];
        bool data_list = inst->control != CONTROL_BRANCH_INDEX && inst->control != CONTROL_CALL;
        uint32_t entries = inst->control == CONTROL_SYNC ? 1 : inst->count;
        for (uint32_t k = 0; data_list && k < entries; k++)
            resolve(d, slots, &c->lists[inst->list + k]);
    }
    c->undefined = calloc((size_t)d->register_count * 2 + 2, sizeof *c->undefined);
    if (!c->undefined)
        abort();
    for (uint32_t reg = 0; reg < d->register_count; reg++)
        if (undefined[reg]) {
            c->undefined[c->undefined_count * 2] = slots[reg];
            c->undefined[c->undefined_count++ * 2 + 1] = d->register_bytes[reg];
        }
    free(slots);
    free(undefined);
    return true;
}

static uint32_t place_local(uint32_t *at, PtxVariable *v) {
    uint32_t align = v->align > 16 ? v->align : 16;
    *at = (*at + align - 1) & ~(align - 1);
    v->address = *at;
    *at += (uint32_t)v->bytes;
    return (uint32_t)v->address;
}

#define MAX_LOCAL_BYTES (512u << 10)

static bool layout_locals(Decoder *d) {
    Code *c = d->code;
    PtxFunction *f = d->function;
    uint32_t at = 0;
    if (f->param_count > 256)
        return decode_fail(d, "'%.120s' has more than 256 parameters", f->name);
    c->param_offsets = calloc(f->param_count + 1, sizeof(uint32_t));
    c->return_offsets = calloc(f->return_count + 1, sizeof(uint32_t));
    if (!c->param_offsets || !c->return_offsets)
        abort();
    uint64_t total = 0;
    for (PtxVariable *v = f->variables; v; v = v->next)
        total += v->space == SPACE_SHARED ? 0 : v->bytes + v->align;
    if (total > MAX_LOCAL_BYTES)
        return decode_fail(d, "'%.120s' uses too much local memory", f->name);
    c->params.count = f->is_entry ? f->param_count : 0;
    uint32_t param_at = 0;
    for (uint32_t i = 0; i < f->param_count; i++) {
        PtxVariable *v = f->params[i];
        if (!f->is_entry) {
            c->param_offsets[i] = place_local(&at, v);
            continue;
        }
        uint32_t align = v->align ? v->align : 1;
        param_at = (param_at + align - 1) & ~(align - 1);
        c->params.offset[i] = param_at;
        c->params.size[i] = (uint32_t)v->bytes;
        param_at += (uint32_t)v->bytes;
    }
    c->params.bytes = param_at;
    for (uint32_t i = 0; i < f->return_count; i++)
        c->return_offsets[i] = place_local(&at, f->returns[i]);
    for (PtxVariable *v = f->variables; v; v = v->next) {
        bool placed = v->space == SPACE_SHARED || param_index(f, v) != UINT32_MAX;
        for (uint32_t i = 0; i < f->return_count; i++)
            placed |= f->returns[i] == v;
        if (!placed)
            place_local(&at, v);
    }
    c->local_bytes = (at + 15) & ~15u;
    return true;
}

static void decoder_free(Decoder *d) {
    free(d->usages);
    free(d->usage_data);
    free(d->usage_first);
    free(d->pending_reads);
    free(d->pending_writes);
    free(d->register_bytes);
    free(d->fixed);
    free(d->statement_start);
}

static bool find_label(Decoder *d, const char *name, uint32_t scope, uint32_t *target) {
    const PtxFunction *f = d->function;
    for (;; scope = f->scope_parents[scope]) {
        for (uint32_t i = 0; i < f->label_count; i++)
            if (f->labels[i].scope == scope && f->labels[i].name == name &&
                !f->labels[i].is_branch_targets) {
                *target = d->statement_start[f->labels[i].statement];
                return true;
            }
        if (scope == 0 || f->scope_parents[scope] == UINT32_MAX || scope >= f->scope_count)
            return false;
    }
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
        d->statement = &f->statements[statement];
        if (inst->control == CONTROL_BRANCH) {
            const PtxOperand *o = decode_operand(d, 0);
            if (!o || o->kind != OPERAND_NAME ||
                !find_label(d, o->name, d->statement->scope, &inst->target))
                return decode_fail(d, "unknown label '%.120s'",
                                   o && o->name ? o->name : "?");
        } else if (inst->control == CONTROL_BRANCH_INDEX) {
            const PtxOperand *o = decode_operand(d, 1);
            const PtxLabel *table = NULL;
            for (uint32_t k = 0; o && k < f->label_count; k++)
                if (f->labels[k].is_branch_targets && f->labels[k].name == o->name)
                    table = &f->labels[k];
            if (!table || !table->target_count || table->target_count > 255)
                return decode_fail(d, "unknown list of branch targets");
            inst->count = (uint8_t)table->target_count;
            inst->list = d->list_count;
            for (uint32_t k = 0; k < table->target_count; k++) {
                uint32_t target;
                if (!table->targets[k].name ||
                    !find_label(d, table->targets[k].name, d->statement->scope, &target))
                    return decode_fail(d, "unknown label in a list of branch targets");
                decode_list(d, target);
            }
        }
    }
    return true;
}

static bool decode_body(Decoder *d) {
    PtxFunction *f = d->function;
    Code *c = d->code;
    for (uint32_t i = 0; i < f->register_count; i++)
        decode_temp(d, lane_bytes(f->registers[i].type));
    d->sink = fixed_slot(d, (FixedSlot){.kind = 'p'});
    d->carry = fixed_slot(d, (FixedSlot){.kind = 'p', .value = 1});
    d->statement_start = calloc(f->statement_count + 2, sizeof(uint32_t));
    if (!d->statement_start)
        abort();
    for (uint32_t i = 0; i < f->statement_count; i++) {
        d->statement = &f->statements[i];
        d->statement_index = i;
        d->statement_start[i] = c->count;
        if (!decode_statement(d))
            return false;
    }
    /* Falling off the end is a return; labels at the end have something to stand for. */
    static const PtxStatement end = {.opcode = "ret", .guard = PTX_NO_GUARD, .loc = PTX_NO_LOC,
                                     .text = "", .text_bytes = 0};
    d->statement_start[f->statement_count] = c->count;
    d->statement = &end;
    if (!decode_statement(d))
        return false;
    if (!resolve_branches(d))
        return false;
    FlowEdge *edges = flow_edges(c);
    uint32_t *reconverge = calloc(c->count, sizeof *reconverge);
    if (!reconverge)
        abort();
    flow_reconvergence(edges, c->count, reconverge);
    for (uint32_t i = 0; i < c->count; i++)
        c->insts[i].reconverge = reconverge[i];
    free(reconverge);
    bool ok = assign_slots(d, edges);
    free(edges);
    return ok;
}

/* ---- programs ------------------------------------------------------------------------------------------- */

static void add_function(Program *p, PtxFunction *f) {
    uint32_t index;
    if (f && !program_code(p, f, &index)) {
        uint32_t capacity = p->capacity;
        p->functions = ptx_grow(p->functions, p->count, &capacity, sizeof *p->functions);
        p->codes = ptx_grow(p->codes, p->count, &p->capacity, sizeof *p->codes);
        p->functions[p->count] = f;
        p->codes[p->count] = calloc(1, sizeof(Code));
        if (!p->codes[p->count])
            abort();
        p->codes[p->count]->function = f;
        p->codes[p->count]->module = p->module;
        p->count++;
    }
}

static void add_shared(Program *p, PtxVariable *v) {
    for (uint32_t i = 0; i < p->shared_count; i++)
        if (p->shared[i].variable == v)
            return;
    p->shared = ptx_grow(p->shared, p->shared_count, &p->shared_capacity, sizeof *p->shared);
    p->shared[p->shared_count++] = (SharedPlace){v, 0};
}

static void collect_operand(Program *p, const PtxOperand *o) {
    if (o->kind == OPERAND_NAME) {
        PtxVariable *v = ptx_find_variable(p->module, o->name);
        if (v && v->space == SPACE_SHARED)
            add_shared(p, v);
        add_function(p, ptx_find_function(p->module, o->name));
    }
    if (o->kind == OPERAND_VARIABLE && o->variable->space == SPACE_SHARED)
        add_shared(p, o->variable);
    for (uint32_t i = 0; i < o->count; i++)
        collect_operand(p, &o->items[i]);
}

static void place_shared(Program *p) {
    uint64_t at = 0;
    for (int dynamic = 0; dynamic < 2; dynamic++)
        for (uint32_t i = 0; i < p->shared_count; i++) {
            PtxVariable *v = p->shared[i].variable;
            if ((v->bytes == 0) != dynamic)
                continue;
            uint64_t align = dynamic ? (v->align > 16 ? v->align : 16) : (v->align ? v->align : 1);
            uint64_t place = (at + align - 1) / align * align;
            p->shared[i].offset = place;
            at = dynamic ? at : place + v->bytes;
        }
    p->static_shared = at;
}

static void program_collect(Program *p) {
    for (uint32_t i = 0; i < p->count; i++) {
        const PtxFunction *f = p->functions[i];
        for (uint32_t s = 0; s < f->statement_count; s++)
            for (uint32_t k = 0; k < f->statements[s].operand_count; k++)
                collect_operand(p, &f->statements[s].operands[k]);
    }
    place_shared(p);
}

/* Local memory that a call chain from `code` may need; recursion gets what is left. */
#define STACK_FOR_RECURSION (64u << 10)

static uint32_t stack_need(const Program *p, uint32_t index, uint8_t *visiting) {
    if (visiting[index])
        return STACK_FOR_RECURSION;
    visiting[index] = 1;
    const Code *c = p->codes[index];
    uint32_t deepest = 0;
    for (uint32_t i = 0; i < c->count; i++)
        if (c->insts[i].control == CONTROL_CALL) {
            uint32_t need = c->insts[i].target == NO_PC
                                ? STACK_FOR_RECURSION
                                : stack_need(p, c->insts[i].target, visiting);
            deepest = need > deepest ? need : deepest;
        }
    visiting[index] = 0;
    uint64_t total = (uint64_t)c->local_bytes + deepest;
    return total > MAX_LOCAL_BYTES ? MAX_LOCAL_BYTES : (uint32_t)total;
}

static void code_release(Code *c) {
    free(c->insts);
    free(c->origins);
    free(c->lists);
    free(c->constants);
    free(c->specials);
    free(c->undefined);
    free(c->param_offsets);
    free(c->return_offsets);
    free(c);
}

void code_free(Code *code) {
    if (!code)
        return;
    Code **callees = code->callees;
    for (uint32_t i = code->callee_count; i-- > 0;)
        code_release(callees[i]);
    free(callees);
}

Code *decode_function(PtxModule *module, PtxFunction *function, char message[512]) {
    Program p = {.module = module};
    add_function(&p, function);
    program_collect(&p);
    bool ok = true;
    for (uint32_t i = 0; ok && i < p.count; i++) {
        Decoder d = {.program = &p, .module = module, .function = p.functions[i],
                     .code = p.codes[i], .message = message};
        ok = layout_locals(&d);
        if (ok && p.functions[i]->has_body)
            ok = decode_body(&d);
        decoder_free(&d);
    }
    if (ok && p.static_shared > UINT32_MAX / 2) {
        snprintf(message, 512, "'%.200s' has too much shared memory", function->name);
        ok = false;
    }
    uint8_t *visiting = calloc(p.count, 1);
    if (!visiting)
        abort();
    for (uint32_t i = 0; i < p.count; i++) {
        Code *c = p.codes[i];
        c->callees = p.codes;
        c->callee_count = p.count;
        c->static_shared = (uint32_t)p.static_shared;
        c->ordered = p.ordered;
        c->stack_bytes = ok ? stack_need(&p, i, visiting) : 0;
    }
    free(visiting);
    Code *code = p.codes[0];
    free(p.functions);
    free(p.shared);
    if (ok)
        return code;
    code_free(code);
    return NULL;
}
