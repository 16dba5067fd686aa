/* story.c - a recorded run, told afterwards: for people as a timeline, for programs as JSON.
 */
#include "report/narrate.h"
#include <math.h>
#include <string.h>

static void say_head(const Canvas *canvas, Arena *arena, const Totals *totals) {
    const Json *started = totals->started;
    const char *task = json_text(json_object_get(started, "task"), "name", "unknown task");
    char when[24];
    snprintf(when, sizeof when, "%.10s %.8s", totals->started_at,
             strlen(totals->started_at) > 11 ? totals->started_at + 11 : "");
    canvas_text(canvas, 0, 2, STYLE_BOLD, task);
    canvas_text(canvas, 0, 2, STYLE_PLAIN,
                arena_printf(arena, "begun %s UTC by cutegen %s; model %s; device %s, %s", when,
                             json_text(started, "version", "?"), json_text(started, "model", "?"),
                             json_text(started, "device", "?"), json_text(started, "arch", "?")));
    canvas_text(canvas, 0, 0, STYLE_PLAIN, "");
}

static void say_totals(const Canvas *canvas, const Totals *t) {
    Buf text = {0};
    buf_count(&text, t->replies, "reply", "replies");
    buf_puts(&text, " (");
    buf_bytes(&text, (double)t->reply_bytes);
    if (t->output_tokens >= 0) {
        buf_printf(&text, ", %lld tokens in, %lld out",
                   (long long)(t->input_tokens >= 0 ? t->input_tokens : 0),
                   (long long)t->output_tokens);
    }
    if (isfinite(t->cost_dollars)) buf_printf(&text, ", $%.4f", t->cost_dollars);
    buf_puts(&text, ") in ");
    buf_duration(&text, t->model_seconds);
    buf_puts(&text, "; ");
    buf_count(&text, t->edits, "edit", "edits");
    if (t->refused > 0) buf_printf(&text, ", %lld refused", (long long)t->refused);
    buf_puts(&text, "; ");
    buf_count(&text, t->builds, "verdict", "verdicts");
    if (t->cached_builds > 0) {
        buf_printf(&text, ", %lld of them from cached builds", (long long)t->cached_builds);
    }
    buf_puts(&text, " in ");
    buf_duration(&text, t->judge_seconds);
    buf_puts(&text, "; ");
    buf_duration(&text, t->seconds);
    buf_puts(&text, " in all");
    canvas_text(canvas, 0, 0, STYLE_PLAIN, "");
    canvas_text(canvas, 0, 2, STYLE_PLAIN, text.data);
    buf_free(&text);
    if (!t->stopped) {
        canvas_text(canvas, 0, 2, STYLE_NOTE,
                    "the record ends here: the run still goes on, or it was killed and can be "
                    "resumed");
    }
}

static bool read_events(Journal *journal, Arena *arena, JournalEvent **events, size_t *count,
                        Totals *totals, Error *err) {
    if (!journal_events(journal, arena, 0, events, count, err)) return false;
    *totals = totals_of(*events, *count);
    if (!totals->started) {
        return error_input(err, "this run has nothing to tell: it ended before its first event");
    }
    return true;
}

bool report_story(Journal *journal, const ReportOptions *options, Error *err) {
    Arena *arena = arena_new();
    JournalEvent *events;
    size_t count;
    Totals totals;
    bool ok = read_events(journal, arena, &events, &count, &totals, err);
    if (ok) {
        Narrator narrator = narrator_new(options);
        narrator.journal = journal;
        say_head(&narrator.canvas, arena, &totals);
        double start = event_seconds(totals.started_at);
        for (size_t i = 0; i < count; i++) {
            Buf time = {0};
            buf_clock(&time, event_seconds(events[i].time) - start);
            narrate(&narrator, time.data, events[i].kind, events[i].body);
            buf_free(&time);
        }
        say_totals(&narrator.canvas, &totals);
    }
    arena_free(arena);
    return ok;
}

static Json *count_or_null(int64_t count) {
    return count >= 0 ? json_integer(count) : json_null();
}

static Json *totals_json(const Totals *t) {
    Json *json = json_object();
    json_object_set_new(json, "replies", json_integer(t->replies));
    json_object_set_new(json, "reply_bytes", json_integer(t->reply_bytes));
    json_object_set_new(json, "input_tokens", count_or_null(t->input_tokens));
    json_object_set_new(json, "output_tokens", count_or_null(t->output_tokens));
    json_object_set_new(json, "cost_dollars",
                        isfinite(t->cost_dollars) ? json_real(t->cost_dollars) : json_null());
    json_object_set_new(json, "edits", json_integer(t->edits));
    json_object_set_new(json, "refused", json_integer(t->refused));
    json_object_set_new(json, "verdicts", json_integer(t->builds));
    json_object_set_new(json, "cached_builds", json_integer(t->cached_builds));
    json_object_set_new(json, "passes", json_integer(t->passes));
    json_object_set_new(json, "model_seconds", json_real(t->model_seconds));
    json_object_set_new(json, "judge_seconds", json_real(t->judge_seconds));
    json_object_set_new(json, "seconds", json_real(t->seconds));
    return json;
}

static Json *text_or_null(const char *text) {
    return text ? json_string(text) : json_null();
}

bool report_json(Journal *journal, Json **out, Error *err) {
    Arena *arena = arena_new();
    JournalEvent *events;
    size_t count;
    Totals totals;
    bool ok = read_events(journal, arena, &events, &count, &totals, err);
    if (ok) {
        Json *json = json_object(), *list = json_array();
        json_object_set_new(json, "schema", json_integer(1));
        json_object_set(json, "task", json_object_get(totals.started, "task"));
        json_object_set(json, "model", json_object_get(totals.started, "model"));
        json_object_set(json, "device", json_object_get(totals.started, "device"));
        json_object_set(json, "arch", json_object_get(totals.started, "arch"));
        json_object_set_new(json, "started", json_string(totals.started_at));
        json_object_set_new(json, "stopped",
                            text_or_null(json_text(totals.stopped, "reason", NULL)));
        json_object_set_new(json, "passed", json_boolean(totals.best != NULL));
        json_object_set_new(json, "best", text_or_null(totals.best));
        json_object_set_new(json, "totals", totals_json(&totals));
        for (size_t i = 0; i < count; i++) {
            Json *event = json_object();
            json_object_set_new(event, "seq", json_integer(events[i].seq));
            json_object_set_new(event, "time", json_string(events[i].time));
            json_object_set_new(event, "kind", json_string(events[i].kind));
            json_object_set(event, "body", events[i].body);
            json_array_append_new(list, event);
        }
        json_object_set_new(json, "events", list);
        *out = json;
    }
    arena_free(arena);
    return ok;
}
