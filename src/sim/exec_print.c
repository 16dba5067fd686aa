/* exec_print.c - printf in a kernel: vprintf(format, arguments) as the CUDA compiler calls it.
 *
 * Arguments lie in local memory, each at its natural alignment; floats have become doubles. Text
 * goes to standard output, where CUDA puts it. Every pointer comes from the kernel, so nothing is
 * read that does not belong to it.
 */
#include "sim/exec.h"
#include <stdio.h>
#include <string.h>

#define MAX_TEXT 4096

/* Bytes readable at a generic address, or NULL. */
static const char *readable(const Warp *w, uint32_t lane, uint64_t address, uint64_t *bytes) {
    const Run *run = w->worker->run;
    uint64_t offset = WINDOW_OFFSET(address);
    if ((address & WINDOW_MASK) == WINDOW_LOCAL && offset < run->local_stride) {
        *bytes = run->local_stride - offset;
        return (const char *)w->local + (size_t)lane * run->local_stride + offset;
    }
    if ((address & WINDOW_MASK) == WINDOW_SHARED && offset < run->shared_bytes) {
        *bytes = run->shared_bytes - offset;
        return (const char *)w->block->shared + offset;
    }
    const Allocation *a = memory_find(address);
    *bytes = a ? a->base + a->bytes - address : 0;
    return a ? (const char *)(uintptr_t)address : NULL;
}

bool exec_read_text(const Warp *w, uint32_t lane, uint64_t address, char *text, size_t size) {
    uint64_t bytes;
    const char *from = readable(w, lane, address, &bytes);
    size_t length = 0;
    while (from && length + 1 < size && length < bytes && from[length])
        length++;
    if (length) memcpy(text, from, length);
    text[length] = 0;
    return from != NULL;
}

typedef struct {
    const char *data;
    uint64_t bytes, at;
    int taken;
} Arguments;

static uint64_t take(Arguments *a, uint32_t bytes) {
    uint64_t value = 0;
    a->at = (a->at + bytes - 1) / bytes * bytes;
    if (a->data && a->at + bytes <= a->bytes) memcpy(&value, a->data + a->at, bytes);
    a->at += bytes;
    a->taken++;
    return value;
}

/* Copies one conversion, `%-8.3lld` say, into `spec` with its length modifiers left out; returns
 * where it ends. A `*` is replaced by the argument it stands for. */
static const char *read_conversion(const char *format, Arguments *arguments, char *spec,
                                   size_t size, bool *is_long) {
    size_t length = 0;
    *is_long = false;
    spec[length++] = *format++;
    while (*format && strchr("-+ #0123456789.*hlLzjt", *format) && length + 16 < size) {
        if (*format == '*')
            length += (size_t)snprintf(spec + length, size - length, "%d",
                                       (int)take(arguments, 4) % 1000);
        else if (strchr("hlLzjt", *format))
            *is_long |= *format != 'h';
        else
            spec[length++] = *format;
        format++;
    }
    spec[length] = 0;
    return format;
}

static size_t format_one(const Warp *w, uint32_t lane, char conversion, char *spec, bool is_long,
                         Arguments *arguments, char *out, size_t size) {
    char text[MAX_TEXT / 4];
    size_t length = strlen(spec);
    int written = 0;
    if (strchr("di", conversion)) {
        long long value = is_long ? (long long)take(arguments, 8) : (int)take(arguments, 4);
        memcpy(spec + length, "lld", sizeof "lld");
        written = snprintf(out, size, spec, value);
    } else if (strchr("uxXo", conversion)) {
        unsigned long long value = take(arguments, is_long ? 8 : 4);
        memcpy(spec + length, (char[]){'l', 'l', conversion, 0}, 4);
        written = snprintf(out, size, spec, value);
    } else if (strchr("fFeEgGaA", conversion)) {
        uint64_t bits = take(arguments, 8);
        double value;
        memcpy(&value, &bits, sizeof value);
        memcpy(spec + length, (char[]){conversion, 0}, 2);
        written = snprintf(out, size, spec, value);
    } else if (conversion == 'c') {
        memcpy(spec + length, "c", sizeof "c");
        written = snprintf(out, size, spec, (int)take(arguments, 4));
    } else if (conversion == 's') {
        exec_read_text(w, lane, take(arguments, 8), text, sizeof text);
        memcpy(spec + length, "s", sizeof "s");
        written = snprintf(out, size, spec, text);
    } else if (conversion == 'p') {
        written = snprintf(out, size, "0x%llx", (unsigned long long)take(arguments, 8));
    } else {
        written = snprintf(out, size, "%s%c", spec, conversion);
    }
    return written < 0 ? 0 : (size_t)written < size ? (size_t)written : size - 1;
}

int exec_print(const Warp *w, uint32_t lane, uint64_t format_address, uint64_t arguments_address) {
    char format[MAX_TEXT], out[MAX_TEXT], spec[64];
    Arguments arguments = {0};
    if (!exec_read_text(w, lane, format_address, format, sizeof format)) return -1;
    arguments.data = readable(w, lane, arguments_address, &arguments.bytes);
    size_t length = 0;
    for (const char *at = format; *at && length + 1 < sizeof out;) {
        if (*at != '%') {
            out[length++] = *at++;
            continue;
        }
        bool is_long;
        at = read_conversion(at, &arguments, spec, sizeof spec, &is_long);
        if (!*at) break;
        if (*at == '%')
            out[length++] = '%';
        else
            length += format_one(w, lane, *at, spec, is_long, &arguments, out + length,
                                 sizeof out - length);
        at++;
    }
    fwrite(out, 1, length, stdout);
    return arguments.taken;
}
