/* records.c - reads the messages of five programs with five manners.
 *
 *     kernel.cu(12): error #20: identifier "x" is undefined        cudafe++, cicc (EDG)
 *     kernel.cu:12:5: error: expected ';'                          gcc
 *     ptxas error   : Entry function 'k' uses too much shared data
 *     ptxas k.ptx, line 50; error   : Unknown modifier '.f32x3'
 *     k.o: in function `launch': undefined reference to `f'        ld
 *
 * EDG goes on with the line, a caret and, after "detected during", the chain of instantiations
 * that led there, innermost first; a blank line ends it. gcc prints its chain before the error
 * ("In instantiation of", "required from here") and the quotation after it.
 */
#include "build/records.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define MAX_RECORDS      400
#define MAX_FRAMES       64
#define MAX_DETAIL_BYTES 1000

typedef struct {
    const char *text;
    size_t bytes;
} Line;

typedef struct {
    Arena *arena;
    const char *at; // the next line
    RecordList list;
    Context pending[MAX_FRAMES]; // gcc's chain, seen before its error
    int pending_count;
} Parser;

static bool next_line(Parser *parser, Line *line) {
    if (!*parser->at) return false;
    line->text = parser->at;
    line->bytes = strcspn(parser->at, "\n");
    parser->at += line->bytes + (parser->at[line->bytes] == '\n');
    if (line->bytes && line->text[line->bytes - 1] == '\r') line->bytes--;
    return true;
}

static bool peek_line(Parser *parser, Line *line) {
    const char *at = parser->at;
    bool any = next_line(parser, line);
    parser->at = at;
    return any;
}

static const char *find(Line line, const char *word) {
    return memmem(line.text, line.bytes, word, strlen(word));
}

static bool starts(Line line, const char *prefix) {
    size_t bytes = strlen(prefix);
    return line.bytes >= bytes && memcmp(line.text, prefix, bytes) == 0;
}

static Line skip_blanks(Line line) {
    while (line.bytes && (*line.text == ' ' || *line.text == '\t'))
        line.text++, line.bytes--;
    return line;
}

static char *line_text(Parser *parser, Line line) {
    return arena_string_n(parser->arena, line.text, line.bytes);
}

static Line from(Line line, const char *at) {
    return (Line){at, (size_t)(line.text + line.bytes - at)};
}

/* ---- heads: the line that says where and what ------------------------------------------------ */

typedef enum { HEAD_NONE, HEAD_ERROR, HEAD_WARNING, HEAD_NOTE, HEAD_CHATTER } HeadKind;

typedef struct {
    HeadKind kind;
    Line file, message;
    int line, column;
    bool edg; // a body in EDG's manner follows
} Head;

/* "error", "fatal error", "catastrophic error #35", "warning #177-D", "note", … followed by a
 * colon. Leaves `text` after it. */
static HeadKind severity(Line *text) {
    static const struct {
        const char *word;
        HeadKind kind;
    } kWords[] = {
        {"error", HEAD_ERROR},
        {"fatal error", HEAD_ERROR},
        {"catastrophic error", HEAD_ERROR},
        {"Catastrophic error", HEAD_ERROR},
        {"internal error", HEAD_ERROR},
        {"Internal error", HEAD_ERROR},
        {"internal compiler error", HEAD_ERROR},
        {"sorry, unimplemented", HEAD_ERROR},
        {"warning", HEAD_WARNING},
        {"Warning", HEAD_WARNING},
        {"remark", HEAD_CHATTER},
        {"Remark", HEAD_CHATTER},
        {"note", HEAD_NOTE},
    };
    for (size_t i = 0; i < COUNT_OF(kWords); i++) {
        if (!starts(*text, kWords[i].word)) continue;
        const char *at = text->text + strlen(kWords[i].word), *end = text->text + text->bytes;
        if (at < end && *at == ' ') { // a number: "#177-D"
            at++;
            if (at == end || *at != '#') continue;
            while (at < end && *at != ':')
                at++;
        }
        if (at == end || *at != ':') continue;
        *text = skip_blanks(from(*text, at + 1));
        return kWords[i].kind;
    }
    return HEAD_NONE;
}

static bool read_number(const char **at, const char *end, int *number) {
    const char *start = *at;
    long value = 0;
    while (*at < end && isdigit((unsigned char)**at) && value < 100000000)
        value = value * 10 + (*(*at)++ - '0');
    *number = (int)value;
    return *at > start;
}

/* "file(12): " */
static bool edg_place(Line line, Head *head, Line *rest) {
    const char *end = line.text + line.bytes;
    for (const char *at = line.text; at < end; at++) {
        if (*at != '(') continue;
        const char *digits = at + 1;
        if (!read_number(&digits, end, &head->line) || end - digits < 3 ||
            memcmp(digits, "): ", 3) != 0)
            continue;
        head->file = (Line){line.text, (size_t)(at - line.text)};
        *rest = from(line, digits + 3);
        return head->file.bytes > 0;
    }
    return false;
}

/* "file:12:5: " or "file:12: " */
static bool gcc_place(Line line, Head *head, Line *rest) {
    const char *end = line.text + line.bytes;
    for (const char *at = line.text + 1; at < end; at++) {
        if (*at != ':') continue;
        const char *digits = at + 1;
        if (!read_number(&digits, end, &head->line) || digits == end || *digits != ':') continue;
        const char *column = digits + 1;
        if (read_number(&column, end, &head->column) && column < end && *column == ':')
            digits = column;
        else
            head->column = 0;
        head->file = (Line){line.text, (size_t)(at - line.text)};
        *rest = skip_blanks(from(line, digits + 1));
        return true;
    }
    return false;
}

/* "ptxas kernel.ptx, line 50 (kernel.cu:6); error   : …", the place as ptx_lines.c added it. */
static Head ptxas_head(Line line) {
    static const struct {
        const char *word;
        HeadKind kind;
    } kWords[] = {
        {"; error   : ", HEAD_ERROR}, {"; fatal   : ", HEAD_ERROR}, {"; warning : ", HEAD_WARNING}};
    Head head = {.kind = HEAD_NONE};
    for (size_t i = 0; starts(line, "ptxas ") && i < COUNT_OF(kWords); i++) {
        const char *at = find(line, kWords[i].word);
        if (!at) continue;
        head.kind = kWords[i].kind;
        head.message = from(line, at + strlen(kWords[i].word));
        const char *place = find(line, " (" KERNEL_FILE ":");
        const char *digits = place ? place + strlen(" (" KERNEL_FILE ":") : NULL;
        if (place && place < at && read_number(&digits, at, &head.line))
            head.file = (Line){KERNEL_FILE, strlen(KERNEL_FILE)};
        break;
    }
    return head;
}

static Head tool_head(Line line) {
    static const struct {
        const char *prefix;
        HeadKind kind;
    } kTools[] = {
        {"ptxas error   : ", HEAD_ERROR},  {"ptxas warning : ", HEAD_WARNING},
        {"ptxas fatal   : ", HEAD_ERROR},  {"ptxas info    : (C", HEAD_WARNING},
        {"nvlink error   : ", HEAD_ERROR}, {"nvlink warning : ", HEAD_WARNING},
        {"nvlink fatal   : ", HEAD_ERROR}, {"cicc fatal : ", HEAD_ERROR},
        {"cudafe++ fatal : ", HEAD_ERROR}, {"ptxas fatal : ", HEAD_ERROR},
        {"gcc fatal : ", HEAD_ERROR},      {"nvcc error   : ", HEAD_ERROR},
        {"nvcc fatal : ", HEAD_ERROR},     {"collect2: error: ", HEAD_ERROR},
    };
    for (size_t i = 0; i < COUNT_OF(kTools); i++)
        if (starts(line, kTools[i].prefix)) {
            size_t prefix = strlen(kTools[i].prefix);
            if (text_ends_with(kTools[i].prefix, "(C")) prefix -= 2;
            return (Head){.kind = kTools[i].kind, .message = from(line, line.text + prefix)};
        }
    Head ptxas = ptxas_head(line);
    if (ptxas.kind != HEAD_NONE) return ptxas;
    const char *at;
    if (find(line, "undefined reference to ") || find(line, "multiple definition of ")) {
        at = find(line, "undefined reference to ");
        if (!at) at = find(line, "multiple definition of ");
        return (Head){.kind = HEAD_ERROR, .message = from(line, at)};
    }
    return (Head){.kind = HEAD_NONE};
}

static Head read_head(Line line) {
    Head head = {.kind = HEAD_NONE};
    Line rest;
    if (line.bytes == 0 || line.text[0] == ' ') return head;
    if (edg_place(line, &head, &rest) && (head.kind = severity(&rest)) != HEAD_NONE) {
        head.message = rest;
        head.edg = true;
        return head;
    }
    static const char kEnd[] = "At end of source: ";
    head = (Head){.kind = HEAD_NONE};
    rest = starts(line, kEnd) ? from(line, line.text + strlen(kEnd)) : line;
    if ((head.kind = severity(&rest)) != HEAD_NONE) {
        head.message = rest;
        head.edg = true;
        return head;
    }
    if (gcc_place(line, &head, &rest) && (head.kind = severity(&rest)) != HEAD_NONE) {
        head.message = rest;
        return head;
    }
    return tool_head(line);
}

/* ---- bodies ------------------------------------------------------------------------------- */

/* `instantiation of "X" at line 12 of f`, `… at line 12` (then in the record's own file). */
static void add_frame(Parser *parser, Record *record, Line line) {
    if (record->context_count == MAX_FRAMES) return;
    const char *place = NULL;
    for (const char *at = line.text; (at = find(from(line, at), " at line "));)
        place = at++;
    if (!place) return;
    const char *digits = place + strlen(" at line "), *end = line.text + line.bytes;
    int number;
    if (!read_number(&digits, end, &number)) return;
    Line file = from(line, digits);
    if (!record->contexts) record->contexts = arena_array_of(parser->arena, Context, MAX_FRAMES);
    Line what = {line.text, (size_t)(place - line.text)};
    record->contexts[record->context_count++] = (Context){
        .what = line_text(parser, what),
        .line = number,
        .file = starts(file, " of ") ? line_text(parser, from(file, file.text + 4)) : record->file,
    };
}

static bool is_caret_line(Line line) {
    Line rest = skip_blanks(line);
    return rest.bytes == 1 && *rest.text == '^' && line.bytes > 1;
}

static void add_detail(Parser *parser, Record *record, Line line) {
    line = skip_blanks(line);
    if (line.bytes == 0) return;
    if (record->detail && strlen(record->detail) > MAX_DETAIL_BYTES) return;
    record->detail = record->detail ? arena_printf(parser->arena, "%s; %.*s", record->detail,
                                                   (int)line.bytes, line.text)
                                    : line_text(parser, line);
}

/* What follows an EDG head up to the next head or blank line. For a note, only its place in the
 * input is consumed: notes say little that the record does not. */
static void read_edg_body(Parser *parser, Record *record, bool is_note) {
    Line line, next;
    bool chain = false;
    while (peek_line(parser, &line) && line.bytes > 0 && read_head(line).kind == HEAD_NONE) {
        next_line(parser, &line);
        Line rest = skip_blanks(line);
        static const char kDuring[] = "detected during";
        if (starts(rest, kDuring)) {
            chain = true;
            rest = from(rest, rest.text + strlen(kDuring));
            if (rest.bytes > 1 && *rest.text == ' ') add_frame(parser, record, skip_blanks(rest));
        } else if (chain) {
            add_frame(parser, record, rest);
        } else if (is_note) {
            continue;
        } else if (peek_line(parser, &next) && is_caret_line(next)) {
            next_line(parser, &next);
            record->snippet = line_text(parser, line);
            record->caret = (int)next.bytes - 1;
        } else if (!record->snippet) {
            add_detail(parser, record, line);
        }
    }
}

/* gcc quotes as "   12 |     y = x;" and "      |         ^~~". */
static void read_gcc_body(Parser *parser, Record *record) {
    Line line;
    while (peek_line(parser, &line) && line.bytes > 0 && line.text[0] == ' ' && find(line, " | ")) {
        next_line(parser, &line);
        Line rest = skip_blanks(line);
        if (!record->snippet && isdigit((unsigned char)*rest.text))
            record->snippet = line_text(parser, from(line, find(line, " | ") + 3));
    }
}

/* gcc's lines of context before an error; true when `line` was one. */
static bool read_gcc_context(Parser *parser, Line line) {
    Head head = {0};
    Line rest;
    if (starts(line, "In file included from ") || starts(line, "                 from "))
        return true;
    if (line.bytes == 0 || line.text[0] == ' ' || !gcc_place(line, &head, &rest)) return false;
    bool required = starts(rest, "required ");
    if (!required && !find(line, ": In instantiation of ") && !find(line, ": In function "))
        return false;
    if (required && parser->pending_count < MAX_FRAMES)
        parser->pending[parser->pending_count++] = (Context){.what = line_text(parser, rest),
                                                             .file = line_text(parser, head.file),
                                                             .line = head.line};
    return true;
}

static void add_record(Parser *parser, const Head *head) {
    Record *record = &parser->list.items[parser->list.count];
    *record = (Record){.level = head->kind == HEAD_ERROR ? DIAGNOSTIC_ERROR : DIAGNOSTIC_WARNING,
                       .file = line_text(parser, head->file),
                       .line = head->line,
                       .column = head->column,
                       .message = line_text(parser, head->message),
                       .caret = -1};
    if (parser->pending_count) {
        size_t bytes = sizeof(Context) * (size_t)parser->pending_count;
        record->contexts = arena_copy(parser->arena, parser->pending, bytes);
        record->context_count = parser->pending_count;
        parser->pending_count = 0;
    }
    if (head->edg)
        read_edg_body(parser, record, false);
    else
        read_gcc_body(parser, record);
    parser->list.count++;
}

static void add_note(Parser *parser, const Head *head) {
    Record *record = parser->list.count ? &parser->list.items[parser->list.count - 1] : NULL;
    if (!record) return;
    if (!record->note) {
        record->note = line_text(parser, head->message);
        record->note_file = line_text(parser, head->file);
        record->note_line = head->line;
    }
    if (head->edg)
        read_edg_body(parser, record, true);
    else
        read_gcc_body(parser, &(Record){.snippet = ""});
}

RecordList records_parse(Arena *arena, const char *log) {
    Parser parser = {.arena = arena, .at = log};
    parser.list.items = arena_array_of(arena, Record, MAX_RECORDS);
    Line line;
    while (parser.list.count < MAX_RECORDS && next_line(&parser, &line)) {
        if (read_gcc_context(&parser, line)) continue;
        Head head = read_head(line);
        if (head.kind == HEAD_ERROR || head.kind == HEAD_WARNING) add_record(&parser, &head);
        if (head.kind == HEAD_NOTE) add_note(&parser, &head);
    }
    return parser.list;
}
