/* scan.h - private to agent/: as much of C++'s lexical grammar as judging an edit needs. */
#pragma once
#include "base/base.h"

typedef enum {
    TOKEN_END,
    TOKEN_WORD, // identifier or keyword
    TOKEN_NUMBER,
    TOKEN_TEXT,      // string or character literal, raw ones included
    TOKEN_DIRECTIVE, // a whole preprocessor line with its continuations
    TOKEN_PUNCTUATION,
    TOKEN_UNCLOSED, // a literal or comment that does not end; `what` names it
} TokenKind;

typedef struct {
    TokenKind kind;
    const char *text;
    size_t bytes;
    int line;
    const char *what;
} Token;

typedef struct {
    const char *at, *end;
    int line;
    bool line_start; // only blanks so far on this line: a # begins a directive
} Scanner;

Scanner scan_begin(const char *source, size_t bytes);
Token scan_next(Scanner *scanner);

/* Do brackets, literals and conditionals close? If not, `problem` says which does not and where,
 * as the rest of a sentence. */
bool scan_balanced(Arena *arena, const char *source, size_t bytes, char **problem);
/* Is `name` followed by "(" anywhere outside comments, literals and directives? */
bool scan_calls_or_defines(const char *source, size_t bytes, const char *name);
