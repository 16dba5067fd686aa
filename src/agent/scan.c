/* scan.c - a tokenizer for CUDA C++, exact where brackets could hide.
 *
 * Counting braces in the text would trip over strings, comments, raw strings, digit separators
 * and macros. So the source is cut into tokens as the standard's first translation phases do,
 * and only punctuation counts. Preprocessor lines are tokens of their own whose contents do not
 * count (a macro may hold half a bracket); the branches of a conditional each start from the
 * brackets open at its #if, and what `#if 0` hides is not looked at.
 */
#include "agent/scan.h"
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

Scanner scan_begin(const char *source, size_t bytes) {
    return (Scanner){.at = source, .end = source + bytes, .line = 1, .line_start = true};
}

static bool is_word_char(char c) {
    return isalnum((unsigned char)c) || c == '_' || (c & 0x80);
}

static char peek(const Scanner *s, size_t ahead) {
    return (size_t)(s->end - s->at) > ahead ? s->at[ahead] : 0;
}

static void advance(Scanner *s, const char *to) {
    for (; s->at < to; s->at++)
        s->line += *s->at == '\n';
}

/* The position after the newline that ends the logical line, or the end of the text. */
static const char *logical_line_end(const char *at, const char *end) {
    while (at < end) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        if (!newline) return end;
        bool continued = newline > at && newline[-1] == '\\';
        at = newline + 1;
        if (!continued) return at;
    }
    return end;
}

/* Skips blanks and comments. False when a comment does not end. */
static bool skip_blanks(Scanner *s) {
    while (s->at < s->end) {
        char c = *s->at;
        if (c == '\n') {
            s->line_start = true;
            advance(s, s->at + 1);
        } else if (isspace((unsigned char)c)) {
            s->at++;
        } else if (c == '\\' && peek(s, 1) == '\n') {
            advance(s, s->at + 2);
        } else if (c == '/' && peek(s, 1) == '/') {
            const char *to = logical_line_end(s->at, s->end);
            advance(s, to > s->at && to[-1] == '\n' ? to - 1 : to); // the newline is seen above
        } else if (c == '/' && peek(s, 1) == '*') {
            const char *close = memmem(s->at + 2, (size_t)(s->end - s->at - 2), "*/", 2);
            if (!close) return false;
            advance(s, close + 2);
        } else {
            break;
        }
    }
    return true;
}

static Token token(Scanner *s, TokenKind kind, const char *to) {
    Token t = {.kind = kind, .text = s->at, .bytes = (size_t)(to - s->at), .line = s->line};
    advance(s, to);
    s->line_start = false;
    return t;
}

static Token unclosed(Scanner *s, const char *what) {
    Token t = token(s, TOKEN_UNCLOSED, s->end);
    t.what = what;
    return t;
}

/* An ordinary literal: up to the same quote on the same logical line. */
static Token scan_quoted(Scanner *s, const char *from) {
    char quote = *from;
    for (const char *c = from + 1; c < s->end; c++) {
        if (*c == quote) return token(s, TOKEN_TEXT, c + 1);
        if (*c == '\n') break;
        if (*c == '\\' && c + 1 < s->end) c++;
    }
    return unclosed(s, quote == '"' ? "a string that is never closed"
                                    : "a character literal that is never closed");
}

/* R"delimiter( … )delimiter", `from` at the quote. */
static Token scan_raw(Scanner *s, const char *from) {
    const char *open = from + 1;
    while (open < s->end && open - from <= 17 && *open != '(')
        open++;
    if (open >= s->end || *open != '(')
        return unclosed(s, "a raw string without its opening parenthesis");
    char close[20];
    size_t length = (size_t)(open - from - 1);
    close[0] = ')';
    memcpy(close + 1, from + 1, length);
    close[length + 1] = '"';
    const char *end = memmem(open, (size_t)(s->end - open), close, length + 2);
    return end ? token(s, TOKEN_TEXT, end + length + 2)
               : unclosed(s, "a raw string that is never closed");
}

static Token scan_word(Scanner *s) {
    const char *end = s->at;
    while (end < s->end && is_word_char(*end))
        end++;
    size_t bytes = (size_t)(end - s->at);
    bool quote = end < s->end && (*end == '"' || *end == '\'');
    if (quote && bytes <= 3) {
        static const char *const prefixes[] = {"R", "u8R", "uR", "UR", "LR", "u8", "u", "U", "L"};
        for (size_t i = 0; i < COUNT_OF(prefixes); i++) {
            if (strlen(prefixes[i]) != bytes || memcmp(prefixes[i], s->at, bytes) != 0) continue;
            bool raw = s->at[bytes - 1] == 'R';
            if (raw && *end == '"') return scan_raw(s, end);
            if (!raw) return scan_quoted(s, end);
        }
    }
    return token(s, TOKEN_WORD, end);
}

static Token scan_number(Scanner *s) {
    const char *end = s->at + 1;
    while (end < s->end) {
        bool exponent_sign = (*end == '+' || *end == '-') && strchr("eEpP", end[-1]);
        bool separator = *end == '\'' && end + 1 < s->end && isalnum((unsigned char)end[1]);
        if (!is_word_char(*end) && *end != '.' && !exponent_sign && !separator) break;
        end++;
    }
    return token(s, TOKEN_NUMBER, end);
}

Token scan_next(Scanner *s) {
    if (!skip_blanks(s)) return unclosed(s, "a comment that is never closed");
    if (s->at >= s->end) return token(s, TOKEN_END, s->end);
    char c = *s->at;
    if (c == '#' && s->line_start) {
        Token t = token(s, TOKEN_DIRECTIVE, logical_line_end(s->at, s->end));
        s->line_start = true;
        return t;
    }
    if (c == '"' || c == '\'') return scan_quoted(s, s->at);
    if (isdigit((unsigned char)c) || (c == '.' && isdigit((unsigned char)peek(s, 1))))
        return scan_number(s);
    if (is_word_char(c)) return scan_word(s);
    return token(s, TOKEN_PUNCTUATION, s->at + 1);
}

/* ---- balance ---------------------------------------------------------------------------- */

typedef struct {
    char bracket;
    int line;
} Opened;

typedef struct {
    Opened *opened;
    size_t count, capacity;
} Stack;

typedef struct {
    Opened *at_if; // the brackets open there
    size_t count;
    int line;
} Conditional;

enum { MAX_CONDITIONALS = 256 };

typedef struct {
    Arena *arena;
    Stack stack;
    Conditional conditionals[MAX_CONDITIONALS];
    int conditional_count;
} Balance;

static void push(Stack *stack, Opened opened) {
    if (stack->count == stack->capacity) {
        stack->capacity = stack->capacity ? stack->capacity * 2 : 64;
        stack->opened = realloc(stack->opened, stack->capacity * sizeof *stack->opened);
        if (!stack->opened) abort();
    }
    stack->opened[stack->count++] = opened;
}

/* The directive's name and what follows it, for "#  if 0 // off": "if", "0 // off". */
static void split_directive(const Token *t, char name[16], const char **rest) {
    const char *c = t->text + 1, *end = t->text + t->bytes;
    size_t length = 0;
    while (c < end && (*c == ' ' || *c == '\t'))
        c++;
    while (c < end && isalpha((unsigned char)*c) && length < 15)
        name[length++] = *c++;
    name[length] = 0;
    while (c < end && (*c == ' ' || *c == '\t'))
        c++;
    *rest = c;
}

static bool is_zero(const char *text, const char *end) {
    bool zero = text < end && *text == '0' && !(text + 1 < end && is_word_char(text[1]));
    return zero || (end - text >= 5 && memcmp(text, "false", 5) == 0);
}

/* Passes over what an #if 0 hides, up to the #else, #elif or #endif that belongs to it. */
static void skip_hidden(Scanner *s) {
    int depth = 0;
    while (s->at < s->end) {
        const char *line = s->at;
        while (line < s->end && (*line == ' ' || *line == '\t'))
            line++;
        const char *end = logical_line_end(s->at, s->end);
        if (line < end && *line == '#') {
            Token t = {.text = line, .bytes = (size_t)(end - line)};
            char name[16];
            const char *rest;
            split_directive(&t, name, &rest);
            bool ends = strcmp(name, "endif") == 0;
            if (depth == 0 && (ends || text_starts_with(name, "el"))) return;
            depth += text_starts_with(name, "if") - ends;
        }
        advance(s, end);
    }
}

static bool take_directive(Balance *b, Scanner *s, const Token *t, char **problem) {
    char name[16];
    const char *rest;
    split_directive(t, name, &rest);
    Stack *stack = &b->stack;
    if (text_starts_with(name, "if")) { // if, ifdef, ifndef
        if (b->conditional_count == MAX_CONDITIONALS) {
            *problem = arena_printf(b->arena, "line %d nests #if too deeply", t->line);
            return false;
        }
        b->conditionals[b->conditional_count++] =
            (Conditional){.at_if = stack->count ? arena_copy(b->arena, stack->opened,
                                                             stack->count * sizeof(Opened))
                                                : NULL,
                          .count = stack->count,
                          .line = t->line};
        if (strcmp(name, "if") == 0 && is_zero(rest, t->text + t->bytes)) skip_hidden(s);
        return true;
    }
    bool ends = strcmp(name, "endif") == 0, other = text_starts_with(name, "el");
    if (!ends && !other) return true;
    if (b->conditional_count == 0) {
        *problem = arena_printf(b->arena, "line %d has #%s without #if", t->line, name);
        return false;
    }
    Conditional *conditional = &b->conditionals[b->conditional_count - 1];
    if (ends) {
        b->conditional_count--;
        return true;
    }
    stack->count = 0;
    for (size_t i = 0; i < conditional->count; i++)
        push(stack, conditional->at_if[i]);
    return true;
}

static bool take_bracket(Balance *b, const Token *t, char **problem) {
    char c = *t->text;
    if (strchr("([{", c)) {
        push(&b->stack, (Opened){.bracket = c, .line = t->line});
        return true;
    }
    if (!strchr(")]}", c)) return true;
    if (b->stack.count == 0) {
        *problem = arena_printf(b->arena, "the '%c' in line %d closes nothing", c, t->line);
        return false;
    }
    Opened opened = b->stack.opened[--b->stack.count];
    char wanted = opened.bracket == '(' ? ')' : opened.bracket == '[' ? ']' : '}';
    if (c == wanted) return true;
    *problem = arena_printf(b->arena, "the '%c' in line %d meets the '%c' opened in line %d", c,
                            t->line, opened.bracket, opened.line);
    return false;
}

bool scan_balanced(Arena *arena, const char *source, size_t bytes, char **problem) {
    Balance b = {.arena = arena};
    Scanner scanner = scan_begin(source, bytes);
    bool good = true;
    for (;;) {
        Token t = scan_next(&scanner);
        if (t.kind == TOKEN_END) break;
        if (t.kind == TOKEN_UNCLOSED) {
            *problem = arena_printf(arena, "line %d begins %s", t.line, t.what);
            good = false;
        } else if (t.kind == TOKEN_DIRECTIVE) {
            good = take_directive(&b, &scanner, &t, problem);
        } else if (t.kind == TOKEN_PUNCTUATION) {
            good = take_bracket(&b, &t, problem);
        }
        if (!good) break;
    }
    if (good && b.stack.count) {
        Opened last = b.stack.opened[b.stack.count - 1];
        *problem =
            arena_printf(arena, "the '%c' in line %d is never closed", last.bracket, last.line);
        good = false;
    } else if (good && b.conditional_count) {
        *problem = arena_printf(arena, "the #if in line %d has no #endif",
                                b.conditionals[b.conditional_count - 1].line);
        good = false;
    }
    free(b.stack.opened);
    return good;
}

bool scan_calls_or_defines(const char *source, size_t bytes, const char *name) {
    Scanner scanner = scan_begin(source, bytes);
    size_t length = strlen(name);
    bool named = false;
    for (;;) {
        Token t = scan_next(&scanner);
        if (t.kind == TOKEN_END || t.kind == TOKEN_UNCLOSED) return false;
        if (named && t.kind == TOKEN_PUNCTUATION && *t.text == '(') return true;
        named = t.kind == TOKEN_WORD && t.bytes == length && memcmp(t.text, name, length) == 0;
    }
}
