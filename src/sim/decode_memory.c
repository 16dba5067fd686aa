/* decode_memory.c - loads, stores, atomics: opcodes with many modifiers, most of which concern
 * caches and memory order. The simulator keeps no caches and executes memory operations of a
 * launch in one order, so those are accepted and change nothing.
 */
#include "sim/decode.h"
#include <string.h>

typedef struct {
    uint8_t space;
    bool strong;
    uint32_t vector;
    PtxType type;
    bool has_type;
} MemoryOp;

static const char *const ignored[] = {
    "weak",
    "volatile",
    "relaxed",
    "acquire",
    "release",
    "acq_rel",
    "mmio",
    "cta",
    "cluster",
    "gpu",
    "sys",
    "ca",
    "cg",
    "cs",
    "lu",
    "cv",
    "nc",
    "wb",
    "wt",
    "unified",
    "noftz",
    "L1::evict_normal",
    "L1::evict_unchanged",
    "L1::evict_first",
    "L1::evict_last",
    "L1::no_allocate",
    "L2::cache_hint",
    "L2::64B",
    "L2::128B",
    "L2::256B",
    "L2::evict_first",
    "L2::evict_last",
    "L2::evict_normal",
};

static const struct {
    const char *name;
    PtxSpace space;
} spaces[] = {
    {"global", SPACE_GLOBAL},      {"shared", SPACE_SHARED},
    {"shared::cta", SPACE_SHARED}, {"shared::cluster", SPACE_SHARED},
    {"local", SPACE_LOCAL},        {"const", SPACE_CONST},
    {"param", SPACE_PARAM},        {"param::entry", SPACE_PARAM},
    {"param::func", SPACE_PARAM},
};

bool decode_space(const char *part, uint8_t *space) {
    for (size_t i = 0; i < sizeof spaces / sizeof spaces[0]; i++)
        if (!strcmp(part, spaces[i].name)) {
            *space = (uint8_t)spaces[i].space;
            return true;
        }
    return false;
}

static bool parse_part(MemoryOp *op, const char *part) {
    if (decode_space(part, &op->space)) return true;
    for (size_t i = 0; i < sizeof ignored / sizeof ignored[0]; i++)
        if (!strcmp(part, ignored[i])) {
            op->strong |= i >= 1 && i <= 6;
            return true;
        }
    if (part[0] == 'v' && strchr("248", part[1]) && part[1] && !part[2]) {
        op->vector = (uint32_t)(part[1] - '0');
        return true;
    }
    if (ptx_type(part, strlen(part), &op->type) && op->type.bytes) {
        op->has_type = true;
        return true;
    }
    return false;
}

static bool vector_operand(Decoder *d, const PtxOperand *o, const MemoryOp *op,
                           const PtxOperand **items) {
    if (!o) return false;
    bool is_vector = o->kind == OPERAND_VECTOR;
    *items = is_vector ? o->items : o;
    if ((is_vector ? o->count : 1) != op->vector)
        return decode_fail(d, "'%.80s' needs %u elements", d->statement->opcode, op->vector);
    return true;
}

bool decode_memory(Decoder *d) {
    bool is_load = d->row->family == FAMILY_LOAD;
    MemoryOp op = {.space = SPACE_GENERIC, .vector = 1};
    for (uint32_t i = 1; i < d->opcode.count; i++)
        if (!parse_part(&op, d->opcode.part[i]))
            return decode_fail(d, "unknown instruction '%.100s'", d->statement->opcode);
    if (!op.has_type || op.type.bytes > 8 || op.type.bytes * op.vector > 32)
        return decode_fail(d, "unknown instruction '%.100s'", d->statement->opcode);
    const PtxOperand *data = decode_operand(d, is_load ? 0 : 1);
    const PtxOperand *address = decode_operand(d, is_load ? 1 : 0);
    const PtxOperand *items = NULL;
    if (!vector_operand(d, data, &op, &items)) return false;
    Inst inst = decode_inst(d);
    inst.space = op.space;
    inst.bytes = op.type.bytes;
    inst.count = (uint8_t)op.vector;
    bool wide = op.type.bytes == 8, is_float = op.type.letter == 'f';
    inst.flags =
        (uint16_t)((wide ? INST_WIDE_DATA : 0) | (op.type.letter == 's' ? INST_SIGNED : 0));
    if (!decode_address(d, address, &inst)) return false;
    bool entry_param = inst.space == SPACE_PARAM;
    if (entry_param && !is_load) return decode_fail(d, "a kernel's parameters cannot be written");
    if (entry_param && inst.flags & INST_FIXED_ADDRESS) {
        if (inst.displacement < 0 ||
            (uint64_t)inst.displacement + inst.bytes * inst.count > d->code->params.bytes)
            return decode_fail(d, "this lies outside of the kernel's parameters");
        inst.row = ROW_ld_param;
        inst.control = CONTROL_NONE;
    }
    uint32_t refs[8] = {0};
    for (uint32_t i = 0; i < op.vector; i++)
        refs[i] = is_load ? decode_target(d, &items[i], wide ? 8 : 4, op.type.letter == 's')
                          : decode_source(d, &items[i], wide ? 8 : 4, is_float);
    if (d->failed) return false;
    inst.list = decode_list(d, refs[0]);
    for (uint32_t i = 1; i < op.vector; i++)
        decode_list(d, refs[i]);
    inst.d = refs[0];
    if (op.strong && is_load) {
        inst.flags |= INST_STRONG;
        d->program->ordered |= inst.space == SPACE_GLOBAL || inst.space == SPACE_GENERIC;
    }
    decode_emit(d, inst);
    return true;
}

/* atom{.sem}{.scope}{.space}.op{.level}{.vec}.type d, [a], b{, c}; red is the same without d. */
bool decode_atomic(Decoder *d) {
    static const char *const operators[] = {"add", "min", "max", "inc",  "dec",
                                            "and", "or",  "xor", "exch", "cas"};
    bool is_red = d->row->family == FAMILY_RED;
    MemoryOp op = {.space = SPACE_GENERIC, .vector = 1};
    Inst inst = decode_inst(d);
    bool has_operator = false;
    const char *type = "";
    for (uint32_t i = 1; i < d->opcode.count; i++) {
        bool known = parse_part(&op, d->opcode.part[i]);
        for (uint8_t k = 0; k < 10 && !known; k++)
            if (!strcmp(d->opcode.part[i], operators[k])) {
                inst.aux = k;
                known = has_operator = true;
            }
        if (!known) return decode_fail(d, "unknown instruction '%.100s'", d->statement->opcode);
        type = d->opcode.part[i];
    }
    if (!has_operator || !op.has_type || op.vector != 1 || op.type.bytes < 2 || op.type.bytes > 8)
        return decode_fail(d, "unknown instruction '%.100s'", d->statement->opcode);
    bool is_float = op.type.letter == 'f';
    if (is_float && inst.aux > 2 && inst.aux < 8)
        return decode_fail(d, "unknown instruction '%.100s'", d->statement->opcode);
    inst.space = op.space;
    inst.bytes = op.type.bytes;
    inst.count = 1;
    bool wide = op.type.bytes == 8;
    uint8_t lanes = wide ? 8 : 4;
    inst.flags = (uint16_t)((wide ? INST_WIDE_DATA : 0) | (is_float ? INST_IS_FLOAT : 0) |
                            (op.type.letter == 's' ? INST_SIGNED : 0));
    if (!strcmp(type, "bf16") || !strcmp(type, "bf16x2")) inst.source_count = 1; // marks bfloat16
    if (!strcmp(type, "bf16x2") || !strcmp(type, "f16x2"))
        inst.flags |= INST_HAS_COUNT; // marks pairs
    uint32_t at = is_red ? 0 : 1;
    if (!decode_address(d, decode_operand(d, at++), &inst)) return false;
    inst.b = decode_source(d, decode_operand(d, at++), lanes, is_float);
    inst.c = inst.aux == 9 ? decode_source(d, decode_operand(d, at++), lanes, is_float) : inst.b;
    bool ignored_result = is_red || d->statement->operands[0].kind == OPERAND_SINK;
    inst.d = REF_NONE;
    if (!is_red) inst.d = decode_target(d, decode_operand(d, 0), lanes, op.type.letter == 's');
    if (d->failed) return false;
    inst.list = decode_list(d, inst.d);
    inst.flags |= ignored_result ? INST_NO_RESULT : INST_STRONG;
    if (inst.space != SPACE_SHARED && (is_float || !ignored_result)) d->program->ordered = true;
    decode_emit(d, inst);
    return true;
}

/* cp.async.ca.shared.global [d], [a], bytes{, source bytes}: done at once. */
bool decode_copy_async(Decoder *d) {
    Inst inst = decode_inst(d), source = decode_inst(d);
    const PtxOperand *bytes = decode_operand(d, 2);
    if (!bytes || bytes->kind != OPERAND_INTEGER ||
        (bytes->value != 4 && bytes->value != 8 && bytes->value != 16))
        return decode_fail(d, "cp.async copies 4, 8 or 16 bytes");
    inst.bytes = (uint8_t)bytes->value;
    inst.count = 1;
    if (!decode_address(d, decode_operand(d, 1), &source) ||
        !decode_address(d, decode_operand(d, 0), &inst))
        return false;
    if (source.flags & INST_FIXED_ADDRESS || inst.flags & INST_FIXED_ADDRESS ||
        !(source.flags & INST_WIDE_ADDRESS))
        return decode_fail(d, "cp.async with a constant address is not supported");
    inst.b = source.a;
    inst.space = SPACE_SHARED;
    inst.c = decode_constant(d, 4, (uint64_t)bytes->value);
    if (d->statement->operand_count > 3 && !opcode_has(&d->opcode, "L2::cache_hint"))
        inst.c = decode_source(d, decode_operand(d, 3), 4, false);
    inst.list = decode_list(d, inst.c);
    if (source.displacement < INT32_MIN || source.displacement > INT32_MAX)
        return decode_fail(d, "the displacement is too large");
    inst.target = (uint32_t)(int32_t)source.displacement;
    decode_emit(d, inst);
    return true;
}
