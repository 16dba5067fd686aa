/* decode_families.c - where the operands of each family of instructions are. */
#include "sim/decode.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* An address's window-free value is a constant; that of a local variable depends on the frame. */
static bool decode_local_address(Decoder *d, uint64_t offset) {
    Inst inst = decode_inst(d);
    inst.row = ROW_local_address;
    inst.shadow = SHADOW_CLEAR;
    uint8_t bytes = d->row->bytes[0];
    inst.d = decode_target(d, decode_operand(d, 0), bytes, false);
    inst.flags = bytes == 8 ? INST_WIDE_DATA : 0;
    inst.displacement = (int64_t)offset;
    decode_emit(d, inst);
    return true;
}

/* mov.b32 d, {a, b} and mov.b64 {a, b}, d: elements side by side in one register. */
static bool decode_pack(Decoder *d, bool pack) {
    const PtxOperand *whole = decode_operand(d, pack ? 0 : 1);
    const PtxOperand *vector = decode_operand(d, pack ? 1 : 0);
    if (!whole || !vector) return false;
    uint8_t whole_bytes = d->row->type_bytes[0];
    uint32_t count = vector->count;
    if (!count || whole_bytes % count || whole_bytes / count > 8 || count > 8)
        return decode_fail(d, "'%.80s' cannot have %u elements", d->statement->opcode, count);
    Inst inst = decode_inst(d);
    inst.row = pack ? ROW_mov_pack : ROW_mov_unpack;
    inst.shadow = SHADOW_OWN;
    inst.count = (uint8_t)count;
    inst.bytes = (uint8_t)(whole_bytes / count);
    inst.flags = whole_bytes == 8 ? INST_WIDE_DATA : 0;
    uint8_t part_bytes = inst.bytes <= 4 ? 4 : 8, lanes = whole_bytes <= 4 ? 4 : 8;
    uint32_t refs[8];
    for (uint32_t i = 0; i < count; i++)
        refs[i] = pack ? decode_source(d, &vector->items[i], part_bytes, false)
                       : decode_target(d, &vector->items[i], part_bytes, false);
    if (pack)
        inst.d = decode_target(d, whole, lanes, false);
    else
        inst.a = decode_source(d, whole, lanes, false);
    inst.list = decode_list(d, refs[0]);
    for (uint32_t i = 1; i < count; i++)
        decode_list(d, refs[i]);
    d->crosses = true;
    decode_emit(d, inst);
    return true;
}

static bool decode_lanes(Decoder *d) {
    const Row *row = d->row;
    const PtxOperand *target = decode_operand(d, 0), *first = decode_operand(d, 1);
    if (!target || !first) return false;
    if (!strcmp(d->opcode.part[0], "mov")) {
        if (first->kind == OPERAND_VECTOR || target->kind == OPERAND_VECTOR)
            return decode_pack(d, first->kind == OPERAND_VECTOR);
        if (first->kind == OPERAND_VARIABLE) {
            uint64_t value;
            bool local;
            if (!decode_symbol_value(d, first, &value, &local)) return false;
            if (local) return decode_local_address(d, value);
        }
    }
    if (d->statement->operand_count != row->count + 1u)
        return decode_fail(d, "'%.80s' takes %u operands", d->statement->opcode, row->count + 1u);
    Inst inst = decode_inst(d);
    uint32_t refs[3] = {REF_NONE, REF_NONE, REF_NONE};
    for (uint32_t i = 0; i < row->count; i++)
        refs[i] = decode_source(d, decode_operand(d, i + 1), row->bytes[i + 1],
                                row->floats >> (i + 1) & 1);
    inst.a = refs[0];
    inst.b = refs[1];
    inst.c = refs[2];
    inst.d = decode_target(d, target, row->bytes[0], row->arg);
    inst.source_count = row->count;
    inst.bytes = row->type_bytes[1];
    inst.widths = 0;
    for (uint32_t i = 0; i <= row->count; i++)
        inst.widths |= (uint8_t)((row->bytes[i] == 8 ? 3 : 2) << (2 * i));
    decode_emit(d, inst);
    return true;
}

static uint8_t boolean_operator(const Opcode *opcode) {
    return opcode_has(opcode, "and")   ? 1
           : opcode_has(opcode, "or")  ? 2
           : opcode_has(opcode, "xor") ? 3
                                       : 0;
}

static bool decode_compare(Decoder *d) {
    const Row *row = d->row;
    Inst inst = decode_inst(d);
    const PtxOperand *target = decode_operand(d, 0);
    inst.aux = boolean_operator(&d->opcode);
    bool is_float = row->floats >> 1 & 1, negated = false;
    inst.a = decode_source(d, decode_operand(d, 1), row->bytes[1], is_float);
    inst.b = decode_source(d, decode_operand(d, 2), row->bytes[2], is_float);
    if (d->failed || !target) return false;
    bool pair = target->kind == OPERAND_PAIR;
    inst.e = d->sink;
    if (inst.aux) inst.e = decode_predicate_source(d, decode_operand(d, 3), &negated);
    inst.c = pair ? decode_predicate_target(d, &target->items[1]) : d->sink;
    inst.d = decode_predicate_target(d, pair ? &target->items[0] : target);
    inst.flags = negated ? INST_NEGATE_E : 0;
    inst.source_count = 2;
    inst.widths = (uint8_t)((row->bytes[1] == 8 ? 3 : 2) << 2 | (row->bytes[2] == 8 ? 3 : 2) << 4);
    decode_emit(d, inst);
    return true;
}

static bool decode_carry(Decoder *d) {
    const Row *row = d->row;
    Inst inst = decode_inst(d);
    uint32_t *refs[] = {&inst.a, &inst.b, &inst.c};
    for (uint32_t i = 0; i < row->count && i < 3; i++)
        *refs[i] = decode_source(d, decode_operand(d, i + 1), row->bytes[i + 1], false);
    inst.d = decode_target(d, decode_operand(d, 0), row->bytes[0], false);
    inst.e = d->carry;
    inst.aux = row->arg;
    inst.source_count = row->count;
    uint8_t width = row->bytes[0] == 8 ? 3 : 2;
    inst.widths = (uint8_t)(width | width << 2 | width << 4 | width << 6);
    decode_emit(d, inst);
    return true;
}

static bool decode_bfi(Decoder *d) {
    uint8_t bytes = d->row->arg;
    Inst inst = decode_inst(d);
    inst.a = decode_source(d, decode_operand(d, 1), bytes, false);
    inst.b = decode_source(d, decode_operand(d, 2), bytes, false);
    inst.c = decode_source(d, decode_operand(d, 3), 4, false);
    inst.e = decode_source(d, decode_operand(d, 4), 4, false);
    inst.d = decode_target(d, decode_operand(d, 0), bytes, false);
    inst.source_count = 4;
    inst.shadow = SHADOW_ANY;
    uint8_t width = bytes == 8 ? 3 : 2;
    inst.widths = (uint8_t)(width | width << 2 | width << 4 | 2 << 6);
    decode_emit(d, inst);
    return true;
}

static bool decode_lop3(Decoder *d) {
    const PtxOperand *table = decode_operand(d, 4);
    if (!table || table->kind != OPERAND_INTEGER || table->value & ~0xffll)
        return decode_fail(d, "lop3 takes a table of 8 bits");
    Inst inst = decode_inst(d);
    inst.a = decode_source(d, decode_operand(d, 1), 4, false);
    inst.b = decode_source(d, decode_operand(d, 2), 4, false);
    inst.c = decode_source(d, decode_operand(d, 3), 4, false);
    inst.d = decode_target(d, decode_operand(d, 0), 4, false);
    inst.aux = (uint8_t)table->value;
    inst.shadow = SHADOW_BITS;
    inst.source_count = 3;
    inst.widths = 2 | 2 << 2 | 2 << 4 | 2 << 6;
    decode_emit(d, inst);
    return true;
}

static bool decode_move_wide(Decoder *d) {
    return decode_fail(d, "unknown instruction '%.80s'", d->statement->opcode);
}

/* mov/and/or/xor/not/selp on predicates: aux says which. */
static bool decode_predicate(Decoder *d) {
    Inst inst = decode_inst(d);
    uint32_t sources = d->row->arg == 0 || d->row->arg == 4 ? 1 : d->row->arg == 5 ? 3 : 2;
    uint32_t *refs[] = {&inst.a, &inst.b, &inst.e};
    inst.b = inst.e = d->sink;
    for (uint32_t i = 0; i < sources; i++) {
        bool negated = false;
        *refs[i] = decode_predicate_source(d, decode_operand(d, i + 1), &negated);
        if (negated) inst.displacement |= INT64_C(1) << i;
    }
    inst.d = decode_predicate_target(d, decode_operand(d, 0));
    inst.aux = d->row->arg;
    inst.shadow = SHADOW_PREDICATE;
    decode_emit(d, inst);
    return true;
}

static bool decode_select(Decoder *d) {
    uint8_t bytes = d->row->arg;
    bool negated = false;
    Inst inst = decode_inst(d);
    inst.a = decode_source(d, decode_operand(d, 1), bytes,
                           opcode_has(&d->opcode, "f32") || opcode_has(&d->opcode, "f64"));
    inst.b = decode_source(d, decode_operand(d, 2), bytes,
                           opcode_has(&d->opcode, "f32") || opcode_has(&d->opcode, "f64"));
    inst.e = decode_predicate_source(d, decode_operand(d, 3), &negated);
    inst.d = decode_target(d, decode_operand(d, 0), bytes, opcode_has(&d->opcode, "s32"));
    inst.flags = negated ? INST_NEGATE_E : 0;
    inst.shadow = SHADOW_SELECT;
    uint8_t width = bytes == 8 ? 3 : 2;
    inst.widths = (uint8_t)(width | width << 2 | width << 4);
    decode_emit(d, inst);
    return true;
}

static bool decode_testp(Decoder *d) {
    static const char *const tests[] = {"finite",     "infinite", "number",
                                        "notanumber", "normal",   "subnormal"};
    Inst inst = decode_inst(d);
    for (uint8_t i = 0; i < 6; i++)
        if (!strcmp(d->opcode.part[1], tests[i])) inst.aux = i;
    inst.a = decode_source(d, decode_operand(d, 1), d->row->arg, true);
    inst.d = decode_predicate_target(d, decode_operand(d, 0));
    inst.source_count = 1;
    inst.shadow = SHADOW_ANY;
    inst.widths = (uint8_t)((d->row->arg == 8 ? 3 : 2) << 2);
    decode_emit(d, inst);
    return true;
}

static bool decode_nothing(Decoder *d) {
    Inst inst = decode_inst(d);
    inst.shadow = SHADOW_OWN;
    decode_emit(d, inst);
    return true;
}

static bool space_of(const Opcode *opcode, uint8_t *space) {
    for (uint32_t i = 1; i < opcode->count; i++)
        if (decode_space(opcode->part[i], space)) return true;
    return false;
}

/* Between a space's addresses and generic ones: a window is added or taken away. */
static bool decode_cvta(Decoder *d) {
    Inst inst = decode_inst(d);
    bool wide = opcode_has(&d->opcode, "u64") || opcode_has(&d->opcode, "s64") ||
                opcode_has(&d->opcode, "b64");
    const PtxOperand *source = decode_operand(d, 1);
    if (!wide || !space_of(&d->opcode, &inst.space) || !source)
        return decode_fail(d, "'%.80s' is not supported", d->statement->opcode);
    uint64_t value;
    bool local = false;
    if (source->kind == OPERAND_VARIABLE && !decode_symbol_value(d, source, &value, &local))
        return false;
    if (local) {
        Inst base = {.row = ROW_local_address,
                     .shadow = SHADOW_CLEAR,
                     .flags = INST_WIDE_DATA,
                     .displacement = (int64_t)value,
                     .a = REF_NONE,
                     .b = REF_NONE,
                     .c = REF_NONE,
                     .e = REF_NONE};
        inst.a = base.d = decode_target(d, &(PtxOperand){.kind = OPERAND_SINK}, 8, false);
        decode_emit(d, base);
        inst.a = decode_read(d, inst.a);
    } else {
        inst.a = decode_source(d, source, 8, false);
    }
    inst.d = decode_target(d, decode_operand(d, 0), 8, false);
    inst.aux = d->row->arg;
    inst.shadow = SHADOW_COPY;
    inst.source_count = 1;
    inst.widths = 3 | 3 << 2;
    decode_emit(d, inst);
    return true;
}

static bool decode_isspacep(Decoder *d) {
    Inst inst = decode_inst(d);
    if (!space_of(&d->opcode, &inst.space))
        return decode_fail(d, "'%.80s' is not supported", d->statement->opcode);
    inst.a = decode_source(d, decode_operand(d, 1), 8, false);
    inst.d = decode_predicate_target(d, decode_operand(d, 0));
    inst.source_count = 1;
    inst.shadow = SHADOW_ANY;
    inst.widths = 3 << 2;
    decode_emit(d, inst);
    return true;
}

/* ---- warps and blocks ------------------------------------------------------------------------ */

static bool decode_shuffle(Decoder *d) {
    static const char *const modes[] = {"up", "down", "bfly", "idx"};
    Inst inst = decode_inst(d);
    const PtxOperand *target = decode_operand(d, 0);
    for (uint8_t i = 0; i < 4; i++)
        if (!strcmp(d->opcode.part[2], modes[i])) inst.aux = i;
    inst.a = decode_source(d, decode_operand(d, 1), 4, false);
    inst.b = decode_source(d, decode_operand(d, 2), 4, false);
    inst.c = decode_source(d, decode_operand(d, 3), 4, false);
    uint32_t members = decode_source(d, decode_operand(d, 4), 4, false);
    if (d->failed || !target) return false;
    bool pair = target->kind == OPERAND_PAIR;
    inst.e = pair ? decode_predicate_target(d, &target->items[1]) : d->sink;
    inst.d = decode_target(d, pair ? &target->items[0] : target, 4, false);
    inst.list = decode_list(d, members);
    decode_emit(d, inst);
    return true;
}

static bool decode_vote(Decoder *d) {
    static const char *const modes[] = {"all", "any", "uni", "ballot"};
    Inst inst = decode_inst(d);
    bool negated = false;
    for (uint8_t i = 0; i < 4; i++)
        if (opcode_has(&d->opcode, modes[i])) inst.aux = i;
    inst.e = decode_predicate_source(d, decode_operand(d, 1), &negated);
    uint32_t members = decode_source(d, decode_operand(d, 2), 4, false);
    inst.d = inst.aux == 3 ? decode_target(d, decode_operand(d, 0), 4, false)
                           : decode_predicate_target(d, decode_operand(d, 0));
    inst.flags = negated ? INST_NEGATE_E : 0;
    inst.list = decode_list(d, members);
    decode_emit(d, inst);
    return true;
}

static bool decode_match(Decoder *d) {
    Inst inst = decode_inst(d);
    const PtxOperand *target = decode_operand(d, 0);
    bool wide = opcode_has(&d->opcode, "b64");
    inst.aux = opcode_has(&d->opcode, "all");
    inst.flags = wide ? INST_WIDE_DATA : 0;
    inst.a = decode_source(d, decode_operand(d, 1), wide ? 8 : 4, false);
    uint32_t members = decode_source(d, decode_operand(d, 2), 4, false);
    if (d->failed || !target) return false;
    bool pair = target->kind == OPERAND_PAIR;
    inst.e = pair ? decode_predicate_target(d, &target->items[1]) : d->sink;
    inst.d = decode_target(d, pair ? &target->items[0] : target, 4, false);
    inst.list = decode_list(d, members);
    decode_emit(d, inst);
    return true;
}

static bool decode_redux(Decoder *d) {
    static const char *const operators[] = {"add", "min", "max", "and", "or", "xor"};
    Inst inst = decode_inst(d);
    for (uint8_t i = 0; i < 6; i++)
        if (!strcmp(d->opcode.part[2], operators[i])) inst.aux = i;
    inst.flags = opcode_has(&d->opcode, "s32") ? INST_SIGNED : 0;
    inst.a = decode_source(d, decode_operand(d, 1), 4, false);
    uint32_t members = decode_source(d, decode_operand(d, 2), 4, false);
    inst.d = decode_target(d, decode_operand(d, 0), 4, false);
    inst.list = decode_list(d, members);
    decode_emit(d, inst);
    return true;
}

static bool decode_elect(Decoder *d) {
    Inst inst = decode_inst(d);
    const PtxOperand *target = decode_operand(d, 0);
    uint32_t members = decode_source(d, decode_operand(d, 1), 4, false);
    if (d->failed || target->kind != OPERAND_PAIR) return decode_fail(d, "elect.sync takes d|p");
    inst.e = decode_predicate_target(d, &target->items[1]);
    inst.d = decode_target(d, &target->items[0], 4, false);
    inst.list = decode_list(d, members);
    decode_emit(d, inst);
    return true;
}

static bool decode_activemask(Decoder *d) {
    Inst inst = decode_inst(d);
    inst.d = decode_target(d, decode_operand(d, 0), 4, false);
    inst.shadow = SHADOW_CLEAR;
    inst.widths = 2;
    decode_emit(d, inst);
    return true;
}

static bool decode_warpsync(Decoder *d) {
    Inst inst = decode_inst(d);
    uint32_t members = decode_source(d, decode_operand(d, 0), 4, false);
    inst.list = decode_list(d, members);
    decode_emit(d, inst);
    return true;
}

/* bar.sync a{, b}; bar.arrive a, b; bar.red.popc.u32 d, a{, b}, {!}c */
static bool decode_barrier(Decoder *d) {
    Inst inst = decode_inst(d);
    uint32_t at = 0, last = d->statement->operand_count;
    bool negated = false;
    inst.aux = d->row->arg;
    if (inst.aux == 2) {
        bool popc = opcode_has(&d->opcode, "popc");
        inst.aux = popc ? 2 : opcode_has(&d->opcode, "and") ? 3 : 4;
        if (last < 3) return decode_fail(d, "'%.80s' has too few operands", d->statement->opcode);
        inst.d = popc ? decode_target(d, decode_operand(d, 0), 4, false)
                      : decode_predicate_target(d, decode_operand(d, 0));
        inst.e = decode_predicate_source(d, decode_operand(d, --last), &negated);
        at = 1;
    }
    if (at < last)
        inst.a = decode_source(d, decode_operand(d, at++), 4, false);
    else
        inst.a = decode_constant(d, 4, 0);
    if (at < last) {
        inst.b = decode_source(d, decode_operand(d, at++), 4, false);
        inst.flags |= INST_HAS_COUNT;
    }
    if (inst.aux == 1 && !(inst.flags & INST_HAS_COUNT))
        return decode_fail(d, "bar.arrive needs a thread count");
    inst.flags |= negated ? INST_NEGATE_E : 0;
    decode_emit(d, inst);
    return true;
}

/* ---- control --------------------------------------------------------------------------------- */

static bool decode_branch(Decoder *d) {
    Inst inst = decode_inst(d);
    decode_emit(d, inst);
    return decode_operand(d, 0) != NULL;
}

static bool decode_branch_index(Decoder *d) {
    Inst inst = decode_inst(d);
    inst.a = decode_source(d, decode_operand(d, 0), 4, false);
    decode_emit(d, inst);
    return decode_operand(d, 1) != NULL;
}

/* call (ret), f, (a, b): the lists hold local offsets of the caller's param variables. */
static bool call_list(Decoder *d, const PtxOperand *list) {
    for (uint32_t i = 0; i < list->count; i++) {
        const PtxVariable *v = list->items[i].variable;
        if (list->items[i].kind != OPERAND_VARIABLE || v->space != SPACE_PARAM || v->module_scope)
            return decode_fail(d, "arguments of a call are .param variables");
        decode_list(d, (uint32_t)v->address);
        decode_list(d, (uint32_t)v->bytes);
    }
    return true;
}

static bool decode_call(Decoder *d) {
    const PtxStatement *s = d->statement;
    uint32_t at = 0;
    static const PtxOperand none = {.kind = OPERAND_LIST};
    const PtxOperand *returns = &none, *args = &none;
    if (at < s->operand_count && s->operands[at].kind == OPERAND_LIST) returns = &s->operands[at++];
    const PtxOperand *callee = decode_operand(d, at++);
    if (!callee) return false;
    if (at < s->operand_count && s->operands[at].kind == OPERAND_LIST) args = &s->operands[at++];
    Inst inst = decode_inst(d);
    if (callee->kind != OPERAND_NAME)
        return decode_fail(d, "calls through a function pointer are not supported");
    PtxFunction *f = ptx_find_function(d->module, callee->name);
    uint32_t index;
    if (!f || !program_code(d->program, f, &index))
        return decode_fail(d, "unknown function '%.120s'", callee->name);
    if (f->param_count != args->count || f->return_count != returns->count)
        return decode_fail(d, "'%.120s' is called with other parameters than it has", f->name);
    d->program->ordered |= !strcmp(f->name, "vprintf"); // text in launch order
    inst.target = index;
    inst.list = d->list_count;
    inst.count = (uint8_t)(args->count < 255 ? args->count : 255);
    if (args->count > 255 || !call_list(d, args) || !call_list(d, returns))
        return decode_fail(d, "the call has too many arguments");
    for (uint32_t i = 0; i < args->count; i++)
        if (args->items[i].variable->bytes != f->params[i]->bytes)
            return decode_fail(d, "an argument of '%.120s' has the wrong size", f->name);
    for (uint32_t i = 0; i < returns->count; i++)
        if (returns->items[i].variable->bytes != f->returns[i]->bytes)
            return decode_fail(d, "the result of '%.120s' has the wrong size", f->name);
    inst.aux = (uint8_t)returns->count;
    decode_emit(d, inst);
    return true;
}

static bool decode_plain(Decoder *d) {
    decode_emit(d, decode_inst(d));
    return true;
}

const FamilyDecoder family_decoders[FAMILY_COUNT] = {
    [FAMILY_LANES] = decode_lanes,
    [FAMILY_COMPARE] = decode_compare,
    [FAMILY_CARRY] = decode_carry,
    [FAMILY_BFI] = decode_bfi,
    [FAMILY_LOP3] = decode_lop3,
    [FAMILY_MOVE] = decode_move_wide,
    [FAMILY_PREDICATE] = decode_predicate,
    [FAMILY_CLOCK] = decode_plain,
    [FAMILY_PACK] = decode_plain,
    [FAMILY_WIDTH] = decode_plain,
    [FAMILY_SELECT] = decode_select,
    [FAMILY_TESTP] = decode_testp,
    [FAMILY_LOAD] = decode_memory,
    [FAMILY_STORE] = decode_memory,
    [FAMILY_ATOM] = decode_atomic,
    [FAMILY_RED] = decode_atomic,
    [FAMILY_COPY_ASYNC] = decode_copy_async,
    [FAMILY_NOTHING] = decode_nothing,
    [FAMILY_CVTA] = decode_cvta,
    [FAMILY_ISSPACEP] = decode_isspacep,
    [FAMILY_SHUFFLE] = decode_shuffle,
    [FAMILY_VOTE] = decode_vote,
    [FAMILY_MATCH] = decode_match,
    [FAMILY_REDUX] = decode_redux,
    [FAMILY_ELECT] = decode_elect,
    [FAMILY_ACTIVEMASK] = decode_activemask,
    [FAMILY_WARPSYNC] = decode_warpsync,
    [FAMILY_BARRIER] = decode_barrier,
    [FAMILY_BRANCH] = decode_branch,
    [FAMILY_BRANCH_INDEX] = decode_branch_index,
    [FAMILY_CALL] = decode_call,
    [FAMILY_PLAIN] = decode_plain,
    [FAMILY_SLEEP] = decode_plain,
};
