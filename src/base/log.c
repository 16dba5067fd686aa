/* log.c - lines for developers, in the file that $CUTEGEN_LOG names.
 *
 * The file is opened for each line: logging is off in normal use, and this way there is no state
 * to initialise, to share between threads or to inherit. One write with O_APPEND keeps lines of
 * several processes whole.
 */
#include "base/base.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void log_debug(const char *fmt, ...) {
    const char *path = getenv("CUTEGEN_LOG");
    if (!path || !*path) {
        return;
    }
    char line[2048];
    int head = snprintf(line, sizeof line, "%.6f %d ", clock_seconds(), (int)getpid());
    va_list args;
    va_start(args, fmt);
    int body = vsnprintf(line + head, sizeof line - (size_t)head - 1, fmt, args);
    va_end(args);
    if (body < 0) {
        return;
    }
    size_t length = strlen(line);
    line[length++] = '\n';
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (fd < 0) {
        return;
    }
    ssize_t written = write(fd, line, length); // a log that cannot be written stops nobody
    (void)written;
    close(fd);
}
