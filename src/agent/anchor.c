/* anchor.c - finds the place an edit means, or tells the model why it cannot be found.
 *
 * An anchor matches whole lines, exactly but for trailing blanks. Nothing fuzzier: an edit
 * applied to nearly the right place costs a build and a round, a refusal costs a short question.
 * The refusal therefore has to be good: it shows the place that comes nearest and where it
 * differs.
 */
#include "agent/edit.h"
#include <stdlib.h>
#include <string.h>

enum {
    MAX_ANCHOR_LINES = 400,
    MAX_SHOWN_MATCHES = 4,
    SHOWN_LINE_BYTES = 120,
    MAX_NEAREST_LINES = 20000, // a longer source is not searched for the nearest place
};

Lines lines_of(Arena *arena, const char *text, size_t bytes) {
    int count = 0;
    for (size_t i = 0; i < bytes; i++)
        count += text[i] == '\n';
    if (bytes && text[bytes - 1] != '\n') count++;
    Line *lines = arena_array_of(arena, Line, (size_t)count + 1);
    const char *at = text, *end = text + bytes;
    for (int i = 0; i < count; i++) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        size_t length = (size_t)((newline ? newline : end) - at);
        lines[i] = (Line){.text = at, .bytes = length - (length && at[length - 1] == '\r')};
        at += length + 1;
    }
    return (Lines){.line = lines, .count = count};
}

size_t line_trimmed(Line line) {
    size_t bytes = line.bytes;
    while (bytes && (line.text[bytes - 1] == ' ' || line.text[bytes - 1] == '\t'))
        bytes--;
    return bytes;
}

static bool same_line(Line a, Line b) {
    size_t bytes = line_trimmed(a);
    return bytes == line_trimmed(b) && memcmp(a.text, b.text, bytes) == 0;
}

static Line without_indent(Line line) {
    size_t indent = 0;
    while (indent < line.bytes && (line.text[indent] == ' ' || line.text[indent] == '\t'))
        indent++;
    return (Line){.text = line.text + indent, .bytes = line.bytes - indent};
}

static bool is_blank(Lines lines) {
    for (int i = 0; i < lines.count; i++)
        if (line_trimmed(lines.line[i]) > 0) return false;
    return true;
}

static bool matches_at(Lines base, Lines anchor, int at) {
    for (int i = 0; i < anchor.count; i++)
        if (!same_line(base.line[at + i], anchor.line[i])) return false;
    return true;
}

/* How many of the anchor's lines agree with the source at `at` if indentation is ignored. */
static int likeness(Lines base, Lines anchor, int at) {
    int alike = 0;
    for (int i = 0; i < anchor.count && at + i < base.count; i++) {
        Line a = without_indent(base.line[at + i]), b = without_indent(anchor.line[i]);
        alike += line_trimmed(b) > 0 && same_line(a, b);
    }
    return alike;
}

static const char *shown(Arena *arena, Line line) {
    size_t bytes = line_trimmed(line);
    if (bytes <= SHOWN_LINE_BYTES) return arena_string_n(arena, line.text, bytes);
    bytes = SHOWN_LINE_BYTES;
    while (bytes && ((unsigned char)line.text[bytes] & 0xc0) == 0x80) // not within a character
        bytes--;
    return arena_printf(arena, "%.*s…", (int)bytes, line.text);
}

/* A one-line anchor may be a piece of a line: say so rather than "not found". */
static const char *part_of_line(Arena *arena, Lines base, Lines anchor) {
    Line wanted = without_indent(anchor.line[0]);
    size_t bytes = line_trimmed(wanted);
    if (anchor.count != 1 || bytes < 3) return NULL;
    for (int i = 0; i < base.count; i++) {
        Line line = base.line[i];
        if (!memmem(line.text, line.bytes, wanted.text, bytes)) continue;
        return arena_printf(arena,
                            "an anchor is made of whole lines, with their indentation; line %d is\n"
                            "    %s",
                            i + 1, shown(arena, line));
    }
    return NULL;
}

/* An edit that was made before: what it would put there is there. */
static const char *made_before(Arena *arena, Lines base, Lines replace) {
    if (is_blank(replace)) return NULL;
    for (int at = 0; at + replace.count <= base.count; at++)
        if (matches_at(base, replace, at))
            return arena_printf(arena,
                                "its REPLACE text stands in line %d already, so this edit "
                                "has been made before.",
                                at + 1);
    return NULL;
}

/* How many bytes two lines share at their ends; equal lines share all. */
static size_t common_ends(Line a, Line b) {
    size_t least = a.bytes < b.bytes ? a.bytes : b.bytes, head = 0, tail = 0;
    while (head < least && a.text[head] == b.text[head])
        head++;
    while (tail < least - head && a.text[a.bytes - 1 - tail] == b.text[b.bytes - 1 - tail])
        tail++;
    return head + tail;
}

/* The line most like the anchor's first: a name that was changed, a digit that is off. */
static const char *similar_line(Arena *arena, Lines base, Lines anchor) {
    int first = 0;
    while (first + 1 < anchor.count && line_trimmed(anchor.line[first]) == 0)
        first++;
    Line wanted = without_indent(anchor.line[first]);
    wanted.bytes = line_trimmed(wanted);
    int best = -1;
    size_t most = 0;
    for (int i = 0; i < base.count; i++) {
        Line line = without_indent(base.line[i]);
        line.bytes = line_trimmed(line);
        size_t longer = line.bytes > wanted.bytes ? line.bytes : wanted.bytes;
        size_t common = common_ends(line, wanted);
        if (common * 10 < longer * 6 || common <= most) continue;
        best = i, most = common;
    }
    if (best < 0) return NULL;
    return arena_printf(arena, "the most similar line is %d:\n    %s", best + 1,
                        shown(arena, base.line[best]));
}

static const char *nearest_place(Arena *arena, Lines base, const AnchoredEdit *edit) {
    Lines anchor = edit->search;
    const char *found = part_of_line(arena, base, anchor);
    if (!found) found = made_before(arena, base, edit->replace);
    if (found) return found;
    int best = -1, best_alike = 0;
    for (int at = 0; at < base.count && base.count <= MAX_NEAREST_LINES; at++) {
        int alike = likeness(base, anchor, at);
        if (alike > best_alike) best = at, best_alike = alike;
    }
    if (best < 0) found = similar_line(arena, base, anchor);
    if (found) return found;
    if (best < 0)
        return "no line of it occurs there. Copy the lines from the source as it is shown to you; "
               "an earlier edit of yours is in it only if the source shows it.";
    for (int i = 0; i < anchor.count; i++) {
        if (best + i >= base.count)
            return arena_printf(arena,
                                "the nearest place is line %d, but the source ends before "
                                "line %d of your anchor.",
                                best + 1, i + 1);
        if (same_line(base.line[best + i], anchor.line[i])) continue;
        return arena_printf(arena,
                            "the nearest place is line %d; there line %d of your anchor is\n"
                            "    %s\nwhere the source, in line %d, has\n    %s",
                            best + 1, i + 1, shown(arena, anchor.line[i]), best + i + 1,
                            shown(arena, base.line[best + i]));
    }
    return "";
}

typedef struct {
    const AnchoredEdit *edit;
    int number; // 1-based, in the reply's order
    int at;     // 0-based line of the base
} Placed;

static bool place(Arena *arena, Lines base, Placed *placed, char **refusal) {
    const AnchoredEdit *edit = placed->edit;
    Lines anchor = edit->search;
    if (is_blank(anchor)) {
        *refusal = arena_printf(arena,
                                "Edit %d (line %d of your reply) has an empty SEARCH part. Copy "
                                "the line beside which you want to insert into SEARCH, and repeat "
                                "it in REPLACE.",
                                placed->number, edit->line);
        return false;
    }
    if (anchor.count > MAX_ANCHOR_LINES) {
        *refusal = arena_printf(arena,
                                "Edit %d (line %d of your reply) has an anchor of %d lines. Anchor "
                                "the few lines that change, or send the whole file in one ```cuda "
                                "block.",
                                placed->number, edit->line, anchor.count);
        return false;
    }
    int found = 0, at[MAX_SHOWN_MATCHES];
    for (int i = 0; i + anchor.count <= base.count && found < MAX_SHOWN_MATCHES; i++)
        if (matches_at(base, anchor, i)) at[found++] = i;
    if (found == 1) {
        placed->at = at[0];
        return true;
    }
    if (found == 0) {
        *refusal = arena_printf(arena,
                                "Edit %d (line %d of your reply): its SEARCH text is not in the "
                                "source; %s",
                                placed->number, edit->line, nearest_place(arena, base, edit));
        return false;
    }
    Buf where = {0};
    for (int i = 0; i < found; i++)
        buf_printf(&where, "%s%d", i == 0 ? "" : i == found - 1 ? " and " : ", ", at[i] + 1);
    *refusal = arena_printf(arena,
                            "Edit %d (line %d of your reply): its anchor matches lines %s%s of the "
                            "source; add a line of context so that it matches one place alone.",
                            placed->number, edit->line, where.data,
                            found == MAX_SHOWN_MATCHES ? ", perhaps more," : "");
    buf_free(&where);
    return false;
}

static int by_position(const void *a, const void *b) {
    const Placed *left = a, *right = b;
    return (left->at > right->at) - (left->at < right->at);
}

static void append_line(Buf *out, Line line) {
    buf_append(out, line.text, line.bytes);
    buf_puts(out, "\n");
}

bool anchors_apply(Arena *arena, const char *base, const AnchoredEdit *edits, int count,
                   char **source, char **refusal) {
    Lines lines = lines_of(arena, base, strlen(base));
    Placed *placed = arena_array_of(arena, Placed, (size_t)count);
    for (int i = 0; i < count; i++) {
        placed[i] = (Placed){.edit = &edits[i], .number = i + 1};
        if (!place(arena, lines, &placed[i], refusal)) return false;
    }
    qsort(placed, (size_t)count, sizeof *placed, by_position);
    for (int i = 1; i < count; i++) {
        const Placed *before = &placed[i - 1];
        if (placed[i].at >= before->at + before->edit->search.count) continue;
        *refusal = arena_printf(arena,
                                "Edits %d and %d both change line %d of the source. All anchors "
                                "are looked for in the source as it was shown; join the two into "
                                "one edit.",
                                before->number, placed[i].number, placed[i].at + 1);
        return false;
    }
    Buf out = {0};
    int line = 0;
    for (int i = 0; i < count; i++) {
        while (line < placed[i].at)
            append_line(&out, lines.line[line++]);
        Lines replace = placed[i].edit->replace;
        for (int k = 0; k < replace.count; k++)
            append_line(&out, replace.line[k]);
        line += placed[i].edit->search.count;
    }
    while (line < lines.count)
        append_line(&out, lines.line[line++]);
    *source = buf_take(arena, &out);
    return true;
}

LineSpan edit_span(Arena *arena, const char *before, const char *after) {
    Lines a = lines_of(arena, before, strlen(before)), b = lines_of(arena, after, strlen(after));
    int head = 0, tail = 0;
    while (head < a.count && head < b.count && same_line(a.line[head], b.line[head]))
        head++;
    while (tail < a.count - head && tail < b.count - head &&
           same_line(a.line[a.count - 1 - tail], b.line[b.count - 1 - tail]))
        tail++;
    return (LineSpan){
        .first_line = head + 1, .removed = a.count - head - tail, .added = b.count - head - tail};
}
