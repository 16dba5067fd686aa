/* decode_operands.c - operands as references: registers, constants, special registers, addresses.
 *
 * A reference is a register's number or a fixed slot; which offset in the frame it becomes is known
 * when the whole function has been read.
 */
#include "sim/decode.h"
#include <stdlib.h>
#include <string.h>

/* ---- references ------------------------------------------------------------------------------ */

uint32_t decode_temp(Decoder *d, uint8_t bytes) {
    d->register_bytes = ptx_grow(d->register_bytes, d->register_count, &d->register_capacity, 1);
    d->register_bytes[d->register_count] = bytes;
    return d->register_count++;
}

static uint32_t fixed_hash(const FixedSlot *f) {
    uint64_t key = f->value * UINT64_C(0x9e3779b97f4a7c15) + f->kind * 31u + f->bytes * 7u +
                   (uint64_t)f->special * UINT64_C(0x85ebca6b);
    return (uint32_t)((key * UINT64_C(0xc2b2ae3d27d4eb4f)) >> 32);
}

static bool fixed_equal(const FixedSlot *a, const FixedSlot *b) {
    return a->kind == b->kind && a->bytes == b->bytes && a->special == b->special &&
           a->value == b->value;
}

static void fixed_rehash(Decoder *d) {
    free(d->fixed_index);
    d->fixed_index_size = d->fixed_index_size ? d->fixed_index_size * 2 : 64;
    d->fixed_index = calloc(d->fixed_index_size, sizeof *d->fixed_index);
    if (!d->fixed_index) abort();
    for (uint32_t i = 0; i < d->fixed_count; i++) {
        uint32_t at = fixed_hash(&d->fixed[i]) % d->fixed_index_size;
        while (d->fixed_index[at])
            at = (at + 1) % d->fixed_index_size;
        d->fixed_index[at] = i + 1;
    }
}

static uint32_t fixed_slot(Decoder *d, FixedSlot wanted) {
    if (d->fixed_count * 2 >= d->fixed_index_size) fixed_rehash(d);
    uint32_t at = fixed_hash(&wanted) % d->fixed_index_size;
    for (uint32_t i; (i = d->fixed_index[at]); at = (at + 1) % d->fixed_index_size)
        if (fixed_equal(&d->fixed[i - 1], &wanted)) return REF_FIXED | (i - 1);
    d->fixed = ptx_grow(d->fixed, d->fixed_count, &d->fixed_capacity, sizeof *d->fixed);
    d->fixed[d->fixed_count] = wanted;
    d->fixed_index[at] = d->fixed_count + 1;
    return REF_FIXED | d->fixed_count++;
}

uint32_t decode_own_predicate(Decoder *d, uint32_t number) {
    return fixed_slot(d, (FixedSlot){.kind = 'p', .value = number});
}

uint32_t decode_constant(Decoder *d, uint8_t bytes, uint64_t value) {
    if (bytes == 4) value = (uint32_t)value;
    return fixed_slot(d, (FixedSlot){.kind = 'c', .bytes = bytes, .value = value});
}

static void note(uint32_t **list, uint32_t *count, uint32_t *capacity, uint32_t ref) {
    if (ref == REF_NONE || ref & REF_FIXED) return;
    *list = ptx_grow(*list, *count, capacity, sizeof **list);
    (*list)[(*count)++] = ref & ~REF_UPPER;
}

uint32_t decode_read(Decoder *d, uint32_t ref) {
    note(&d->pending_reads, &d->pending_read_count, &d->pending_read_capacity, ref);
    return ref;
}

uint32_t decode_write(Decoder *d, uint32_t ref) {
    note(&d->pending_writes, &d->pending_write_count, &d->pending_write_capacity, ref);
    return ref;
}

static const struct {
    const char *name;
    Special special;
    uint8_t bytes;
} special_names[] = {
    {"%tid.x", SPECIAL_TID_X, 4},
    {"%tid.y", SPECIAL_TID_Y, 4},
    {"%tid.z", SPECIAL_TID_Z, 4},
    {"%ntid.x", SPECIAL_NTID_X, 4},
    {"%ntid.y", SPECIAL_NTID_Y, 4},
    {"%ntid.z", SPECIAL_NTID_Z, 4},
    {"%ctaid.x", SPECIAL_CTAID_X, 4},
    {"%ctaid.y", SPECIAL_CTAID_Y, 4},
    {"%ctaid.z", SPECIAL_CTAID_Z, 4},
    {"%nctaid.x", SPECIAL_NCTAID_X, 4},
    {"%nctaid.y", SPECIAL_NCTAID_Y, 4},
    {"%nctaid.z", SPECIAL_NCTAID_Z, 4},
    {"%laneid", SPECIAL_LANEID, 4},
    {"%warpid", SPECIAL_WARPID, 4},
    {"%nwarpid", SPECIAL_NWARPID, 4},
    {"%smid", SPECIAL_SMID, 4},
    {"%nsmid", SPECIAL_NSMID, 4},
    {"%gridid", SPECIAL_GRIDID, 8},
    {"%lanemask_eq", SPECIAL_LANEMASK_EQ, 4},
    {"%lanemask_le", SPECIAL_LANEMASK_LE, 4},
    {"%lanemask_lt", SPECIAL_LANEMASK_LT, 4},
    {"%lanemask_ge", SPECIAL_LANEMASK_GE, 4},
    {"%lanemask_gt", SPECIAL_LANEMASK_GT, 4},
    {"%dynamic_smem_size", SPECIAL_DYNAMIC_SMEM, 4},
    {"%total_smem_size", SPECIAL_TOTAL_SMEM, 4},
    {"%aggr_smem_size", SPECIAL_TOTAL_SMEM, 4},
    {"%clusterid.x", SPECIAL_CTAID_X, 4},
    {"%clusterid.y", SPECIAL_CTAID_Y, 4},
    {"%clusterid.z", SPECIAL_CTAID_Z, 4},
    {"%nclusterid.x", SPECIAL_NCTAID_X, 4},
    {"%nclusterid.y", SPECIAL_NCTAID_Y, 4},
    {"%nclusterid.z", SPECIAL_NCTAID_Z, 4},
    {"%cluster_ctaid.x", SPECIAL_ZERO, 4},
    {"%cluster_ctaid.y", SPECIAL_ZERO, 4},
    {"%cluster_ctaid.z", SPECIAL_ZERO, 4},
    {"%cluster_nctaid.x", SPECIAL_ONE, 4},
    {"%cluster_nctaid.y", SPECIAL_ONE, 4},
    {"%cluster_nctaid.z", SPECIAL_ONE, 4},
    {"%cluster_ctarank", SPECIAL_ZERO, 4},
    {"%cluster_nctarank", SPECIAL_ONE, 4},
    {"%reserved_smem_offset_begin", SPECIAL_ZERO, 4},
    {"%clock", SPECIAL_CLOCK, 4},
    {"%clock_hi", SPECIAL_CLOCK_HI, 4},
    {"%clock64", SPECIAL_CLOCK64, 8},
    {"%globaltimer", SPECIAL_GLOBALTIMER, 8},
};

/* Clocks are read by an instruction of their own; the others lie in the frame. */
uint32_t decode_special(Decoder *d, const char *name, uint8_t bytes) {
    for (size_t i = 0; i < sizeof special_names / sizeof special_names[0]; i++) {
        if (strcmp(special_names[i].name, name)) continue;
        Special special = special_names[i].special;
        if (special < SPECIAL_CLOCK)
            return fixed_slot(d, (FixedSlot){.kind = 's', .bytes = bytes, .special = special});
        uint32_t temp = decode_temp(d, bytes);
        Inst inst = {.row = ROW_mov_clock,
                     .d = decode_write(d, temp),
                     .aux = (uint8_t)special,
                     .shadow = SHADOW_CLEAR,
                     .flags = bytes == 8 ? INST_WIDE_DATA : 0};
        decode_emit(d, inst);
        return temp;
    }
    decode_fail(d, "unknown special register '%.60s'", name);
    return REF_NONE;
}

uint8_t decode_lane_bytes(PtxType type) {
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
    if (!o) return REF_NONE;
    switch (o->kind) {
    case OPERAND_INTEGER:
    case OPERAND_F32:
    case OPERAND_F64:
        return decode_constant(d, bytes, immediate(o, bytes, is_float));
    case OPERAND_SPECIAL:
        return decode_read(d, decode_special(d, o->name, bytes));
    case OPERAND_VARIABLE:
    case OPERAND_NAME: {
        uint64_t value;
        bool local = false;
        if (!decode_symbol_value(d, o, &value, &local)) return REF_NONE;
        if (local) {
            decode_fail(d, "a local variable's address is used directly");
            return REF_NONE;
        }
        return decode_constant(d, bytes, value);
    }
    case OPERAND_REGISTER: {
        PtxType type = d->function->registers[o->index].type;
        uint8_t have = decode_lane_bytes(type);
        if (have == 0 || have < bytes) {
            decode_fail(d, "register '%.60s' is too narrow here",
                        d->function->registers[o->index].name);
            return REF_NONE;
        }
        if (have == bytes) return decode_read(d, o->index);
        if (have > 8) {
            decode_fail(d, "a 128-bit register is not supported here");
            return REF_NONE;
        }
        uint32_t temp = decode_temp(d, bytes);
        Inst inst = {.row = ROW_narrow,
                     .d = decode_write(d, temp),
                     .a = decode_read(d, o->index),
                     .shadow = SHADOW_COPY,
                     .source_count = 1};
        inst.widths = 2 | 3 << 2;
        decode_emit(d, inst);
        return decode_read(d, temp);
    }
    default:
        decode_fail(d, "operand of '%.80s' not understood", d->statement->opcode);
        return REF_NONE;
    }
}

uint32_t decode_target(Decoder *d, const PtxOperand *o, uint8_t bytes, bool is_signed) {
    if (!o) return REF_NONE;
    if (o->kind == OPERAND_SINK) return decode_write(d, decode_temp(d, bytes));
    if (o->kind != OPERAND_REGISTER) {
        decode_fail(d, "the target of '%.80s' is not a register", d->statement->opcode);
        return REF_NONE;
    }
    uint8_t have = decode_lane_bytes(d->function->registers[o->index].type);
    if (have == bytes) return decode_write(d, o->index);
    if (have < bytes || have > 8 || d->widen_count == 16) {
        decode_fail(d, "register '%.60s' does not fit '%.80s'",
                    d->function->registers[o->index].name, d->statement->opcode);
        return REF_NONE;
    }
    uint32_t temp = decode_temp(d, bytes);
    d->widen[d->widen_count].reg = temp;
    d->widen[d->widen_count].wide = o->index;
    d->widen[d->widen_count++].is_signed = is_signed;
    return decode_write(d, temp);
}

uint32_t decode_predicate_source(Decoder *d, const PtxOperand *o, bool *negated) {
    if (!o) return REF_NONE;
    *negated = o->negated;
    if (o->kind == OPERAND_INTEGER) return decode_constant(d, 0, o->value ? FULL_MASK : 0);
    if (o->kind == OPERAND_SPECIAL && !strcmp(o->name, "%is_explicit_cluster"))
        return decode_constant(d, 0, 0);
    if (o->kind != OPERAND_REGISTER || d->function->registers[o->index].type.letter != 'p') {
        decode_fail(d, "a predicate is expected by '%.80s'", d->statement->opcode);
        return REF_NONE;
    }
    return decode_read(d, o->index);
}

uint32_t decode_predicate_target(Decoder *d, const PtxOperand *o) {
    if (!o || o->kind == OPERAND_SINK) return d->sink;
    if (o->kind != OPERAND_REGISTER || d->function->registers[o->index].type.letter != 'p') {
        decode_fail(d, "a predicate is expected by '%.80s'", d->statement->opcode);
        return REF_NONE;
    }
    return decode_write(d, o->index);
}

const PtxOperand *decode_operand(Decoder *d, uint32_t index) {
    if (index < d->statement->operand_count) return &d->statement->operands[index];
    decode_fail(d, "'%.80s' has too few operands", d->statement->opcode);
    return NULL;
}

uint32_t decode_list(Decoder *d, uint32_t ref) {
    d->code->lists =
        ptx_grow(d->code->lists, d->list_count, &d->list_capacity, sizeof *d->code->lists);
    d->code->lists[d->list_count] = ref;
    return d->list_count++;
}

/* ---- symbols --------------------------------------------------------------------------------- */

uint32_t decode_param_index(const PtxFunction *f, const PtxVariable *v) {
    for (uint32_t i = 0; i < f->param_count; i++)
        if (f->params[i] == v) return i;
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
        if (!v) return decode_fail(d, "unknown name '%.120s'", o->name);
    }
    switch (v->space) {
    case SPACE_GLOBAL:
    case SPACE_CONST:
        *value = variable_place(d->module, v) + (uint64_t)o->value;
        if (!v->address) return decode_fail(d, "no memory for variable '%.120s'", v->name);
        return true;
    case SPACE_SHARED:
        for (uint32_t i = 0; i < d->program->shared_count; i++)
            if (d->program->shared[i].variable == v) {
                *value = d->program->shared[i].offset + (uint64_t)o->value;
                return true;
            }
        return decode_fail(d, "shared variable '%.120s' has no place", v->name);
    case SPACE_PARAM:
        if (d->function->is_entry && decode_param_index(d->function, v) != UINT32_MAX) {
            *value =
                d->code->params.offset[decode_param_index(d->function, v)] + (uint64_t)o->value;
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
        inst->a = decode_read(d, base->index);
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
    uint64_t value = 0;
    bool local = false;
    if (!decode_symbol_value(d, base, &value, &local)) return false;
    inst->displacement += (int64_t)value;
    if (local) inst->space = SPACE_LOCAL;
    return true;
}
