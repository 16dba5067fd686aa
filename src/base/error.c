/* error.c - the one way a failure travels: a kind (which exit code) and one sentence.
 *
 * An Error is filled where the failure is understood and handed up unchanged, or reworded by a
 * caller that knows more, so each setter formats into a copy first: the old message may be one of
 * the arguments.
 */
#include "base/base.h"

#include <stdio.h>
#include <string.h>

static bool error_set(Error *err, ErrorKind kind, const char *fmt, va_list args) {
    char message[sizeof err->message];
    int length = vsnprintf(message, sizeof message, fmt, args);
    if (length < 0) {
        snprintf(message, sizeof message, "an error whose message could not be formatted: %s", fmt);
    } else if ((size_t)length >= sizeof message) {
        size_t cut = sizeof message - sizeof "…";
        // Never end inside a UTF-8 sequence.
        while (cut > 0 && ((unsigned char)message[cut] & 0xC0) == 0x80) {
            cut--;
        }
        memcpy(message + cut, "…", sizeof "…");
    }
    err->kind = kind;
    memcpy(err->message, message, strlen(message) + 1);
    return false;
}

#define ERROR_SETTER(name, kind)                                                                   \
    bool (name)(Error *err, const char *fmt, ...) {                                                \
        va_list args;                                                                              \
        va_start(args, fmt);                                                                       \
        error_set(err, kind, fmt, args);                                                           \
        va_end(args);                                                                              \
        return false;                                                                              \
    }

ERROR_SETTER(error_input, ERROR_INPUT)
ERROR_SETTER(error_harness, ERROR_HARNESS)
ERROR_SETTER(error_stopped, ERROR_STOPPED)
ERROR_SETTER(error_interrupted, ERROR_INTERRUPTED)
