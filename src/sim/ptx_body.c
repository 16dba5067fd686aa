/* ptx_body.c - the statements of a function: scopes, declarations, labels, .loc, instructions.
 *
 * Instructions are kept as opcode text and operands of a general shape; which opcodes exist and
 * what operands they take is the decoder's business.
 */
#include "sim/ptx_parser.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_OPERANDS      1024
#define MAX_OPERAND_DEPTH 6
#define MAX_STATEMENTS    (1u << 22)

/* ---- operands -------------------------------------------------------------------------------- */

static bool parse_operand(Parser *p, PtxOperand *operand);

static bool parse_operand_list(Parser *p, const char *close, PtxOperand **items, uint32_t *count) {
    PtxOperand few[64];
    PtxOperand *found = few, *heap = NULL;
    uint32_t used = 0, capacity = 64;
    bool ok = true;
    if (++p->operand_depth > MAX_OPERAND_DEPTH)
        return parser_fail(p, "operands are nested too deep");
    while (ok && !token_is(p, close)) {
        if (used == capacity && used < MAX_OPERANDS) {
            heap = malloc(MAX_OPERANDS * sizeof *heap);
            if (!heap) abort();
            memcpy(heap, few, sizeof few);
            found = heap;
            capacity = MAX_OPERANDS;
        }
        if (used == capacity) {
            ok = parser_fail(p, "too many operands");
            break;
        }
        ok = parse_operand(p, &found[used++]);
        if (ok && !parser_accept(p, ",")) break;
    }
    p->operand_depth--;
    *count = used;
    *items = ptx_alloc(p->module->arena, used * sizeof **items);
    if (used) memcpy(*items, found, used * sizeof **items);
    free(heap);
    return ok && (!*close || parser_expect(p, close));
}

static bool parse_word_operand(Parser *p, PtxOperand *operand) {
    const char *text = p->token.start;
    uint32_t length = p->token.length;
    if (length == 1 && *text == '_') {
        operand->kind = OPERAND_SINK;
        parser_next(p);
        return true;
    }
    if (ptx_resolve_register(p, text, length, &operand->index)) {
        operand->kind = OPERAND_REGISTER;
    } else {
        PtxName *name = ptx_name(p->module, text, length);
        operand->name = name->text;
        operand->kind = *text == '%' ? OPERAND_SPECIAL : OPERAND_NAME;
        if (name->binding && name->binding->kind == BINDING_VARIABLE) {
            operand->kind = OPERAND_VARIABLE;
            operand->variable = name->binding->variable;
        } else if (!strcmp(name->text, "WARP_SZ")) {
            operand->kind = OPERAND_INTEGER;
            operand->value = 32;
        }
    }
    parser_next(p);
    if (operand->kind == OPERAND_VARIABLE && parser_accept(p, "+"))
        return parse_integer(p, &operand->value);
    return true;
}

/* [base], [base+8], [base+-8], [16], and the forms with more between the brackets. */
static bool parse_address(Parser *p, PtxOperand *operand) {
    operand->kind = OPERAND_ADDRESS;
    if (++p->operand_depth > MAX_OPERAND_DEPTH)
        return parser_fail(p, "operands are nested too deep");
    PtxOperand items[8] = {0};
    do {
        if (operand->count == 8) return parser_fail(p, "too many operands between brackets");
        PtxOperand *item = &items[operand->count++];
        if (!parse_operand(p, item)) return false;
        if (item->kind == OPERAND_REGISTER) {
            bool minus = token_is(p, "-");
            int64_t displacement = 0;
            if ((minus || parser_accept(p, "+")) && !parse_integer(p, &displacement)) return false;
            operand->value = operand->count == 1 ? displacement : operand->value;
        }
    } while (parser_accept(p, ","));
    p->operand_depth--;
    operand->items = ptx_alloc(p->module->arena, operand->count * sizeof *items);
    memcpy(operand->items, items, operand->count * sizeof *items);
    return parser_expect(p, "]");
}

static bool parse_operand(Parser *p, PtxOperand *operand) {
    *operand = (PtxOperand){0};
    if (parser_accept(p, "[")) {
        if (!parse_address(p, operand)) return false;
    } else if (parser_accept(p, "{")) {
        operand->kind = OPERAND_VECTOR;
        if (!parse_operand_list(p, "}", &operand->items, &operand->count)) return false;
    } else if (parser_accept(p, "(")) {
        operand->kind = OPERAND_LIST;
        if (!parse_operand_list(p, ")", &operand->items, &operand->count)) return false;
    } else if (token_is(p, "!") || token_is(p, "-")) {
        bool minus = token_is(p, "-");
        parser_next(p);
        if (p->token.kind == TOKEN_PUNCT) return parser_fail(p, "an operand is expected");
        if (!parse_operand(p, operand)) return false;
        if (!minus || operand->kind == OPERAND_REGISTER)
            operand->negated = true;
        else if (operand->kind == OPERAND_INTEGER)
            operand->value = (int64_t)(0 - (uint64_t)operand->value);
        else if (operand->kind == OPERAND_F32)
            operand->value ^= INT64_C(1) << 31;
        else if (operand->kind == OPERAND_F64)
            operand->value = (int64_t)((uint64_t)operand->value ^ (UINT64_C(1) << 63));
        else
            return parser_fail(p, "this cannot be negated");
        return true;
    } else if (p->token.kind == TOKEN_INTEGER || p->token.kind == TOKEN_F32 ||
               p->token.kind == TOKEN_F64) {
        operand->kind = p->token.kind == TOKEN_INTEGER ? OPERAND_INTEGER
                        : p->token.kind == TOKEN_F32   ? OPERAND_F32
                                                       : OPERAND_F64;
        operand->value = (int64_t)p->token.value;
        parser_next(p);
    } else if (p->token.kind == TOKEN_WORD) {
        if (!parse_word_operand(p, operand)) return false;
    } else {
        return parser_fail(p, "an operand is expected");
    }
    if (parser_accept(p, "|")) {
        PtxOperand *items = ptx_alloc(p->module->arena, 2 * sizeof *items);
        items[0] = *operand;
        if (p->operand_depth > MAX_OPERAND_DEPTH || p->token.kind != TOKEN_WORD)
            return parser_fail(p, "a register is expected after '|'");
        if (!parse_word_operand(p, &items[1])) return false;
        *operand = (PtxOperand){.kind = OPERAND_PAIR, .count = 2, .items = items};
    }
    return true;
}

/* ---- .loc ------------------------------------------------------------------------------------ */

static uint32_t *loc_bucket(Parser *p, uint32_t file, uint32_t line, uint32_t column) {
    uint32_t hash = file * 2654435761u ^ line * 40503u ^ column * 2246822519u;
    return &p->loc_heads[(hash >> 7) % PTX_LOC_BUCKETS];
}

static bool parse_place(Parser *p, uint32_t place[3]) {
    for (int i = 0; i < 3; i++) {
        int64_t value;
        if (!parse_integer(p, &value)) return false;
        place[i] = value < 0 || value > UINT32_MAX ? 0 : (uint32_t)value;
    }
    return true;
}

/* `.loc 2 241 7, function_name L, inlined_at 1 11 3`: the call site is a place that an earlier
 * .loc named; the newest of these is the frame around this one. */
static bool parse_loc(Parser *p, uint32_t *current) {
    PtxFunction *f = p->function;
    uint32_t place[3], site[3];
    parser_next(p);
    if (!parse_place(p, place)) return false;
    PtxLoc loc = {place[0], place[1], place[2], PTX_NO_LOC, 0};
    while (parser_accept(p, ",")) {
        if (parser_accept(p, "function_name")) {
            parser_next(p);
            int64_t offset;
            if (parser_accept(p, "+") && !parse_integer(p, &offset)) return false;
        } else if (parser_accept(p, "inlined_at")) {
            if (!parse_place(p, site)) return false;
            uint32_t at = *loc_bucket(p, site[0], site[1], site[2]);
            while (at && (f->locs[at - 1].file != site[0] || f->locs[at - 1].line != site[1] ||
                          f->locs[at - 1].column != site[2]))
                at = f->locs[at - 1].older;
            if (!at) { // never seen: stands for itself
                f->locs = ptx_grow(f->locs, f->loc_count, &f->loc_capacity, sizeof *f->locs);
                f->locs[f->loc_count++] = (PtxLoc){site[0], site[1], site[2], PTX_NO_LOC, 0};
                at = f->loc_count;
            }
            loc.inlined = at - 1;
        } else {
            return parser_fail(p, "not known in .loc");
        }
    }
    uint32_t *bucket = loc_bucket(p, place[0], place[1], place[2]);
    loc.older = *bucket;
    f->locs = ptx_grow(f->locs, f->loc_count, &f->loc_capacity, sizeof *f->locs);
    f->locs[f->loc_count++] = loc;
    *bucket = f->loc_count;
    *current = f->loc_count - 1;
    return true;
}

/* ---- declarations ---------------------------------------------------------------------------- */

static bool parse_registers(Parser *p) {
    parser_next(p);
    PtxType type;
    if (p->token.kind != TOKEN_WORD || !ptx_type(p->token.start + 1, p->token.length - 1, &type))
        return parser_fail(p, "a register type is expected");
    parser_next(p);
    do {
        if (p->token.kind != TOKEN_WORD) return parser_fail(p, "a register's name is expected");
        PtxName *name = ptx_name(p->module, p->token.start, p->token.length);
        parser_next(p);
        bool range = parser_accept(p, "<");
        int64_t count = 1;
        if (range && (!parse_integer(p, &count) || !parser_expect(p, ">"))) return false;
        Binding *binding = ptx_bind(p, name, range ? BINDING_RANGE : BINDING_REGISTER);
        binding->type = type;
        binding->index = UINT32_MAX; // made when first met
        binding->count = count < 0 || count > UINT32_MAX ? 0 : (uint32_t)count;
    } while (parser_accept(p, ","));
    return parser_expect(p, ";");
}

static bool parse_label(Parser *p, const char *name) {
    PtxFunction *f = p->function;
    PtxLabel label = {
        .name = name, .scope = p->scope_ids[p->depth], .statement = f->statement_count};
    if (parser_accept(p, ".branchtargets")) {
        label.is_branch_targets = true;
        if (!parse_operand_list(p, "", &label.targets, &label.target_count) ||
            !parser_expect(p, ";"))
            return false;
    } else if (token_is(p, ".callprototype") || token_is(p, ".calltargets")) {
        while (p->token.kind != TOKEN_END && !token_is(p, ";"))
            parser_next(p);
        return parser_expect(p, ";");
    }
    f->labels = ptx_grow(f->labels, f->label_count, &f->label_capacity, sizeof *f->labels);
    f->labels[f->label_count++] = label;
    return true;
}

/* ---- instructions ---------------------------------------------------------------------------- */

static bool parse_instruction(Parser *p, uint32_t loc) {
    PtxFunction *f = p->function;
    PtxStatement s = {.guard = PTX_NO_GUARD,
                      .line = p->token.line,
                      .loc = loc,
                      .scope = p->scope_ids[p->depth],
                      .text = p->token.start};
    if (parser_accept(p, "@")) {
        s.guard_negated = parser_accept(p, "!");
        if (p->token.kind != TOKEN_WORD ||
            !ptx_resolve_register(p, p->token.start, p->token.length, &s.guard) ||
            f->registers[s.guard].type.letter != 'p')
            return parser_fail(p, "a predicate is expected after '@'");
        parser_next(p);
    }
    if (p->token.kind != TOKEN_WORD) return parser_fail(p, "an instruction is expected");
    s.opcode = ptx_intern(p->module, p->token.start, p->token.length);
    parser_next(p);
    p->operand_depth = 0;
    if (!token_is(p, ";") && !parse_operand_list(p, "", &s.operands, &s.operand_count))
        return false;
    s.text_bytes = (uint32_t)(p->token.start - s.text);
    if (!parser_expect(p, ";")) return false;
    if (f->statement_count >= MAX_STATEMENTS) return parser_fail(p, "the function is too long");
    f->statements =
        ptx_grow(f->statements, f->statement_count, &f->statement_capacity, sizeof *f->statements);
    f->statements[f->statement_count++] = s;
    return true;
}

static bool parse_word_statement(Parser *p, uint32_t *loc) {
    PtxFunction *f = p->function;
    if (*p->token.start != '.') {
        Lexer lexer = p->lexer;
        Token token = p->token;
        parser_next(p);
        if (token_is(p, ":")) {
            const char *name = ptx_intern(p->module, token.start, token.length);
            parser_next(p);
            return parse_label(p, name);
        }
        p->lexer = lexer;
        p->token = token;
        return parse_instruction(p, *loc);
    }
    if (token_is(p, ".reg")) return parse_registers(p);
    if (token_is(p, ".loc")) return parse_loc(p, loc);
    if (parser_accept(p, ".extern")) return true;
    if (token_is(p, ".local") || token_is(p, ".shared") || token_is(p, ".param"))
        return parse_variable(p, &f->variables, NULL) && parser_expect(p, ";");
    if (token_is(p, ".global") || token_is(p, ".const"))
        return parse_variable(p, &p->module->variables, NULL) && parser_expect(p, ";");
    if (parser_accept(p, ".pragma")) {
        while (p->token.kind != TOKEN_END && !token_is(p, ";"))
            parser_next(p);
        return parser_expect(p, ";");
    }
    return parser_fail(p, "not known in a function");
}

bool parse_body(Parser *p, PtxFunction *function) {
    uint32_t outer = p->depth, loc = PTX_NO_LOC;
    (void)function;
    memset(p->loc_heads, 0, sizeof p->loc_heads);
    parser_next(p); // '{'
    for (;;) {
        if (parser_accept(p, "}")) {
            if (p->depth == outer) return true;
            ptx_close_scope(p);
        } else if (token_is(p, "{")) {
            if (p->depth + 1 >= PTX_MAX_DEPTH) return parser_fail(p, "scopes are nested too deep");
            ptx_open_scope(p);
            parser_next(p);
        } else if (token_is(p, "@")) {
            if (!parse_instruction(p, loc)) return false;
        } else if (parser_accept(p, ";")) {
            continue;
        } else if (p->token.kind == TOKEN_WORD) {
            if (!parse_word_statement(p, &loc)) return false;
        } else {
            return parser_fail(p, "a statement is expected");
        }
    }
}
