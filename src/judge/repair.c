/* repair.c - the text that whoever repairs a kernel is shown: verdict, details, and the lines
 * around the place, within a fixed number of characters so that it never crowds out the rest of
 * a prompt.
 */
#include "judge/trial.h"
#include <string.h>

enum { LINES_AROUND = 4, LONGEST_LINE = 160, EXCERPT_CHARACTERS = 1000 };

/* Start and length of line `number` (from 1); false past the end. */
static bool source_line(const Trial *trial, int number, const char **start, size_t *length) {
    const char *at = trial->source, *end = trial->source + trial->source_bytes;
    for (int line = 1; at < end; line++) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        const char *stop = newline ? newline : end;
        if (line == number) {
            *start = at;
            *length = (size_t)(stop - at);
            return true;
        }
        at = newline ? newline + 1 : end;
    }
    return false;
}

int source_line_of(const Trial *trial, const char *text) {
    const char *start;
    size_t length;
    int found = 0;
    for (int line = 1; source_line(trial, line, &start, &length); line++) {
        const char *comment = memmem(start, length, "//", 2);
        size_t code = comment ? (size_t)(comment - start) : length;
        if (!memmem(start, code, text, strlen(text))) continue;
        if (found) return 0;
        found = line;
    }
    return found;
}

static void excerpt(Trial *trial, Buf *out, int around) {
    int place = trial->verdict->place.line;
    for (int line = place - around; line <= place + around; line++) {
        const char *start;
        size_t length;
        if (line < 1 || !source_line(trial, line, &start, &length)) continue;
        size_t shown = length > LONGEST_LINE ? LONGEST_LINE : length;
        char *text = text_cleaned(trial->arena, start, shown);
        buf_printf(out, "%c %4d | %s%s\n", line == place ? '>' : ' ', line, text,
                   shown < length ? " ..." : "");
    }
}

/* Cuts at the last line's end that fits, else at a character's edge. */
static char *cut(Arena *arena, const char *text, size_t limit) {
    static const char mark[] = "[...]\n";
    if (strlen(text) <= limit) return arena_string(arena, text);
    size_t length = limit - strlen(mark);
    const char *newline = memrchr(text, '\n', length);
    if (newline && (size_t)(newline - text) > length / 2)
        length = (size_t)(newline - text) + 1;
    else
        while (length && ((unsigned char)text[length] & 0xC0) == 0x80)
            length--;
    return arena_printf(arena, "%.*s%s%s", (int)length, text,
                        length && text[length - 1] == '\n' ? "" : "\n", mark);
}

void repair_write(Trial *trial, const char *details) {
    Verdict *verdict = trial->verdict;
    Buf lines = {0};
    if (verdict->place.line > 0) {
        for (int around = LINES_AROUND; around >= 0; around--) {
            buf_free(&lines);
            excerpt(trial, &lines, around);
            if (lines.length <= EXCERPT_CHARACTERS) break;
        }
    }
    char *shown = buf_take(trial->arena, &lines);
    Buf head = {0};
    buf_printf(&head, "verdict: %s\n%s\n", verdict_name(verdict->kind), verdict->message);
    if (details && *details) {
        char *clean = text_cleaned(trial->arena, details, strlen(details));
        buf_printf(&head, "%s%s", clean, text_ends_with(clean, "\n") ? "" : "\n");
    }
    char *text = buf_take(trial->arena, &head);
    text = cut(trial->arena, text, REPAIR_CHARACTERS - strlen(shown));
    verdict->repair = arena_printf(trial->arena, "%s%s", text, shown);
}

void repair_write_text(Trial *trial, const char *text) {
    const char *word = verdict_name(trial->verdict->kind);
    char *clean = text_cleaned(trial->arena, text, strlen(text));
    clean = arena_printf(trial->arena, "verdict: %s\n%s", word, clean);
    trial->verdict->repair = cut(trial->arena, clean, REPAIR_CHARACTERS);
}
