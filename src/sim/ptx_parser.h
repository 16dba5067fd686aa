/* ptx_parser.h - what the parser's files share. */
#pragma once
#include "sim/ptx.h"

typedef enum { BINDING_REGISTER, BINDING_RANGE, BINDING_VARIABLE } BindingKind;

/* What a name means in the scope being read; an inner meaning hides the outer one. */
typedef struct Binding {
    struct Binding *hidden, *next_in_scope;
    PtxName *name;
    BindingKind kind;
    uint32_t index, count; // register; a range %r<count> makes registers as they are met
    uint32_t depth;        // scope depth it belongs to
    PtxType type;
    PtxVariable *variable;
} Binding;

struct PtxName {
    const char *text;
    uint32_t length, hash;
    Binding *binding;
};

#define PTX_MAX_DEPTH   256
#define PTX_LOC_BUCKETS 1024

typedef struct {
    PtxModule *module;
    Lexer lexer;
    Token token; // the one looked at
    PtxFunction *function;
    Binding *scopes[PTX_MAX_DEPTH]; // bindings to undo when a scope ends
    uint32_t scope_ids[PTX_MAX_DEPTH];
    uint32_t depth;
    uint32_t operand_depth;
    uint32_t loc_heads[PTX_LOC_BUCKETS]; // newest .loc by place, as 1 + index
    char *message;                       // 512 bytes; set once
    bool failed;
} Parser;

PtxName *ptx_name(PtxModule *module, const char *text, size_t bytes);
Binding *ptx_bind(Parser *p, PtxName *name, BindingKind kind);
void ptx_open_scope(Parser *p);
void ptx_close_scope(Parser *p);
bool ptx_resolve_register(Parser *p, const char *text, size_t bytes, uint32_t *index);

bool parser_fail(Parser *p, const char *what);
void parser_next(Parser *p);
bool token_is(const Parser *p, const char *text);
bool parser_accept(Parser *p, const char *text);
bool parser_expect(Parser *p, const char *text);
bool parse_integer(Parser *p, int64_t *value);

/* `.global .align 4 .b8 name[16] = {…}`, from the state space on; `end` is what must follow. */
bool parse_variable(Parser *p, PtxVariable **list, PtxVariable **made);
bool parse_body(Parser *p, PtxFunction *function);
