/* diff.c - the fewest lines that turn one source into another.
 *
 * Equal heads and tails are set aside first: an edit of a kernel touches a few lines of some
 * hundreds, so the table of longest common subsequences that is left is tiny. When it is not (a
 * rewritten kernel of thousands of lines), the middle counts as replaced outright.
 */
#include "report/diff.h"
#include <string.h>

#define MAX_TABLE_CELLS (size_t)(1 << 20)

typedef struct {
    const char *text;
    size_t bytes;
} Line;

typedef struct {
    Line *lines;
    size_t count;
} Lines;

static Lines split(Arena *arena, const char *text) {
    size_t count = 0;
    for (const char *p = text; *p; p++)
        count += *p == '\n';
    Lines lines = {.lines = arena_array_of(arena, Line, count + 1)};
    while (*text) {
        size_t length = strcspn(text, "\n");
        size_t bytes = length && text[length - 1] == '\r' ? length - 1 : length;
        lines.lines[lines.count++] = (Line){text, bytes};
        text += length;
        if (*text == '\n') text++;
    }
    return lines;
}

static bool equal(Line a, Line b) {
    return a.bytes == b.bytes && memcmp(a.text, b.text, a.bytes) == 0;
}

static void emit(Diff *diff, char mark, size_t index, Line line) {
    diff->lines[diff->count++] = (DiffLine){mark, (int)index + 1, line.text, line.bytes};
    diff->added += mark == '+';
    diff->removed += mark == '-';
}

Diff diff_lines(Arena *arena, const char *old_text, const char *new_text) {
    Lines a = split(arena, old_text), b = split(arena, new_text);
    Diff diff = {.lines = arena_array_of(arena, DiffLine, a.count + b.count + 1)};
    size_t head = 0, tail = 0;
    while (head < a.count && head < b.count && equal(a.lines[head], b.lines[head]))
        head++;
    while (tail < a.count - head && tail < b.count - head &&
           equal(a.lines[a.count - 1 - tail], b.lines[b.count - 1 - tail])) {
        tail++;
    }
    size_t rows = a.count - head - tail, columns = b.count - head - tail;
    const Line *old_lines = a.lines + head, *new_lines = b.lines + head;

    // common[i][j]: longest common subsequence of old[i…] and new[j…]
    uint32_t *common = NULL;
    size_t width = columns + 1;
    if (rows > 0 && columns > 0 && rows < MAX_TABLE_CELLS / width) {
        common = arena_array_of(arena, uint32_t, (rows + 1) * width);
        for (size_t i = rows; i-- > 0;) {
            for (size_t j = columns; j-- > 0;) {
                uint32_t down = common[(i + 1) * width + j], right = common[i * width + j + 1];
                common[i * width + j] = equal(old_lines[i], new_lines[j])
                                            ? common[(i + 1) * width + j + 1] + 1
                                        : down >= right ? down
                                                        : right;
            }
        }
    }

    for (size_t i = 0; i < head; i++)
        emit(&diff, ' ', i, b.lines[i]);
    size_t i = 0, j = 0;
    while (i < rows || j < columns) {
        if (common && i < rows && j < columns && equal(old_lines[i], new_lines[j])) {
            emit(&diff, ' ', head + j, new_lines[j]);
            i++, j++;
        } else if (i < rows && (j == columns || !common ||
                                common[(i + 1) * width + j] >= common[i * width + j + 1])) {
            emit(&diff, '-', head + i, old_lines[i]);
            i++;
        } else {
            emit(&diff, '+', head + j, new_lines[j]);
            j++;
        }
    }
    for (size_t k = head + columns; k < b.count; k++)
        emit(&diff, ' ', k, b.lines[k]);
    return diff;
}
