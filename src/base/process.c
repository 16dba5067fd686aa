/* process.c - starting, watching and killing other programs.
 *
 * Everything that is started gets a process group of its own, so that a timeout also ends what
 * it started in turn (nvcc runs five programs); a scrubbed environment; no descriptors but the
 * three standard ones; no_new_privs; no core dumps; and resource limits. posix_spawn can do only
 * half of that, hence fork and exec. Between the two only async-signal-safe functions are called,
 * because another thread may hold any lock at the moment of the fork; all strings are therefore
 * prepared before it, and a failure travels back as two integers through a pipe that a successful
 * exec closes. So "nvcc not found" is told apart from an nvcc that exits with 127.
 *
 * A child dies with us by PR_SET_PDEATHSIG. Three limits of that: it follows the *thread* that
 * started the child, it reaches the direct child only (a grandchild that reads or writes our pipes
 * ends by their closing), and programs that change their credentials shed it, which no_new_privs
 * prevents. A process that leaves the group by setsid is out of reach of kill(-group).
 *
 * main() ignores SIGPIPE and SIGXFSZ, so that a dead reader and a file size limit are the errors
 * EPIPE and EFBIG. Children get default signal handling again.
 */
#include "base/base.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { OUTPUT_BYTES_DEFAULT = 4 << 20 };
static const double POLL_SECONDS = 0.05; // how late a cancellation may be noticed
static const double DRAIN_SECONDS = 1.0; // for pipes held open by what escaped the group
static const char PATH_DEFAULT[] = "/usr/local/bin:/usr/bin:/bin";

static void close_fd(int *fd) {
    if (*fd >= 0) {
        close(*fd);
        *fd = -1;
    }
}

/* ---- environment ------------------------------------------------------------------------ */

static bool environment_passes(const char *entry) {
    static const char *const names[] = {"PATH=", "HOME=", "LANG=", "TMPDIR=", "LD_LIBRARY_PATH="};
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        if (text_starts_with(entry, names[i])) {
            return true;
        }
    }
    if (!text_starts_with(entry, "CUDA_")) {
        return false;
    }
    static const char *const secrets[] = {"KEY", "TOKEN", "SECRET", "PASSW", "CREDENTIAL"};
    size_t name_bytes = strcspn(entry, "=");
    for (size_t i = 0; i < COUNT_OF(secrets); i++) {
        if (memmem(entry, name_bytes, secrets[i], strlen(secrets[i]))) {
            return false;
        }
    }
    return true;
}

static void environment_put(const char **list, size_t *count, const char *entry) {
    size_t name_bytes = strcspn(entry, "=");
    for (size_t i = 0; i < *count; i++) {
        if (strncmp(list[i], entry, name_bytes) == 0 && list[i][name_bytes] == '=') {
            list[i] = entry;
            return;
        }
    }
    list[(*count)++] = entry;
}

static const char **environment_build(Arena *arena, bool keep, const char *const *added) {
    size_t most = 2;
    for (char **entry = environ; entry && *entry; entry++) {
        most++;
    }
    for (const char *const *entry = added; entry && *entry; entry++) {
        most++;
    }
    const char **list = arena_array_of(arena, const char *, most);
    size_t count = 0;
    environment_put(list, &count, arena_printf(arena, "PATH=%s", PATH_DEFAULT));
    for (char **entry = environ; entry && *entry; entry++) {
        if (keep || environment_passes(*entry)) {
            environment_put(list, &count, *entry);
        }
    }
    for (const char *const *entry = added; entry && *entry; entry++) {
        environment_put(list, &count, *entry);
    }
    return list;
}

/* Looks the program up in the PATH that the child will have. */
static bool program_find(Arena *arena, const char *name, const char *const *env, const char **path,
                         Error *err) {
    if (strchr(name, '/')) {
        *path = name;
        return true;
    }
    const char *list = PATH_DEFAULT;
    for (; *env; env++) {
        if (text_starts_with(*env, "PATH=")) {
            list = *env + strlen("PATH=");
        }
    }
    int why = ENOENT;
    while (*name) {
        size_t length = strcspn(list, ":");
        const char *directory = length ? arena_string_n(arena, list, length) : ".";
        char *candidate = path_join(arena, directory, name);
        struct stat status;
        if (stat(candidate, &status) == 0 && S_ISREG(status.st_mode)) {
            if (access(candidate, X_OK) == 0) {
                *path = candidate;
                return true;
            }
            why = EACCES;
        }
        if (!list[length]) {
            break;
        }
        list += length + 1;
    }
    return error_input(err, "%s %s", *name ? name : "''",
                       why == EACCES ? "found in PATH, but not executable" : "not found in PATH");
}

/* ---- the child's side of the fork -------------------------------------------------------- */

typedef enum {
    STAGE_SETUP,
    STAGE_LIMITS,
    STAGE_DIRECTORY,
    STAGE_EXEC,
} Stage;

typedef struct {
    int stage, error;
} StartFailure;

typedef struct {
    const char *path;
    const char *const *argv, *const *env;
    const char *cwd;
    Limits limits;
    int in, out, err; // all above 2
    int status;       // where a StartFailure goes
    pid_t parent;
} Start;

static _Noreturn void start_failed(const Start *start, Stage stage) {
    StartFailure failure = {.stage = stage, .error = errno};
    ssize_t written = write(start->status, &failure, sizeof failure);
    (void)written;
    _exit(127);
}

static void limit_set(const Start *start, int resource, rlim_t soft, rlim_t hard) {
    struct rlimit now;
    if (getrlimit(resource, &now) != 0) {
        start_failed(start, STAGE_LIMITS);
    }
    // Only ever tighten: raising a hard limit needs privileges.
    if (now.rlim_max != RLIM_INFINITY && hard > now.rlim_max) {
        hard = now.rlim_max;
    }
    struct rlimit limit = {.rlim_cur = soft < hard ? soft : hard, .rlim_max = hard};
    if (setrlimit(resource, &limit) != 0) {
        start_failed(start, STAGE_LIMITS);
    }
}

static void limits_apply(const Start *start) {
    const Limits *limits = &start->limits;
    limit_set(start, RLIMIT_CORE, 0, 0);
    if (limits->cpu_s > 0) {
        rlim_t seconds = (rlim_t)limits->cpu_s + (limits->cpu_s > (double)(rlim_t)limits->cpu_s);
        limit_set(start, RLIMIT_CPU, seconds, seconds + 1); // SIGXCPU, then SIGKILL
    }
    if (limits->memory_bytes > 0) {
        limit_set(start, RLIMIT_AS, limits->memory_bytes, limits->memory_bytes);
    }
    if (limits->file_bytes > 0) {
        limit_set(start, RLIMIT_FSIZE, limits->file_bytes, limits->file_bytes);
    }
    if (limits->open_files > 0) {
        limit_set(start, RLIMIT_NOFILE, (rlim_t)limits->open_files, (rlim_t)limits->open_files);
    }
    if (limits->processes > 0) {
        limit_set(start, RLIMIT_NPROC, (rlim_t)limits->processes, (rlim_t)limits->processes);
    }
}

static void descriptors_close_on_exec(void) {
    if (syscall(SYS_close_range, 3U, ~0U, 4U /* CLOSE_RANGE_CLOEXEC */) == 0) {
        return;
    }
    // Linux before 5.11.
    struct rlimit limit;
    int end = 65536;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < (rlim_t)end) {
        end = (int)limit.rlim_cur;
    }
    for (int fd = 3; fd < end; fd++) {
        fcntl(fd, F_SETFD, FD_CLOEXEC);
    }
}

/* By the system call, since signal() refuses the two that glibc keeps to itself; our parent may
 * have been started with them ignored. Of SIGKILL and SIGSTOP the kernel refuses, which is fine. */
static void signals_reset(void) {
    static const uint64_t default_action[8]; // the kernel's struct, larger than any of its forms
    for (int number = 1; number <= 64; number++) {
        syscall(SYS_rt_sigaction, number, default_action, NULL, sizeof(uint64_t));
    }
}

static _Noreturn void start_in_child(const Start *start) {
    signals_reset();
    if (setpgid(0, 0) != 0 || prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 ||
        prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
        start_failed(start, STAGE_SETUP);
    }
    if (getppid() != start->parent) {
        _exit(127); // died before the death signal was set; nobody listens
    }
    if (dup2(start->in, 0) < 0 || dup2(start->out, 1) < 0 || dup2(start->err, 2) < 0) {
        start_failed(start, STAGE_SETUP);
    }
    descriptors_close_on_exec();
    if (start->cwd && chdir(start->cwd) != 0) {
        start_failed(start, STAGE_DIRECTORY);
    }
    limits_apply(start);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    execve(start->path, (char *const *)start->argv, (char *const *)start->env);
    start_failed(start, STAGE_EXEC);
}

/* ---- our side of it ---------------------------------------------------------------------- */

static bool start_error(const Start *start, StartFailure failure, Error *err) {
    const char *name = start->argv[0];
    const char *why = strerror(failure.error);
    switch ((Stage)failure.stage) {
    case STAGE_DIRECTORY:
        return error_input(err, "cannot run %s in %s: %s", name, start->cwd, why);
    case STAGE_EXEC:
        if (failure.error == ENOENT && !path_exists(start->path)) {
            return error_input(err, "%s not found", name);
        }
        if (failure.error == ENOENT) {
            return error_input(err, "cannot run %s: its interpreter or loader is missing", name);
        }
        if (failure.error == E2BIG) {
            return error_harness(err, "cannot run %s: %s", name, why);
        }
        return error_input(err, "cannot run %s: %s", name, why);
    case STAGE_LIMITS:
        return error_harness(err, "cannot limit the resources of %s: %s", name, why);
    case STAGE_SETUP:
        break;
    }
    return error_harness(err, "cannot set up a process for %s: %s", name, why);
}

/* Forks and waits until the exec has happened or failed. */
static bool start_process(const Start *plan, pid_t *pid, Error *err) {
    Start start = *plan;
    int status[2];
    if (pipe2(status, O_CLOEXEC) != 0) {
        return error_harness(err, "cannot run %s: %s", start.argv[0], strerror(errno));
    }
    start.status = fcntl(status[1], F_DUPFD_CLOEXEC, 3);
    close(status[1]);
    if (start.status < 0) {
        close(status[0]);
        return error_harness(err, "cannot run %s: %s", start.argv[0], strerror(errno));
    }
    start.parent = getpid();
    // No handler of ours may run in the child, where it would act on the parent's behalf.
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pid_t child = fork();
    if (child == 0) {
        start_in_child(&start);
    }
    int fork_error = errno;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    close(start.status);
    if (child < 0) {
        close(status[0]);
        return error_harness(err, "cannot run %s: %s", start.argv[0], strerror(fork_error));
    }
    setpgid(child, child); // whoever comes first, the group exists when we return

    StartFailure failure;
    ssize_t got;
    do {
        got = read(status[0], &failure, sizeof failure);
    } while (got < 0 && errno == EINTR);
    close(status[0]);
    if (got == 0) {
        *pid = child;
        return true;
    }
    while (waitpid(child, NULL, 0) < 0 && errno == EINTR) {
    }
    if (got != (ssize_t)sizeof failure) {
        failure = (StartFailure){.stage = STAGE_SETUP, .error = EIO};
    }
    return start_error(&start, failure, err);
}

static bool start_prepare(Arena *arena, const ProcessOptions *options, Start *start, Error *err) {
    const char **env = environment_build(arena, options->keep_environment, options->env);
    *start = (Start){
        .argv = options->argv,
        .env = env,
        .cwd = options->cwd,
        .limits = options->limits,
        .in = -1,
        .out = -1,
        .err = -1,
    };
    return program_find(arena, options->argv[0], env, &start->path, err);
}

static void start_close(Start *start) {
    close_fd(&start->in);
    close_fd(&start->out);
    close_fd(&start->err);
}

/* A pipe whose ends are above 2, even where our own standard descriptors are closed: the child
 * moves them onto 0, 1 and 2. */
static bool pipe_make(int *reader, int *writer) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) {
        return false;
    }
    for (int i = 0; i < 2; i++) {
        if (ends[i] <= 2) {
            int moved = fcntl(ends[i], F_DUPFD_CLOEXEC, 3);
            int error = errno;
            close(ends[i]);
            ends[i] = moved;
            errno = error;
        }
    }
    *reader = ends[0];
    *writer = ends[1];
    if (ends[0] < 0 || ends[1] < 0) {
        close_fd(reader);
        close_fd(writer);
        return false;
    }
    return true;
}

static int descriptor_above_2(int fd) {
    if (fd < 0 || fd > 2) {
        return fd;
    }
    int moved = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    int error = errno;
    close(fd);
    errno = error;
    return moved;
}

/* What the child reads: a file in memory, so that nobody has to feed it. */
static int input_open(const char *input, size_t bytes) {
    if (!input) {
        return descriptor_above_2(open("/dev/null", O_RDONLY | O_CLOEXEC));
    }
    int fd = descriptor_above_2(memfd_create("cutegen-input", MFD_CLOEXEC));
    size_t done = 0;
    while (fd >= 0 && done < bytes) {
        ssize_t put = write(fd, input + done, bytes - done);
        if (put < 0 && errno == EINTR) {
            continue;
        }
        if (put < 0) {
            int error = errno;
            close(fd);
            errno = error;
            return -1;
        }
        done += (size_t)put;
    }
    if (fd >= 0) {
        lseek(fd, 0, SEEK_SET);
    }
    return fd;
}

/* ---- waiting ----------------------------------------------------------------------------- */

/* Whether `pid` has ended. It is left unreaped, so its number and group cannot be reused. */
static bool process_ended(pid_t pid) {
    siginfo_t info = {0};
    int result;
    do {
        result = waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT);
    } while (result < 0 && errno == EINTR);
    return result < 0 || info.si_pid == pid;
}

static void process_reap(pid_t pid, ProcessResult *result) {
    int status = 0;
    pid_t got;
    do {
        got = waitpid(pid, &status, 0);
    } while (got < 0 && errno == EINTR);
    result->exit_code = got == pid && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    result->signal = got == pid && WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

/* A descriptor that polls readable when the process ends; -1 on Linux before 5.3, where the
 * callers look every POLL_SECONDS. */
static int process_descriptor(pid_t pid) {
    return (int)syscall(SYS_pidfd_open, pid, 0);
}

static int milliseconds(double seconds) {
    if (seconds <= 0) {
        return 0;
    }
    return seconds > 3600 ? 3600 * 1000 : (int)(seconds * 1000) + 1;
}

typedef struct {
    int fd; // -1 once at its end
    Buf kept;
    size_t most;
    bool truncated;
} Stream;

/* Reads once; output beyond the limit is dropped, but always drained, so that the child does not
 * block. */
static void stream_read(Stream *stream) {
    char chunk[32 * 1024];
    ssize_t got = read(stream->fd, chunk, sizeof chunk);
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) {
        return;
    }
    if (got <= 0) {
        close_fd(&stream->fd);
        return;
    }
    size_t room = stream->most - stream->kept.length;
    size_t keep = (size_t)got < room ? (size_t)got : room;
    buf_append(&stream->kept, chunk, keep);
    stream->truncated |= keep < (size_t)got;
}

bool process_run(Arena *arena, const ProcessOptions *options, ProcessResult *result, Error *err) {
    *result = (ProcessResult){.exit_code = -1};
    Start start;
    if (!start_prepare(arena, options, &start, err)) {
        return false;
    }
    size_t most = options->max_output_bytes ? options->max_output_bytes : OUTPUT_BYTES_DEFAULT;
    Stream streams[2] = {{.fd = -1, .most = most}, {.fd = -1, .most = most}};
    double started = clock_seconds();
    pid_t pid = 0;
    bool prepared = (start.in = input_open(options->input, options->input_bytes)) >= 0 &&
                    pipe_make(&streams[0].fd, &start.out) && pipe_make(&streams[1].fd, &start.err);
    bool ok = prepared ? start_process(&start, &pid, err)
                       : error_harness(err, "cannot run %s: %s", options->argv[0], strerror(errno));
    start_close(&start);
    if (!ok) {
        close_fd(&streams[0].fd);
        close_fd(&streams[1].fd);
        return false;
    }

    int ending = process_descriptor(pid);
    double deadline = options->timeout_s > 0 ? started + options->timeout_s : INFINITY;
    double drained_by = INFINITY; // set when the program has ended or was killed
    bool was_cancelled = false;
    for (;;) {
        double now = clock_seconds();
        if (drained_by == INFINITY) {
            bool ended = process_ended(pid);
            was_cancelled = !ended && cancelled(options->cancel);
            result->timed_out = !ended && !was_cancelled && now >= deadline;
            if (ended || was_cancelled || result->timed_out) {
                // Also when it ended by itself: what it left behind must not hold our pipes.
                result->seconds = now - started;
                kill(-pid, SIGKILL);
                drained_by = now + DRAIN_SECONDS;
            }
        }
        if (drained_by != INFINITY &&
            ((streams[0].fd < 0 && streams[1].fd < 0) || now >= drained_by)) {
            break;
        }
        double wait_s = (drained_by != INFINITY ? drained_by : deadline) - now;
        bool must_look = ending < 0 || (options->cancel && drained_by == INFINITY);
        if (must_look && wait_s > POLL_SECONDS) {
            wait_s = POLL_SECONDS;
        }
        struct pollfd polled[3] = {
            {.fd = streams[0].fd, .events = POLLIN},
            {.fd = streams[1].fd, .events = POLLIN},
            {.fd = drained_by == INFINITY ? ending : -1, .events = POLLIN},
        };
        if (poll(polled, 3, milliseconds(wait_s)) <= 0) {
            continue;
        }
        for (int i = 0; i < 2; i++) {
            if (polled[i].revents) {
                stream_read(&streams[i]);
            }
        }
    }
    close_fd(&ending);
    process_reap(pid, result);
    for (int i = 0; i < 2; i++) {
        close_fd(&streams[i].fd);
        result->output_truncated |= streams[i].truncated;
    }
    result->out_bytes = streams[0].kept.length;
    result->err_bytes = streams[1].kept.length;
    result->out = buf_take(arena, &streams[0].kept);
    result->err = buf_take(arena, &streams[1].kept);
    if (was_cancelled) {
        return error_interrupted(err, "interrupted while %s was running", options->argv[0]);
    }
    return true;
}

/* ---- children that live on --------------------------------------------------------------- */

/* Appended to by the child and whatever it starts, read by us at the end. A file, not a pipe:
 * nobody has to drain it, and RLIMIT_FSIZE bounds it. */
static int stderr_open(void) {
    const char *directory = getenv("TMPDIR");
    if (!directory || !*directory) {
        directory = "/tmp";
    }
    int fd = open(directory, O_TMPFILE | O_RDWR | O_APPEND | O_CLOEXEC, 0600);
    if (fd < 0) {
        char path[PATH_MAX];
        int length = snprintf(path, sizeof path, "%s/cutegen-stderr-XXXXXX", directory);
        if (length < 0 || (size_t)length >= sizeof path) {
            errno = ENAMETOOLONG;
            return -1;
        }
        fd = mkostemp(path, O_APPEND | O_CLOEXEC);
        if (fd >= 0) {
            unlink(path);
        }
    }
    return descriptor_above_2(fd);
}

bool child_start(const ProcessOptions *options, Child *child, Error *err) {
    *child = (Child){.to_child = -1, .from_child = -1, .stderr_file = -1};
    Arena *arena = arena_new();
    Start start;
    bool ok = start_prepare(arena, options, &start, err);
    if (ok) {
        bool prepared = pipe_make(&start.in, &child->to_child) &&
                        pipe_make(&child->from_child, &start.out) &&
                        (child->stderr_file = stderr_open()) >= 0 &&
                        (start.err = fcntl(child->stderr_file, F_DUPFD_CLOEXEC, 3)) >= 0;
        ok = prepared ? start_process(&start, &child->pid, err)
                      : error_harness(err, "cannot run %s: %s", options->argv[0], strerror(errno));
        start_close(&start);
    }
    if (!ok) {
        close_fd(&child->to_child);
        close_fd(&child->from_child);
        close_fd(&child->stderr_file);
    }
    arena_free(arena);
    return ok;
}

static void stderr_collect(Arena *arena, int fd, ProcessResult *result) {
    struct stat status;
    size_t bytes = fstat(fd, &status) == 0 ? (size_t)status.st_size : 0;
    if (bytes > OUTPUT_BYTES_DEFAULT) {
        bytes = OUTPUT_BYTES_DEFAULT;
        result->output_truncated = true;
    }
    result->err = arena_alloc(arena, bytes + 1);
    while (result->err_bytes < bytes) {
        ssize_t got = pread(fd, result->err + result->err_bytes, bytes - result->err_bytes,
                            (off_t)result->err_bytes);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            break;
        }
        result->err_bytes += (size_t)got;
    }
}

void child_stop(Arena *arena, Child *child, ProcessResult *result) {
    ProcessResult ending = {.exit_code = -1};
    if (child->pid > 0) {
        kill(-child->pid, SIGKILL);
        process_reap(child->pid, &ending);
        if (result) {
            stderr_collect(arena, child->stderr_file, &ending);
        }
        close_fd(&child->to_child);
        close_fd(&child->from_child);
        close_fd(&child->stderr_file);
        child->pid = 0;
    }
    if (result) {
        *result = ending;
        result->out = arena_string(arena, "");
        if (!result->err) {
            result->err = arena_string(arena, "");
        }
    }
}

bool child_ended(Child *child, double seconds) {
    if (child->pid <= 0) {
        return true;
    }
    double deadline = clock_seconds() + seconds;
    int ending = process_descriptor(child->pid);
    bool ended;
    while (!(ended = process_ended(child->pid))) {
        double left = deadline - clock_seconds();
        if (left <= 0) {
            break;
        }
        if (ending < 0 && left > POLL_SECONDS) {
            left = POLL_SECONDS;
        }
        struct pollfd polled = {.fd = ending, .events = POLLIN};
        poll(&polled, 1, milliseconds(left));
    }
    close_fd(&ending);
    return ended;
}
