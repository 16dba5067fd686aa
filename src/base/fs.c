/* fs.c - paths, whole files, directories and locks.
 *
 * Everything is read and written whole. A file that others may read at any moment is replaced
 * atomically. What the machine does to us (disk full, file size limit, I/O error) is a harness
 * fault; what the user can mend (a missing file, a directory that is not writable) is an input
 * error; both name the path and say why. Programs that link this ignore SIGXFSZ, so that a file
 * size limit arrives here as EFBIG instead of ending the process.
 */
#include "base/base.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* "cannot WHAT PATH: why", with the kind that the errno stands for. */
static bool fs_error(Error *err, const char *what, const char *path, int error) {
    switch (error) {
    case ENOSPC:
    case EDQUOT:
        return error_harness(err, "cannot %s %s: %s; free some space and try again", what, path,
                             strerror(error));
    case EFBIG:
        return error_harness(err, "cannot %s %s: %s; raise the limit (ulimit -f)", what, path,
                             strerror(error));
    case EIO:
    case ENOMEM:
    case EMFILE:
    case ENFILE:
        return error_harness(err, "cannot %s %s: %s", what, path, strerror(error));
    default:
        return error_input(err, "cannot %s %s: %s", what, path, strerror(error));
    }
}

/* ---- paths ------------------------------------------------------------------------------ */

char *path_join(Arena *arena, const char *a, const char *b) {
    if (b[0] == '/' || a[0] == '\0') {
        return arena_string(arena, b);
    }
    return arena_printf(arena, text_ends_with(a, "/") ? "%s%s" : "%s/%s", a, b);
}

const char *path_base(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

char *path_directory(Arena *arena, const char *path) {
    const char *slash = strrchr(path, '/');
    if (!slash) {
        return arena_string(arena, ".");
    }
    return slash == path ? arena_string(arena, "/")
                         : arena_string_n(arena, path, (size_t)(slash - path));
}

char *path_absolute(Arena *arena, const char *path) {
    char resolved[PATH_MAX];
    if (realpath(path, resolved)) {
        return arena_string(arena, resolved);
    }
    // The last part does not exist yet: resolve what does.
    const char *base = path_base(path);
    if (*base && strcmp(base, ".") != 0 && strcmp(base, "..") != 0 &&
        realpath(path_directory(arena, path), resolved)) {
        return path_join(arena, resolved, base);
    }
    if (path[0] == '/' || !getcwd(resolved, sizeof resolved)) {
        return arena_string(arena, path);
    }
    return path_join(arena, resolved, path);
}

bool path_exists(const char *path) {
    struct stat status;
    return stat(path, &status) == 0;
}

bool path_is_directory(const char *path) {
    struct stat status;
    return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

/* ---- whole files ------------------------------------------------------------------------ */

static bool file_too_large(Error *err, const char *path, size_t max_bytes) {
    if (max_bytes >= 1 << 20) {
        return error_input(err, "%s is larger than %zu MiB, the most that is read", path,
                           max_bytes >> 20);
    }
    return error_input(err, "%s is larger than %zu bytes, the most that is read", path, max_bytes);
}

bool file_read(Arena *arena, const char *path, size_t max_bytes, char **text, size_t *bytes,
               Error *err) {
    // Without O_NONBLOCK the opening of a FIFO that nobody writes to would never end.
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) {
        return fs_error(err, "read", path, errno);
    }
    struct stat status;
    if (fstat(fd, &status) != 0 || fcntl(fd, F_SETFL, O_RDONLY) != 0) {
        int error = errno;
        close(fd);
        return fs_error(err, "read", path, error);
    }
    if (S_ISREG(status.st_mode) && (uintmax_t)status.st_size > max_bytes) {
        close(fd);
        return file_too_large(err, path, max_bytes);
    }
    // The size is a hint only: pipes and /proc files have none, and files grow.
    Buf buf = {0};
    bool ok = true;
    for (;;) {
        char chunk[16 * 1024];
        ssize_t got = read(fd, chunk, sizeof chunk);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            ok = fs_error(err, "read", path, errno);
        }
        if (got <= 0) {
            break;
        }
        buf_append(&buf, chunk, (size_t)got);
        if (buf.length > max_bytes) {
            ok = file_too_large(err, path, max_bytes);
            break;
        }
    }
    close(fd);
    if (!ok) {
        buf_free(&buf);
        return false;
    }
    if (bytes) {
        *bytes = buf.length;
    }
    *text = buf_take(arena, &buf);
    return true;
}

static int write_all(int fd, const void *data, size_t bytes) {
    const char *at = data;
    while (bytes > 0) {
        ssize_t put = write(fd, at, bytes);
        if (put < 0 && errno == EINTR) {
            continue;
        }
        if (put < 0) {
            return errno;
        }
        at += put;
        bytes -= (size_t)put;
    }
    return 0;
}

/* A rename is durable once its directory is. Some file systems refuse to sync a directory; the
 * data itself is safe by then, so that is not an error. */
static void directory_sync(const char *path) {
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0) {
        fsync(fd);
        close(fd);
    }
}

bool file_write_atomic(const char *path, const void *data, size_t bytes, Error *err) {
    uint32_t tag;
    if (!random_bytes(&tag, sizeof tag, err)) {
        return false;
    }
    char temporary[PATH_MAX];
    int directory_bytes = (int)(path_base(path) - path);
    int length = snprintf(temporary, sizeof temporary, "%.*s.%.100s.%08x.tmp", directory_bytes,
                          path, path_base(path), tag);
    if (length < 0 || (size_t)length >= sizeof temporary) {
        return fs_error(err, "write", path, ENAMETOOLONG);
    }
    // Not mkstemp: the file shall get the mode that the user's umask asks for.
    int fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0) {
        return fs_error(err, "write", path, errno);
    }
    int error = write_all(fd, data, bytes);
    if (!error && fsync(fd) != 0 && errno != EINVAL && errno != EROFS) {
        error = errno;
    }
    if (close(fd) != 0 && !error) {
        error = errno; // NFS and quotas report a full disk here
    }
    if (!error && rename(temporary, path) != 0) {
        error = errno;
    }
    if (error) {
        unlink(temporary);
        return fs_error(err, "write", path, error);
    }
    char directory[PATH_MAX];
    snprintf(directory, sizeof directory, "%.*s", directory_bytes ? directory_bytes : 1,
             directory_bytes ? path : ".");
    directory_sync(directory);
    return true;
}

/* ---- directories ------------------------------------------------------------------------ */

bool directory_make(const char *path, Error *err) {
    char partial[PATH_MAX];
    size_t length = strlen(path);
    if (length >= sizeof partial) {
        return fs_error(err, "create", path, ENAMETOOLONG);
    }
    if (length == 0) {
        return fs_error(err, "create", "''", ENOENT);
    }
    memcpy(partial, path, length + 1);
    for (size_t i = 1; i <= length; i++) {
        if (partial[i] != '/' && partial[i] != '\0') {
            continue;
        }
        char saved = partial[i];
        partial[i] = '\0';
        if (mkdir(partial, 0777) != 0) {
            int error = errno;
            // EEXIST is what we want; a read-only parent (EROFS, EACCES) is fine if it is there.
            if (!path_is_directory(partial)) {
                return fs_error(err, "create", path, error == EEXIST ? ENOTDIR : error);
            }
        }
        partial[i] = saved;
    }
    return true;
}

static int remove_entry(int parent, const char *name, bool may_be_directory);

/* Empties the open directory; takes over `fd`. Returns an errno, 0 if all went. */
static int directory_empty(int fd) {
    DIR *stream = fdopendir(fd);
    if (!stream) {
        int error = errno;
        close(fd);
        return error;
    }
    int first_error = 0;
    for (;;) {
        errno = 0;
        const struct dirent *entry = readdir(stream);
        if (!entry) {
            first_error = first_error ? first_error : errno;
            break;
        }
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) {
            continue;
        }
        bool may_be_directory = entry->d_type == DT_DIR || entry->d_type == DT_UNKNOWN;
        int error = remove_entry(dirfd(stream), entry->d_name, may_be_directory);
        first_error = first_error ? first_error : error;
    }
    closedir(stream);
    return first_error;
}

/* Removes by descriptor, and opens a directory only if it is one and no link to one: whatever an
 * untrusted program left in its scratch directory, nothing outside of it is touched. */
static int remove_entry(int parent, const char *name, bool may_be_directory) {
    if (!may_be_directory) {
        return unlinkat(parent, name, 0) == 0 || errno == ENOENT ? 0 : errno;
    }
    int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
    int fd = openat(parent, name, flags);
    if (fd < 0 && errno == EACCES && fchmodat(parent, name, 0700, 0) == 0) {
        fd = openat(parent, name, flags);
    }
    if (fd < 0) {
        if (errno == ENOENT) {
            return 0;
        }
        if (errno == ENOTDIR || errno == ELOOP) {
            return unlinkat(parent, name, 0) == 0 || errno == ENOENT ? 0 : errno;
        }
        return errno;
    }
    // A directory without write permission for us cannot be emptied; root does not need this.
    (void)!fchmod(fd, 0700);
    int error = directory_empty(fd);
    if (unlinkat(parent, name, AT_REMOVEDIR) != 0 && errno != ENOENT && !error) {
        error = errno;
    }
    return error;
}

bool directory_remove(const char *path, Error *err) {
    int error = remove_entry(AT_FDCWD, path, true);
    return error ? fs_error(err, "remove", path, error) : true;
}

char *directory_scratch(Arena *arena, const char *prefix, Error *err) {
    const char *base = getenv("TMPDIR");
    if (!base || !*base) {
        base = "/tmp";
    }
    char *path = arena_printf(arena, "%s/%s-XXXXXX", base, prefix);
    if (!mkdtemp(path)) {
        fs_error(err, "create a scratch directory below", base, errno);
        return NULL;
    }
    return path;
}

char *directory_cache(Arena *arena, Error *err) {
    const char *cache = getenv("XDG_CACHE_HOME");
    const char *home = getenv("HOME");
    char *path;
    if (cache && cache[0] == '/') { // relative ones are to be ignored, says the specification
        path = path_join(arena, cache, "cutegen");
    } else if (home && *home) {
        path = path_join(arena, home, ".cache/cutegen");
    } else {
        error_input(err, "no place for the build cache: set HOME or XDG_CACHE_HOME");
        return NULL;
    }
    return directory_make(path, err) ? path : NULL;
}

/* ---- locks ------------------------------------------------------------------------------ */

/* A lock file may be removed and made anew while we wait for the old one; then what we hold
 * protects nothing. */
static bool lock_is_current(int fd, const char *path) {
    struct stat held, named;
    return fstat(fd, &held) == 0 && stat(path, &named) == 0 && held.st_dev == named.st_dev &&
           held.st_ino == named.st_ino;
}

int file_lock(const char *path, bool wait, Cancel *cancel, Error *err) {
    const struct timespec pause = {.tv_nsec = 20 * 1000 * 1000};
    for (;;) {
        int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
        if (fd < 0) {
            fs_error(err, "lock", path, errno);
            return -1;
        }
        while (flock(fd, LOCK_EX | LOCK_NB) != 0) {
            int error = errno;
            if (error == EINTR) {
                continue;
            }
            if (error != EWOULDBLOCK || !wait || cancelled(cancel)) {
                close(fd);
                if (error != EWOULDBLOCK) {
                    fs_error(err, "lock", path, error);
                } else if (wait) {
                    error_interrupted(err, "interrupted while waiting for the lock %s", path);
                } else {
                    err->kind = ERROR_NONE;
                    err->message[0] = '\0';
                }
                return -1;
            }
            // flock cannot wait for a lock and for a cancellation at once.
            nanosleep(&pause, NULL);
        }
        if (lock_is_current(fd, path)) {
            return fd;
        }
        close(fd);
    }
}
