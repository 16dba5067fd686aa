/* reply.c - cuts a model's reply into anchored edits and code blocks.
 *
 * Replies are Markdown of some kind: prose, fences, and inside or outside of fences edits of the
 * form
 *     <<<<<<< SEARCH
 *     lines as they are
 *     =======
 *     lines as they shall be
 *     >>>>>>> REPLACE
 * Only the form is judged here; what it does to a source is for edit.c.
 */
#include "agent/edit.h"
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

typedef enum { MARK_NONE, MARK_SEARCH, MARK_DIVIDER, MARK_REPLACE, MARK_FOREIGN } Mark;

static Line trimmed(Line line) {
    size_t bytes = line_trimmed(line), indent = 0;
    while (indent < bytes && (line.text[indent] == ' ' || line.text[indent] == '\t'))
        indent++;
    return (Line){.text = line.text + indent, .bytes = bytes - indent};
}

static bool equals_word(const char *text, size_t bytes, const char *word) {
    return bytes == strlen(word) && strncasecmp(text, word, bytes) == 0;
}

/* Conflict markers: five to nine of < = >, then the word. MARK_FOREIGN: such as git writes. */
static Mark mark_of(Line line) {
    Line t = trimmed(line);
    if (t.bytes < 5 || !strchr("<=>", t.text[0])) return MARK_NONE;
    size_t run = 0;
    while (run < t.bytes && t.text[run] == t.text[0])
        run++;
    if (run < 5 || run > 9) return MARK_NONE;
    const char *word = t.text + run;
    size_t bytes = t.bytes - run;
    while (bytes && *word == ' ')
        word++, bytes--;
    switch (t.text[0]) {
    case '=':
        return bytes == 0 ? MARK_DIVIDER : MARK_NONE;
    case '<':
        return equals_word(word, bytes, "SEARCH") ? MARK_SEARCH : MARK_FOREIGN;
    default:
        return bytes == 0 || equals_word(word, bytes, "REPLACE") ? MARK_REPLACE : MARK_FOREIGN;
    }
}

typedef struct {
    char mark; // ` or ~; 0: no fence
    size_t length;
    char language[16];
    bool bare; // nothing follows: it can close
} Fence;

static Fence fence_of(Line line) {
    Line t = trimmed(line);
    Fence fence = {0};
    if (t.bytes < 3 || (t.text[0] != '`' && t.text[0] != '~')) return fence;
    size_t run = 0;
    while (run < t.bytes && t.text[run] == t.text[0])
        run++;
    if (run < 3 || memchr(t.text + run, '`', t.bytes - run)) return fence; // ```code``` in prose
    fence.mark = t.text[0];
    fence.length = run;
    fence.bare = run == t.bytes;
    const char *info = t.text + run;
    size_t bytes = t.bytes - run, length = 0;
    while (bytes && (*info == ' ' || *info == '{' || *info == '.'))
        info++, bytes--;
    while (length < bytes && length < sizeof fence.language - 1 &&
           !strchr(" \t,:{}", info[length])) {
        fence.language[length] = (char)tolower((unsigned char)info[length]);
        length++;
    }
    return fence;
}

bool is_source_language(const char *language) {
    static const char *const names[] = {"cuda", "cpp", "c++", "cu", "c", "cxx", "cc", "cuh"};
    for (size_t i = 0; i < COUNT_OF(names); i++)
        if (strcmp(language, names[i]) == 0) return true;
    return false;
}

typedef struct {
    Arena *arena;
    Reply *reply;
    int edit_capacity, block_capacity;
    char **refusal;
} Parser;

/* Grows an arena array by doubling; what is left behind goes with the arena. */
static void *grown(Arena *arena, void *old, int count, int *capacity, size_t size) {
    if (count < *capacity) return old;
    int larger = *capacity ? *capacity * 2 : 8;
    void *fresh = arena_alloc(arena, (size_t)larger * size);
    if (count) memcpy(fresh, old, (size_t)count * size);
    *capacity = larger;
    return fresh;
}

static bool refuse(Parser *p, int line, const char *why) {
    *p->refusal = arena_printf(p->arena, "Line %d of your reply: %s", line, why);
    return false;
}

/* The edit whose SEARCH marker is line `*at`; moves `*at` past it. */
static bool parse_edit(Parser *p, int *at) {
    Lines lines = p->reply->lines;
    int begin = *at + 1, divider = -1, i = begin;
    for (;; i++) {
        if (i == lines.count)
            return refuse(p, *at + 1,
                          divider < 0 ? "this edit has no ======= and no end; the "
                                        "reply seems to be cut off. Send it again, "
                                        "shorter."
                                      : "this edit has no >>>>>>> REPLACE; the reply "
                                        "seems to be cut off. Send it again, shorter.");
        Mark mark = mark_of(lines.line[i]);
        Fence fence = fence_of(lines.line[i]);
        if (fence.mark)
            return refuse(p, i + 1,
                          "a Markdown fence stands inside an edit. Put between the "
                          "markers only the lines of the source.");
        if (mark == MARK_SEARCH || mark == MARK_FOREIGN)
            return refuse(p, i + 1,
                          "an edit begins inside another one; each ends with "
                          ">>>>>>> REPLACE.");
        if (mark == MARK_DIVIDER) {
            if (divider >= 0)
                return refuse(p, i + 1,
                              "a second ======= in one edit. Give each change its own "
                              "SEARCH and REPLACE.");
            divider = i;
        }
        if (mark == MARK_REPLACE) break;
    }
    if (divider < 0)
        return refuse(p, *at + 1, "this edit has no ======= between SEARCH and REPLACE.");
    Reply *reply = p->reply;
    reply->edits =
        grown(p->arena, reply->edits, reply->edit_count, &p->edit_capacity, sizeof *reply->edits);
    reply->edits[reply->edit_count++] =
        (AnchoredEdit){.line = *at + 1,
                       .search = {.line = lines.line + begin, .count = divider - begin},
                       .replace = {.line = lines.line + divider + 1, .count = i - divider - 1}};
    *at = i;
    return true;
}

static void end_block(Parser *p, CodeBlock *block, int end) {
    block->body = (Lines){.line = p->reply->lines.line + block->line, .count = end - block->line};
    Reply *reply = p->reply;
    reply->blocks = grown(p->arena, reply->blocks, reply->block_count, &p->block_capacity,
                          sizeof *reply->blocks);
    reply->blocks[reply->block_count++] = *block;
}

static CodeBlock begin_block(int at, const Fence *fence) {
    CodeBlock block = {.line = at + 1};
    memcpy(block.language, fence->language, sizeof block.language);
    return block;
}

static bool parse_lines(Parser *p) {
    Lines lines = p->reply->lines;
    Fence open = {0};
    CodeBlock block = {0};
    for (int i = 0; i < lines.count; i++) {
        Mark mark = mark_of(lines.line[i]);
        if (mark == MARK_SEARCH) {
            block.has_edits = true;
            if (!parse_edit(p, &i)) return false;
            continue;
        }
        if (mark == MARK_FOREIGN)
            return refuse(p, i + 1,
                          "edits begin with <<<<<<< SEARCH, are divided by =======, and "
                          "end with >>>>>>> REPLACE.");
        if (mark == MARK_REPLACE && (open.mark == 0 || block.has_edits))
            return refuse(p, i + 1, "this ends an edit that has not begun.");
        Fence fence = fence_of(lines.line[i]);
        if (!fence.mark) continue;
        if (!open.mark) {
            open = fence;
            block = begin_block(i, &fence);
        } else if (fence.bare && fence.mark == open.mark && fence.length >= open.length) {
            end_block(p, &block, i);
            open = (Fence){0};
        } else if (!is_source_language(open.language) && is_source_language(fence.language)) {
            open = fence; // the outer fence only wraps the whole reply
            block = begin_block(i, &fence);
        } else if (is_source_language(open.language) && !block.has_edits &&
                   fence.mark == open.mark && fence.length >= open.length) {
            return refuse(p, i + 1,
                          "a fence opens inside a code block. Close each block with ``` "
                          "and keep Markdown out of the code.");
        }
    }
    if (open.mark && !block.has_edits) {
        *p->refusal = arena_printf(p->arena,
                                   "The block that opens in line %d of your reply is never closed; "
                                   "the reply seems to be cut off. Send it again, shorter if it is "
                                   "long.",
                                   block.line);
        return false;
    }
    return true;
}

bool reply_parse(Arena *arena, const char *reply, size_t bytes, Reply *parsed, char **refusal) {
    *parsed = (Reply){.lines = lines_of(arena, reply, bytes)};
    Parser parser = {.arena = arena, .reply = parsed, .refusal = refusal};
    return parse_lines(&parser);
}

/* ---- pieces ----------------------------------------------------------------------------- */

enum { MIN_OVERLAP_BYTES = 16, MAX_OVERLAP_BYTES = 2000 };

/* A continuation often begins with a fence of its own, and repeats the last line or two. */
char *reply_join(Arena *arena, const char *first, const char *second) {
    size_t have = strlen(first);
    bool inside = false; // does `first` end within a fence?
    Lines lines = lines_of(arena, first, have);
    for (int i = 0; i < lines.count; i++)
        if (fence_of(lines.line[i]).mark) inside = !inside;
    Lines more = lines_of(arena, second, strlen(second));
    if (inside && more.count > 0) {
        Fence fence = fence_of(more.line[0]);
        if (fence.mark && !fence.bare && more.count > 1) second = more.line[1].text;
    }
    size_t most = strlen(second) < have ? strlen(second) : have;
    if (most > MAX_OVERLAP_BYTES) most = MAX_OVERLAP_BYTES;
    for (size_t overlap = most; overlap >= MIN_OVERLAP_BYTES; overlap--)
        if (memcmp(first + have - overlap, second, overlap) == 0)
            return arena_printf(arena, "%s%s", first, second + overlap);
    return arena_printf(arena, "%s%s", first, second);
}

char *reply_idea(Arena *arena, const char *reply) {
    enum { MAX_IDEA_BYTES = 300 };
    Lines lines = lines_of(arena, reply, strlen(reply));
    for (int i = 0; i < lines.count; i++) {
        Line t = trimmed(lines.line[i]);
        while (t.bytes && (*t.text == '*' || *t.text == '#' || *t.text == ' '))
            t.text++, t.bytes--;
        size_t label = t.bytes >= 5 && strncasecmp(t.text, "idea:", 5) == 0    ? 5
                       : t.bytes >= 6 && strncasecmp(t.text, "cause:", 6) == 0 ? 6
                                                                               : 0;
        if (!label) continue;
        t.text += label, t.bytes -= label;
        while (t.bytes && (*t.text == '*' || *t.text == ' '))
            t.text++, t.bytes--;
        size_t bytes = t.bytes > MAX_IDEA_BYTES ? MAX_IDEA_BYTES : t.bytes;
        while (bytes && bytes < t.bytes && ((unsigned char)t.text[bytes] & 0xc0) == 0x80)
            bytes--;
        if (bytes) return arena_string_n(arena, t.text, bytes);
    }
    return NULL;
}
