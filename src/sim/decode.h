/* decode.h - what the decoder's files share. */
#pragma once
#include "sim/exec.h"

/* How a row's operands are laid out; the lane-by-lane rows share FAMILY_LANES. */
typedef enum {
    FAMILY_LANES,
    FAMILY_COMPARE,
    FAMILY_CARRY,
    FAMILY_BFI,
    FAMILY_LOP3,
    FAMILY_MOVE,
    FAMILY_PREDICATE,
    FAMILY_CLOCK,
    FAMILY_PACK,
    FAMILY_WIDTH,
    FAMILY_SELECT,
    FAMILY_TESTP,
    FAMILY_LOAD,
    FAMILY_STORE,
    FAMILY_ATOM,
    FAMILY_RED,
    FAMILY_COPY_ASYNC,
    FAMILY_NOTHING,
    FAMILY_CVTA,
    FAMILY_ISSPACEP,
    FAMILY_SHUFFLE,
    FAMILY_VOTE,
    FAMILY_MATCH,
    FAMILY_REDUX,
    FAMILY_ELECT,
    FAMILY_ACTIVEMASK,
    FAMILY_WARPSYNC,
    FAMILY_BARRIER,
    FAMILY_BRANCH,
    FAMILY_BRANCH_INDEX,
    FAMILY_CALL,
    FAMILY_PLAIN,
    FAMILY_SLEEP,
    FAMILY_COUNT
} Family;

typedef struct {
    const char *id, *pattern;
    uint8_t family, arg, control, shadow;
    uint8_t count;         // sources of a lane row
    uint8_t bytes[4];      // per lane of d, a, b, c
    uint8_t type_bytes[4]; // of the type itself: 1 for u8
    uint8_t floats;        // bit i: operand i is a float
} Row;

typedef enum {
#define LANE1(id, pattern, D, A, expr)              ROW_##id,
#define LANE2(id, pattern, D, A, B, expr)           ROW_##id,
#define LANE3(id, pattern, D, A, B, C, expr)        ROW_##id,
#define ROUND1(id, pattern, D, A, mode, expr)       ROW_##id,
#define ROUND2(id, pattern, D, A, B, mode, expr)    ROW_##id,
#define ROUND3(id, pattern, D, A, B, C, mode, expr) ROW_##id,
#define COMPARE(id, pattern, A, expr)               ROW_##id,
#define SETREG(id, pattern, D, A, expr)             ROW_##id,
#define CARRY2(id, pattern, T, uses, makes, expr)   ROW_##id,
#define CARRY3(id, pattern, T, uses, makes, expr)   ROW_##id,
#define OTHER(id, pattern, family, arg, control)    ROW_##id,
#define ROWS_ALL
#include "sim/instructions.def"
#undef ROWS_ALL
    ROW_COUNT
} RowId;

extern const Row sim_rows[ROW_COUNT];

#define OPCODE_PARTS 24

/* An opcode cut at its dots. */
typedef struct {
    char text[192];
    const char *part[OPCODE_PARTS];
    uint32_t count;
} Opcode;

bool opcode_split(const char *text, Opcode *opcode);
bool opcode_has(const Opcode *opcode, const char *part);
/* The row for exactly this text, or -1. */
int row_find(const char *text);
/* The row that decodes `opcode`, or -1: families with many modifiers are found by their first
 * part, the others by the whole text. */
int row_for(const char *text, const Opcode *opcode);

/* ---- operands before slots are known --------------------------------------------------------- */

/* A register of the function, or a fixed slot (constant, special register) with REF_FIXED. */
#define REF_NONE  UINT32_MAX
#define REF_FIXED 0x80000000u
#define REF_UPPER 0x40000000u // the upper half of a 128-bit register

typedef struct {
    uint8_t kind; // 'c' constant, 's' special, 'p' a predicate of its own
    uint8_t bytes;
    Special special;
    uint64_t value;
    uint32_t slot;
} FixedSlot;

typedef struct {
    PtxVariable *variable;
    uint64_t offset;
} SharedPlace;

/* A kernel and all it may call. */
typedef struct {
    PtxModule *module;
    PtxFunction **functions; // the kernel first
    Code **codes;
    uint32_t count, capacity;
    SharedPlace *shared;
    uint32_t shared_count, shared_capacity;
    uint64_t static_shared;
    bool ordered;
} Program;

typedef struct {
    Program *program;
    PtxModule *module;
    PtxFunction *function;
    const PtxStatement *statement;
    uint32_t statement_index;
    Opcode opcode;
    const Row *row;
    int row_id;
    char *message;
    bool failed;
    Code *code;
    uint32_t inst_capacity, list_count, list_capacity;
    Usage *usages;
    uint32_t usage_capacity;
    uint32_t *usage_data; // reads and writes of all instructions
    uint32_t usage_count, usage_data_capacity;
    uint32_t *usage_first; // {reads from, writes from} of each instruction
    uint32_t *pending_reads, *pending_writes;
    uint32_t pending_read_count, pending_write_count, pending_read_capacity, pending_write_capacity;
    uint8_t *register_bytes; // per lane; 0: predicate
    uint32_t register_count, register_capacity;
    FixedSlot *fixed;
    uint32_t fixed_count, fixed_capacity;
    uint32_t *fixed_index; // hash table: 1 + index into `fixed`
    uint32_t fixed_index_size;
    PtxLabel *labels;          // of the function, sorted
    uint32_t sink, carry;      // predicates of our own
    uint32_t *statement_start; // first instruction of each statement
    bool crosses;
    struct {
        uint32_t reg, wide;
        bool is_signed;
    } widen[16];
    uint32_t widen_count;
} Decoder;

bool decode_fail(Decoder *d, const char *format, ...) __attribute__((format(printf, 2, 3)));
uint32_t decode_temp(Decoder *d, uint8_t bytes);
/* Note that the next instruction emitted reads or writes it; they return it. */
uint32_t decode_read(Decoder *d, uint32_t ref);
uint32_t decode_write(Decoder *d, uint32_t ref);
uint32_t decode_own_predicate(Decoder *d, uint32_t number); // one that no program names
uint8_t decode_lane_bytes(PtxType type);
uint32_t decode_param_index(const PtxFunction *f, const PtxVariable *v); // UINT32_MAX: none
uint32_t decode_constant(Decoder *d, uint8_t bytes, uint64_t value);
uint32_t decode_special(Decoder *d, const char *name, uint8_t bytes);
/* Slots as source and target; widths that differ from the row's are converted. */
uint32_t decode_source(Decoder *d, const PtxOperand *o, uint8_t bytes, bool is_float);
uint32_t decode_target(Decoder *d, const PtxOperand *o, uint8_t bytes, bool is_signed);
uint32_t decode_predicate_source(Decoder *d, const PtxOperand *o, bool *negated);
uint32_t decode_predicate_target(Decoder *d, const PtxOperand *o);
const PtxOperand *decode_operand(Decoder *d, uint32_t index); // fails when there are fewer
bool decode_address(Decoder *d, const PtxOperand *o, Inst *inst);
uint32_t decode_list(Decoder *d, uint32_t ref);
Inst *decode_emit(Decoder *d, Inst inst);
Inst decode_inst(const Decoder *d);
bool decode_symbol_value(Decoder *d, const PtxOperand *o, uint64_t *value, bool *local);
uint64_t variable_place(PtxModule *module, PtxVariable *variable);
Code *program_code(Program *program, const PtxFunction *function, uint32_t *index);

bool decode_body(Decoder *d);
void decoder_free(Decoder *d);

typedef bool (*FamilyDecoder)(Decoder *d);
extern const FamilyDecoder family_decoders[FAMILY_COUNT];
bool decode_space(const char *part, uint8_t *space); // "shared::cta"
bool decode_memory(Decoder *d);
bool decode_atomic(Decoder *d);
bool decode_copy_async(Decoder *d);
