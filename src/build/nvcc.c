/* nvcc.c - compiles kernel.cu by running nvcc's steps, two at a time.
 *
 *     preprocess ── cudafe++ ───────────────┐
 *                                           ├── gcc -c ── g++ -shared
 *     preprocess ── cicc ── ptxas ── fatbin ┘
 *
 * nvcc runs these one after another. Nothing forces it to, but for one small file: cudafe++ makes
 * up the name that both passes give to what is local to this source. Written beforehand, it lets
 * them run beside each other.
 *
 * Both front ends parse the same source and mostly find the same errors. So that equal sources
 * give equal reports, the device pass speaks first: the host's errors count only when the device
 * front end has accepted the source.
 */
#include "build/nvcc.h"

#include "build/ptx_lines.h"
#include "build/toolchain.h"
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#define MAX_LOG_BYTES       ((size_t)4 << 20)
#define MAX_COMPILER_MEMORY ((size_t)16 << 30)
#define MAX_COMPILER_FILE   ((size_t)1 << 30)
#define NEEDED_DISK_BYTES   ((uint64_t)64 << 20)
#define MODULE_ID           "cutegen_kernel"

const char **nvcc_flags(Arena *arena, const Toolchain *toolchain) {
    const char *flags[] = {
        "-std=c++17",
        "-O3",
        arena_printf(arena, "-I%s", toolchain->cutlass_include),
        "--expt-relaxed-constexpr",
        "-lineinfo",
        "-cudart",
        "shared",
        "--no-compress",
        "-gencode",
        arena_printf(arena, "arch=%s,code=[%s,%s]", arch_virtual(arena, toolchain->arch),
                     arch_virtual(arena, toolchain->arch), toolchain->arch),
        "-shared",
        "-Xcompiler",
        "-fPIC",
        "-Xptxas",
        "-v",
        NULL,
    };
    return arena_copy(arena, flags, sizeof flags);
}

/* ---- one step ---------------------------------------------------------------------------- */

typedef enum {
    STEP_OK,
    STEP_FAILED,
    STEP_CRASHED,
    STEP_TIMEOUT,
    STEP_STOPPED,
    STEP_BROKEN
} StepEnd;

/* The state of one thread that runs steps in order. */
typedef struct {
    Arena *arena; // its own: arenas are not shared between threads
    const CompileJob *job;
    const Plan *plan;
    const Step *steps[4];
    int step_count;
    atomic_int stop; // set when nobody wants its result any more
    StepEnd end;
    Buf log;
    Error err; // with STEP_BROKEN
} Pass;

static bool is_crash(int signal) {
    return signal == SIGSEGV || signal == SIGABRT || signal == SIGBUS || signal == SIGILL ||
           signal == SIGFPE;
}

/* A compiler that fails for want of room removes what it wrote, so this finds some again. */
static bool disk_is_full(const char *directory) {
    struct statvfs room;
    return statvfs(directory, &room) == 0 &&
           (uint64_t)room.f_bavail * room.f_frsize < NEEDED_DISK_BYTES;
}

/* A driver that lives on when the compiler below it dies says so in words:
 *     gcc: fatal error: Killed signal terminated program cc1plus
 *     nvcc error   : 'cicc' died due to signal 9 (Kill signal)
 * Gives the whole line. */
static bool died_below(const char *log, const char **line, size_t *bytes) {
    static const char *const kSigns[] = {" signal terminated program ", " died due to signal "};
    for (const char *at = log; *at; at += *bytes + (at[*bytes] == '\n')) {
        *bytes = strcspn(at, "\n");
        *line = at;
        bool driver = text_starts_with(at, "gcc: ") || text_starts_with(at, "g++: ") ||
                      text_starts_with(at, "nvcc error ");
        for (size_t i = 0; driver && i < COUNT_OF(kSigns); i++)
            if (memmem(at, *bytes, kSigns[i], strlen(kSigns[i]))) return true;
    }
    return false;
}

static bool line_says(const char *line, size_t bytes, const char *words) {
    return memmem(line, bytes, words, strlen(words)) != NULL;
}

/* Tells apart a source the compiler refuses, a compiler that crashed on it, and a machine that
 * did not let the compiler work. */
static StepEnd judge_step(Pass *pass, const char *program, const ProcessResult *result) {
    Error *err = &pass->err;
    const char *line = NULL;
    size_t bytes = 0;
    if (result->timed_out || result->signal == SIGXCPU) return STEP_TIMEOUT;
    if (result->signal == 0 && result->exit_code == 0) return STEP_OK;
    bool below = died_below(result->err, &line, &bytes);
    if (below && line_says(line, bytes, "CPU time limit")) return STEP_TIMEOUT;
    if (is_crash(result->signal) ||
        (below &&
         (line_says(line, bytes, "Segmentation fault") || line_says(line, bytes, "signal 11") ||
          line_says(line, bytes, "Aborted") || line_says(line, bytes, "signal 6 "))))
        return STEP_CRASHED;
    if (result->signal == SIGXFSZ || (below && line_says(line, bytes, "File size limit"))) {
        error_harness(err,
                      "%s may not write files as large as it needs: raise the file size "
                      "limit (ulimit -f)",
                      program);
    } else if (disk_is_full(pass->job->scratch)) {
        error_harness(err,
                      "the disk is full: %s needs some 100 MB in %s; make room, or set TMPDIR "
                      "to another place",
                      program, path_directory(pass->arena, pass->job->scratch));
    } else if (result->signal != 0) {
        error_harness(err, "%s was killed by signal %d (%s); is the machine out of memory?",
                      program, result->signal, strsignal(result->signal));
    } else if (below) {
        error_harness(err, "the compiler was killed (%.*s); is the machine out of memory?",
                      (int)bytes, line);
    } else {
        return STEP_FAILED;
    }
    return STEP_BROKEN;
}

/* A source can make a compiler take all it is given: # 1 "/dev/zero" 1 has it quote a line without
 * end. Half of the memory leaves room for the other pass and for the rest of the machine. */
static size_t compiler_memory_bytes(void) {
    long pages = sysconf(_SC_PHYS_PAGES), page_bytes = sysconf(_SC_PAGESIZE);
    if (pages <= 0 || page_bytes <= 0) return MAX_COMPILER_MEMORY;
    size_t half = (size_t)pages / 2 * (size_t)page_bytes;
    return half < MAX_COMPILER_MEMORY ? half : MAX_COMPILER_MEMORY;
}

static StepEnd run_command(Pass *pass, const char *const *argv, const char *const *env,
                           const char *program, Cancel *cancel) {
    double left_s = pass->job->deadline - clock_seconds();
    if (left_s <= 0) return STEP_TIMEOUT;
    ProcessOptions options = {
        .argv = argv,
        .env = env,
        .cwd = pass->job->scratch,
        .timeout_s = left_s,
        .max_output_bytes = MAX_LOG_BYTES,
        .limits = {.cpu_s = pass->job->cpu_s,
                   .memory_bytes = compiler_memory_bytes(),
                   .file_bytes = MAX_COMPILER_FILE},
        .cancel = cancel,
    };
    ProcessResult result;
    if (!process_run(pass->arena, &options, &result, &pass->err))
        return atomic_load(&pass->stop) ? STEP_STOPPED : STEP_BROKEN;
    buf_append(&pass->log, result.out, result.out_bytes);
    if (result.exit_code != 0 && strcmp(program, "ptxas") == 0)
        buf_puts(&pass->log, ptx_explain_errors(pass->arena, result.err, pass->plan->ptx));
    else
        buf_append(&pass->log, result.err, result.err_bytes);
    log_debug("build: %s took %.3f s", program, result.seconds);
    StepEnd end = judge_step(pass, program, &result);
    if (end == STEP_CRASHED)
        buf_printf(&pass->log, "%s fatal : the compiler crashed on this source (%s)\n", program,
                   result.signal ? strsignal(result.signal) : "Segmentation fault");
    return end;
}

static StepEnd run_step(Pass *pass, const Step *step, Cancel *cancel) {
    return run_command(pass, step->argv, pass->plan->env, path_base(step->argv[0]), cancel);
}

/* ---- two passes beside each other --------------------------------------------------------- */

/* What the passes and the thread that waits for them share. */
typedef struct {
    pthread_mutex_t mutex;
    pthread_cond_t ended;
    Pass host, device;
    bool host_ended, device_ended;
} Race;

static void run_pass(Pass *pass) {
    pass->end = STEP_OK;
    for (int i = 0; i < pass->step_count && pass->end == STEP_OK; i++)
        pass->end = run_step(pass, pass->steps[i], &pass->stop);
}

static void announce_end(Race *race, bool *ended) {
    pthread_mutex_lock(&race->mutex);
    *ended = true;
    pthread_cond_signal(&race->ended);
    pthread_mutex_unlock(&race->mutex);
}

static void *host_thread(void *context) {
    Race *race = context;
    run_pass(&race->host);
    announce_end(race, &race->host_ended);
    return NULL;
}

static void *device_thread(void *context) {
    Race *race = context;
    run_pass(&race->device);
    announce_end(race, &race->device_ended);
    return NULL;
}

static void wait_a_moment(Race *race, int milliseconds) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += milliseconds * 1000000L;
    until.tv_sec += until.tv_nsec / 1000000000L;
    until.tv_nsec %= 1000000000L;
    pthread_cond_timedwait(&race->ended, &race->mutex, &until);
}

/* Waits until both have ended, stopping the one whose result no longer matters. */
static void referee(Race *race, const CompileJob *job, const Plan *plan) {
    pthread_mutex_lock(&race->mutex);
    while (!race->host_ended || !race->device_ended) {
        wait_a_moment(race, 50);
        if (cancelled(job->cancel)) {
            atomic_store(&race->host.stop, 1);
            atomic_store(&race->device.stop, 1);
        }
        if (race->device_ended && race->device.end != STEP_OK) atomic_store(&race->host.stop, 1);
        if (race->host_ended && race->host.end != STEP_OK && path_exists(plan->stub))
            atomic_store(&race->device.stop, 1);
    }
    pthread_mutex_unlock(&race->mutex);
}

static void pass_init(Pass *pass, const CompileJob *job, const Plan *plan) {
    *pass = (Pass){.arena = arena_new(), .job = job, .plan = plan};
    buf_puts(&pass->log, "");
}

static void pass_free(Pass *pass) {
    buf_free(&pass->log);
    arena_free(pass->arena);
}

static bool start_thread(pthread_t *thread, void *(*function)(void *), Race *race, Error *err) {
    int status = pthread_create(thread, NULL, function, race);
    return status == 0 || error_harness(err, "cannot start a thread: %s", strerror(status));
}

static bool run_race(Race *race, const CompileJob *job, const Plan *plan, Error *err) {
    pthread_t host, device;
    if (!start_thread(&device, device_thread, race, err)) return false;
    bool started = start_thread(&host, host_thread, race, err);
    if (!started) {
        atomic_store(&race->device.stop, 1);
        race->host_ended = true;
    }
    referee(race, job, plan);
    pthread_join(device, NULL);
    if (started) pthread_join(host, NULL);
    return started;
}

/* ---- the whole ---------------------------------------------------------------------------- */

static bool finish(Arena *arena, const CompileJob *job, Pass *pass, const char *object,
                   CompileOutcome *outcome, Error *err) {
    switch (pass->end) {
    case STEP_OK:
        outcome->status = COMPILE_OK;
        outcome->object = object;
        break;
    case STEP_FAILED:
        outcome->status = COMPILE_FAILED;
        break;
    case STEP_CRASHED:
        outcome->status = COMPILE_CRASHED;
        break;
    case STEP_TIMEOUT:
        outcome->status = COMPILE_TIMEOUT;
        break;
    case STEP_STOPPED:
    case STEP_BROKEN:
        if (cancelled(job->cancel)) return error_interrupted(err, "the build was interrupted");
        *err = pass->err;
        return false;
    }
    outcome->log = arena_string_n(arena, pass->log.data, pass->log.length);
    return true;
}

/* Set-up errors that nvcc reports as if the source were at fault. */
static bool check_setup(const CompileJob *job, const CompileOutcome *outcome, Error *err) {
    if (outcome->status != COMPILE_FAILED) return true;
    const char *fatal = strstr(outcome->log, "nvcc fatal   : ");
    if (fatal && (fatal == outcome->log || fatal[-1] == '\n')) {
        fatal += strlen("nvcc fatal   : ");
        return error_input(err, "%s cannot build for %s: %.*s", job->toolchain->nvcc,
                           job->toolchain->arch, (int)strcspn(fatal, "\n"), fatal);
    }
    if (strstr(outcome->log, "unsupported GNU version! gcc versions later than"))
        return error_input(err,
                           "%s is too new for %s: install an older gcc and put it first in "
                           "PATH",
                           job->toolchain->identity, job->toolchain->nvcc);
    return true;
}

static bool compile_plainly(Arena *arena, const CompileJob *job, CompileOutcome *outcome,
                            Error *err) {
    const char **flags = nvcc_flags(arena, job->toolchain);
    const char *argv[40] = {job->toolchain->nvcc};
    int count = 1;
    for (int i = 0; flags[i]; i++)
        argv[count++] = flags[i];
    const char *rest[] = {"--keep", "--keep-dir", job->scratch, "-o", "kernel.so", "kernel.cu"};
    for (size_t i = 0; i < COUNT_OF(rest); i++)
        argv[count++] = rest[i];
    Pass pass;
    pass_init(&pass, job, NULL);
    pass.end = run_command(&pass, argv, NULL, "nvcc", job->cancel);
    bool good =
        finish(arena, job, &pass, path_join(arena, job->scratch, "kernel.so"), outcome, err);
    pass_free(&pass);
    return good && check_setup(job, outcome, err);
}

static bool compile_beside(Arena *arena, const CompileJob *job, const Plan *plan,
                           CompileOutcome *outcome, Error *err) {
    if (!file_write_atomic(plan->module_id, MODULE_ID, strlen(MODULE_ID), err)) return false;
    Race race = {.mutex = PTHREAD_MUTEX_INITIALIZER, .ended = PTHREAD_COND_INITIALIZER};
    pass_init(&race.host, job, plan);
    race.host.steps[race.host.step_count++] = &plan->preprocess_host;
    race.host.steps[race.host.step_count++] = &plan->cudafe;
    pass_init(&race.device, job, plan);
    race.device.steps[race.device.step_count++] = &plan->preprocess_device;
    race.device.steps[race.device.step_count++] = &plan->cicc;
    race.device.steps[race.device.step_count++] = &plan->ptxas;
    race.device.steps[race.device.step_count++] = &plan->fatbinary;
    bool good = run_race(&race, job, plan, err);
    if (good) {
        bool device_speaks = race.device.end != STEP_OK && race.device.end != STEP_STOPPED;
        Pass *last = device_speaks ? &race.device : &race.host;
        if (last->end == STEP_OK) {
            buf_append(&last->log, race.device.log.data, race.device.log.length);
            last->end = run_step(last, &plan->compile, job->cancel);
            if (last->end == STEP_OK) last->end = run_step(last, &plan->link, job->cancel);
        }
        outcome->beside = true;
        good = finish(arena, job, last, path_join(arena, job->scratch, "kernel.so"), outcome, err);
    }
    pass_free(&race.host);
    pass_free(&race.device);
    pthread_mutex_destroy(&race.mutex);
    pthread_cond_destroy(&race.ended);
    return good && check_setup(job, outcome, err);
}

static bool make_plan(Arena *arena, const CompileJob *job, Plan *plan, bool *known, Error *err) {
    const char **flags = nvcc_flags(arena, job->toolchain);
    const char *argv[40] = {job->toolchain->nvcc, "--dryrun", "--keep", "--keep-dir", job->scratch};
    int count = 5;
    for (int i = 0; flags[i]; i++)
        argv[count++] = flags[i];
    const char *rest[] = {"-o", "kernel.so", "kernel.cu"};
    for (size_t i = 0; i < COUNT_OF(rest); i++)
        argv[count++] = rest[i];
    ProcessOptions options = {
        .argv = argv, .cwd = job->scratch, .timeout_s = 60, .cancel = job->cancel};
    ProcessResult result;
    if (!process_run(arena, &options, &result, err)) return false;
    const char *why = "nvcc --dryrun failed";
    *known = result.exit_code == 0 && plan_parse(arena, result.err, plan, &why);
    if (!*known) log_debug("build: plain nvcc, for the dry run is unfamiliar: %s", why);
    return true;
}

bool nvcc_compile(Arena *arena, const CompileJob *job, CompileOutcome *outcome, Error *err) {
    *outcome = (CompileOutcome){0};
    double start = clock_seconds();
    Plan plan;
    bool known = false;
    if (!job->plain && !make_plan(arena, job, &plan, &known, err)) return false;
    bool good = known ? compile_beside(arena, job, &plan, outcome, err)
                      : compile_plainly(arena, job, outcome, err);
    outcome->seconds = clock_seconds() - start;
    return good;
}
