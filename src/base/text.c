/* text.c - growing strings, and the few questions asked of text.
 *
 * Buf is for text whose length is not known beforehand: prompts, logs, drained pipes. When it is
 * complete it usually moves into an arena (buf_take).
 */
#include "base/base.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void buf_reserve(Buf *buf, size_t more) {
    if (more >= SIZE_MAX / 4 - buf->length) {
        abort(); // a length that large is a bug, not a big file
    }
    size_t need = buf->length + more + 1;
    if (need <= buf->capacity) {
        return;
    }
    size_t capacity = buf->capacity ? buf->capacity : 64;
    while (capacity < need) {
        capacity *= 2;
    }
    char *data = realloc(buf->data, capacity);
    if (!data) {
        abort(); // as in an arena
    }
    buf->data = data;
    buf->capacity = capacity;
}

void buf_append(Buf *buf, const void *data, size_t bytes) {
    buf_reserve(buf, bytes);
    if (bytes > 0) {
        memcpy(buf->data + buf->length, data, bytes);
    }
    buf->length += bytes;
    buf->data[buf->length] = '\0';
}

void buf_puts(Buf *buf, const char *text) {
    buf_append(buf, text, strlen(text));
}

void buf_printf(Buf *buf, const char *fmt, ...) {
    va_list args, again;
    va_start(args, fmt);
    va_copy(again, args);
    int length = vsnprintf(NULL, 0, fmt, again);
    va_end(again);
    if (length >= 0) {
        buf_reserve(buf, (size_t)length);
        vsnprintf(buf->data + buf->length, (size_t)length + 1, fmt, args);
        buf->length += (size_t)length;
    }
    va_end(args);
}

void buf_free(Buf *buf) {
    free(buf->data);
    *buf = (Buf){0};
}

char *buf_take(Arena *arena, Buf *buf) {
    char *text = arena_string_n(arena, buf->data, buf->length);
    buf_free(buf);
    return text;
}

bool text_starts_with(const char *text, const char *prefix) {
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

bool text_ends_with(const char *text, const char *suffix) {
    size_t length = strlen(text), tail = strlen(suffix);
    return length >= tail && memcmp(text + length - tail, suffix, tail) == 0;
}

/* Edit distance that counts a swap of neighbours as one slip (optimal string alignment). Words
 * longer than a name are not typing slips; they are SIZE_MAX apart. */
static size_t edit_distance(const char *a, const char *b) {
    enum { LONGEST = 64 };
    size_t la = strlen(a), lb = strlen(b);
    if (la > LONGEST || lb > LONGEST) {
        return SIZE_MAX;
    }
    size_t rows[3][LONGEST + 1];
    size_t *before = rows[0], *above = rows[1], *row = rows[2];
    for (size_t j = 0; j <= lb; j++) {
        above[j] = j;
        before[j] = 0;
    }
    for (size_t i = 1; i <= la; i++) {
        row[0] = i;
        for (size_t j = 1; j <= lb; j++) {
            size_t best = above[j - 1] + (a[i - 1] != b[j - 1]);
            if (above[j] + 1 < best) {
                best = above[j] + 1;
            }
            if (row[j - 1] + 1 < best) {
                best = row[j - 1] + 1;
            }
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
                before[j - 2] + 1 < best) {
                best = before[j - 2] + 1;
            }
            row[j] = best;
        }
        size_t *oldest = before;
        before = above;
        above = row;
        row = oldest;
    }
    return above[lb];
}

const char *text_nearest(const char *word, const char *const *candidates, size_t count) {
    const char *nearest = NULL;
    size_t nearest_distance = SIZE_MAX;
    for (size_t i = 0; i < count; i++) {
        size_t distance = edit_distance(word, candidates[i]);
        if (distance < nearest_distance) {
            nearest_distance = distance;
            nearest = candidates[i];
        }
    }
    if (!nearest || nearest_distance == SIZE_MAX) {
        return NULL;
    }
    // One slip in three letters is a typing error; more is another word. Neither may be empty.
    size_t longer = strlen(word) > strlen(nearest) ? strlen(word) : strlen(nearest);
    size_t allowed = longer <= 3 ? 1 : longer <= 6 ? 2 : longer / 3;
    return nearest_distance <= allowed && nearest_distance < longer ? nearest : NULL;
}

bool text_is_utf8(const char *text, size_t bytes) {
    const unsigned char *at = (const unsigned char *)text, *end = at + bytes;
    while (at < end) {
        unsigned char lead = *at++;
        if (lead < 0x80) {
            continue;
        }
        int more;
        uint32_t value;
        if (lead >= 0xC2 && lead <= 0xDF) {
            more = 1;
            value = lead & 0x1Fu;
        } else if (lead >= 0xE0 && lead <= 0xEF) {
            more = 2;
            value = lead & 0x0Fu;
        } else if (lead >= 0xF0 && lead <= 0xF4) {
            more = 3;
            value = lead & 0x07u;
        } else {
            return false;
        }
        if (end - at < more) {
            return false;
        }
        for (int i = 0; i < more; i++, at++) {
            if ((*at & 0xC0) != 0x80) {
                return false;
            }
            value = value << 6 | (*at & 0x3Fu);
        }
        bool overlong = (more == 2 && value < 0x800) || (more == 3 && value < 0x10000);
        bool surrogate = value >= 0xD800 && value <= 0xDFFF;
        if (overlong || surrogate || value > 0x10FFFF) {
            return false;
        }
    }
    return true;
}
