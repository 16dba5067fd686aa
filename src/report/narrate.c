/* narrate.c - says in a line or two what an event of a run was.
 *
 * One function per kind of event, in one table; a kind that is not in it is from a newer cutegen
 * and passes silently. Bodies come from a file on disk, so every field may be missing: each has a
 * reading that makes sense without it.
 */
#include "report/narrate.h"
#include "report/diff.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define EXCERPT_LINES_AROUND 2
#define DIFF_LINES_AROUND    1
#define DIFF_LINES           16 // of an edit that are shown
#define DIFF_LINES_VERBOSE   80
#define CANVAS_MARK(canvas)  ((canvas)->unicode ? "▸" : ">")

Narrator narrator_new(const ReportOptions *options) {
    return (Narrator){
        .canvas = canvas_new(options),
        .quiet = options->quiet,
        .verbose = options->verbose,
    };
}

/* ---- sources ---------------------------------------------------------------------------- */

static const char *source_of(const Narrator *narrator, Arena *arena, const char *hash) {
    char *text;
    size_t bytes;
    Error ignored = {0};
    if (!narrator->journal || !hash || !*hash ||
        !journal_get_blob(narrator->journal, arena, hash, &text, &bytes, &ignored)) {
        return NULL;
    }
    return arena_string_n(arena, text, bytes);
}

static void show_excerpt(const Canvas *canvas, const char *source, int line, int column) {
    int number = 1;
    for (const char *at = source; *at; number++) {
        size_t length = strcspn(at, "\n");
        if (number > line + EXCERPT_LINES_AROUND) break;
        if (number >= line - EXCERPT_LINES_AROUND) {
            bool here = number == line;
            canvas_source(canvas, here ? STYLE_BOLD : STYLE_DIM, here ? CANVAS_MARK(canvas) : " ",
                          number, at, length);
            if (here && column > 0) canvas_caret(canvas, at, length, column);
        }
        at += length;
        if (*at == '\n') at++;
    }
}

static void show_diff(const Narrator *narrator, const char *old_text, const char *new_text) {
    const Canvas *canvas = &narrator->canvas;
    int most = narrator->verbose ? DIFF_LINES_VERBOSE : DIFF_LINES;
    Arena *arena = arena_new();
    Diff diff = diff_lines(arena, old_text, new_text);
    int shown = 0;
    bool gap = false;
    for (size_t i = 0; i < diff.count; i++) {
        bool near = false;
        size_t from = i > DIFF_LINES_AROUND ? i - DIFF_LINES_AROUND : 0;
        for (size_t j = from; j <= i + DIFF_LINES_AROUND && j < diff.count; j++) {
            near |= diff.lines[j].mark != ' ';
        }
        if (!near) {
            gap = shown > 0;
            continue;
        }
        if (shown == most) {
            char rest[64];
            snprintf(rest, sizeof rest, "%d lines removed and %d added in all", diff.removed,
                     diff.added);
            canvas_text(canvas, LABEL_COLUMN, 0, STYLE_DIM, rest);
            break;
        }
        if (gap) canvas_text(canvas, LABEL_COLUMN, 0, STYLE_DIM, canvas->unicode ? "  ⋮" : "  :");
        gap = false;
        DiffLine line = diff.lines[i];
        char mark[2] = {line.mark, 0};
        Style style = line.mark == '+' ? STYLE_GOOD : line.mark == '-' ? STYLE_BAD : STYLE_DIM;
        canvas_source(canvas, style, mark, line.line, line.text, line.bytes);
        shown++;
    }
    arena_free(arena);
}

/* ---- verdicts ---------------------------------------------------------------------------- */

static Style verdict_style(const char *kind) {
    if (strcmp(kind, "pass") == 0) return STYLE_GOOD;
    if (strcmp(kind, "harness_fault") == 0) return STYLE_NOTE;
    return STYLE_BAD;
}

static void say_build(Buf *out, const Json *build, bool compiled) {
    if (json_is_true(json_object_get(build, "from_cache"))) {
        buf_puts(out, compiled ? "build found in the cache" : "failed build found in the cache");
    } else {
        buf_puts(out, compiled ? "built in " : "refused by the compiler after ");
        buf_duration(out, json_real_or(build, "seconds", NAN));
    }
    const Json *figures = json_array_get(json_object_get(build, "kernels"), 0);
    if (!figures) return;
    buf_printf(out, ", %lld registers", (long long)json_int_or(figures, "registers", 0));
    int64_t shared = json_int_or(figures, "shared_bytes", 0);
    if (shared > 0) {
        buf_puts(out, ", ");
        buf_bytes(out, (double)shared);
        buf_puts(out, " shared");
    }
    int64_t spilled = json_int_or(figures, "spill_store_bytes", 0);
    if (spilled > 0) {
        buf_puts(out, ", ");
        buf_bytes(out, (double)spilled);
        buf_puts(out, " spilled");
    }
}

static void show_constructs(const Narrator *narrator, const Json *build) {
    const Json *constructs = json_object_get(build, "constructs");
    if (json_array_size(constructs) == 0) return;
    Buf text = {0};
    size_t i;
    Json *name;
    json_array_foreach((Json *)constructs, i, name) {
        buf_printf(&text, "%s%s", i ? ", " : "CuTe constructs: ",
                   json_is_string(name) ? json_string_value(name) : "?");
    }
    canvas_entry(&narrator->canvas, NULL, "", STYLE_PLAIN, text.data);
    buf_free(&text);
}

void narrate_verdict(const Narrator *narrator, const char *time, const Json *verdict,
                     const char *source) {
    const Canvas *canvas = &narrator->canvas;
    const char *kind = json_text(verdict, "verdict", "harness_fault");
    const Json *build = json_object_get(verdict, "build");
    if (narrator->quiet) {
        Arena *arena = arena_new();
        const char *message = json_text(verdict, "message", "");
        fprintf(canvas->out, "%s: %s\n", kind, text_clean(arena, message, strlen(message)));
        arena_free(arena);
        return;
    }
    Buf text = {0};
    if (json_is_number(json_object_get(build, "seconds"))) {
        say_build(&text, build, strcmp(kind, "compile_error") != 0);
        canvas_entry(canvas, time, "", STYLE_PLAIN, text.data);
        if (narrator->verbose) show_constructs(narrator, build);
        text.length = 0;
    }
    buf_puts(&text, json_text(verdict, "message", ""));
    double cost_us = json_real_or(verdict, "cost_us", NAN);
    double time_ms = json_real_or(verdict, "time_ms", NAN);
    if (isfinite(time_ms)) buf_printf(&text, "; %.4g ms measured", time_ms);
    if (isfinite(cost_us)) buf_printf(&text, "; cost %.4g us, estimated and not measured", cost_us);
    canvas_entry(canvas, time, kind, verdict_style(kind), text.data ? text.data : "");
    buf_free(&text);

    const Json *place = json_object_get(verdict, "place");
    int line = (int)json_int_or(place, "line", 0);
    if (source && line > 0 && strcmp(json_text(place, "file", ""), "kernel.cu") == 0) {
        show_excerpt(canvas, source, line, (int)json_int_or(place, "column", 0));
    }
    const char *repair = json_text(verdict, "repair", "");
    if (narrator->verbose && *repair && strcmp(kind, "pass") != 0) {
        canvas_text(canvas, LABEL_COLUMN, 0, STYLE_DIM, "what the repairer is shown:");
        canvas_text(canvas, LABEL_COLUMN + 2, 0, STYLE_PLAIN, repair);
    }
}

/* ---- one function per kind ---------------------------------------------------------------- */

static void run_started(Narrator *narrator, Arena *arena, const char *time, const Json *body) {
    (void)arena;
    const Json *limits = json_object_get(body, "limits");
    narrator->edits_per_episode = (int)json_int_or(limits, "edits_per_episode", 0);
    narrator->rounds = (int)json_int_or(limits, "rounds", 0);
    const char *hint = json_text(body, "hint", NULL);
    if (hint) canvas_entry(&narrator->canvas, time, "hint", STYLE_PLAIN, hint);
    if (json_text(body, "start", NULL)) {
        canvas_entry(&narrator->canvas, time, "start", STYLE_BOLD,
                     "begins with the kernel given by --start");
    }
}

static void run_resumed(Narrator *narrator, Arena *arena, const char *time, const Json *body) {
    canvas_entry(&narrator->canvas, time, "resumed", STYLE_BOLD,
                 arena_printf(arena, "with %s", json_text(body, "model", "the same model")));
}

static void name_step(Narrator *narrator, const Json *body) {
    const char *stage = json_text(body, "stage", "?");
    int round = (int)json_int_or(body, "round", 0);
    if (strcmp(stage, "draft") == 0) {
        snprintf(narrator->step, sizeof narrator->step, "draft %d",
                 (int)json_int_or(body, "draft", 1));
    } else if (strcmp(stage, "debug") == 0) {
        int edit = (int)json_int_or(body, "edit", 0) + 1;
        if (narrator->edits_per_episode > 0) {
            snprintf(narrator->step, sizeof narrator->step, "repair %d/%d", edit,
                     narrator->edits_per_episode);
        } else {
            snprintf(narrator->step, sizeof narrator->step, "repair %d", edit);
        }
    } else if (narrator->rounds > 0) {
        snprintf(narrator->step, sizeof narrator->step, "round %d/%d", round, narrator->rounds);
    } else {
        snprintf(narrator->step, sizeof narrator->step, "%.20s %d", stage, round);
    }
}

static void prompt_sent(Narrator *narrator, Arena *arena, const char *time, const Json *body) {
    name_step(narrator, body);
    const char *prompt = source_of(narrator, arena, json_text(body, "prompt", NULL));
    const char *system = source_of(narrator, arena, json_text(body, "system", NULL));
    Buf text = {0};
    bool continues = json_is_true(json_object_get(body, "continues"));
    buf_puts(&text, continues ? "asked for the rest of the reply" : "asked the model");
    if (prompt && !continues) {
        buf_puts(&text, ", prompt of ");
        buf_bytes(&text, (double)(strlen(prompt) + (system ? strlen(system) : 0)));
    }
    canvas_entry(&narrator->canvas, time, narrator->step, STYLE_BOLD, text.data);
    buf_free(&text);
}

static void reply_received(Narrator *narrator, Arena *arena, const char *time, const Json *body) {
    (void)arena;
    Buf text = {0};
    buf_puts(&text, "reply of ");
    buf_bytes(&text, (double)json_int_or(body, "bytes", 0));
    buf_puts(&text, " after ");
    buf_duration(&text, json_real_or(body, "seconds", NAN));
    if (json_is_integer(json_object_get(body, "output_tokens"))) {
        buf_printf(&text, ", %lld tokens", (long long)json_int_or(body, "output_tokens", 0));
    }
    if (json_is_true(json_object_get(body, "truncated"))) {
        buf_puts(&text, ", cut off by the length limit");
    }
    canvas_entry(&narrator->canvas, time, "", STYLE_PLAIN, text.data);
    buf_free(&text);
}

static void model_failed(Narrator *narrator, Arena *arena, const char *time, const Json *body) {
    (void)arena;
    canvas_entry(&narrator->canvas, time, "no reply", STYLE_NOTE, json_text(body, "reason", ""));
}

static void edit_applied(Narrator *narrator, Arena *arena, const char *time, const Json *body) {
    const char *base_hash = json_text(body, "base", NULL);
    const char *idea = json_text(body, "idea", NULL);
    int64_t added = json_int_or(body, "lines_added", 0);
    int64_t removed = json_int_or(body, "lines_removed", 0);
    Buf text = {0};
    if (idea && *idea) {
        bool repair = strcmp(json_text(body, "stage", ""), "debug") == 0;
        buf_printf(&text, "%s: %s", repair ? "cause" : "idea", idea);
        canvas_entry(&narrator->canvas, time, "", STYLE_PLAIN, text.data);
        text.length = 0;
    }
    if (!base_hash) {
        buf_puts(&text, "kernel of ");
        buf_count(&text, added, "line", "lines");
    } else {
        const char *what =
            json_is_true(json_object_get(body, "whole_file")) ? "rewritten" : "edit applied";
        buf_printf(&text, "%s at line %lld: +%lld %s%lld ", what,
                   (long long)json_int_or(body, "first_line", 1), (long long)added,
                   narrator->canvas.unicode ? "−" : "-", (long long)removed);
        buf_puts(&text, added == 1 && removed <= 1 ? "line" : "lines");
    }
    canvas_entry(&narrator->canvas, time, "", STYLE_PLAIN, text.data);
    buf_free(&text);
    if (base_hash) {
        const char *base = source_of(narrator, arena, base_hash);
        const char *source = source_of(narrator, arena, json_text(body, "source", NULL));
        if (base && source) show_diff(narrator, base, source);
    }
}

/* A reason is written for the model and may go on to teach it a format; people get the complete
 * sentences of its first line. */
static const char *first_sentences(Arena *arena, const char *reason) {
    size_t line = strcspn(reason, "\n");
    if (!reason[line]) return reason;
    size_t end = line;
    while (end > 0 && reason[end - 1] != '.')
        end--;
    return arena_string_n(arena, reason, end > 0 ? end : line);
}

static void edit_refused(Narrator *narrator, Arena *arena, const char *time, const Json *body) {
    const char *reason = json_text(body, "reason", "");
    canvas_entry(&narrator->canvas, time, "edit refused", STYLE_NOTE,
                 narrator->verbose ? reason : first_sentences(arena, reason));
}

static void verdict(Narrator *narrator, Arena *arena, const char *time, const Json *body) {
    const Json *detail = json_object_get(body, "detail");
    const char *source = source_of(narrator, arena, json_text(body, "source", NULL));
    Json *shown = json_is_object(detail) ? json_copy((Json *)detail) : json_object();
    // the event's own fields hold even when a newer version tells the detail otherwise
    json_object_set(shown, "verdict", json_object_get(body, "verdict"));
    json_object_set(shown, "message", json_object_get(body, "message"));
    narrate_verdict(narrator, time, shown, source);
    json_decref(shown);
}

static void best_kept(Narrator *narrator, Arena *arena, const char *time, const Json *body) {
    const char *path = json_text(body, "path", "best.cu");
    double objective = json_real_or(body, "objective", NAN);
    if (isfinite(objective)) {
        bool measured = strcmp(json_text(body, "objective_kind", ""), "time_ms") == 0;
        path = arena_printf(arena, "%s, %.4g %s", path, objective,
                            measured ? "ms" : "us of estimated cost");
    }
    canvas_entry(&narrator->canvas, time, "best kept", STYLE_GOOD, path);
}

/* How each reason to stop is put. */
static const struct {
    const char *reason, *label, *text;
} stop_rows[] = {
    {"passed", "passed", ""},
    {"plateau", "stopped", "no further improvement; "},
    {"rounds", "stopped", "all rounds are used up; "},
    {"no_kernel", "no kernel", "every draft and its repairs failed; "},
    {"model", "stopped", "the model gave no reply; "},
    {"interrupted", "interrupted", ""},
    {"fault", "stopped", "the judge itself failed; "},
};

static void run_stopped(Narrator *narrator, Arena *arena, const char *time, const Json *body) {
    (void)arena;
    const char *reason = json_text(body, "reason", "?");
    const char *label = reason, *lead = "";
    for (size_t i = 0; i < COUNT_OF(stop_rows); i++) {
        if (strcmp(stop_rows[i].reason, reason) == 0) {
            label = stop_rows[i].label;
            lead = stop_rows[i].text;
        }
    }
    Buf text = {0};
    buf_puts(&text, lead);
    buf_count(&text, json_int_or(body, "replies", 0), "reply, ", "replies, ");
    buf_count(&text, json_int_or(body, "builds", 0), "build, ", "builds, ");
    buf_count(&text, json_int_or(body, "edits", 0), "edit, ", "edits, ");
    buf_duration(&text, json_real_or(body, "seconds", NAN));
    bool good = json_is_true(json_object_get(body, "passed"));
    canvas_entry(&narrator->canvas, time, label, good ? STYLE_GOOD : STYLE_NOTE, text.data);
    buf_free(&text);
}

static const struct {
    const char *kind;
    const char *waiting; // for what the run waits once this has happened
    void (*narrate)(Narrator *narrator, Arena *arena, const char *time, const Json *body);
} event_rows[] = {
    {"run.started", "writing the prompt", run_started},
    {"run.resumed", "reading the record", run_resumed},
    {"prompt.sent", "waiting for the model", prompt_sent},
    {"reply.received", "applying the reply", reply_received},
    {"model.failed", "", model_failed},
    {"edit.applied", "", edit_applied},
    {"edit.refused", "", edit_refused},
    {"judge.started", "building", NULL},
    {"verdict", "", verdict},
    {"best.kept", "", best_kept},
    {"run.stopped", "", run_stopped},
};

void narrate(Narrator *narrator, const char *time, const char *kind, const Json *body) {
    if (narrator->quiet) return;
    for (size_t i = 0; i < COUNT_OF(event_rows); i++) {
        if (strcmp(event_rows[i].kind, kind) != 0 || !event_rows[i].narrate) continue;
        Arena *arena = arena_new();
        event_rows[i].narrate(narrator, arena, time, body);
        arena_free(arena);
    }
}

const char *narrate_waiting(const char *kind) {
    for (size_t i = 0; i < COUNT_OF(event_rows); i++) {
        if (strcmp(event_rows[i].kind, kind) == 0) return event_rows[i].waiting;
    }
    return "";
}
