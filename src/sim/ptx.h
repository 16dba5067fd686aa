/* ptx.h - what the PTX parser hands to the decoder: a module as it was written, names resolved.
 *
 * The parser knows the grammar, not the instructions: an opcode it has never heard of becomes a
 * statement like any other, so that one unknown instruction spoils only the kernel that holds it.
 */
#pragma once
#include "sim/engine.h"

/* ---- memory of a module ---------------------------------------------------------------------- */

typedef struct PtxArena PtxArena;
PtxArena *ptx_arena_new(void);
void ptx_arena_free(PtxArena *arena);
void *ptx_alloc(PtxArena *arena,
                size_t bytes); // zeroed, 16-byte aligned; aborts when out of memory
void *ptx_grow(void *data, uint32_t count, uint32_t *capacity, size_t element_bytes); // heap
char *ptx_text(PtxArena *arena, const char *text, size_t bytes);

/* ---- lexer ----------------------------------------------------------------------------------- */

typedef enum {
    TOKEN_END,
    TOKEN_WORD,    // identifier, directive or opcode with all its dots: "%r1", ".reg", "add.s32"
    TOKEN_INTEGER, // value
    TOKEN_F32,     // 0f3f800000: bits in value
    TOKEN_F64,     // 0d… or a decimal fraction: bits in value
    TOKEN_STRING,  // without quotes
    TOKEN_PUNCT,   // one character
    TOKEN_BAD,     // a character no PTX has, or a string without end
} TokenKind;

typedef struct {
    TokenKind kind;
    const char *start;
    uint32_t length;
    uint32_t line;
    uint64_t value;
} Token;

typedef struct {
    const char *at, *end;
    uint32_t line;
} Lexer;

Token lexer_next(Lexer *lexer);

/* ---- the module ------------------------------------------------------------------------------ */

typedef enum {
    SPACE_GENERIC,
    SPACE_GLOBAL,
    SPACE_CONST,
    SPACE_SHARED,
    SPACE_LOCAL,
    SPACE_PARAM
} PtxSpace;

typedef struct {
    uint8_t bytes; // 1 2 4 8 16; 0 for a predicate
    char letter;   // b u s f, p for a predicate
} PtxType;
bool ptx_type(const char *text, size_t length, PtxType *type); // "f32" without the dot

/* An initialiser that is the address of another symbol. */
typedef struct PtxFixup {
    struct PtxFixup *next;
    uint64_t offset; // where in the variable
    const char *symbol;
    int64_t addend;
    bool generic;
    uint8_t bytes;
} PtxFixup;

typedef struct PtxVariable {
    struct PtxVariable *next;
    const char *name;
    PtxSpace space;
    uint32_t align, line;
    uint64_t bytes; // 0: unsized `extern .shared`
    uint8_t *data;  // initial contents, NULL: zeros
    uint64_t data_bytes;
    PtxFixup *fixups;
    bool module_scope;
    uint64_t address; // global and const: device address; otherwise offset in its space
    bool placed;
} PtxVariable;

typedef struct {
    const char *name;
    PtxType type;
} PtxRegister;

typedef enum {
    OPERAND_REGISTER, // index: register of the function
    OPERAND_SPECIAL,  // name: "%tid.x"
    OPERAND_INTEGER,  // value
    OPERAND_F32,
    OPERAND_F64,      // value: bits
    OPERAND_VARIABLE, // variable, value: added offset
    OPERAND_NAME,     // label or function, looked up when decoded
    OPERAND_ADDRESS,  // items[0]: register, variable, integer or name; value: displacement
    OPERAND_VECTOR,   // {a, b}
    OPERAND_LIST,     // (a, b)
    OPERAND_PAIR,     // p|q
    OPERAND_SINK,     // _
} PtxOperandKind;

typedef struct PtxOperand {
    PtxOperandKind kind;
    bool negated; // !p or -r
    uint32_t index, count;
    int64_t value;
    const char *name;
    PtxVariable *variable;
    struct PtxOperand *items;
} PtxOperand;

#define PTX_NO_GUARD UINT32_MAX
#define PTX_NO_LOC   UINT32_MAX

typedef struct {
    const char *opcode; // "add.s32"; NULL for a label's place holder
    PtxOperand *operands;
    uint32_t operand_count;
    uint32_t guard; // register index
    bool guard_negated;
    uint32_t line, loc, scope;
    const char *text; // in the module's copy of the source
    uint32_t text_bytes;
} PtxStatement;

typedef struct {
    const char *name;
    uint32_t scope, statement; // it stands before this statement
    PtxOperand *targets;       // of a .branchtargets list
    uint32_t target_count;
    bool is_branch_targets;
} PtxLabel;

/* One .loc; `inlined` is the index of the .loc that stands for the call site. */
typedef struct {
    uint32_t file, line, column;
    uint32_t inlined; // PTX_NO_LOC: the outermost frame
    uint32_t older;   // 1 + index of the next older one in its hash bucket
} PtxLoc;

typedef struct PtxFunction {
    struct PtxFunction *next;
    const char *name;
    bool is_entry, has_body;
    uint32_t line;
    PtxVariable **params, **returns;
    uint32_t param_count, return_count;
    PtxVariable *variables; // local, param and shared ones of its body
    PtxRegister *registers;
    uint32_t register_count, register_capacity;
    PtxStatement *statements;
    uint32_t statement_count, statement_capacity;
    PtxLabel *labels;
    uint32_t label_count, label_capacity;
    uint32_t *scope_parents; // scope 0 is the body
    uint32_t scope_count, scope_capacity;
    PtxLoc *locs;
    uint32_t loc_count, loc_capacity;
    uint32_t max_threads;
    void *code;    // decoded (exec.h), NULL until asked for
    char *failure; // why it cannot be decoded
} PtxFunction;

typedef struct PtxName PtxName;

struct PtxModule {
    PtxArena *arena;
    char *source;
    size_t source_bytes;
    PtxFunction *functions;
    PtxVariable *variables;
    const char **files; // by .file number
    uint32_t file_count;
    PtxName **names; // interned identifiers
    uint32_t name_count, name_capacity;
    void *decoder; // what decode.c keeps per module
};

bool ptx_parse(PtxModule *module, char message[512]);
const char *ptx_intern(PtxModule *module, const char *text, size_t bytes);
PtxFunction *ptx_find_function(PtxModule *module, const char *name);
PtxVariable *ptx_find_variable(PtxModule *module, const char *name);
