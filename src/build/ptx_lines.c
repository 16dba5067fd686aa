/* ptx_lines.c - the line table that nvcc -lineinfo leaves in PTX.
 *
 *     .loc 14 129 13, function_name $L__info_string36, inlined_at 14 341 5
 *
 * says that the following instructions are line 129 of file 14, in a function (named by a string
 * of .debug_str) that was inlined at line 341 of that file. That call was in turn inlined
 * somewhere, which an earlier .loc with exactly that place says. Following these gives the whole
 * chain from a CuTe header out to the user's line.
 */
#include "build/ptx_lines.h"

#include "build/diagnostics.h"
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define MAX_FILES     4096
#define MAX_STRINGS   20000
#define MAX_LOCS      1000000
#define MAX_CHAIN     64
#define MAX_PTX_BYTES ((size_t)64 << 20)

/* ---- words of a line ---------------------------------------------------------------------- */

static bool skip_word(const char **at, const char *end, const char *word) {
    const char *c = *at;
    while (c < end && (*c == ' ' || *c == '\t' || *c == ','))
        c++;
    size_t bytes = strlen(word);
    if ((size_t)(end - c) < bytes || memcmp(c, word, bytes) != 0) return false;
    *at = c + bytes;
    return true;
}

static bool read_int(const char **at, const char *end, int *value) {
    const char *c = *at;
    while (c < end && (*c == ' ' || *c == '\t' || *c == ','))
        c++;
    const char *start = c;
    long sum = 0;
    for (; c < end && isdigit((unsigned char)*c); c++)
        if (sum < 100000000) sum = sum * 10 + (*c - '0');
    *value = (int)sum;
    *at = c;
    return c > start;
}

/* ---- the most recent .loc at a place ------------------------------------------------------- */

typedef struct {
    int *slots; // index of a .loc + 1; 0: free
    size_t capacity;
} PlaceTable;

static size_t place_slot(const PlaceTable *table, const PtxLoc *locs, int file, int line,
                         int column) {
    uint64_t hash = (uint64_t)file * 0x9E3779B97F4A7C15u ^ (uint64_t)line * 0xC2B2AE3D27D4EB4Fu ^
                    (uint64_t)column * 0x165667B19E3779F9u;
    size_t at = (size_t)(hash ^ hash >> 29) & (table->capacity - 1);
    for (; table->slots[at]; at = (at + 1) & (table->capacity - 1)) {
        const PtxLoc *loc = &locs[table->slots[at] - 1];
        if (loc->file == file && loc->line == line && loc->column == column) break;
    }
    return at;
}

/* ---- reading ------------------------------------------------------------------------------ */

static bool read_loc(const char *at, const char *end, PtxLoc *loc) {
    loc->function = loc->parent = -1;
    if (!skip_word(&at, end, ".loc") || !read_int(&at, end, &loc->file) ||
        !read_int(&at, end, &loc->line) || !read_int(&at, end, &loc->column))
        return false;
    if (skip_word(&at, end, "function_name") && skip_word(&at, end, "$L__info_string") &&
        read_int(&at, end, &loc->function) && skip_word(&at, end, "+")) {
        int offset_in_string;
        read_int(&at, end, &offset_in_string);
    }
    if (skip_word(&at, end, "inlined_at"))
        if (!read_int(&at, end, &loc->call_file) || !read_int(&at, end, &loc->call_line) ||
            !read_int(&at, end, &loc->call_column))
            loc->call_file = 0;
    return true;
}

static size_t count_locs(const char *text, const char *end) {
    size_t count = 0;
    for (const char *at = text; (at = memmem(at, (size_t)(end - at), ".loc", 4)); at += 4)
        count++;
    return count < MAX_LOCS ? count : MAX_LOCS;
}

static void add_loc(PtxLines *lines, PlaceTable *table, const PtxLoc *loc) {
    PtxLoc *kept = &lines->locs[lines->loc_count];
    *kept = *loc;
    if (loc->call_file) {
        int at = table->slots[place_slot(table, lines->locs, loc->call_file, loc->call_line,
                                         loc->call_column)];
        if (at) kept->parent = at - 1;
    }
    table->slots[place_slot(table, lines->locs, loc->file, loc->line, loc->column)] =
        ++lines->loc_count;
}

/* `.file 3 "/usr/include/x.h"`, possibly followed by time and size. */
static void read_file(Arena *arena, PtxLines *lines, const char *at, const char *end) {
    int number;
    if (!skip_word(&at, end, ".file") || !read_int(&at, end, &number) || number >= MAX_FILES ||
        !skip_word(&at, end, "\""))
        return;
    const char *quote = memchr(at, '"', (size_t)(end - at));
    if (!quote) return;
    lines->files[number] = arena_string_n(arena, at, (size_t)(quote - at));
    if (number >= lines->file_count) lines->file_count = number + 1;
}

/* `$L__info_string7:` and then `.b8 95,90,…,0` over one or more lines. */
static const char *read_string(Arena *arena, PtxLines *lines, const char *at, const char *end) {
    int number;
    if (!skip_word(&at, end, "$L__info_string") || !read_int(&at, end, &number) ||
        !skip_word(&at, end, ":") || number >= MAX_STRINGS)
        return at;
    Buf name = {0};
    buf_puts(&name, "");
    bool more = true;
    while (more && at < end) {
        while (at < end && isspace((unsigned char)*at))
            at++;
        if (!skip_word(&at, end, ".b8")) break;
        int byte;
        while (more && read_int(&at, end, &byte)) {
            char c = (char)byte;
            more = byte != 0;
            if (more) buf_append(&name, &c, 1);
        }
    }
    lines->strings[number] = buf_take(arena, &name);
    if (number >= lines->string_count) lines->string_count = number + 1;
    return at;
}

PtxLines ptx_lines_read(Arena *arena, const char *text, size_t bytes) {
    const char *end = text + bytes;
    PtxLines lines = {0};
    size_t capacity = count_locs(text, end);
    lines.locs = arena_array_of(arena, PtxLoc, capacity + 1);
    lines.files = arena_array_of(arena, const char *, MAX_FILES);
    lines.strings = arena_array_of(arena, const char *, MAX_STRINGS);
    PlaceTable table = {.capacity = 64};
    while (table.capacity < capacity * 2 + 2)
        table.capacity *= 2;
    table.slots = arena_array_of(arena, int, table.capacity);
    for (const char *line = text; line < end;) {
        const char *newline = memchr(line, '\n', (size_t)(end - line));
        const char *stop = newline ? newline : end;
        const char *at = line;
        while (at < stop && isspace((unsigned char)*at))
            at++;
        PtxLoc loc = {.offset = (size_t)(at - text)};
        if (stop - at > 5 && memcmp(at, ".loc", 4) == 0) {
            if ((size_t)lines.loc_count < capacity && read_loc(at, stop, &loc))
                add_loc(&lines, &table, &loc);
        } else if (stop - at > 6 && memcmp(at, ".file", 5) == 0) {
            read_file(arena, &lines, at, stop);
        } else if (stop - at > 6 && memcmp(at, "$L__info", 8) == 0) {
            line = read_string(arena, &lines, at, end);
            newline = memchr(line, '\n', (size_t)(end - line));
            stop = newline ? newline : end;
        }
        line = stop + 1;
    }
    return lines;
}

/* ---- asking ------------------------------------------------------------------------------- */

int ptx_loc_at(const PtxLines *lines, size_t offset) {
    int low = 0, high = lines->loc_count; // the first .loc after `offset` is in [low, high]
    while (low < high) {
        int middle = low + (high - low) / 2;
        if (lines->locs[middle].offset <= offset)
            low = middle + 1;
        else
            high = middle;
    }
    return low - 1;
}

static bool is_kernel_file(const PtxLines *lines, int file) {
    return file > 0 && file < lines->file_count && lines->files[file] &&
           strcmp(path_base(lines->files[file]), KERNEL_FILE) == 0;
}

int ptx_user_line(const PtxLines *lines, size_t offset) {
    int index = ptx_loc_at(lines, offset);
    for (int step = 0; index >= 0 && step < MAX_CHAIN; step++) {
        const PtxLoc *loc = &lines->locs[index];
        if (is_kernel_file(lines, loc->file)) return loc->line;
        if (is_kernel_file(lines, loc->call_file)) return loc->call_line;
        index = loc->parent;
    }
    return 0;
}

/* ---- ptxas's errors ------------------------------------------------------------------------ */

static const char *line_start(const char *text, int number) {
    for (int line = 1; line < number; line++) {
        text = strchr(text, '\n');
        if (!text++) return NULL;
    }
    return text;
}

static void explain_line(Buf *out, const char *line, size_t bytes, const char *ptx,
                         const PtxLines *lines) {
    static const char kLine[] = ", line ";
    const char *at = memmem(line, bytes, kLine, strlen(kLine));
    int number = 0;
    const char *digits = at ? at + strlen(kLine) : NULL;
    const char *place = digits && read_int(&digits, line + bytes, &number) && *digits == ';'
                            ? line_start(ptx, number)
                            : NULL;
    if (!place) {
        buf_append(out, line, bytes);
        return;
    }
    int user = ptx_user_line(lines, (size_t)(place - ptx));
    buf_printf(out, "ptxas kernel.ptx, line %d", number);
    if (user) buf_printf(out, " (" KERNEL_FILE ":%d)", user);
    buf_append(out, digits, (size_t)(line + bytes - digits));
    place += strspn(place, " \t");
    size_t instruction = strcspn(place, "\n");
    buf_printf(out, "; in: %.*s", (int)(instruction < 120 ? instruction : 120), place);
}

char *ptx_explain_errors(Arena *arena, const char *log, const char *ptx_path) {
    char *ptx;
    size_t bytes;
    Error ignored;
    Buf out = {0};
    buf_puts(&out, "");
    Arena *scratch = arena_new();
    if (file_read(scratch, ptx_path, MAX_PTX_BYTES, &ptx, &bytes, &ignored)) {
        PtxLines lines = ptx_lines_read(scratch, ptx, bytes);
        for (const char *line = log; *line;) {
            size_t length = strcspn(line, "\n");
            if (text_starts_with(line, "ptxas "))
                explain_line(&out, line, length, ptx, &lines);
            else
                buf_append(&out, line, length);
            buf_puts(&out, "\n");
            line += length + (line[length] == '\n');
        }
    } else {
        buf_puts(&out, log);
    }
    arena_free(scratch);
    return buf_take(arena, &out);
}
