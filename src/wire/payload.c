/* payload.c - putting values into a payload and getting them out again.
 *
 * The reader is made for hostile input: every get checks what is left, and once one has failed
 * all later ones return zeros, so a message is decoded straight through and `failed` looked at
 * once. Counts that come from a peer are still to be checked against what the receiver can hold.
 */
#include "wire/wire.h"

#include <stdlib.h>
#include <string.h>

/* ---- writing ---------------------------------------------------------------------------- */

static uint8_t *writer_room(WireWriter *w, size_t more) {
    if (more > SIZE_MAX / 4 - w->bytes) {
        abort();
    }
    size_t need = w->bytes + more;
    if (need > w->capacity) {
        size_t capacity = w->capacity ? w->capacity : 256;
        while (capacity < need) {
            capacity *= 2;
        }
        uint8_t *data = realloc(w->data, capacity);
        if (!data) {
            abort(); // out of memory: no caller could do better
        }
        w->data = data;
        w->capacity = capacity;
    }
    uint8_t *room = w->data + w->bytes;
    w->bytes = need;
    return room;
}

static void put_little_endian(WireWriter *w, uint64_t value, int bytes) {
    uint8_t *room = writer_room(w, (size_t)bytes);
    for (int i = 0; i < bytes; i++) {
        room[i] = (uint8_t)(value >> (8 * i));
    }
}

void put_u8(WireWriter *w, uint8_t value) {
    put_little_endian(w, value, 1);
}
void put_u32(WireWriter *w, uint32_t value) {
    put_little_endian(w, value, 4);
}
void put_u64(WireWriter *w, uint64_t value) {
    put_little_endian(w, value, 8);
}
void put_i64(WireWriter *w, int64_t value) {
    put_little_endian(w, (uint64_t)value, 8);
}

void put_f64(WireWriter *w, double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    put_u64(w, bits);
}

void put_bytes(WireWriter *w, const void *data, size_t bytes) {
    if (bytes > UINT32_MAX) {
        abort(); // far beyond WIRE_MAX_PAYLOAD
    }
    put_u32(w, (uint32_t)bytes);
    if (bytes > 0) {
        memcpy(writer_room(w, bytes), data, bytes);
    }
}

void put_text(WireWriter *w, const char *text) {
    put_bytes(w, text, text ? strlen(text) : 0);
}

void wire_writer_free(WireWriter *w) {
    free(w->data);
    *w = (WireWriter){0};
}

/* ---- reading ---------------------------------------------------------------------------- */

/* The next `bytes` bytes, or NULL, and then the reader has failed for good. */
static const uint8_t *reader_take(WireReader *r, size_t bytes) {
    if (r->failed || r->at > r->bytes || bytes > r->bytes - r->at) {
        r->failed = true;
        return NULL;
    }
    const uint8_t *at = r->data + r->at;
    r->at += bytes;
    return at;
}

static uint64_t get_little_endian(WireReader *r, int bytes) {
    const uint8_t *at = reader_take(r, (size_t)bytes);
    uint64_t value = 0;
    for (int i = 0; at && i < bytes; i++) {
        value |= (uint64_t)at[i] << (8 * i);
    }
    return value;
}

uint8_t get_u8(WireReader *r) {
    return (uint8_t)get_little_endian(r, 1);
}
uint32_t get_u32(WireReader *r) {
    return (uint32_t)get_little_endian(r, 4);
}
uint64_t get_u64(WireReader *r) {
    return get_little_endian(r, 8);
}
int64_t get_i64(WireReader *r) {
    return (int64_t)get_little_endian(r, 8);
}

double get_f64(WireReader *r) {
    uint64_t bits = get_u64(r);
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

const uint8_t *get_bytes(WireReader *r, size_t *bytes) {
    *bytes = get_u32(r);
    const uint8_t *at = reader_take(r, *bytes);
    if (!at) {
        *bytes = 0;
    }
    return at;
}

void get_text(WireReader *r, char *out, size_t capacity) {
    size_t bytes;
    const uint8_t *text = get_bytes(r, &bytes);
    if (capacity == 0) {
        return;
    }
    if (bytes > capacity - 1) {
        bytes = capacity - 1;
        while (bytes > 0 && (text[bytes] & 0xC0) == 0x80) {
            bytes--; // not inside a UTF-8 sequence
        }
    }
    if (bytes > 0) {
        memcpy(out, text, bytes);
    }
    out[bytes] = '\0';
}
