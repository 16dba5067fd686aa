/* start.c - starts runners and oracles in a place, and the file through which tensors pass.
 *
 * `via CMD` puts CMD's words in front of ours; no shell is involved, so that a path with a blank
 * stays one word. The other place must see the same files (shared file system).
 */
#include "device/device.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <unistd.h>

enum { MAX_WORDS = 64, OPEN_FILES = 128 };
#define HELLO_SECONDS  30.0          // a GPU context takes seconds on a busy machine
#define MAX_FILE_BYTES (64ull << 30) // the exchange file: all tensors of a task

/* Splits `text` as a shell would split a plain word list: blanks, '…', "…", backslash; no
 * expansion of any kind. */
static bool split_words(Arena *arena, const char *text, const char **words, int *count,
                        Error *err) {
    Buf word = {0};
    bool in_word = false;
    char quote = 0;
    for (const char *p = text; *p; p++) {
        if (quote ? *p == quote : (*p == '\'' || *p == '"')) {
            quote = quote ? 0 : *p;
            in_word = true;
        } else if (*p == '\\' && quote != '\'' && p[1]) {
            buf_append(&word, ++p, 1);
            in_word = true;
        } else if (!quote && strchr(" \t\r\n", *p)) {
            if (in_word) {
                if (*count == MAX_WORDS) goto too_many;
                words[(*count)++] = buf_take(arena, &word);
            }
            in_word = false;
        } else {
            buf_append(&word, p, 1);
            in_word = true;
        }
    }
    if (quote) {
        buf_free(&word);
        return error_input(err, "device: unmatched %c in 'via %s'", quote, text);
    }
    if (in_word) {
        if (*count == MAX_WORDS) goto too_many;
        words[(*count)++] = buf_take(arena, &word);
    }
    buf_free(&word);
    return true;
too_many:
    buf_free(&word);
    return error_input(err, "device: more than %d words in 'via %s'", MAX_WORDS, text);
}

/* A simulated kernel shares the machine's memory with everybody: host code that allocates without
 * end shall fail before others do. CUDA maps terabytes, and so does AddressSanitizer. */
static Limits runner_limits(const DeviceSpec *spec) {
    Limits limits = {.file_bytes = MAX_FILE_BYTES, .open_files = OPEN_FILES};
#ifndef __SANITIZE_ADDRESS__
    struct sysinfo machine;
    if (spec->simulated && sysinfo(&machine) == 0)
        limits.memory_bytes = (size_t)machine.totalram * machine.mem_unit;
#else
    (void)spec;
#endif
    return limits;
}

/* Starts argv, with the words of spec->via before it, and waits for its greeting. */
static bool start(Arena *arena, const DeviceSpec *spec, const char *const *argv, Limits limits,
                  Cancel *cancel, const char *name, uint16_t hello, Peer *peer, Error *err) {
    const char *words[MAX_WORDS + 16] = {0};
    int count = 0;
    if (spec->via && !split_words(arena, spec->via, words, &count, err)) return false;
    for (int i = 0; argv[i]; i++)
        words[count++] = argv[i];

    *peer = (Peer){.name = name, .cancel = cancel};
    peer->child = (Child){.to_child = -1, .from_child = -1, .stderr_file = -1};
    ProcessOptions options = {.argv = words, .limits = limits, .cancel = cancel};
    if (!child_start(&options, &peer->child, err)) return false;
    Error why = {0};
    switch (peer_receive(peer, hello, HELLO_SECONDS, &why)) {
    case PEER_OK:
        return true;
    case PEER_CANCELLED:
        *err = why;
        break;
    case PEER_FAULT: // it says what is missing: a library, a GPU
        error_input(err, "device '%s': %s", spec->text, why.message);
        break;
    default:
        error_harness(err, "cannot start the %s on device '%s': %s%s%s", name, spec->text,
                      why.message, *peer->last_words ? "; it said: " : "", peer->last_words);
    }
    peer_stop(peer);
    return false;
}

bool runner_start(Arena *arena, const Installation *installation, const DeviceSpec *spec,
                  const char *arch, const char *exchange, Cancel *cancel, Peer *runner,
                  RunnerInfo *info, Error *err) {
    const char *library = path_join(arena, installation->sim_library_dir, "libcudart.so.13");
    const char *device = spec->simulated ? "sim" : arena_printf(arena, "cuda:%d", spec->index);
    const char *argv[] = {installation->runner,
                          "--device",
                          device,
                          "--exchange",
                          exchange,
                          spec->simulated ? "--cudart" : NULL,
                          library,
                          "--arch",
                          arch,
                          NULL};
    if (spec->simulated && !spec->via && !path_exists(library))
        return error_input(err, "the simulator is not at %s: run `make` again", library);
    if (!start(arena, spec, argv, runner_limits(spec), cancel, "runner", RUNNER_HELLO, runner, err))
        return false;

    WireReader hello = frame_reader(&runner->answer);
    info->simulated = get_u8(&hello);
    get_text(&hello, info->device_name, sizeof info->device_name);
    get_text(&hello, info->arch, sizeof info->arch);
    info->cudart_version = get_u32(&hello);
    info->multiprocessors = get_u32(&hello);
    info->memory_bytes = get_u64(&hello);
    get_text(&hello, info->isolation, sizeof info->isolation);
    if (hello.failed || info->simulated != spec->simulated) {
        peer_stop(runner);
        return error_harness(err, "the runner %s is of another version than cutegen",
                             installation->runner);
    }
    return true;
}

bool oracle_start(Arena *arena, const Installation *installation, const DeviceSpec *spec,
                  const char *exchange, Cancel *cancel, Peer *oracle, Error *err) {
    const char *argv[] = {installation->oracle, "--exchange", exchange, NULL};
    const Limits limits = {.file_bytes = MAX_FILE_BYTES, .open_files = OPEN_FILES};
    return start(arena, spec, argv, limits, cancel, "oracle", ORACLE_HELLO, oracle, err);
}

/* ---- the exchange file -------------------------------------------------------------------- */

#define EXCHANGE_PREFIX "cutegen-exchange-"

typedef struct {
    const char *path;
    int fd; // locked for as long as we live
} Exchange;

static void exchange_remove(void *what) {
    Exchange *exchange = what;
    unlink(exchange->path);
    close(exchange->fd);
}

/* Removes what killed processes left behind: files that nobody has locked. Those of other users
 * cannot be opened. */
static void exchange_sweep(Arena *arena, const char *place) {
    DIR *directory = opendir(place);
    if (!directory) return;
    for (struct dirent *entry; (entry = readdir(directory));) {
        if (!text_starts_with(entry->d_name, EXCHANGE_PREFIX)) continue;
        const char *path = path_join(arena, place, entry->d_name);
        int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
        if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0) unlink(path);
        if (fd >= 0) close(fd);
    }
    closedir(directory);
}

/* A new file at `template` with our lock on it; -1 with errno. A sweeper that comes between the
 * two steps takes it for abandoned and removes it: then once more. */
static int exchange_open(Arena *arena, const char *template, char **path) {
    for (;;) {
        *path = arena_string(arena, template);
        int fd = mkostemp(*path, O_CLOEXEC); // mode 0600
        if (fd < 0) return -1;
        struct stat status;
        while (flock(fd, LOCK_EX) != 0 && errno == EINTR) {
        }
        if (fstat(fd, &status) == 0 && status.st_nlink > 0) return fd;
        close(fd);
    }
}

char *exchange_create(Arena *arena, Error *err) {
    const char *temporary = getenv("TMPDIR");
    const char *places[] = {"/dev/shm", temporary && *temporary ? temporary : "/tmp"};
    char *path = NULL;
    for (size_t i = 0; i < COUNT_OF(places); i++) {
        exchange_sweep(arena, places[i]);
        int fd = exchange_open(arena, path_join(arena, places[i], EXCHANGE_PREFIX "XXXXXX"), &path);
        if (fd < 0) continue;
        Exchange *exchange = arena_new_of(arena, Exchange);
        *exchange = (Exchange){.path = path, .fd = fd};
        arena_defer(arena, exchange_remove, exchange);
        return path;
    }
    error_input(err, "cannot create %s: %s; set TMPDIR to a directory that can be written", path,
                strerror(errno));
    return NULL;
}
