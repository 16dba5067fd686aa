/* report.h - shows a run: live on a terminal, as plain lines, as JSON, and afterwards as a story.
 */
#pragma once
#include "base/base.h"
#include "journal/journal.h"
#include <stdio.h>

typedef struct {
    FILE *out;
    bool terminal;             // a status line that is rewritten; else plain lines
    bool color;                // off when NO_COLOR is set
    bool quiet;
} ReportOptions;

typedef struct Reporter Reporter;
Reporter *reporter_new(const ReportOptions *options);
void reporter_event(void *reporter, const char *kind, const Json *body); // an agent RunListener
void reporter_progress(void *reporter, const char *line);                // transient
void reporter_free(Reporter *reporter);

/* The story of a recorded run, and the same as JSON (new reference). */
bool report_story(Journal *journal, const ReportOptions *options, Error *err);
bool report_json(Journal *journal, Json **out, Error *err);
