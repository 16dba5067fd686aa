/* canvas.c - puts text where eyes expect it.
 *
 * A line of a report has up to three parts: the time since the start, a label, and text. On a
 * terminal the text wraps below itself, so that the labels stay a column that can be scanned; in
 * a file every entry is one line, so that it can be searched. Sources are cut at the edge
 * instead: a wrapped line of code is harder to read than one without its end.
 */
#include "report/canvas.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

static const char *const style_codes[STYLE_COUNT] = {
    [STYLE_PLAIN] = "",        [STYLE_BOLD] = "\x1b[1m", [STYLE_DIM] = "\x1b[2m",
    [STYLE_GOOD] = "\x1b[32m", [STYLE_BAD] = "\x1b[31m", [STYLE_NOTE] = "\x1b[33m",
};
static const char style_end[] = "\x1b[0m";

/* The C library knows the locale's character set only after setlocale(); asking the variables
 * keeps this a question and not a change of the process. */
static bool locale_is_utf8(void) {
    static const char *const variables[] = {"LC_ALL", "LC_CTYPE", "LANG"};
    for (size_t i = 0; i < COUNT_OF(variables); i++) {
        const char *value = getenv(variables[i]);
        if (value && *value) {
            return strcasestr(value, "utf-8") || strcasestr(value, "utf8");
        }
    }
    return false;
}

ReportOptions report_options(FILE *out) {
    const char *term = getenv("TERM");
    const char *no_color = getenv("NO_COLOR");
    bool terminal = isatty(fileno(out)) && term && *term && strcmp(term, "dumb") != 0;
    return (ReportOptions){
        .out = out, .terminal = terminal, .color = terminal && !(no_color && *no_color)};
}

Canvas canvas_new(const ReportOptions *options) {
    Canvas canvas = {.out = options->out, .color = options->color, .unicode = locale_is_utf8()};
    if (options->terminal) {
        canvas.columns = 80;
        canvas_measure(&canvas);
    }
    return canvas;
}

void canvas_measure(Canvas *canvas) {
    struct winsize size;
    if (canvas->columns > 0 && ioctl(fileno(canvas->out), TIOCGWINSZ, &size) == 0 &&
        size.ws_col > 0) {
        canvas->columns = size.ws_col < 40 ? 40 : size.ws_col > 160 ? 160 : size.ws_col;
    }
}

static void pad(const Canvas *canvas, int columns) {
    fprintf(canvas->out, "%*s", columns > 0 ? columns : 0, "");
}

static void styled(const Canvas *canvas, Style style, const char *text, size_t bytes) {
    bool code = canvas->color && style_codes[style][0];
    if (code) fputs(style_codes[style], canvas->out);
    fwrite(text, 1, bytes, canvas->out);
    if (code) fputs(style_end, canvas->out);
}

/* Bytes of the UTF-8 sequence at `text`, 0 if it is none. */
static size_t sequence_bytes(const char *text, size_t bytes) {
    unsigned char first = (unsigned char)text[0];
    size_t need = first < 0x80         ? 1
                  : (first >> 5) == 6  ? 2
                  : (first >> 4) == 14 ? 3
                  : (first >> 3) == 30 ? 4
                                       : 0;
    return need && need <= bytes && text_is_utf8(text, need) ? need : 0;
}

char *text_clean(Arena *arena, const char *text, size_t bytes) {
    Buf out = {0};
    size_t column = 0;
    for (size_t i = 0; i < bytes;) {
        size_t length = sequence_bytes(text + i, bytes - i);
        unsigned char first = (unsigned char)text[i];
        if (first == '\n') {
            buf_append(&out, "\n", 1);
            column = 0;
        } else if (first == '\t') {
            size_t spaces = 4 - column % 4;
            buf_append(&out, "    ", spaces);
            column += spaces;
        } else if (first == '\r' && (i + 1 == bytes || text[i + 1] == '\n')) {
            // a CRLF file looks like any other
        } else {
            // C1 controls are two bytes in UTF-8: C2 80 … C2 9F
            bool control = first < 0x20 || first == 0x7f ||
                           (length == 2 && first == 0xc2 && (unsigned char)text[i + 1] < 0xa0);
            if (length == 0 || control) {
                buf_append(&out, "?", 1);
            } else {
                buf_append(&out, text + i, length);
            }
            column++;
        }
        i += length ? length : 1;
    }
    return buf_take(arena, &out);
}

size_t text_width(const char *text, size_t bytes) {
    size_t width = 0;
    for (size_t i = 0; i < bytes; i++) {
        width += ((unsigned char)text[i] & 0xc0) != 0x80;
    }
    return width;
}

/* Bytes of `text` that fit into `columns`. */
static size_t bytes_within(const char *text, size_t bytes, size_t columns) {
    size_t at = 0, width = 0;
    while (at < bytes) {
        size_t next = at + 1;
        while (next < bytes && ((unsigned char)text[next] & 0xc0) == 0x80)
            next++;
        if (++width > columns) break;
        at = next;
    }
    return at;
}

/* Prints clean `text` from column `at`, which the cursor has reached; further lines begin at
 * `hang`. Ends the line. */
static void wrapped(const Canvas *canvas, int at, int hang, Style style, const char *text) {
    for (;;) {
        size_t line = strcspn(text, "\n");
        size_t room = canvas->columns > at ? (size_t)(canvas->columns - at) : 1;
        size_t take = line;
        if (canvas->columns > 0 && text_width(text, line) > room) {
            take = bytes_within(text, line, room);
            size_t blank = take;
            while (blank > 0 && text[blank] != ' ')
                blank--;
            if (blank > 0) take = blank;
        }
        styled(canvas, style, text, take);
        fputc('\n', canvas->out);
        text += take;
        while (take < line && *text == ' ')
            text++;
        if (*text == '\n') text++;
        if (!*text) return;
        pad(canvas, hang);
        at = hang;
    }
}

void canvas_text(const Canvas *canvas, int indent, int hang, Style style, const char *text) {
    Arena *arena = arena_new();
    pad(canvas, indent);
    wrapped(canvas, indent, indent + hang, style, text_clean(arena, text, strlen(text)));
    arena_free(arena);
}

void canvas_entry(const Canvas *canvas, const char *time, const char *label, Style label_style,
                  const char *text) {
    Arena *arena = arena_new();
    const char *clean = text_clean(arena, text, strlen(text));
    fprintf(canvas->out, "%*s", LABEL_COLUMN - 2, time ? time : "");
    if (!*label && !*clean) {
        fputc('\n', canvas->out);
        arena_free(arena);
        return;
    }
    fputs("  ", canvas->out);
    styled(canvas, label_style, label, strlen(label));
    int at = LABEL_COLUMN + (int)text_width(label, strlen(label));
    int gap = at + 2 <= TEXT_COLUMN ? TEXT_COLUMN - at : 2;
    if (*clean) {
        pad(canvas, gap);
        wrapped(canvas, at + gap, TEXT_COLUMN, STYLE_PLAIN, clean);
    } else {
        fputc('\n', canvas->out);
    }
    arena_free(arena);
}

void canvas_source(const Canvas *canvas, Style style, const char *mark, int line, const char *text,
                   size_t bytes) {
    Arena *arena = arena_new();
    const char *clean = text_clean(arena, text, bytes);
    size_t length = strlen(clean);
    const char *bar = canvas->unicode ? "│" : "|";
    pad(canvas, LABEL_COLUMN);
    char head[32];
    snprintf(head, sizeof head, "%s %4d ", mark, line);
    styled(canvas, style, head, strlen(head));
    styled(canvas, STYLE_DIM, bar, strlen(bar));
    int room = canvas->columns - LABEL_COLUMN - (int)text_width(head, strlen(head)) - 2;
    bool cut = canvas->columns > 0 && text_width(clean, length) > (size_t)room;
    if (cut) length = bytes_within(clean, length, (size_t)room - (canvas->unicode ? 1 : 3));
    if (length > 0) {
        fputc(' ', canvas->out);
        styled(canvas, style, clean, length);
    }
    if (cut) fputs(canvas->unicode ? "…" : "...", canvas->out);
    fputc('\n', canvas->out);
    arena_free(arena);
}

void canvas_caret(const Canvas *canvas, const char *text, size_t bytes, int column) {
    Arena *arena = arena_new();
    size_t before = (size_t)column - 1 < bytes ? (size_t)column - 1 : bytes;
    const char *clean = text_clean(arena, text, before);
    int at = LABEL_COLUMN + (int)sizeof("> 1234 | ") - 1 + (int)text_width(clean, strlen(clean));
    if (canvas->columns == 0 || at < canvas->columns) {
        pad(canvas, at);
        styled(canvas, STYLE_BAD, "^", 1);
        fputc('\n', canvas->out);
    }
    arena_free(arena);
}

void canvas_status(const Canvas *canvas, const char *time, const char *label, const char *text,
                   double seconds) {
    Buf line = {0};
    buf_printf(&line, "%*s  %-*s", LABEL_COLUMN - 2, time, TEXT_COLUMN - LABEL_COLUMN, label);
    buf_printf(&line, "%s%s", text, canvas->unicode ? "…" : "...");
    if (seconds >= 2) {
        buf_puts(&line, " ");
        buf_duration(&line, (double)(int64_t)seconds);
    }
    // the terminal echoes "^C" behind it, which must not begin a new line
    size_t room = (size_t)canvas->columns - 4;
    styled(canvas, STYLE_DIM, line.data, bytes_within(line.data, line.length, room));
    buf_free(&line);
}

void buf_duration(Buf *buf, double seconds) {
    if (!(seconds >= 0)) {
        buf_puts(buf, "an unknown time");
    } else if (seconds < 0.9995) {
        buf_printf(buf, "%.0f ms", seconds * 1e3);
    } else if (seconds < 9.95) {
        buf_printf(buf, "%.1f s", seconds);
    } else if (seconds < 119.5) {
        buf_printf(buf, "%.0f s", seconds);
    } else if (seconds < 7200) {
        long whole = lround(seconds);
        buf_printf(buf, "%ld min %02ld s", whole / 60, whole % 60);
    } else {
        long minutes = lround(seconds / 60);
        buf_printf(buf, "%ld h %02ld min", minutes / 60, minutes % 60);
    }
}

void buf_bytes(Buf *buf, double bytes) {
    if (bytes < 999.5) {
        buf_printf(buf, "%.0f B", bytes);
    } else if (bytes < 999.5e3) {
        buf_printf(buf, bytes < 99.5e3 ? "%.1f kB" : "%.0f kB", bytes / 1e3);
    } else {
        buf_printf(buf, "%.1f MB", bytes / 1e6);
    }
}

void buf_count(Buf *buf, int64_t count, const char *one, const char *many) {
    buf_printf(buf, "%lld %s", (long long)count, count == 1 ? one : many);
}

void buf_clock(Buf *buf, double seconds) {
    long whole = seconds > 0 ? (long)seconds : 0;
    if (whole >= 3600) {
        buf_printf(buf, "%ld:%02ld:%02ld", whole / 3600, whole / 60 % 60, whole % 60);
    } else {
        buf_printf(buf, "%ld:%02ld", whole / 60, whole % 60);
    }
}
