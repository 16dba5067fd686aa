/* report.h - shows a run: live on a terminal, as plain lines, as JSON, and afterwards as a story.
 *
 * Everything is rendered from journal events, so what is seen live and what `cutegen show` tells
 * later come from the same code. Text that a model or a compiler wrote is cleaned of control
 * characters before it reaches a terminal.
 */
#pragma once
#include "base/base.h"
#include "journal/journal.h"
#include <stdio.h>

typedef struct {
    FILE *out;
    bool terminal; // a status line that is rewritten, text wrapped; else plain lines
    bool color;    // off when NO_COLOR is set
    bool quiet;    // only the outcome
    bool verbose;  // also constructs, whole reasons, what the repairer was shown
} ReportOptions;

/* What suits `out`: is it a terminal, is NO_COLOR set. */
ReportOptions report_options(FILE *out);

typedef struct Reporter Reporter;
Reporter *reporter_new(const ReportOptions *options);
/* Where sources are read from for excerpts and diffs; without it none are shown. */
void reporter_set_journal(Reporter *reporter, Journal *journal);
void reporter_event(void *reporter, const char *kind, const Json *body); // an agent RunListener
/* What is being waited for ("checking rows=37 cols=1009"); seen on a terminal alone. */
void reporter_progress(void *reporter, const char *line);
void reporter_line(Reporter *reporter, const char *text); // stays; not when quiet
/* A verdict outside a run: `verdict` as docs/schema/verdict.json describes it, `source` the
 * kernel it is about. */
void reporter_verdict(Reporter *reporter, const Json *verdict, const char *source);
void reporter_free(Reporter *reporter);

/* The story of a recorded run, and the same as JSON (new reference). */
bool report_story(Journal *journal, const ReportOptions *options, Error *err);
bool report_json(Journal *journal, Json **out, Error *err);
