/* narrate.h - private to report/: journal events as lines, for live reports and for stories.
 */
#pragma once
#include "report/canvas.h"

typedef struct {
    Canvas canvas;
    Journal *journal; // where sources and edits are read; NULL: they are not shown
    bool quiet;       // events are silent, a verdict is one line
    bool verbose;     // also what the repairer is shown, whole reasons
    int edits_per_episode, rounds;
    char step[48]; // "draft 1", "repair 2 of 5"
} Narrator;

Narrator narrator_new(const ReportOptions *options);
void narrate(Narrator *narrator, const char *time, const char *kind, const Json *body);
/* What the run waits for once this has happened: "waiting for the model", "" for nothing. */
const char *narrate_waiting(const char *kind);
void narrate_verdict(const Narrator *narrator, const char *time, const Json *verdict,
                     const char *source);

/* What all events of a run add up to. */
typedef struct {
    int64_t replies, reply_bytes, input_tokens, output_tokens; // tokens: -1 when not known
    int64_t edits, refused, builds, cached_builds, passes;
    double cost_dollars; // NAN when not known
    double model_seconds, judge_seconds;
    double seconds;      // spent working: pauses before a resume do not count
    const Json *started; // run.started's body
    const char *started_at;
    const Json *stopped; // run.stopped's body when the record ends with one
    const char *best;    // hash, or NULL
} Totals;

Totals totals_of(const JournalEvent *events, size_t count);
double event_seconds(const char *time); // since the epoch; NAN when it cannot be read
