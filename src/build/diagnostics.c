/* diagnostics.c - the error that matters, in the user's lines.
 *
 * One wrong argument to cute::copy gives thirty kilobytes of messages, in headers the user never
 * saw. What repairs the kernel is: which of *my* lines, what the first complaint was, which CuTe
 * function I called there and with which layouts. So messages are grouped by the user's line that
 * led to them; of each group the first is the cause and the rest are its consequences. Messages
 * that speak of <error-type> are consequences of an error that was reported before.
 */
#include "build/diagnostics.h"

#include "build/figures.h"
#include "build/records.h"
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_MESSAGE_BYTES     500
#define MAX_FRAME_BYTES       420
#define MAX_SOURCE_LINE_BYTES 160
#define MAX_SNIPPET_BYTES     200
#define MAX_USER_FRAMES       3

const char *short_path(Arena *arena, const char *path) {
    static const char *const kRoots[] = {"/include/", "/source/include/"};
    const char *base = path_base(path);
    if (strcmp(base, KERNEL_FILE) == 0 || strcmp(base, "task.h") == 0 ||
        strcmp(base, CONTRACT_FOOTER_FILE) == 0)
        return arena_string(arena, base);
    const char *best = NULL;
    for (size_t i = 0; i < COUNT_OF(kRoots); i++)
        for (const char *at = path; (at = strstr(at, kRoots[i])); at++)
            if (!best || at + strlen(kRoots[i]) > best) best = at + strlen(kRoots[i]);
    return arena_string(arena, best ? best : path[0] == '/' ? base : path);
}

/* Compilers quote what they were given; all that leaves here is valid UTF-8. */
char *clean_text(Arena *arena, const char *text) {
    size_t bytes = strlen(text);
    char *clean = arena_string_n(arena, text, bytes);
    if (text_is_utf8(clean, bytes)) return clean;
    for (size_t i = 0; i < bytes; i++)
        if ((unsigned char)clean[i] >= 0x80) clean[i] = '?';
    return clean;
}

int shown_bytes(const char *text, size_t bytes, size_t max_bytes) {
    if (bytes <= max_bytes) return (int)bytes;
    while (max_bytes > 0 && ((unsigned char)text[max_bytes] & 0xC0) == 0x80)
        max_bytes--;
    return (int)max_bytes;
}

typedef struct {
    Arena *arena, *scratch;
    const char *source;
    int source_lines;
    Buf distilled;
} Distiller;

static bool is_user_file(const char *file) {
    return strcmp(path_base(file), KERNEL_FILE) == 0;
}

static bool is_footer(const Record *record) {
    return strcmp(path_base(record->file), CONTRACT_FOOTER_FILE) == 0;
}

/* Line `number` of the source without its newline; false when there is none. */
static bool source_line(const Distiller *distiller, int number, const char **text, size_t *bytes) {
    const char *at = distiller->source;
    for (int line = 1; line < number; line++) {
        at = strchr(at, '\n');
        if (!at++) return false;
    }
    *text = at;
    *bytes = strcspn(at, "\r\n");
    return number > 0 && *at != '\0';
}

/* ---- where in the user's code -------------------------------------------------------------- */

/* "k<…>" is defined by a line that holds __global__ … k(; 0 when not found. */
static int kernel_line(const Distiller *distiller, const char *name, size_t bytes) {
    const char *at = distiller->source;
    while ((at = strstr(at, "__global__"))) {
        const char *end = at + strcspn(at, "{;");
        for (const char *found = at; (found = memmem(found, (size_t)(end - found), name, bytes));
             found++) {
            bool starts = !(isalnum((unsigned char)found[-1]) || found[-1] == '_');
            const char *next = found + bytes + strspn(found + bytes, " \n");
            if (!starts || *next != '(') continue;
            int line = 1;
            for (const char *c = distiller->source; c < found; c++)
                line += *c == '\n';
            return line;
        }
        at = end;
    }
    return 0;
}

/* The line of the last use of function `name`; 0 when not found. */
static int call_line(const Distiller *distiller, const char *name, size_t bytes) {
    int line = 1, found = 0;
    for (const char *c = distiller->source; *c; c++) {
        line += *c == '\n';
        bool starts = c == distiller->source || !(isalnum((unsigned char)c[-1]) || c[-1] == '_');
        if (starts && strncmp(c, name, bytes) == 0 && c[bytes] == '(') found = line;
    }
    return found;
}

/* ptxas names functions by their mangled names, and no line. */
static void explain_unresolved(Distiller *distiller, Record *record) {
    static const char kUnresolved[] = "Unresolved extern function '";
    if (!text_starts_with(record->message, kUnresolved)) return;
    const char *at = record->message + strlen(kUnresolved);
    const char *name = arena_string_n(distiller->scratch, at, strcspn(at, "'"));
    demangle_names(distiller->scratch, &name, 1);
    record->message = arena_printf(distiller->scratch,
                                   "device function %s is declared, but "
                                   "defined nowhere",
                                   name);
    const char *last = strrchr(name, ':');
    last = last ? last + 1 : name;
    int line = call_line(distiller, last, strcspn(last, "<("));
    if (line) record->file = KERNEL_FILE, record->line = line;
}

static void explain_entry(Distiller *distiller, Record *record) {
    static const char kEntry[] = "Entry function '";
    const char *at = strstr(record->message, kEntry);
    if (!at) return;
    at += strlen(kEntry);
    size_t bytes = strcspn(at, "'");
    const char *name = arena_string_n(distiller->scratch, at, bytes);
    demangle_names(distiller->scratch, &name, 1);
    unsigned used, most;
    const char *sizes = strstr(at, "uses too much shared data (");
    if (sizes &&
        sscanf(sizes, "uses too much shared data (0x%x bytes, 0x%x max)", &used, &most) == 2)
        record->message = arena_printf(distiller->scratch,
                                       "kernel %s uses too much static shared "
                                       "memory: %u bytes, at most %u",
                                       name, used, most);
    else
        record->message = arena_printf(distiller->scratch, "kernel %s%s", name, at + bytes + 1);
    const char *last = strrchr(name, ':');
    last = last ? last + 1 : name;
    int line = kernel_line(distiller, last, strcspn(last, "<("));
    if (line) record->file = KERNEL_FILE, record->line = line;
}

static int user_line(const Distiller *distiller, const Record *record) {
    if (is_user_file(record->file) && record->line <= distiller->source_lines) return record->line;
    for (int i = 0; i < record->context_count; i++)
        if (is_user_file(record->contexts[i].file)) return record->contexts[i].line;
    return 0;
}

/* The column in the user's line. The compiler quotes the line after preprocessing, indented by
 * two; where that differs before the caret, the word at the caret is looked for instead. */
static int user_column(const Distiller *distiller, const Record *record) {
    if (record->column > 0) return record->column;
    const char *line;
    size_t bytes;
    if (record->caret < 2 || !record->snippet || !is_user_file(record->file) ||
        !source_line(distiller, record->line, &line, &bytes))
        return 0;
    size_t at = (size_t)record->caret;
    if (strlen(record->snippet) >= at && bytes + 2 >= at &&
        memcmp(record->snippet + 2, line, at - 2) == 0)
        return (int)at - 1;
    if (strlen(record->snippet) <= at) return 0;
    size_t word = 0;
    while (isalnum((unsigned char)record->snippet[at + word]) || record->snippet[at + word] == '_')
        word++;
    const char *found = word ? memmem(line, bytes, record->snippet + at, word) : NULL;
    if (!found) return 0;
    size_t left = bytes - (size_t)(found - line) - word;
    return memmem(found + word, left, record->snippet + at, word) ? 0 : (int)(found - line) + 1;
}

/* ---- frames ------------------------------------------------------------------------------- */

/* instantiation of "void cute::copy(const A &, B &) [with A=…, B=…]" gives "cute::copy" and the
 * list after "with". */
static void frame_parts(Arena *arena, const char *what, char **name, char **with) {
    const char *start = strchr(what, '"');
    char *text = arena_string(arena, start ? start + 1 : what);
    size_t bytes = strlen(text);
    if (start && bytes && text[bytes - 1] == '"') text[bytes - 1] = '\0';
    *with = NULL;
    char *list = strstr(text, " [with ");
    if (list) {
        *list = '\0';
        *with = list + strlen(" [with ");
        bytes = strlen(*with);
        if (bytes && (*with)[bytes - 1] == ']') (*with)[bytes - 1] = '\0';
    }
    static const char kDeduced[] = "decltype(auto) ";
    if (text_starts_with(text, kDeduced)) text += strlen(kDeduced);
    int depth = 0;
    char *last_space = NULL;
    for (char *c = text; *c; c++) {
        if (*c == '<') depth++;
        if (*c == '>' && c > text && c[-1] != '-') depth--;
        if (depth == 0 && *c == ' ') last_space = c;
        if (depth == 0 && *c == '(' && strncmp(c, "()(", 3) != 0 && c > text) {
            *c = '\0';
            break;
        }
    }
    *name = last_space ? last_space + 1 : text;
}

static char *frame_text(Arena *arena, const Context *frame, const char *where) {
    char *name, *with;
    frame_parts(arena, frame->what, &name, &with);
    static const char kUnnamed[] = ", <unnamed>=(void *)nullptr"; // how CuTe enables overloads
    char *unnamed = with ? strstr(with, kUnnamed) : NULL;
    if (unnamed)
        memmove(unnamed, unnamed + strlen(kUnnamed), strlen(unnamed + strlen(kUnnamed)) + 1);
    char *text = with ? arena_printf(arena, "in %s (%s) with %s", name, where, with)
                      : arena_printf(arena, "in %s (%s)", name, where);
    return cute_notation(arena, text, MAX_FRAME_BYTES);
}

/* The calls in the user's own lines, and the innermost one, where the message arose. */
static const char *frames_text(Distiller *distiller, const Record *record) {
    Arena *arena = distiller->scratch;
    Buf text = {0};
    int shown = 0;
    for (int i = 0; i < record->context_count && shown < MAX_USER_FRAMES; i++) {
        const Context *frame = &record->contexts[i];
        bool users = is_user_file(frame->file);
        if (!users && i > 0) continue;
        const char *file = short_path(arena, frame->file);
        char *where =
            arena_printf(arena, "%s %s:%d", users ? "called at" : "from", file, frame->line);
        buf_printf(&text, "%s\n", frame_text(arena, frame, where));
        shown += users;
    }
    if (!text.length) {
        buf_free(&text);
        return NULL;
    }
    text.data[text.length - 1] = '\0';
    return buf_take(distiller->arena, &text);
}

/* ---- causes and consequences --------------------------------------------------------------- */

static bool is_noise(const Record *record) {
    static const char *const kNoise[] = {"Ptx assembly aborted", "ld returned 1 exit status",
                                         "compilation terminated", "-diag-suppress"};
    for (size_t i = 0; i < COUNT_OF(kNoise); i++)
        if (strstr(record->message, kNoise[i])) return true;
    return false;
}

static bool speaks_of_errors(const Record *record) {
    if (strstr(record->message, "<error-type>") || strstr(record->message, "<error-constant>") ||
        strstr(record->message, "error-type"))
        return true;
    return record->context_count > 0 && (strstr(record->contexts[0].what, "<error-type>") ||
                                         strstr(record->contexts[0].what, "<error-constant>"));
}

static bool same_cause(const Record *a, int a_line, const Record *b, int b_line) {
    if (a_line > 0 || b_line > 0) return a_line == b_line;
    return strcmp(a->file, b->file) == 0 && a->line == b->line;
}

/* An unclosed brace is found at the end of the file, after its consequences. */
static bool is_unclosed_brace(const Record *record) {
    return strstr(record->message, "expected a \"}\"") && record->note && record->note_line > 0 &&
           strstr(record->note, "to match this") && is_user_file(record->note_file);
}

static void point_at_brace(Record *record) {
    record->file = record->note_file;
    record->line = record->note_line;
    record->message = "this \"{\" is never closed";
    record->snippet = NULL;
    record->caret = -1;
}

typedef struct {
    Record *record;
    int line; // the user's
} Cause;

static int find_causes(Distiller *distiller, RecordList records, DiagnosticLevel level,
                       Cause *causes) {
    int count = 0;
    for (int i = 0; i < records.count; i++) {
        Record *record = &records.items[i];
        if (record->level != level || is_noise(record)) continue;
        int line = user_line(distiller, record);
        if (level == DIAGNOSTIC_WARNING && line == 0 && record->file[0]) continue;
        if (level == DIAGNOSTIC_WARNING && record->file[0] && !is_user_file(record->file)) continue;
        bool consequence = count > 0 && (speaks_of_errors(record) || is_footer(record));
        for (int j = 0; j < count && !consequence; j++)
            consequence = same_cause(causes[j].record, causes[j].line, record, line) &&
                          (level == DIAGNOSTIC_ERROR ||
                           strcmp(causes[j].record->message, record->message) == 0);
        if (!consequence) causes[count++] = (Cause){record, line};
    }
    return count;
}

/* Moves an unclosed brace to the front; what follows it in the file is its consequence. */
static int settle_braces(RecordList records, Cause *causes, int count) {
    for (int i = 0; i < records.count; i++) {
        if (!is_unclosed_brace(&records.items[i])) continue;
        point_at_brace(&records.items[i]);
        int kept = 1;
        Cause brace = {&records.items[i], records.items[i].line};
        Cause *old = malloc(sizeof *old * (size_t)(count + 1));
        if (!old) return count;
        memcpy(old, causes, sizeof *old * (size_t)count);
        for (int j = 0; j < count; j++)
            if (old[j].line > 0 && old[j].line <= brace.line && old[j].record != brace.record)
                causes[kept++] = old[j];
        causes[0] = brace;
        free(old);
        return kept;
    }
    return count;
}

/* ---- words -------------------------------------------------------------------------------- */

static void put_source_line(Distiller *distiller, int number, int column) {
    const char *line;
    size_t bytes;
    if (!source_line(distiller, number, &line, &bytes)) return;
    int shown = shown_bytes(line, bytes, MAX_SOURCE_LINE_BYTES);
    buf_printf(&distiller->distilled, "%5d | %.*s\n", number, shown, line);
    if (column <= 0 || column > shown) return;
    buf_puts(&distiller->distilled, "      | ");
    for (int i = 0; i < column - 1; i++)
        buf_puts(&distiller->distilled, line[i] == '\t' ? "\t" : " ");
    buf_puts(&distiller->distilled, "^\n");
}

static void put_indented(Buf *out, const char *text) {
    while (*text) {
        size_t bytes = strcspn(text, "\n");
        buf_printf(out, "        %.*s\n", (int)bytes, text);
        text += bytes + (text[bytes] == '\n');
    }
}

static Diagnostic describe(Distiller *distiller, const Cause *cause) {
    const Record *record = cause->record;
    Arena *arena = distiller->arena;
    const char *message =
        record->detail ? arena_printf(distiller->scratch, "%s; %s", record->message, record->detail)
                       : record->message;
    return (Diagnostic){
        .level = record->level,
        .file = record->file[0] ? short_path(arena, record->file) : "",
        .line = record->line,
        .column = user_column(distiller, record),
        .message = cute_notation(arena, message, MAX_MESSAGE_BYTES),
        .frames = frames_text(distiller, record),
        .user_line = cause->line,
    };
}

static void put_cause(Distiller *distiller, const Cause *cause, const Diagnostic *item) {
    Buf *out = &distiller->distilled;
    bool in_header = item->file[0] && strcmp(item->file, KERNEL_FILE) != 0;
    if (cause->line > 0 && !in_header && item->column > 0)
        buf_printf(out, KERNEL_FILE ":%d:%d: ", cause->line, item->column);
    else if (cause->line > 0)
        buf_printf(out, KERNEL_FILE ":%d: ", cause->line);
    else
        buf_printf(out, KERNEL_FILE ": ");
    buf_printf(out, "%s: %s\n", item->level == DIAGNOSTIC_ERROR ? "error" : "warning",
               item->message);
    if (cause->line > 0) put_source_line(distiller, cause->line, in_header ? 0 : item->column);
    if (in_header) {
        char *quoted = arena_string(distiller->scratch, cause->record->snippet);
        const char *text = quoted ? quoted + strspn(quoted, " \t") : "";
        buf_printf(out, "        at %s:%d%s%.*s\n", item->file, item->line, *text ? ": " : "",
                   shown_bytes(text, strlen(text), MAX_SNIPPET_BYTES), text);
    }
    if (item->frames) put_indented(out, item->frames);
    if (strcmp(item->file, CONTRACT_FOOTER_FILE) == 0)
        buf_puts(out, "        that is the harness after your last line; is something left open, "
                      "or is launch() declared otherwise?\n");
}

static void put_all(Distiller *distiller, const Cause *causes, const Diagnostic *items, int count,
                    int messages) {
    int shown = 0;
    for (; shown < count; shown++) {
        size_t before = distiller->distilled.length;
        put_cause(distiller, &causes[shown], &items[shown]);
        if (distiller->distilled.length <= DISTILLED_MAX_BYTES - 80 || shown == 0) continue;
        distiller->distilled.length = before;
        distiller->distilled.data[before] = '\0';
        break;
    }
    if (messages > shown && shown > 0)
        buf_printf(&distiller->distilled, "(%d more message%s, mostly consequences)\n",
                   messages - shown, messages - shown == 1 ? "" : "s");
}

static int count_level(RecordList records, DiagnosticLevel level) {
    int count = 0;
    for (int i = 0; i < records.count; i++)
        count += records.items[i].level == level && !is_noise(&records.items[i]);
    return count;
}

Diagnosis diagnose(Arena *arena, const char *log, const char *source) {
    Distiller distiller = {.arena = arena, .scratch = arena_new(), .source = source};
    buf_puts(&distiller.distilled, "");
    for (const char *c = source; *c; c++)
        distiller.source_lines += *c == '\n' || !c[1];
    RecordList records = records_parse(distiller.scratch, clean_text(distiller.scratch, log));
    for (int i = 0; i < records.count; i++) {
        explain_entry(&distiller, &records.items[i]);
        explain_unresolved(&distiller, &records.items[i]);
    }

    Cause *causes = arena_array_of(distiller.scratch, Cause, (size_t)records.count + 2);
    int errors = find_causes(&distiller, records, DIAGNOSTIC_ERROR, causes);
    errors = settle_braces(records, causes, errors);
    int warnings = find_causes(&distiller, records, DIAGNOSTIC_WARNING, causes + errors);
    Diagnostic *items = arena_array_of(arena, Diagnostic, (size_t)(errors + warnings) + 1);
    for (int i = 0; i < errors + warnings; i++)
        items[i] = describe(&distiller, &causes[i]);

    if (errors > 0) {
        put_all(&distiller, causes, items, errors, count_level(records, DIAGNOSTIC_ERROR));
    } else if (warnings > 0) {
        put_all(&distiller, causes, items, warnings, warnings);
    }
    Diagnosis diagnosis = {.count = errors + warnings, .items = items};
    const Buf *text = &distiller.distilled;
    int shown = shown_bytes(text->data, text->length, DISTILLED_MAX_BYTES);
    diagnosis.distilled = arena_string_n(arena, text->data, (size_t)shown);
    buf_free(&distiller.distilled);
    arena_free(distiller.scratch);
    return diagnosis;
}

Diagnosis diagnose_refusal(Arena *arena, const char *log, const char *source) {
    Diagnosis diagnosis = diagnose(arena, log, source);
    for (int i = 0; i < diagnosis.count; i++)
        if (diagnosis.items[i].level == DIAGNOSTIC_ERROR) return diagnosis;

    const char *last = "", *telling = "";
    size_t last_bytes = 0, telling_bytes = 0;
    char *text = clean_text(arena, log);
    for (const char *line = text; *line;) {
        size_t bytes = strcspn(line, "\n"), blank = strspn(line, " \t\r");
        if (blank < bytes) {
            last = line + blank;
            last_bytes = bytes - blank;
            if (strcasestr(arena_string_n(arena, last, last_bytes), "error")) {
                telling = last;
                telling_bytes = last_bytes;
            }
        }
        line += bytes + (line[bytes] == '\n');
    }
    if (!telling_bytes && !last_bytes) {
        last = "the compiler refused it without a message";
        last_bytes = strlen(last);
    }
    if (!telling_bytes) {
        telling = last;
        telling_bytes = last_bytes;
    }
    Diagnostic *items = arena_array_of(arena, Diagnostic, (size_t)diagnosis.count + 1);
    items[0] = (Diagnostic){
        .level = DIAGNOSTIC_ERROR,
        .file = "",
        .message = arena_string_n(arena, telling,
                                  (size_t)shown_bytes(telling, telling_bytes, MAX_MESSAGE_BYTES)),
    };
    for (int i = 0; i < diagnosis.count; i++)
        items[i + 1] = diagnosis.items[i];
    char *distilled =
        arena_printf(arena, KERNEL_FILE ": error: %s\n%s", items[0].message, diagnosis.distilled);
    int shown = shown_bytes(distilled, strlen(distilled), DISTILLED_MAX_BYTES);
    return (Diagnosis){.count = diagnosis.count + 1,
                       .items = items,
                       .distilled = arena_string_n(arena, distilled, (size_t)shown)};
}
