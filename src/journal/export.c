/* export.c - a journal as JSON lines, for reading by people and by replay:FILE.
 *
 * A text that an event's body names by its hash is inlined where it is first mentioned, so that
 * a line can be understood with the lines before it and the file needs nothing else.
 */
#include "journal/journal.h"
#include <stdlib.h>
#include <string.h>

static bool looks_like_hash(const char *text) {
    return strlen(text) == 64 && strspn(text, "0123456789abcdef") == 64;
}

static Json *blob_json(const char *data, size_t bytes) {
    if (text_is_utf8(data, bytes) && !memchr(data, 0, bytes)) return json_stringn(data, bytes);
    char *hex = malloc(bytes * 2 + 1);
    if (!hex) abort();
    for (size_t i = 0; i < bytes; i++) {
        static const char digits[] = "0123456789abcdef";
        hex[2 * i] = digits[(unsigned char)data[i] >> 4];
        hex[2 * i + 1] = digits[(unsigned char)data[i] & 15];
    }
    hex[2 * bytes] = 0;
    Json *json = json_pack("{s:s}", "hex", hex);
    free(hex);
    return json;
}

static bool names_blob(const char *key) {
    static const char *const keys[] = {"system", "prompt", "reply", "source",
                                       "base",   "start",  "best"};
    for (size_t i = 0; i < COUNT_OF(keys); i++)
        if (strcmp(key, keys[i]) == 0) return true;
    return false;
}

/* Adds to `blobs` what the values of `body` name and `seen` does not hold yet. */
static bool collect_blobs(Journal *journal, const Json *body, Json *seen, Json *blobs, Error *err) {
    const char *key;
    Json *value;
    json_object_foreach((Json *)body, key, value) {
        const char *hash = json_string_value(value);
        if (!hash || !names_blob(key) || !looks_like_hash(hash) || json_object_get(seen, hash))
            continue;
        json_object_set_new(seen, hash, json_true());
        Arena *arena = arena_new();
        char *data;
        size_t bytes;
        bool good = journal_get_blob(journal, arena, hash, &data, &bytes, err);
        if (good) json_object_set_new(blobs, hash, blob_json(data, bytes));
        arena_free(arena);
        if (!good) return false;
    }
    return true;
}

bool journal_export(Journal *journal, Buf *out, Error *err) {
    Arena *arena = arena_new();
    JournalEvent *events;
    size_t count;
    bool good = journal_events(journal, arena, 0, &events, &count, err);
    Json *seen = json_object();
    for (size_t i = 0; good && i < count; i++) {
        const JournalEvent *event = &events[i];
        Json *blobs = json_object();
        good = collect_blobs(journal, event->body, seen, blobs, err);
        if (good) {
            Json *line = json_pack("{s:I, s:s, s:s, s:O}", "seq", (json_int_t)event->seq, "time",
                                   event->time, "kind", event->kind, "body", event->body);
            if (json_object_size(blobs)) json_object_set(line, "blobs", blobs);
            char *text = json_dumps(line, JSON_COMPACT);
            if (text) {
                buf_puts(out, text);
                buf_puts(out, "\n");
            } else {
                good = error_harness(err, "event %lld has no JSON form", (long long)event->seq);
            }
            free(text);
            json_decref(line);
        }
        json_decref(blobs);
    }
    json_decref(seen);
    arena_free(arena);
    return good;
}
