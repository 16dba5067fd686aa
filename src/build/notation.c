/* notation.c - writes C++ types the way CuTe's documentation writes them.
 *
 * A layout that nvcc spells
 *     cute::Layout<cute::tuple<cute::C<128>, cute::C<8>>, cute::tuple<cute::C<8>, cute::C<1>>>
 * is (_128,_8):(_8,_1) to everybody who works with CuTe. The text around types is kept as it
 * is: names are followed by '<' only where a template argument list begins, and an argument list
 * that does not close is copied unchanged.
 */
#include "build/diagnostics.h"

#include <ctype.h>
#include <string.h>

#define MAX_DEPTH     64
#define MAX_ARGUMENTS 64

static void rewrite(const char *text, size_t bytes, Buf *out, int depth);

/* The bytes up to the '>' that closes the list beginning at text[0] == '<'; 0 if none does. */
static size_t list_length(const char *text, size_t bytes) {
    int angle = 0, round = 0;
    for (size_t i = 0; i < bytes; i++) {
        if (text[i] == '(' || text[i] == '[' || text[i] == '{') round++;
        if (text[i] == ')' || text[i] == ']' || text[i] == '}') round--;
        if (round < 0) return 0;
        if (text[i] == '<' && round == 0) angle++;
        if (text[i] == '>' && round == 0 && i > 0 && text[i - 1] != '-' && --angle == 0)
            return i + 1;
    }
    return 0;
}

typedef struct {
    const char *text;
    size_t bytes;
} Piece;

/* Splits "a, b<c, d>, e" at its top-level commas; -1 when there are too many. */
static int split_arguments(const char *text, size_t bytes, Piece pieces[MAX_ARGUMENTS]) {
    int count = 0, depth = 0;
    size_t start = 0;
    for (size_t i = 0; i <= bytes; i++) {
        bool end = i == bytes;
        if (!end && strchr("<([{", text[i])) depth++;
        if (!end && strchr(">)]}", text[i]) && !(text[i] == '>' && i && text[i - 1] == '-'))
            depth--;
        if (!end && !(text[i] == ',' && depth == 0)) continue;
        while (start < i && text[start] == ' ')
            start++;
        size_t last = i;
        while (last > start && text[last - 1] == ' ')
            last--;
        if (count == MAX_ARGUMENTS) return -1;
        pieces[count++] = (Piece){text + start, last - start};
        start = i + 1;
    }
    return count == 1 && pieces[0].bytes == 0 ? 0 : count;
}

static void rewrite_joined(const Piece *pieces, int count, const char *separator, Buf *out,
                           int depth) {
    for (int i = 0; i < count; i++) {
        if (i) buf_puts(out, separator);
        rewrite(pieces[i].text, pieces[i].bytes, out, depth + 1);
    }
}

static bool name_is(const char *name, size_t bytes, const char *word) {
    return strlen(word) == bytes && memcmp(name, word, bytes) == 0;
}

/* CuTe's notation for the templates that have one; false for the others. */
static bool rewrite_known(const char *name, size_t bytes, const Piece *pieces, int count, Buf *out,
                          int depth) {
    static const char *const kTuples[] = {"tuple", "Shape", "Stride", "Coord", "Step", "Tile"};
    for (size_t i = 0; i < COUNT_OF(kTuples); i++)
        if (name_is(name, bytes, kTuples[i])) {
            buf_puts(out, "(");
            rewrite_joined(pieces, count, ",", out, depth);
            buf_puts(out, ")");
            return true;
        }
    if ((name_is(name, bytes, "C") || name_is(name, bytes, "Int")) && count == 1) {
        buf_puts(out, pieces[0].bytes && isdigit((unsigned char)pieces[0].text[0]) ? "_" : "C");
        bool plain = out->data[out->length - 1] == '_';
        if (!plain) buf_puts(out, "<");
        rewrite(pieces[0].text, pieces[0].bytes, out, depth + 1);
        if (!plain) buf_puts(out, ">");
        return true;
    }
    if (name_is(name, bytes, "Layout") && count == 2) {
        rewrite_joined(pieces, 2, ":", out, depth);
        return true;
    }
    if (count == 1 && (name_is(name, bytes, "ViewEngine") || name_is(name, bytes, "gmem_ptr") ||
                       name_is(name, bytes, "smem_ptr"))) {
        if (bytes == strlen("gmem_ptr")) {
            buf_append(out, name, 4);
            buf_puts(out, " ");
        }
        rewrite_joined(pieces, 1, "", out, depth);
        return true;
    }
    return false;
}

static void rewrite(const char *text, size_t bytes, Buf *out, int depth) {
    static const char *const kDropped[] = {
        "cute::", "cutlass::", "SM90::GMMA::", "std::__4::", "struct ", "class "};
    for (size_t at = 0; at < bytes;) {
        bool word_start = at == 0 || !(isalnum((unsigned char)text[at - 1]) || text[at - 1] == '_');
        bool dropped = false;
        for (size_t i = 0; word_start && !dropped && i < COUNT_OF(kDropped) && depth > 0; i++) {
            size_t length = strlen(kDropped[i]);
            dropped = at + length <= bytes && memcmp(text + at, kDropped[i], length) == 0;
            if (dropped) at += length;
        }
        if (dropped) continue;
        if (!word_start || !(isalpha((unsigned char)text[at]) || text[at] == '_')) {
            buf_append(out, text + at++, 1);
            continue;
        }
        size_t length = 0;
        while (at + length < bytes &&
               (isalnum((unsigned char)text[at + length]) || text[at + length] == '_'))
            length++;
        const char *name = text + at;
        at += length;
        size_t list = at < bytes && text[at] == '<' && depth < MAX_DEPTH
                          ? list_length(text + at, bytes - at)
                          : 0;
        Piece pieces[MAX_ARGUMENTS];
        int count = list ? split_arguments(text + at + 1, list - 2, pieces) : -1;
        if (count < 0) {
            buf_append(out, name, length);
            continue;
        }
        at += list;
        if (rewrite_known(name, length, pieces, count, out, depth)) continue;
        buf_append(out, name, length);
        buf_puts(out, "<");
        rewrite_joined(pieces, count, ",", out, depth);
        buf_puts(out, ">");
    }
}

char *cute_notation(Arena *arena, const char *text, size_t max_bytes) {
    Buf out = {0};
    buf_puts(&out, "");
    rewrite(text, strlen(text), &out, 1);
    if (out.length > max_bytes && max_bytes > 4) {
        out.length = max_bytes - 3;
        while (out.length > 0 && ((unsigned char)out.data[out.length] & 0xC0) == 0x80)
            out.length--;
        out.data[out.length] = '\0';
        buf_puts(&out, "...");
    }
    return buf_take(arena, &out);
}
