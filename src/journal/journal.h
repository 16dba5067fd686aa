/* journal.h - the append-only record of a run: run.db.
 *
 * event(seq, time, kind, json) and blob(hash, bytes). An event is durable before it takes
 * effect; a run is resumed and replayed from its events alone.
 */
#pragma once
#include "base/base.h"

typedef struct Journal Journal;

typedef struct {
    int64_t seq;               // 1, 2, …
    const char *time;          // UTC
    const char *kind;          // docs/journal.md lists them
    Json *body;                // owned by the arena it was read into
} JournalEvent;

/* Creates `path` (a new run), or opens it for appending. A second owner, a newer schema, or a
 * damaged file is refused with what to do. */
bool journal_create(const char *path, Journal **journal, Error *err);
bool journal_open(const char *path, Journal **journal, Error *err);
/* Reads without owning: for `show` while the run goes on. */
bool journal_open_read_only(const char *path, Journal **journal, Error *err);
void journal_close(Journal *journal);

/* Durable when it returns true. Does not take the reference of `body`. */
bool journal_append(Journal *journal, const char *kind, const Json *body, int64_t *seq, Error *err);
bool journal_put_blob(Journal *journal, const void *data, size_t bytes, Hash *hash, Error *err);
bool journal_get_blob(Journal *journal, Arena *arena, const char *hash_hex, char **data,
                      size_t *bytes, Error *err);
/* All events with seq > after, in order. */
bool journal_events(Journal *journal, Arena *arena, int64_t after, JournalEvent **events,
                    size_t *count, Error *err);
/* One JSON object a line: {"seq","time","kind","body"}, blobs inlined under "blobs". This is what
 * replay:FILE reads. */
bool journal_export(Journal *journal, Buf *out, Error *err);
