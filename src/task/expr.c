/* expr.c - parses and evaluates the small expressions of a task: extents and flops.
 *
 * Recursive descent over + - * / ( ) min max ceil_div, numbers and dimensions. Extents are
 * computed exactly in 64 bits with overflow found, because a wrapped extent would become a
 * buffer too small; flops are computed in double, where 2*m*n*k may be as large as it likes.
 */
#include "task/expr.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_LENGTH 500
#define MAX_DEPTH  64

typedef enum { OP_NUMBER, OP_DIM, OP_ADD, OP_SUB, OP_MUL, OP_DIV, OP_MIN, OP_MAX, OP_CEIL_DIV } Op;

struct Expr {
    Op op;
    int64_t integer; // OP_NUMBER without a fraction
    double real;     // OP_NUMBER
    bool fraction;   // OP_NUMBER: `integer` has no meaning
    int dim;         // OP_DIM
    const Expr *a, *b;
};

static const struct {
    const char *name;
    Op op;
} functions[] = {{"min", OP_MIN}, {"max", OP_MAX}, {"ceil_div", OP_CEIL_DIV}};

typedef struct {
    Arena *arena;
    const char *text, *at;
    const ExprNames *names;
    const char *where;
    int line, column, depth;
    Error *err;
} Parser;

static bool parse_sum(Parser *p, const Expr **out);

static bool fail_at(const Parser *p, const char *at, const char *message) {
    return error_input(p->err, "%s:%d:%d: %s", p->where, p->line, p->column + (int)(at - p->text),
                       message);
}

static void skip_blanks(Parser *p) {
    p->at += strspn(p->at, " ");
}

static bool accept(Parser *p, char c) {
    skip_blanks(p);
    if (*p->at != c) return false;
    p->at++;
    return true;
}

static bool expect(Parser *p, char c) {
    if (accept(p, c)) return true;
    char message[64];
    if (*p->at == 0)
        snprintf(message, sizeof(message), "expected '%c' before the end of the expression", c);
    else
        snprintf(message, sizeof(message), "expected '%c', found '%c'", c, *p->at);
    return fail_at(p, p->at, message);
}

static const Expr *binary(Parser *p, Op op, const Expr *a, const Expr *b) {
    Expr *e = arena_new_of(p->arena, Expr);
    *e = (Expr){.op = op, .a = a, .b = b};
    return e;
}

static bool parse_number(Parser *p, const Expr **out) {
    const char *start = p->at;
    size_t length = strspn(start, "0123456789");
    bool fraction = start[length] == '.' || tolower((unsigned char)start[length]) == 'e';
    Expr *e = arena_new_of(p->arena, Expr);
    e->op = OP_NUMBER;
    char *end;
    e->real = strtod(start, &end);
    if (!fraction) {
        for (size_t i = 0; i < length; i++)
            if (__builtin_mul_overflow(e->integer, 10, &e->integer) ||
                __builtin_add_overflow(e->integer, start[i] - '0', &e->integer))
                return fail_at(p, start, "this number does not fit in 64 bits");
        end = (char *)start + length; // strtod would read 0x10
    }
    e->fraction = fraction;
    if (end == start || isalnum((unsigned char)*end) || *end == '_' || !isfinite(e->real))
        return fail_at(p, start, "this is not a number");
    p->at = end;
    *out = e;
    return true;
}

static bool parse_call(Parser *p, Op op, const Expr **out) {
    const Expr *a, *b;
    if (!parse_sum(p, &a) || !expect(p, ',') || !parse_sum(p, &b) || !expect(p, ')')) return false;
    *out = binary(p, op, a, b);
    return true;
}

static bool parse_name(Parser *p, const Expr **out) {
    const char *start = p->at;
    size_t length = 0;
    while (isalnum((unsigned char)start[length]) || start[length] == '_')
        length++;
    char *name = arena_string_n(p->arena, start, length);
    p->at += length;
    if (accept(p, '(')) {
        for (size_t i = 0; i < COUNT_OF(functions); i++)
            if (strcmp(functions[i].name, name) == 0) return parse_call(p, functions[i].op, out);
        return fail_at(
            p, start,
            arena_printf(p->arena, "unknown function '%s'; there are min, max, ceil_div", name));
    }
    for (int i = 0; i < p->names->count; i++) {
        if (strcmp(p->names->names[i], name) != 0) continue;
        Expr *e = arena_new_of(p->arena, Expr);
        *e = (Expr){.op = OP_DIM, .dim = i};
        *out = e;
        return true;
    }
    const char *nearest = text_nearest(name, p->names->names, (size_t)p->names->count);
    return fail_at(
        p, start,
        nearest ? arena_printf(p->arena, "unknown dimension '%s'; did you mean %s?", name, nearest)
                : arena_printf(p->arena, "unknown dimension '%s'; add it to dims", name));
}

static bool parse_primary(Parser *p, const Expr **out) {
    skip_blanks(p);
    char c = *p->at;
    if (accept(p, '(')) return parse_sum(p, out) && expect(p, ')');
    if (isdigit((unsigned char)c)) return parse_number(p, out);
    if (isalpha((unsigned char)c) || c == '_') return parse_name(p, out);
    if (c == 0) return fail_at(p, p->at, "a number or a dimension is missing here");
    if ((unsigned char)c >= 0x80) return fail_at(p, p->at, "expected a number or a dimension");
    return fail_at(p, p->at,
                   arena_printf(p->arena, "expected a number or a dimension, found '%c'", c));
}

static bool parse_unary(Parser *p, const Expr **out) {
    if (p->depth >= MAX_DEPTH) return fail_at(p, p->at, "nested too deeply");
    p->depth++;
    bool ok;
    if (accept(p, '-')) {
        const Expr *operand;
        ok = parse_unary(p, &operand);
        if (ok) *out = binary(p, OP_SUB, arena_new_of(p->arena, Expr), operand); // 0 - operand
    } else {
        ok = parse_primary(p, out);
    }
    p->depth--;
    return ok;
}

static bool parse_product(Parser *p, const Expr **out) {
    if (!parse_unary(p, out)) return false;
    for (;;) {
        Op op;
        if (accept(p, '*'))
            op = OP_MUL;
        else if (accept(p, '/'))
            op = OP_DIV;
        else
            return true;
        const Expr *right;
        if (!parse_unary(p, &right)) return false;
        *out = binary(p, op, *out, right);
    }
}

static bool parse_sum(Parser *p, const Expr **out) {
    if (!parse_product(p, out)) return false;
    for (;;) {
        Op op;
        if (accept(p, '+'))
            op = OP_ADD;
        else if (accept(p, '-'))
            op = OP_SUB;
        else
            return true;
        const Expr *right;
        if (!parse_product(p, &right)) return false;
        *out = binary(p, op, *out, right);
    }
}

bool expr_parse(Arena *arena, const char *text, const ExprNames *names, const char *where, int line,
                int column, const Expr **expr, Error *err) {
    Parser p = {.arena = arena,
                .text = text,
                .at = text,
                .names = names,
                .where = where,
                .line = line,
                .column = column,
                .err = err};
    if (strlen(text) > MAX_LENGTH) return fail_at(&p, text, "this expression is too long");
    if (!parse_sum(&p, expr)) return false;
    skip_blanks(&p);
    if (*p.at == 0) return true;
    if ((unsigned char)*p.at >= 0x80) return fail_at(&p, p.at, "the expression should end here");
    return fail_at(&p, p.at, arena_printf(arena, "the expression should end before '%c'", *p.at));
}

const char *expr_integer(const Expr *e, const Dims *dims, int64_t *value) {
    if (e->op == OP_NUMBER) {
        *value = e->integer;
        return e->fraction ? "is not a whole number" : NULL;
    }
    if (e->op == OP_DIM) {
        *value = dims->value[e->dim];
        return NULL;
    }
    static const char *const overflows = "does not fit in 64 bits";
    int64_t a, b;
    const char *problem = expr_integer(e->a, dims, &a);
    if (!problem) problem = expr_integer(e->b, dims, &b);
    if (problem) return problem;
    switch (e->op) {
    case OP_ADD:
        return __builtin_add_overflow(a, b, value) ? overflows : NULL;
    case OP_SUB:
        return __builtin_sub_overflow(a, b, value) ? overflows : NULL;
    case OP_MUL:
        return __builtin_mul_overflow(a, b, value) ? overflows : NULL;
    case OP_MIN:
        *value = a < b ? a : b;
        return NULL;
    case OP_MAX:
        *value = a > b ? a : b;
        return NULL;
    case OP_DIV:
    case OP_CEIL_DIV:
        if (b == 0) return "divides by zero";
        if (a == INT64_MIN && b == -1) return overflows;
        *value = a / b;
        if (e->op == OP_CEIL_DIV && a % b != 0 && (a < 0) == (b < 0)) *value += 1;
        return NULL;
    default:
        return "is not an expression";
    }
}

double expr_real(const Expr *e, const Dims *dims) {
    if (e->op == OP_NUMBER) return e->fraction ? e->real : (double)e->integer;
    if (e->op == OP_DIM) return (double)dims->value[e->dim];
    double a = expr_real(e->a, dims), b = expr_real(e->b, dims);
    switch (e->op) {
    case OP_ADD:
        return a + b;
    case OP_SUB:
        return a - b;
    case OP_MUL:
        return a * b;
    case OP_DIV:
        return a / b;
    case OP_MIN:
        return a < b ? a : b;
    case OP_MAX:
        return a > b ? a : b;
    case OP_CEIL_DIV:
        return ceil(a / b);
    default:
        return NAN;
    }
}

bool expr_has_fraction(const Expr *e) {
    if (e->op == OP_NUMBER) return e->fraction;
    return e->op != OP_DIM && (expr_has_fraction(e->a) || expr_has_fraction(e->b));
}

bool expr_is_dim(const Expr *e, int dim) {
    return e->op == OP_DIM && e->dim == dim;
}
