/* expr.h - arithmetic over a task's dimensions: "ceil_div(n, 2) * rows". Private to task/. */
#pragma once
#include "task/task.h"

typedef struct {
    const char *const *names; // dimensions, in the order of Dims
    int count;
} ExprNames;

/* Parses `text`. `where`, `line`, `column` place it in the user's file for messages. */
bool expr_parse(Arena *arena, const char *text, const ExprNames *names, const char *where, int line,
                int column, const Expr **expr, Error *err);

/* Exact in 64 bits, division rounds toward zero. Returns NULL, or what went wrong as words that
 * follow a subject: "divides by zero". */
const char *expr_integer(const Expr *expr, const Dims *dims, int64_t *value);
/* In double; division is not rounded, ceil_div is. */
double expr_real(const Expr *expr, const Dims *dims);

bool expr_has_fraction(const Expr *expr);    // a constant such as 0.5: not for extents
bool expr_is_dim(const Expr *expr, int dim); // nothing but that dimension
