/* replay.c - replay:FILE: a recorded run answers again.
 *
 * FILE is a journal's JSON-lines export, a run.db, or a run's directory. The n-th request of a
 * stage gets the n-th recorded reply of that stage, so a recording serves as long as the loop
 * asks in the same order within a stage, whatever the prompts say by now; and since the request
 * says which it is, a resumed run goes on in the middle. Hashes are mere keys here: a recording
 * that somebody edited by hand is as good.
 */
#include "journal/journal.h"
#include "model/provider.h"
#include <math.h>
#include <string.h>

static const size_t kMaxRecordingBytes = (size_t)512 << 20;

typedef struct Recorded Recorded;
struct Recorded {
    ModelReply reply;
    Stage stage;
    Recorded *next;
};

typedef struct {
    const char *file;
    Recorded *first, **last;
} Replay;

typedef struct {
    Arena *arena;
    const char *where; // "demo.jsonl:12"
    Json *blobs;       // hash -> text or {"hex": …}, of all lines so far
    Replay *replay;
} Loading;

static int hex_digit(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return -1;
}

static bool blob_text(const Loading *loading, const char *hash, const char **text, size_t *bytes,
                      Error *err) {
    const Json *blob = hash ? json_object_get(loading->blobs, hash) : NULL;
    if (json_is_string(blob)) {
        *bytes = json_string_length(blob);
        *text = arena_string_n(loading->arena, json_string_value(blob), *bytes);
        return true;
    }
    const char *hex = json_text(blob, "hex", NULL);
    if (!hex || strlen(hex) % 2 || strspn(hex, "0123456789abcdef") != strlen(hex))
        return error_input(err, "%s: the reply's text is missing from \"blobs\"", loading->where);
    *bytes = strlen(hex) / 2;
    char *data = arena_alloc(loading->arena, *bytes + 1);
    for (size_t i = 0; i < *bytes; i++)
        data[i] = (char)(hex_digit(hex[2 * i]) << 4 | hex_digit(hex[2 * i + 1]));
    *text = data;
    return true;
}

static bool parse_stage(const char *name, Stage *stage) {
    for (int i = 0; i < STAGE_DONE; i++) {
        if (strcmp(stage_name((Stage)i), name) != 0) continue;
        *stage = (Stage)i;
        return true;
    }
    return false;
}

static bool load_reply(const Loading *loading, const Json *body, Error *err) {
    Recorded *recorded = arena_new_of(loading->arena, Recorded);
    const char *stage = json_text(body, "stage", "");
    if (!parse_stage(stage, &recorded->stage))
        return error_input(err, "%s: a reply of unknown stage '%s'", loading->where, stage);
    ModelReply *reply = &recorded->reply;
    if (!blob_text(loading, json_text(body, "reply", NULL), &reply->text, &reply->bytes, err))
        return false;
    reply->truncated = json_is_true(json_object_get(body, "truncated"));
    reply->input_tokens = json_int_or(body, "input_tokens", -1);
    reply->output_tokens = json_int_or(body, "output_tokens", -1);
    reply->cost_dollars = json_real_or(body, "cost_dollars", NAN);
    *loading->replay->last = recorded;
    loading->replay->last = &recorded->next;
    return true;
}

static bool load_line(Loading *loading, const char *line, size_t bytes, Error *err) {
    // Parsed into an arena of its own: only replies are kept of a recording full of verdicts.
    Arena *scratch = arena_new();
    Json *event;
    bool good = json_parse(scratch, line, bytes, loading->where, &event, err);
    if (good && !json_is_object(event))
        good = error_input(err, "%s: not an event of a recorded run", loading->where);
    if (good) {
        const Json *blobs = json_object_get(event, "blobs");
        if (json_is_object(blobs)) json_object_update(loading->blobs, (Json *)blobs);
        if (strcmp(json_text(event, "kind", ""), "reply.received") == 0)
            good = load_reply(loading, json_object_get(event, "body"), err);
    }
    arena_free(scratch);
    return good;
}

static bool load_lines(Arena *arena, Replay *replay, const char *text, size_t bytes, Error *err) {
    Loading loading = {.arena = arena, .blobs = json_object(), .replay = replay};
    bool good = true;
    int number = 0;
    for (const char *line = text, *end = text + bytes; good && line < end;) {
        const char *newline = memchr(line, '\n', (size_t)(end - line));
        size_t length = (size_t)((newline ? newline : end) - line);
        number++;
        char where[512];
        snprintf(where, sizeof where, "%.480s:%d", replay->file, number);
        loading.where = where;
        if (length && strspn(line, " \t\r") < length) good = load_line(&loading, line, length, err);
        line += length + 1;
    }
    json_decref(loading.blobs);
    if (good && !replay->first)
        return error_input(err,
                           "%s holds no recorded reply; it should be a run's directory, its "
                           "run.db, or an export of it",
                           replay->file);
    return good;
}

static bool load_journal(Arena *arena, Replay *replay, const char *path, Error *err) {
    Journal *journal;
    if (!journal_open_read_only(path, &journal, err)) return false;
    Buf lines = {0};
    bool good = journal_export(journal, &lines, err) &&
                load_lines(arena, replay, lines.data ? lines.data : "", lines.length, err);
    buf_free(&lines);
    journal_close(journal);
    return good;
}

static bool replay_open(Arena *arena, Model *model, const char *argument, Error *err) {
    Replay *replay = arena_new_of(arena, Replay);
    replay->file = arena_string(arena, argument);
    replay->last = &replay->first;
    model->state = replay;
    if (path_is_directory(argument))
        return load_journal(arena, replay, path_join(arena, argument, "run.db"), err);
    Arena *scratch = arena_new();
    char *text;
    size_t bytes;
    bool good = file_read(scratch, argument, kMaxRecordingBytes, &text, &bytes, err);
    if (good && text_starts_with(text, "SQLite format 3"))
        good = load_journal(arena, replay, argument, err);
    else if (good)
        good = load_lines(arena, replay, text, bytes, err);
    arena_free(scratch);
    return good;
}

static bool replay_ask(Model *model, Arena *arena, const ModelRequest *request, ModelReply *reply,
                       Error *err) {
    (void)arena;
    const Replay *replay = model->state;
    int recorded = 0;
    for (const Recorded *r = replay->first; r; r = r->next) {
        if (r->stage != request->stage || ++recorded != request->stage_number) continue;
        *reply = r->reply;
        return true;
    }
    return error_stopped(err, "the recording %s has no %s reply left (it holds %d)", replay->file,
                         stage_name(request->stage), recorded);
}

const Provider provider_replay = {
    .name = "replay", .argument = "FILE", .open = replay_open, .ask = replay_ask};
