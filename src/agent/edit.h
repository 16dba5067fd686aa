/* edit.h - private to agent/: what a reply consists of, and how anchors are found. */
#pragma once
#include "agent/agent.h"

/* Lines without their newline; a text is cut once and then only pointed into. */
typedef struct {
    const char *text;
    size_t bytes;
} Line;
typedef struct {
    const Line *line;
    int count;
} Lines;
Lines lines_of(Arena *arena, const char *text, size_t bytes); // CRLF counts as LF
size_t line_trimmed(Line line);                               // bytes without trailing blanks

typedef struct {
    int line; // of the reply, 1-based, where <<<<<<< stands
    Lines search, replace;
} AnchoredEdit;

typedef struct {
    int line;          // where its fence opens
    char language[16]; // lower case; "" if untagged
    Lines body;
    bool has_edits; // it merely wraps anchored edits
} CodeBlock;

typedef struct {
    Lines lines;
    AnchoredEdit *edits;
    int edit_count;
    CodeBlock *blocks;
    int block_count;
} Reply;

bool is_source_language(const char *tag); // "cuda", "cpp", "cu", …

/* Cuts a reply into edits and blocks. False with `refusal` when its form is broken. */
bool reply_parse(Arena *arena, const char *reply, size_t bytes, Reply *parsed, char **refusal);

/* Replaces each edit's anchor in `base`. All anchors are looked for in `base` as it was shown to
 * the model, not in the outcome of the edits before them, and must not overlap; so their order
 * does not matter, and all are applied or none. */
bool anchors_apply(Arena *arena, const char *base, const AnchoredEdit *edits, int count,
                   char **source, char **refusal);

/* Joins the pieces of a reply that was cut off: drops what the second repeats of the first. */
char *reply_join(Arena *arena, const char *first, const char *second);

/* Where two texts differ, as one span of whole lines. */
typedef struct {
    int first_line, removed, added; // 1-based
} LineSpan;
LineSpan edit_span(Arena *arena, const char *before, const char *after);

/* The text after "Idea:" or "Cause:" at the start of a line of the reply, or NULL. */
char *reply_idea(Arena *arena, const char *reply);
