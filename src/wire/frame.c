/* frame.c - frames over a pipe or socket, with a deadline.
 *
 * The peer may be hung, dead or hostile, so nothing here blocks longer than asked, allocates what
 * a bad header claims without limit, or believes a length before the header is checked. After
 * WIRE_TIMEOUT or WIRE_CORRUPT the stream is at an unknown place: the peer is replaced, not spoken
 * to again. (A timeout before the first byte of a frame leaves the stream intact.)
 */
#include "wire/wire.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { HEADER_BYTES = 12 };
static const uint8_t magic[4] = {'C', 'T', 'G', '1'};

static double now_seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* A deadline below zero is never. */
static double deadline_after(double seconds) {
    return seconds < 0 ? -1 : now_seconds() + seconds;
}

/* Waits until `fd` can be read or written; false at the deadline or if poll itself fails. */
static bool wait_for(int fd, short events, double deadline) {
    for (;;) {
        int timeout_ms = -1;
        if (deadline >= 0) {
            double left_ms = (deadline - now_seconds()) * 1000;
            timeout_ms = left_ms <= 0 ? 0 : left_ms > 1e9 ? 1000000000 : (int)left_ms + 1;
        }
        struct pollfd polled = {.fd = fd, .events = events};
        int ready = poll(&polled, 1, timeout_ms);
        if (ready > 0) {
            return true; // or an error or hang-up, which the read or write then tells
        }
        if (ready == 0 && (deadline < 0 || now_seconds() < deadline)) {
            continue;
        }
        if (ready == 0 || errno != EINTR) {
            return false;
        }
    }
}

/* ---- sending ---------------------------------------------------------------------------- */

static WireStatus send_all(int fd, const uint8_t *data, size_t bytes, double deadline) {
    while (bytes > 0) {
        ssize_t put = write(fd, data, bytes);
        if (put >= 0) {
            data += put;
            bytes -= (size_t)put;
        } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
            if (!wait_for(fd, POLLOUT, deadline)) {
                return WIRE_TIMEOUT;
            }
        } else if (errno != EINTR) {
            return WIRE_CLOSED;
        }
    }
    return WIRE_OK;
}

WireStatus frame_send(int fd, uint16_t type, const void *payload, size_t bytes, double seconds) {
    if (bytes > WIRE_MAX_PAYLOAD) {
        return WIRE_CORRUPT; // the receiver would refuse it
    }
    double deadline = deadline_after(seconds);
    uint32_t length = (uint32_t)bytes;
    const uint8_t header[HEADER_BYTES] = {
        magic[0],
        magic[1],
        magic[2],
        magic[3],
        WIRE_VERSION & 0xFF,
        WIRE_VERSION >> 8,
        (uint8_t)type,
        (uint8_t)(type >> 8),
        (uint8_t)length,
        (uint8_t)(length >> 8),
        (uint8_t)(length >> 16),
        (uint8_t)(length >> 24),
    };
    // A blocking write of more than a pipe holds would wait without a deadline.
    int flags = fcntl(fd, F_GETFL);
    if (flags < 0) {
        return WIRE_CLOSED;
    }
    bool was_blocking = !(flags & O_NONBLOCK);
    if (was_blocking && fcntl(fd, F_SETFL, flags | O_NONBLOCK) != 0) {
        return WIRE_CLOSED;
    }
    WireStatus status = send_all(fd, header, sizeof header, deadline);
    if (status == WIRE_OK) {
        status = send_all(fd, payload, bytes, deadline);
    }
    if (was_blocking) {
        fcntl(fd, F_SETFL, flags);
    }
    return status;
}

/* ---- receiving -------------------------------------------------------------------------- */

/* `*got` says how far it came, also on failure. */
static WireStatus receive_all(int fd, uint8_t *data, size_t bytes, double deadline, size_t *got) {
    *got = 0;
    while (*got < bytes) {
        if (!wait_for(fd, POLLIN, deadline)) {
            return WIRE_TIMEOUT;
        }
        ssize_t count = read(fd, data + *got, bytes - *got);
        if (count > 0) {
            *got += (size_t)count;
        } else if (count == 0 || (errno != EINTR && errno != EAGAIN && errno != EWOULDBLOCK)) {
            return WIRE_CLOSED;
        }
    }
    return WIRE_OK;
}

static bool frame_reserve(Frame *frame, size_t bytes) {
    if (bytes <= frame->capacity) {
        return true;
    }
    uint8_t *payload = realloc(frame->payload, bytes);
    if (!payload) {
        return false;
    }
    frame->payload = payload;
    frame->capacity = (uint32_t)bytes;
    return true;
}

WireStatus frame_receive(int fd, Frame *frame, double seconds) {
    double deadline = deadline_after(seconds);
    uint8_t header[HEADER_BYTES];
    size_t got;
    frame->type = 0;
    frame->bytes = 0;
    if (fd < 0) {
        return WIRE_CLOSED; // poll would wait for ever
    }
    WireStatus status = receive_all(fd, header, sizeof header, deadline, &got);
    if (status != WIRE_OK) {
        return status == WIRE_CLOSED && got > 0 ? WIRE_CORRUPT : status;
    }
    uint32_t version = header[4] | (uint32_t)header[5] << 8;
    uint16_t type = (uint16_t)(header[6] | header[7] << 8);
    uint32_t bytes = header[8] | (uint32_t)header[9] << 8 | (uint32_t)header[10] << 16 |
                     (uint32_t)header[11] << 24;
    if (memcmp(header, magic, sizeof magic) != 0 || version != WIRE_VERSION ||
        bytes > WIRE_MAX_PAYLOAD) {
        return WIRE_CORRUPT;
    }
    // Memory follows what has really arrived, not what the header promises.
    enum { STEP_BYTES = 1 << 20 };
    size_t arrived = 0;
    while (arrived < bytes) {
        size_t step = bytes - arrived < STEP_BYTES ? bytes - arrived : STEP_BYTES;
        if (!frame_reserve(frame, arrived + step)) {
            return WIRE_CORRUPT;
        }
        status = receive_all(fd, frame->payload + arrived, step, deadline, &got);
        if (status != WIRE_OK) {
            return status == WIRE_CLOSED ? WIRE_CORRUPT : status;
        }
        arrived += step;
    }
    frame->type = type;
    frame->bytes = bytes;
    return WIRE_OK;
}

void frame_free(Frame *frame) {
    free(frame->payload);
    *frame = (Frame){0};
}
