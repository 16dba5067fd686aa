/* manual.c - manual:DIR: somebody else answers, through files.
 *
 * DIR/0001.prompt.md is written whole (system prefix and prompt), then DIR/0001.reply.md is
 * waited for. A reply counts as soon as it bears that name, so it has to be written under another
 * name and renamed: one written in place may be taken half done. inotify wakes us; where it is not
 * to be had (network file systems do not report other machines' changes) a look every second finds
 * it.
 *
 * A run that is resumed asks with the same number and the same text. A reply that lies beside a
 * prompt of other text belongs to another run and is not taken for ours.
 */
#include "model/provider.h"
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

static const int kCancelMs = 200;     // how often the user's Ctrl-C is looked for
static const double kLookSeconds = 1; // how often for the file itself

typedef struct {
    const char *directory;
} Manual;

static bool manual_open(Arena *arena, Model *model, const char *argument, Error *err) {
    Manual *manual = arena_new_of(arena, Manual);
    manual->directory = arena_string(arena, argument);
    model->state = manual;
    return directory_make(manual->directory, err);
}

/* Leaves `path` holding `text`. Refuses when a reply to another prompt is there already. */
static bool put_prompt(Arena *arena, const char *path, const char *reply_path, const char *text,
                       Error *err) {
    if (path_exists(path)) {
        char *old;
        if (!file_read(arena, path, 64 << 20, &old, NULL, err)) return false;
        if (strcmp(old, text) == 0) return true;
        if (path_exists(reply_path))
            return error_input(err, "%s answers another prompt; give each run an empty directory",
                               reply_path);
    }
    return file_write_atomic(path, text, strlen(text), err);
}

/* Drains what inotify has to say; true when a file called `name` was completed. */
static bool reply_arrived(int watch, const char *name) {
    _Alignas(struct inotify_event) char buffer[4096];
    bool arrived = false;
    ssize_t got;
    while ((got = read(watch, buffer, sizeof buffer)) > 0) {
        for (char *at = buffer; at < buffer + got;) {
            const struct inotify_event *event = (const struct inotify_event *)at;
            if (event->len && strcmp(event->name, name) == 0) arrived = true;
            at += sizeof *event + event->len;
        }
    }
    return arrived;
}

static bool wait_for(const Manual *manual, Model *model, const char *path, Error *err) {
    double start = clock_seconds(), looked = start;
    int watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    if (watch >= 0 &&
        inotify_add_watch(watch, manual->directory, IN_MOVED_TO | IN_CLOSE_WRITE) < 0) {
        close(watch);
        watch = -1;
    }
    bool found = path_exists(path), good = true; // after the watch began: none slips through
    while (good && !found) {
        struct pollfd fd = {.fd = watch, .events = POLLIN};
        int ready = poll(&fd, 1, kCancelMs); // a negative descriptor merely sleeps
        double now = clock_seconds();
        if (ready > 0) found = reply_arrived(watch, path_base(path)) && path_exists(path);
        if (!found && now - looked >= kLookSeconds) {
            looked = now;
            found = path_exists(path);
        }
        if (!found && cancelled(model->options.cancel))
            good = error_interrupted(err, "interrupted while waiting for %s", path);
        else if (!found && model->options.timeout_s > 0 && now - start > model->options.timeout_s)
            good = error_stopped(err, "no reply in %s after %.0f s", path, now - start);
    }
    if (watch >= 0) close(watch);
    return good;
}

static bool manual_ask(Model *model, Arena *arena, const ModelRequest *request, ModelReply *reply,
                       Error *err) {
    const Manual *manual = model->state;
    double start = clock_seconds();
    const char *prompt_path =
        path_join(arena, manual->directory, arena_printf(arena, "%04d.prompt.md", request->number));
    const char *reply_path =
        path_join(arena, manual->directory, arena_printf(arena, "%04d.reply.md", request->number));
    if (!put_prompt(arena, prompt_path, reply_path, request_text(arena, request), err))
        return false;
    if (model->options.progress && !path_exists(reply_path))
        model->options.progress(model->options.progress_context,
                                arena_printf(arena,
                                             "waiting for %s, the answer to %s (write it under "
                                             "another name, then rename it)",
                                             reply_path, path_base(prompt_path)));
    if (!wait_for(manual, model, reply_path, err)) return false;
    char *text;
    size_t bytes;
    if (!file_read(arena, reply_path, MODEL_MAX_REPLY_BYTES, &text, &bytes, err)) {
        err->kind = ERROR_STOPPED;
        return false;
    }
    *reply = reply_of(text, bytes, clock_seconds() - start);
    return true;
}

const Provider provider_manual = {
    .name = "manual", .argument = "DIR", .open = manual_open, .ask = manual_ask};
