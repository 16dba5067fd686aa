/* totals.c - adds up the events of a run.
 */
#include "report/narrate.h"
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

double event_seconds(const char *time) {
    struct tm tm = {0};
    const char *rest = time ? strptime(time, "%Y-%m-%dT%H:%M:%S", &tm) : NULL;
    if (!rest) return NAN;
    double fraction = 0;
    if (*rest == '.') sscanf(rest, "%lf", &fraction);
    return (double)timegm(&tm) + fraction;
}

/* Adds a number that a provider may not know: unknown stays unknown until one knows. */
static void add_known(int64_t *sum, const Json *value) {
    if (json_is_integer(value)) *sum = (*sum < 0 ? 0 : *sum) + json_integer_value(value);
}

Totals totals_of(const JournalEvent *events, size_t count) {
    Totals t = {.input_tokens = -1, .output_tokens = -1, .cost_dollars = NAN};
    double last = NAN;
    for (size_t i = 0; i < count; i++) {
        const char *kind = events[i].kind;
        const Json *body = events[i].body;
        double now = event_seconds(events[i].time);
        bool pause = strcmp(kind, "run.resumed") == 0;
        if (!pause && now > last) t.seconds += now - last;
        if (isfinite(now)) last = now;

        t.stopped = NULL;
        if (strcmp(kind, "run.started") == 0) {
            t.started = body;
            t.started_at = events[i].time;
        } else if (strcmp(kind, "reply.received") == 0) {
            t.replies++;
            t.reply_bytes += json_int_or(body, "bytes", 0);
            t.model_seconds += json_real_or(body, "seconds", 0);
            add_known(&t.input_tokens, json_object_get(body, "input_tokens"));
            add_known(&t.output_tokens, json_object_get(body, "output_tokens"));
            double cost = json_real_or(body, "cost_dollars", NAN);
            if (isfinite(cost))
                t.cost_dollars = (isfinite(t.cost_dollars) ? t.cost_dollars : 0) + cost;
        } else if (strcmp(kind, "edit.applied") == 0) {
            t.edits += json_is_string(json_object_get(body, "base"));
        } else if (strcmp(kind, "edit.refused") == 0) {
            t.refused++;
        } else if (strcmp(kind, "verdict") == 0) {
            const Json *build = json_object_get(json_object_get(body, "detail"), "build");
            t.builds++;
            t.cached_builds += json_is_true(json_object_get(build, "from_cache"));
            t.judge_seconds += json_real_or(body, "seconds", 0);
            t.passes += strcmp(json_text(body, "verdict", ""), "pass") == 0;
        } else if (strcmp(kind, "best.kept") == 0) {
            t.best = json_text(body, "source", NULL);
        } else if (strcmp(kind, "run.stopped") == 0) {
            t.stopped = body;
        }
    }
    return t;
}
