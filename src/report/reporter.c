/* reporter.c - a run as it happens.
 *
 * Finished steps are lines that stay. On a terminal one more line below them says what is being
 * waited for and for how long; it is taken away before anything else is printed. A thread of its
 * own keeps its clock going, because the thread that works is blocked in the work. Elsewhere
 * there is no such line and no such thread.
 */
#include "report/narrate.h"
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <time.h>

struct Reporter {
    Arena *arena;
    Narrator narrator;
    bool terminal;
    double started_at; // when the reporter began; live times count from here
    double waiting_since;
    char waiting[256]; // what for, "" for nothing
    bool status_shown;
    pthread_mutex_t lock; // everything above, and the output
    pthread_cond_t ending;
    pthread_t ticker;
    bool ticking, ended;
};

static void hide_status(Reporter *reporter) {
    if (reporter->status_shown) fputs("\r\x1b[K", reporter->narrator.canvas.out);
    reporter->status_shown = false;
}

static void show_status(Reporter *reporter) {
    Canvas *canvas = &reporter->narrator.canvas;
    if (reporter->terminal && reporter->waiting[0]) {
        hide_status(reporter);
        canvas_measure(canvas);
        Buf text = {0};
        double now = clock_seconds();
        buf_clock(&text, now - reporter->started_at);
        canvas_status(canvas, text.data, reporter->narrator.step, reporter->waiting,
                      now - reporter->waiting_since);
        buf_free(&text);
        reporter->status_shown = true;
    }
    fflush(canvas->out);
}

static void wait_for(Reporter *reporter, const char *what) {
    Arena *arena = arena_new();
    const char *clean = text_clean(arena, what, strcspn(what, "\n"));
    if (strcmp(reporter->waiting, clean) != 0) reporter->waiting_since = clock_seconds();
    snprintf(reporter->waiting, sizeof reporter->waiting, "%s", clean);
    arena_free(arena);
}

static void *tick(void *context) {
    Reporter *reporter = context;
    pthread_mutex_lock(&reporter->lock);
    while (!reporter->ended) {
        show_status(reporter);
        struct timespec until;
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_sec++;
        pthread_cond_timedwait(&reporter->ending, &reporter->lock, &until);
    }
    pthread_mutex_unlock(&reporter->lock);
    return NULL;
}

/* Signals are for the thread that works: it is the one that waits in system calls. */
static bool start_ticker(Reporter *reporter) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    bool started = pthread_create(&reporter->ticker, NULL, tick, reporter) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return started;
}

Reporter *reporter_new(const ReportOptions *options) {
    Arena *arena = arena_new();
    Reporter *reporter = arena_new_of(arena, Reporter);
    reporter->arena = arena;
    reporter->narrator = narrator_new(options);
    reporter->terminal = options->terminal && !options->quiet;
    reporter->started_at = clock_seconds();
    pthread_mutex_init(&reporter->lock, NULL);
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&reporter->ending, &attributes);
    pthread_condattr_destroy(&attributes);
    if (reporter->terminal) reporter->ticking = start_ticker(reporter);
    return reporter;
}

void reporter_event(void *context, const char *kind, const Json *body) {
    Reporter *reporter = context;
    pthread_mutex_lock(&reporter->lock);
    hide_status(reporter);
    Buf time = {0};
    buf_clock(&time, clock_seconds() - reporter->started_at);
    narrate(&reporter->narrator, time.data, kind, body);
    buf_free(&time);
    wait_for(reporter, narrate_waiting(kind));
    show_status(reporter);
    pthread_mutex_unlock(&reporter->lock);
}

void reporter_progress(void *context, const char *line) {
    Reporter *reporter = context;
    pthread_mutex_lock(&reporter->lock);
    wait_for(reporter, line);
    show_status(reporter);
    pthread_mutex_unlock(&reporter->lock);
}

void reporter_line(Reporter *reporter, const char *text) {
    if (reporter->narrator.quiet) return;
    pthread_mutex_lock(&reporter->lock);
    hide_status(reporter);
    canvas_text(&reporter->narrator.canvas, 0, 2, STYLE_PLAIN, text);
    show_status(reporter);
    pthread_mutex_unlock(&reporter->lock);
}

void reporter_verdict(Reporter *reporter, const Json *verdict, const char *source) {
    pthread_mutex_lock(&reporter->lock);
    hide_status(reporter);
    Buf time = {0};
    buf_clock(&time, clock_seconds() - reporter->started_at);
    narrate_verdict(&reporter->narrator, time.data, verdict, source);
    buf_free(&time);
    reporter->waiting[0] = 0;
    show_status(reporter);
    pthread_mutex_unlock(&reporter->lock);
}

void reporter_set_journal(Reporter *reporter, Journal *journal) {
    reporter->narrator.journal = journal;
}

void reporter_free(Reporter *reporter) {
    if (!reporter) return;
    pthread_mutex_lock(&reporter->lock);
    reporter->ended = true;
    hide_status(reporter);
    fflush(reporter->narrator.canvas.out);
    pthread_cond_signal(&reporter->ending);
    pthread_mutex_unlock(&reporter->lock);
    if (reporter->ticking) pthread_join(reporter->ticker, NULL);
    pthread_cond_destroy(&reporter->ending);
    pthread_mutex_destroy(&reporter->lock);
    arena_free(reporter->arena);
}
