/* time.c - durations come from the monotonic clock, dates from the wall clock in UTC. */
#include "base/base.h"

#include <time.h>

double clock_seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

char *clock_utc(Arena *arena) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    struct tm utc;
    gmtime_r(&now.tv_sec, &utc);
    return arena_printf(arena, "%04d-%02d-%02dT%02d:%02d:%02d.%03ldZ", utc.tm_year + 1900,
                        utc.tm_mon + 1, utc.tm_mday, utc.tm_hour, utc.tm_min, utc.tm_sec,
                        now.tv_nsec / 1000000);
}

char *clock_utc_compact(Arena *arena) {
    time_t now = time(NULL);
    struct tm utc;
    gmtime_r(&now, &utc);
    return arena_printf(arena, "%04d%02d%02d-%02d%02d%02d", utc.tm_year + 1900, utc.tm_mon + 1,
                        utc.tm_mday, utc.tm_hour, utc.tm_min, utc.tm_sec);
}
