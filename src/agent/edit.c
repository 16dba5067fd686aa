/* edit.c - turns a model's reply into a source, or into a refusal that the model can act on.
 *
 * Accepted are anchored edits, or one block with the whole file. A refusal costs one short
 * question and no build, so everything that is surely wrong is caught here: the wrong form, a
 * missing place, brackets that do not close, a launch() that vanished, "rest unchanged" where
 * code should be. Everything doubtful is left to the compiler.
 */
#include "agent/edit.h"
#include "agent/scan.h"
#include <ctype.h>
#include <string.h>

static const size_t kMaxReplyBytes = (size_t)4 << 20;
static const size_t kMaxSourceBytes = (size_t)1 << 20;

static const char kForms[] =
    "Answer either with edits of the form\n"
    "<<<<<<< SEARCH\nlines of the source\n=======\nlines to put there\n>>>>>>> REPLACE\n"
    "or with the whole file in one ```cuda block.";

static bool is_source(const CodeBlock *block) {
    return is_source_language(block->language);
}

static char *joined(Arena *arena, Lines lines) {
    Buf out = {0};
    for (int i = 0; i < lines.count; i++) {
        buf_append(&out, lines.line[i].text, lines.line[i].bytes);
        buf_puts(&out, "\n");
    }
    return buf_take(arena, &out);
}

static bool begins(Line line, const char *prefix) {
    return line.bytes >= strlen(prefix) && memcmp(line.text, prefix, strlen(prefix)) == 0;
}

/* "--- a/kernel.cu", "+++ b/kernel.cu", "@@ -1,3 +1,4 @@" */
static bool is_unified_diff(Lines lines) {
    bool header = false;
    for (int i = 0; i < lines.count; i++) {
        if (begins(lines.line[i], "@@ -") || (header && begins(lines.line[i], "+++ "))) return true;
        header = begins(lines.line[i], "--- ");
    }
    return false;
}

/* ---- what a reply must be ---------------------------------------------------------------- */

static bool check_reply(Arena *arena, const char *reply, size_t bytes, bool truncated,
                        char **refusal) {
    if (truncated) {
        *refusal = "Your reply was cut off by the length limit, and what came of it is not "
                   "complete. Send a shorter one: edit only the lines that change.";
        return false;
    }
    if (bytes > kMaxReplyBytes) {
        *refusal = arena_printf(arena, "Your reply has %zu bytes; no more than %zu are read.",
                                bytes, kMaxReplyBytes);
        return false;
    }
    bool blank = true;
    int line = 1;
    for (size_t i = 0; i < bytes; i++) {
        if (reply[i] == 0) {
            *refusal =
                arena_printf(arena, "Your reply is not text: line %d has a zero byte.", line);
            return false;
        }
        blank = blank && isspace((unsigned char)reply[i]);
        line += reply[i] == '\n';
    }
    if (blank) {
        *refusal = arena_printf(arena, "Your reply is empty. %s", kForms);
        return false;
    }
    if (!text_is_utf8(reply, bytes)) {
        *refusal = "Your reply is not text: it is not valid UTF-8.";
        return false;
    }
    return true;
}

/* A reply that is code and nothing else, as some commands print it. */
static bool is_bare_source(const Reply *reply) {
    static const char *const starts[] = {"//", "/*", "#include", "#pragma", "#define", "#if"};
    if (reply->block_count || reply->edit_count) return false;
    for (int i = 0; i < reply->lines.count; i++) {
        Line line = reply->lines.line[i];
        if (line_trimmed(line) == 0) continue;
        for (size_t k = 0; k < COUNT_OF(starts); k++)
            if (begins(line, starts[k])) return true;
        return false;
    }
    return false;
}

static bool refuse_without_code(Arena *arena, const Reply *reply, char **refusal) {
    for (int i = 0; i < reply->block_count; i++) {
        const CodeBlock *block = &reply->blocks[i];
        if (!block->language[0]) continue;
        *refusal = arena_printf(arena, "The block in line %d of your reply is tagged '%s'. %s",
                                block->line, block->language, kForms);
        return false;
    }
    *refusal = arena_printf(arena, "Your reply has no code. %s", kForms);
    return false;
}

/* The whole file of a reply without edits. */
static bool whole_file(Arena *arena, const Reply *reply, char **source, char **refusal) {
    if (is_bare_source(reply)) {
        *source = joined(arena, reply->lines);
        return true;
    }
    const CodeBlock *only = NULL;
    int tagged = 0, untagged = 0;
    Buf where = {0};
    for (int i = 0; i < reply->block_count; i++)
        tagged += is_source(&reply->blocks[i]);
    for (int i = 0; i < reply->block_count; i++) {
        const CodeBlock *block = &reply->blocks[i];
        bool candidate = tagged ? is_source(block) : !block->language[0];
        if (!candidate) continue;
        untagged += !tagged;
        only = block;
        buf_printf(&where, "%s%d", where.length ? ", " : "", block->line);
    }
    char *lines = buf_take(arena, &where);
    if (!only) return refuse_without_code(arena, reply, refusal);
    if (tagged + untagged > 1) {
        *refusal = arena_printf(arena,
                                "Your reply has %d code blocks (lines %s) and no edit says where "
                                "they belong. %s",
                                tagged + untagged, lines, kForms);
        return false;
    }
    *source = joined(arena, only->body);
    return true;
}

/* Edits beside a block that is a whole file: which of the two is meant? */
static bool check_no_second_answer(Arena *arena, const Reply *reply, char **refusal) {
    for (int i = 0; i < reply->block_count; i++) {
        const CodeBlock *block = &reply->blocks[i];
        if (block->has_edits || !is_source(block)) continue;
        char *text = joined(arena, block->body);
        if (!scan_calls_or_defines(text, strlen(text), "launch")) continue; // an illustration
        *refusal = arena_printf(arena,
                                "Your reply has both edits and a whole file (line %d). Send one "
                                "or the other.",
                                block->line);
        return false;
    }
    return true;
}

/* ---- what the outcome must be ------------------------------------------------------------ */

/* A comment that stands for code: "// ... rest of the kernel unchanged". */
static bool is_elision(Line line) {
    static const char *const words[] = {"existing",  "rest of",   "unchanged",  "same as",
                                        "remaining", "as before", "omitted",    "previous code",
                                        "your code", "the same",  "other code", "rest is"};
    char lower[256];
    size_t bytes = line_trimmed(line), length = 0;
    for (size_t i = 0; i < bytes && length < sizeof lower - 1; i++)
        lower[length++] = (char)tolower((unsigned char)line.text[i]);
    lower[length] = 0;
    const char *text = lower + strspn(lower, " \t");
    bool comment = text_starts_with(text, "//") || text_starts_with(text, "/*");
    const char *rest = comment ? text + 2 + strspn(text + 2, " ") : text;
    if (strcmp(rest, "...") == 0 || strcmp(rest, "…") == 0) return true;
    if (!comment || (!strstr(rest, "...") && !strstr(rest, "…"))) return false;
    for (size_t i = 0; i < COUNT_OF(words); i++)
        if (strstr(rest, words[i])) return true;
    return false;
}

static bool occurs_in(const char *base, Line line) {
    return base && memmem(base, strlen(base), line.text, line_trimmed(line)) != NULL;
}

static int shown_bytes(Line line) {
    size_t bytes = line_trimmed(line);
    return bytes > 100 ? 100 : (int)bytes;
}

static bool check_lines(Arena *arena, const char *base, const char *source, char **refusal) {
    Lines lines = lines_of(arena, source, strlen(source));
    for (int i = 0; i < lines.count; i++) {
        if (!is_elision(lines.line[i]) || occurs_in(base, lines.line[i])) continue;
        *refusal = arena_printf(arena,
                                "Line %d of the outcome, '%.*s', stands for code that you left "
                                "out. Send the complete file, or edits of the lines that change.",
                                i + 1, shown_bytes(lines.line[i]), lines.line[i].text);
        return false;
    }
    return true;
}

static bool check_outcome(Arena *arena, const char *base, const char *source, char **refusal) {
    size_t bytes = strlen(source);
    if (bytes > kMaxSourceBytes) {
        *refusal = arena_printf(arena, "The kernel would have %zu bytes; %zu are allowed.", bytes,
                                kMaxSourceBytes);
        return false;
    }
    if (source[strspn(source, " \t\n")] == 0) {
        *refusal = "The kernel would be empty.";
        return false;
    }
    if (base && strcmp(base, source) == 0) {
        *refusal = "Your reply changes nothing: the outcome is the source as it is.";
        return false;
    }
    if (!check_lines(arena, base, source, refusal)) return false;
    char *problem;
    if (!scan_balanced(arena, source, bytes, &problem)) {
        *refusal = arena_printf(arena, "In the outcome of your reply %s.", problem);
        return false;
    }
    if (!scan_calls_or_defines(source, bytes, "launch")) {
        *refusal = "The outcome of your reply does not define launch(). It must, with the "
                   "signature that task.h declares.";
        return false;
    }
    return true;
}

bool edit_apply(Arena *arena, const char *base, const char *reply, size_t reply_bytes,
                bool reply_truncated, char **source, char **refusal) {
    if (!check_reply(arena, reply, reply_bytes, reply_truncated, refusal)) return false;
    if (reply_bytes >= 3 && memcmp(reply, "\xef\xbb\xbf", 3) == 0) // a byte order mark
        reply += 3, reply_bytes -= 3;
    Reply parsed;
    if (!reply_parse(arena, reply, reply_bytes, &parsed, refusal)) return false;
    if (parsed.edit_count && !base) {
        *refusal = "There is no source yet that could be edited: send the whole file in one "
                   "```cuda block.";
        return false;
    }
    if (!parsed.edit_count && is_unified_diff(parsed.lines)) {
        *refusal = arena_printf(arena,
                                "Unified diffs are not accepted, since their line numbers "
                                "are so often off. %s",
                                kForms);
        return false;
    }
    char *outcome;
    if (parsed.edit_count) {
        if (!check_no_second_answer(arena, &parsed, refusal) ||
            !anchors_apply(arena, base, parsed.edits, parsed.edit_count, &outcome, refusal))
            return false;
    } else if (!whole_file(arena, &parsed, &outcome, refusal)) {
        return false;
    }
    if (!check_outcome(arena, base, outcome, refusal)) return false;
    *source = outcome;
    return true;
}
