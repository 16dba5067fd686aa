/* ptx_lex.c - cuts PTX text into tokens.
 *
 * An opcode with all its dots is one word ("ld.global.nc.v4.f32"), and so are directives (".reg"),
 * registers ("%r1") and special registers ("%tid.x"): dots never stand alone in PTX. Nothing here
 * can fail; a character no PTX has becomes a TOKEN_BAD and the parser says where.
 */
#include "sim/ptx.h"
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool word_start(char c) {
    return isalpha((unsigned char)c) || c == '_' || c == '$' || c == '%' || c == '.';
}

static bool word_part(char c) {
    return isalnum((unsigned char)c) || c == '_' || c == '$' || c == '.' || c == '%';
}

static void skip_blanks(Lexer *lexer) {
    while (lexer->at < lexer->end) {
        char c = *lexer->at;
        bool more = lexer->at + 1 < lexer->end;
        if (c == '\n') {
            lexer->line++;
            lexer->at++;
        } else if (c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f') {
            lexer->at++;
        } else if (c == '/' && more && lexer->at[1] == '/') {
            while (lexer->at < lexer->end && *lexer->at != '\n')
                lexer->at++;
        } else if (c == '/' && more && lexer->at[1] == '*') {
            lexer->at += 2;
            while (lexer->at < lexer->end &&
                   !(lexer->at[0] == '*' && lexer->at + 1 < lexer->end && lexer->at[1] == '/')) {
                lexer->line += *lexer->at == '\n';
                lexer->at++;
            }
            lexer->at += lexer->at < lexer->end ? 2 : 0;
        } else {
            return;
        }
    }
}

static int digit_value(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return 99;
}

static uint64_t read_digits(Lexer *lexer, int base, int most) {
    uint64_t value = 0;
    while (lexer->at < lexer->end && most-- && digit_value(*lexer->at) < base)
        value = value * (uint64_t)base + (uint64_t)digit_value(*lexer->at++);
    return value;
}

static void read_decimal_fraction(Lexer *lexer, Token *token) {
    char text[64];
    size_t length = 0;
    while (lexer->at < lexer->end && length < sizeof text - 1 &&
           (isdigit((unsigned char)*lexer->at) || strchr(".eE", *lexer->at) ||
            ((*lexer->at == '-' || *lexer->at == '+') && length > 0 &&
             strchr("eE", text[length - 1]))))
        text[length++] = *lexer->at++;
    text[length] = 0;
    double value = strtod(text, NULL);
    token->kind = TOKEN_F64;
    memcpy(&token->value, &value, sizeof value);
}

static void read_number(Lexer *lexer, Token *token) {
    const char *at = lexer->at;
    char second = at + 1 < lexer->end ? (char)tolower((unsigned char)at[1]) : 0;
    token->kind = TOKEN_INTEGER;
    if (*at == '0' && (second == 'f' || second == 'd')) {
        lexer->at += 2;
        token->kind = second == 'f' ? TOKEN_F32 : TOKEN_F64;
        token->value = read_digits(lexer, 16, second == 'f' ? 8 : 16);
    } else if (*at == '0' && second == 'x') {
        lexer->at += 2;
        token->value = read_digits(lexer, 16, -1);
    } else if (*at == '0' && second == 'b') {
        lexer->at += 2;
        token->value = read_digits(lexer, 2, -1);
    } else {
        const char *digits = at;
        while (digits < lexer->end && isdigit((unsigned char)*digits))
            digits++;
        if (digits < lexer->end && (*digits == '.' || *digits == 'e' || *digits == 'E')) {
            read_decimal_fraction(lexer, token);
            return;
        }
        token->value = read_digits(lexer, *at == '0' ? 8 : 10, -1);
    }
    if (lexer->at < lexer->end && *lexer->at == 'U') lexer->at++;
}

Token lexer_next(Lexer *lexer) {
    skip_blanks(lexer);
    Token token = {.kind = TOKEN_END, .start = lexer->at, .line = lexer->line};
    if (lexer->at >= lexer->end) return token;
    char c = *lexer->at;
    if (isdigit((unsigned char)c)) {
        read_number(lexer, &token);
    } else if (word_start(c)) {
        token.kind = TOKEN_WORD;
        lexer->at++;
        while (lexer->at < lexer->end) {
            bool colons = *lexer->at == ':' && lexer->at + 2 < lexer->end && lexer->at[1] == ':' &&
                          word_part(lexer->at[2]);
            if (colons)
                lexer->at += 2;
            else if (word_part(*lexer->at))
                lexer->at++;
            else
                break;
        }
    } else if (c == '"') {
        lexer->at++;
        const char *begin = lexer->at;
        while (lexer->at < lexer->end && *lexer->at != '"' && *lexer->at != '\n')
            lexer->at += *lexer->at == '\\' && lexer->at + 1 < lexer->end ? 2 : 1;
        bool closed = lexer->at < lexer->end && *lexer->at == '"';
        token.kind = closed ? TOKEN_STRING : TOKEN_BAD;
        token.start = begin;
        token.length = (uint32_t)((lexer->at < lexer->end ? lexer->at : lexer->end) - begin);
        lexer->at += closed;
        return token;
    } else {
        token.kind = strchr("{}()[]<>,;:=+-!|@*&~/^?", c) && c ? TOKEN_PUNCT : TOKEN_BAD;
        lexer->at++;
    }
    token.length = (uint32_t)(lexer->at - token.start);
    return token;
}
