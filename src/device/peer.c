/* peer.c - a child process spoken to in frames, with a deadline for every answer.
 *
 * The peer may have run hostile code, so nothing it sends is trusted and nothing it does is
 * waited for without limit. Four ways to fail are told apart, because they mean different things
 * to the judge: it reports a fault of its own, it died, it is late, it talks nonsense. After the
 * last three it is dead, and what it last wrote to stderr is kept.
 */
#include "device/device.h"
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CANCEL_POLL_MS = 100 };     // how soon a Ctrl-C is noticed while a peer is busy
#define SEND_SECONDS          10.0 // requests are small: a peer that takes longer is stuck
#define REST_OF_FRAME_SECONDS 20.0 // once a frame has begun
#define MAX_STDERR_BYTES      (16 << 20)

bool peer_running(const Peer *peer) {
    return peer->child.pid > 0;
}

/* Keeps the end of its stderr, then kills and reaps it. */
static void bury(Peer *peer) {
    if (!peer_running(peer)) return;
    struct stat status;
    if (peer->child.stderr_file >= 0 && !fstat(peer->child.stderr_file, &status)) {
        off_t capacity = (off_t)sizeof peer->last_words - 1;
        off_t from = status.st_size > capacity ? status.st_size - capacity : 0;
        ssize_t got = pread(peer->child.stderr_file, peer->last_words, (size_t)capacity, from);
        peer->last_words[got > 0 ? got : 0] = 0;
    }
    Arena *arena = arena_new();
    ProcessResult result = {0};
    child_stop(arena, &peer->child, &result);
    peer->exit_code = result.exit_code;
    peer->signal = result.signal;
    arena_free(arena);
}

void peer_stop(Peer *peer) {
    bury(peer);
    frame_free(&peer->answer);
    peer->answer = (Frame){0};
}

/* It closed its end: give it a moment to end by itself, so that its own signal is seen rather
 * than our kill. */
static PeerStatus died(Peer *peer, Error *err) {
    child_ended(&peer->child, 2.0);
    bury(peer);
    if (peer->signal)
        error_harness(err, "the %s was killed by signal %d (%s)", peer->name, peer->signal,
                      strsignal(peer->signal));
    else
        error_harness(err, "the %s ended with exit code %d", peer->name, peer->exit_code);
    return PEER_DIED;
}

static PeerStatus timed_out(Peer *peer, double seconds, Error *err) {
    bury(peer);
    error_harness(err, "the %s gave no answer within %.3g s", peer->name, seconds);
    return PEER_TIMEOUT;
}

static PeerStatus garbled(Peer *peer, Error *err, const char *what) {
    bury(peer);
    error_harness(err, "the %s sent something that is not an answer: %s", peer->name, what);
    return PEER_GARBLED;
}

PeerStatus peer_send(Peer *peer, uint16_t type, const WireWriter *request, Error *err) {
    if (!peer_running(peer)) {
        error_harness(err, "the %s is not running", peer->name ? peer->name : "peer");
        return PEER_DIED;
    }
    switch (frame_send(peer->child.to_child, type, request ? request->data : NULL,
                       request ? request->bytes : 0, SEND_SECONDS)) {
    case WIRE_OK:
        return PEER_OK;
    case WIRE_CLOSED:
        return died(peer, err);
    case WIRE_TIMEOUT:
        return timed_out(peer, SEND_SECONDS, err);
    case WIRE_CORRUPT:
        break;
    }
    error_harness(err, "a request of %zu bytes to the %s is larger than a frame may be",
                  request ? request->bytes : 0, peer->name);
    bury(peer);
    return PEER_GARBLED;
}

/* A kernel that prints without end must not fill the disk. What it prints is appended, so that an
 * emptied file goes on at its beginning; the last words are all that is ever read. */
static void bound_stderr(const Peer *peer) {
    struct stat status;
    int file = peer->child.stderr_file;
    if (file < 0 || fstat(file, &status) || status.st_size <= MAX_STDERR_BYTES) return;
    if (ftruncate(file, 0)) log_debug("%s: emptying its stderr: %s", peer->name, strerror(errno));
}

/* Waits until it says something; a frame is then read in one go. */
static PeerStatus wait_readable(Peer *peer, double seconds, Error *err) {
    double deadline = clock_seconds() + seconds;
    for (;;) {
        if (cancelled(peer->cancel)) {
            bury(peer);
            error_interrupted(err, "interrupted while waiting for the %s", peer->name);
            return PEER_CANCELLED;
        }
        double left_ms = (deadline - clock_seconds()) * 1e3;
        if (left_ms <= 0) return timed_out(peer, seconds, err);
        struct pollfd fd = {.fd = peer->child.from_child, .events = POLLIN};
        int ready = poll(&fd, 1, left_ms < CANCEL_POLL_MS ? (int)left_ms + 1 : CANCEL_POLL_MS);
        bound_stderr(peer);
        if (ready > 0) return PEER_OK;
        if (ready < 0 && errno != EINTR) {
            error_harness(err, "waiting for the %s: %s", peer->name, strerror(errno));
            bury(peer);
            return PEER_DIED;
        }
    }
}

PeerStatus peer_receive(Peer *peer, uint16_t expected, double seconds, Error *err) {
    if (!peer_running(peer)) {
        error_harness(err, "the %s is not running", peer->name ? peer->name : "peer");
        return PEER_DIED;
    }
    PeerStatus status = wait_readable(peer, seconds, err);
    if (status != PEER_OK) return status;
    switch (frame_receive(peer->child.from_child, &peer->answer, REST_OF_FRAME_SECONDS)) {
    case WIRE_OK:
        break;
    case WIRE_CLOSED:
        return died(peer, err);
    case WIRE_TIMEOUT:
        return garbled(peer, err, "a frame began and did not end");
    case WIRE_CORRUPT:
        // A process that dies while it writes leaves half a frame: the death is what matters.
        if (child_ended(&peer->child, 0.2)) return died(peer, err);
        return garbled(peer, err, "a damaged frame");
    }
    if (peer->answer.type == expected) return PEER_OK;
    if (peer->answer.type == RUNNER_FAULT || peer->answer.type == ORACLE_FAULT) {
        char text[1500];
        WireReader reader = frame_reader(&peer->answer);
        get_text(&reader, text, sizeof text);
        if (reader.failed) return garbled(peer, err, "a fault without a text");
        error_harness(err, "%s: %s", peer->name, text);
        return PEER_FAULT;
    }
    char what[64];
    snprintf(what, sizeof what, "message %u where %u was due", peer->answer.type, expected);
    return garbled(peer, err, what);
}

PeerStatus peer_ask(Peer *peer, uint16_t type, const WireWriter *request, uint16_t expected,
                    double seconds, Error *err) {
    PeerStatus status = peer_send(peer, type, request, err);
    return status == PEER_OK ? peer_receive(peer, expected, seconds, err) : status;
}
