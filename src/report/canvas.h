/* canvas.h - private to report/: text on a terminal or in a file.
 */
#pragma once
#include "report/report.h"

typedef enum {
    STYLE_PLAIN,
    STYLE_BOLD,
    STYLE_DIM,
    STYLE_GOOD,
    STYLE_BAD,
    STYLE_NOTE,
    STYLE_COUNT
} Style;

typedef struct {
    FILE *out;
    bool color;
    bool unicode; // the locale can show "│"
    int columns;  // where text wraps; 0: never
} Canvas;

Canvas canvas_new(const ReportOptions *options);
/* The terminal may have been resized since; looks again. */
void canvas_measure(Canvas *canvas);

/* Where the parts of a line begin: "   0:07  memory_error   kernel.cu:57: …". */
#define LABEL_COLUMN 9
#define TEXT_COLUMN  24

/* One entry: a time ("0:07", may be NULL), a label, and text that wraps below itself. */
void canvas_entry(const Canvas *canvas, const char *time, const char *label, Style label_style,
                  const char *text);
/* Text that starts at `indent` and wraps `hang` columns further in. */
void canvas_text(const Canvas *canvas, int indent, int hang, Style style, const char *text);
/* One line that is cut, not wrapped: source text. `mark` comes before it. */
void canvas_source(const Canvas *canvas, Style style, const char *mark, int line, const char *text,
                   size_t bytes);
/* "^" below column `column` (1-based, in bytes) of the source line just shown. */
void canvas_caret(const Canvas *canvas, const char *text, size_t bytes, int column);
/* The line that says what is being waited for: cut to fit, no newline. */
void canvas_status(const Canvas *canvas, const char *time, const char *label, const char *text,
                   double seconds);

/* `text` with tabs expanded, control characters and broken UTF-8 shown as '?', newlines kept. */
char *text_clean(Arena *arena, const char *text, size_t bytes);
/* Columns that clean UTF-8 text takes, counting a code point as one. */
size_t text_width(const char *text, size_t bytes);

void buf_duration(Buf *buf, double seconds);                                // "4.2 s", "3 min 20 s"
void buf_bytes(Buf *buf, double bytes);                                     // "412 B", "3.2 kB"
void buf_count(Buf *buf, int64_t count, const char *one, const char *many); // "2 edits"
void buf_clock(Buf *buf, double seconds);                                   // "0:07", "1:02:30"
