/* test_process.c - real programs that succeed, fail, hang, flood, fork and escape. */
#include "base/base.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

typedef struct {
    Arena *arena;
    Error err;
    ProcessResult result;
} World;

static int set_up(void **state) {
    World *world = calloc(1, sizeof *world);
    assert_non_null(world);
    world->arena = arena_new();
    *state = world;
    return 0;
}

static int tear_down(void **state) {
    World *world = *state;
    arena_free(world->arena);
    free(world);
    return 0;
}

/* Runs a line of shell; `options` may be NULL. */
static bool shell(World *world, const char *line, const ProcessOptions *options) {
    const char *const argv[] = {"sh", "-c", line, NULL};
    ProcessOptions all = options ? *options : (ProcessOptions){0};
    all.argv = argv;
    return process_run(world->arena, &all, &world->result, &world->err);
}

static bool process_lives(pid_t pid) {
    return kill(pid, 0) == 0 || errno != ESRCH;
}

/* A killed orphan stays for a moment, or as a zombie until its reaper comes. */
static bool process_goes(pid_t pid) {
    for (int i = 0; i < 100; i++) {
        if (!process_lives(pid)) {
            return true;
        }
        char path[64], text[512] = {0};
        snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
        int fd = open(path, O_RDONLY);
        ssize_t got = fd >= 0 ? read(fd, text, sizeof text - 1) : 0;
        if (fd >= 0) {
            close(fd);
        }
        if (got <= 0 || strstr(text, ") Z ")) {
            return true;
        }
        usleep(20 * 1000);
    }
    return false;
}

static void test_both_streams_and_the_exit_code_come_back(void **state) {
    World *world = *state;
    assert_true(shell(world, "echo out; echo err >&2; exit 7", NULL));
    assert_string_equal(world->result.out, "out\n");
    assert_string_equal(world->result.err, "err\n");
    assert_int_equal(world->result.out_bytes, 4);
    assert_int_equal(world->result.exit_code, 7);
    assert_int_equal(world->result.signal, 0);
    assert_false(world->result.timed_out || world->result.output_truncated);
    assert_true(world->result.seconds > 0 && world->result.seconds < 10);
}

static void test_input_reaches_the_program_and_is_empty_by_default(void **state) {
    World *world = *state;
    enum { BYTES = 3 << 20 };
    char *input = arena_alloc(world->arena, BYTES);
    memset(input, 'i', BYTES);
    ProcessOptions options = {.input = input, .input_bytes = BYTES};
    assert_true(shell(world, "wc -c", &options));
    assert_int_equal(atoi(world->result.out), BYTES);
    assert_true(shell(world, "exit 0", &options)); // does not read it: no matter
    assert_int_equal(world->result.exit_code, 0);
    assert_true(shell(world, "wc -c", NULL));
    assert_int_equal(atoi(world->result.out), 0);
}

static void test_a_program_that_is_not_there_is_named(void **state) {
    World *world = *state;
    const char *const argv[] = {"no-such-nvcc", NULL};
    ProcessOptions options = {.argv = argv};
    assert_false(process_run(world->arena, &options, &world->result, &world->err));
    assert_int_equal(world->err.kind, ERROR_INPUT);
    assert_string_equal(world->err.message, "no-such-nvcc not found in PATH");

    const char *const absolute[] = {"/no/such/nvcc", NULL};
    options.argv = absolute;
    assert_false(process_run(world->arena, &options, &world->result, &world->err));
    assert_string_equal(world->err.message, "/no/such/nvcc not found");

    const char *const empty[] = {"", NULL};
    options.argv = empty;
    assert_false(process_run(world->arena, &options, &world->result, &world->err));
    assert_string_equal(world->err.message, "'' not found in PATH");

    // That a shell exits with 127 is another thing.
    assert_true(shell(world, "exit 127", NULL));
    assert_int_equal(world->result.exit_code, 127);
}

static void test_a_file_that_cannot_be_executed_says_why(void **state) {
    World *world = *state;
    char *directory = directory_scratch(world->arena, "test-process", &world->err);
    assert_non_null(directory);
    char *path = path_join(world->arena, directory, "script");
    static const char text[] = "#!/no/such/interpreter\n";
    assert_true(file_write_atomic(path, text, strlen(text), &world->err));
    const char *const argv[] = {path, NULL};
    ProcessOptions options = {.argv = argv};
    assert_false(process_run(world->arena, &options, &world->result, &world->err));
    assert_non_null(strstr(world->err.message, "Permission denied"));
    assert_int_equal(chmod(path, 0755), 0);
    assert_false(process_run(world->arena, &options, &world->result, &world->err));
    assert_non_null(strstr(world->err.message, "interpreter or loader is missing"));
    options.cwd = "/no/such/directory";
    assert_false(process_run(world->arena, &options, &world->result, &world->err));
    assert_non_null(strstr(world->err.message, "in /no/such/directory"));
    assert_true(directory_remove(directory, &world->err));
}

static void test_the_environment_is_scrubbed(void **state) {
    World *world = *state;
    setenv("OPENAI_API_KEY", "secret", 1);
    setenv("CUDA_TOKEN", "secret", 1);
    setenv("CUDA_HOME", "/opt/cuda", 1);
    const char *const added[] = {"ADDED=yes", "LANG=C", NULL};
    ProcessOptions options = {.env = added};
    assert_true(shell(world, "env", &options));
    assert_null(strstr(world->result.out, "secret"));
    assert_non_null(strstr(world->result.out, "CUDA_HOME=/opt/cuda\n"));
    assert_non_null(strstr(world->result.out, "ADDED=yes\n"));
    assert_non_null(strstr(world->result.out, "LANG=C\n"));
    assert_non_null(strstr(world->result.out, "PATH="));
    options.keep_environment = true;
    assert_true(shell(world, "env", &options));
    assert_non_null(strstr(world->result.out, "OPENAI_API_KEY=secret\n"));
    assert_non_null(strstr(world->result.out, "ADDED=yes\n"));
    unsetenv("OPENAI_API_KEY");
    unsetenv("CUDA_TOKEN");
    unsetenv("CUDA_HOME");
}

static void test_no_descriptor_of_ours_is_inherited(void **state) {
    World *world = *state;
    int leaky = open("/dev/null", O_RDONLY); // without O_CLOEXEC, as a library might
    assert_true(leaky > 2);
    assert_true(shell(world, "ls /proc/self/fd | tr '\\n' ' '", NULL));
    // ls itself has its directory open as the first free one.
    assert_string_equal(world->result.out, "0 1 2 3 ");
    close(leaky);
}

static void test_it_works_where_our_standard_descriptors_are_closed(void **state) {
    (void)state;
    pid_t pid = fork();
    if (pid == 0) {
        World inner = {.arena = arena_new()};
        close(0);
        close(1);
        close(2);
        bool ok = shell(&inner, "cat; echo out; echo err >&2", NULL) &&
                  strcmp(inner.result.out, "out\n") == 0 && strcmp(inner.result.err, "err\n") == 0;
        Child child;
        const char *const argv[] = {"cat", NULL};
        char echo[2] = {0};
        ok = ok && child_start(&(ProcessOptions){.argv = argv}, &child, &inner.err) &&
             write(child.to_child, "x", 1) == 1 && read(child.from_child, echo, 1) == 1 &&
             echo[0] == 'x';
        child_stop(inner.arena, &child, NULL);
        arena_free(inner.arena);
        _exit(ok ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

static void test_signals_are_reset_and_privileges_cannot_be_gained(void **state) {
    World *world = *state;
    assert_true(shell(world, "grep -E '^(SigIgn|SigBlk|NoNewPrivs)' /proc/self/status", NULL));
    assert_string_equal(world->result.out, "SigBlk:\t0000000000000000\n"
                                           "SigIgn:\t0000000000000000\nNoNewPrivs:\t1\n");
}

static void test_a_signal_that_ends_it_is_told(void **state) {
    World *world = *state;
    assert_true(shell(world, "kill -SEGV $$", NULL));
    assert_int_equal(world->result.exit_code, -1);
    assert_int_equal(world->result.signal, SIGSEGV);
}

static void test_a_timeout_kills_the_whole_group(void **state) {
    World *world = *state;
    ProcessOptions options = {.timeout_s = 0.3};
    double begin = clock_seconds();
    assert_true(shell(world, "sleep 60 & echo $!; wait", &options));
    assert_true(world->result.timed_out);
    assert_int_equal(world->result.signal, SIGKILL);
    assert_true(clock_seconds() - begin < 5);
    pid_t grandchild = atoi(world->result.out); // what it wrote before is kept
    assert_true(grandchild > 0);
    assert_true(process_goes(grandchild));
}

static void test_what_it_leaves_behind_is_killed_and_not_waited_for(void **state) {
    World *world = *state;
    double begin = clock_seconds();
    assert_true(shell(world, "sleep 60 & echo $!; exit 3", NULL));
    assert_int_equal(world->result.exit_code, 3);
    assert_true(clock_seconds() - begin < 5);
    assert_true(process_goes(atoi(world->result.out)));
}

static void test_what_escapes_its_group_does_not_hold_us(void **state) {
    World *world = *state;
    double begin = clock_seconds();
    assert_true(shell(world, "setsid sleep 20 & echo $!; exit 0", NULL));
    assert_true(clock_seconds() - begin < 10);
    kill(atoi(world->result.out), SIGKILL);
}

static void test_a_flood_on_both_streams_is_drained_and_capped(void **state) {
    World *world = *state;
    ProcessOptions options = {.max_output_bytes = 1000, .timeout_s = 60};
    assert_true(shell(world,
                      "head -c 20000000 /dev/zero | tr '\\0' e >&2 & "
                      "head -c 20000000 /dev/zero | tr '\\0' o; wait; exit 5",
                      &options));
    assert_int_equal(world->result.exit_code, 5);
    assert_true(world->result.output_truncated);
    assert_int_equal(world->result.out_bytes, 1000);
    assert_int_equal(world->result.err_bytes, 1000);
    assert_int_equal(strspn(world->result.out, "o"), 1000);
    assert_int_equal(strspn(world->result.err, "e"), 1000);
}

static void test_an_endless_flood_ends_at_the_timeout(void **state) {
    World *world = *state;
    ProcessOptions options = {.max_output_bytes = 10, .timeout_s = 0.3};
    double begin = clock_seconds();
    assert_true(shell(world, "yes", &options));
    assert_true(world->result.timed_out);
    assert_string_equal(world->result.out, "y\ny\ny\ny\ny\n");
    assert_true(clock_seconds() - begin < 5);
}

static void *set_soon(void *flag) {
    usleep(200 * 1000);
    atomic_store((atomic_int *)flag, 1);
    return NULL;
}

static void test_cancelling_kills_and_is_an_interruption(void **state) {
    World *world = *state;
    atomic_int stop = 0;
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, set_soon, &stop), 0);
    ProcessOptions options = {.cancel = &stop};
    double begin = clock_seconds();
    assert_false(shell(world, "sleep 60", &options));
    pthread_join(thread, NULL);
    assert_int_equal(world->err.kind, ERROR_INTERRUPTED);
    assert_string_equal(world->err.message, "interrupted while sh was running");
    assert_true(clock_seconds() - begin < 5);
}

static void test_limits_hold(void **state) {
    World *world = *state;
    ProcessOptions options = {.limits = {.cpu_s = 0.5}, .timeout_s = 30};
    assert_true(shell(world, "while :; do :; done", &options));
    assert_false(world->result.timed_out);
    assert_int_equal(world->result.signal, SIGXCPU);

    options.limits = (Limits){.file_bytes = 4096, .open_files = 20};
    assert_true(shell(world, "ulimit -f; ulimit -n; ulimit -c", &options));
    assert_string_equal(world->result.out, "8\n20\n0\n"); // dash counts in 512 bytes

    options.limits = (Limits){.memory_bytes = 256 << 20};
    assert_true(shell(world, "head -c 1000000000 /dev/zero | tail -n 1 | wc -c", &options));
    assert_non_null(strstr(world->result.err, "memory"));
}

/* ---- children that live on ---------------------------------------------------------------- */

static bool start(World *world, const char *line, Child *child) {
    const char *const argv[] = {"sh", "-c", line, NULL};
    return child_start(&(ProcessOptions){.argv = argv}, child, &world->err);
}

static void test_a_child_is_spoken_to_and_stopped(void **state) {
    World *world = *state;
    Child child;
    assert_true(
        start(world, "echo warming up >&2; read line; echo \"got $line\"; sleep 60", &child));
    assert_int_equal(write(child.to_child, "hello\n", 6), 6);
    char text[16] = {0};
    assert_int_equal(read(child.from_child, text, sizeof text - 1), 10);
    assert_string_equal(text, "got hello\n");
    assert_false(child_ended(&child, 0));
    pid_t pid = child.pid;
    child_stop(world->arena, &child, &world->result);
    assert_int_equal(world->result.signal, SIGKILL);
    assert_string_equal(world->result.err, "warming up\n");
    assert_false(process_lives(pid));
    assert_true(child.pid == 0 && child.to_child == -1 && child.from_child == -1);
    child_stop(world->arena, &child, &world->result); // twice is fine
    assert_int_equal(world->result.exit_code, -1);
    Child never = {0};
    child_stop(world->arena, &never, NULL);
    assert_true(fcntl(0, F_GETFD) >= 0);
}

static void test_a_child_that_ends_by_itself_keeps_its_exit_code(void **state) {
    World *world = *state;
    Child child;
    assert_true(start(world, "read line; echo bye >&2; exit 9", &child));
    close(child.to_child);
    child.to_child = -1;
    assert_true(child_ended(&child, 10));
    assert_true(child_ended(&child, 0));
    child_stop(world->arena, &child, &world->result);
    assert_int_equal(world->result.exit_code, 9);
    assert_int_equal(world->result.signal, 0);
    assert_string_equal(world->result.err, "bye\n");
}

static void test_stopping_a_child_kills_what_it_started(void **state) {
    World *world = *state;
    Child child;
    assert_true(start(world, "sleep 60 & echo $!; wait", &child));
    char text[16] = {0};
    assert_true(read(child.from_child, text, sizeof text - 1) > 0);
    child_stop(world->arena, &child, NULL);
    assert_true(process_goes(atoi(text)));
}

static void test_a_child_dies_with_us(void **state) {
    (void)state;
    int report[2];
    assert_int_equal(pipe(report), 0);
    pid_t parent = fork();
    if (parent == 0) {
        World inner = {.arena = arena_new()};
        Child child;
        if (!start(&inner, "exec sleep 60", &child) ||
            write(report[1], &child.pid, sizeof child.pid) != sizeof child.pid) {
            _exit(1);
        }
        kill(getpid(), SIGKILL);
    }
    pid_t orphan = 0;
    assert_int_equal(read(report[0], &orphan, sizeof orphan), sizeof orphan);
    assert_int_equal(waitpid(parent, NULL, 0), parent);
    assert_true(process_goes(orphan));
    close(report[0]);
    close(report[1]);
}

static void test_a_child_that_cannot_start_leaves_nothing_open(void **state) {
    World *world = *state;
    int before = dup(0);
    close(before);
    const char *const argv[] = {"no-such-runner", NULL};
    Child child;
    assert_false(child_start(&(ProcessOptions){.argv = argv}, &child, &world->err));
    assert_string_equal(world->err.message, "no-such-runner not found in PATH");
    const char *const absolute[] = {"/no/such/runner", NULL};
    assert_false(child_start(&(ProcessOptions){.argv = absolute}, &child, &world->err));
    assert_true(child.pid == 0 && child.to_child == -1 && child.stderr_file == -1);
    int after = dup(0);
    assert_int_equal(after, before);
    close(after);
}

static void *run_many(void *failures) {
    for (int i = 0; i < 20; i++) {
        World world = {.arena = arena_new()};
        if (!shell(&world, "cat; echo done", NULL) || strcmp(world.result.out, "done\n") != 0) {
            atomic_fetch_add((atomic_int *)failures, 1);
        }
        arena_free(world.arena);
    }
    return NULL;
}

static void test_several_threads_run_programs_at_once(void **state) {
    (void)state;
    atomic_int failures = 0;
    pthread_t threads[4];
    for (size_t i = 0; i < COUNT_OF(threads); i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, run_many, &failures), 0);
    }
    for (size_t i = 0; i < COUNT_OF(threads); i++) {
        pthread_join(threads[i], NULL);
    }
    assert_int_equal(atomic_load(&failures), 0);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void) {
    signal(SIGPIPE, SIG_IGN); // as main() does
    signal(SIGXFSZ, SIG_IGN);
    const struct CMUnitTest tests[] = {
        TEST(test_both_streams_and_the_exit_code_come_back),
        TEST(test_input_reaches_the_program_and_is_empty_by_default),
        TEST(test_a_program_that_is_not_there_is_named),
        TEST(test_a_file_that_cannot_be_executed_says_why),
        TEST(test_the_environment_is_scrubbed),
        TEST(test_no_descriptor_of_ours_is_inherited),
        TEST(test_it_works_where_our_standard_descriptors_are_closed),
        TEST(test_signals_are_reset_and_privileges_cannot_be_gained),
        TEST(test_a_signal_that_ends_it_is_told),
        TEST(test_a_timeout_kills_the_whole_group),
        TEST(test_what_it_leaves_behind_is_killed_and_not_waited_for),
        TEST(test_what_escapes_its_group_does_not_hold_us),
        TEST(test_a_flood_on_both_streams_is_drained_and_capped),
        TEST(test_an_endless_flood_ends_at_the_timeout),
        TEST(test_cancelling_kills_and_is_an_interruption),
        TEST(test_limits_hold),
        TEST(test_a_child_is_spoken_to_and_stopped),
        TEST(test_a_child_that_ends_by_itself_keeps_its_exit_code),
        TEST(test_stopping_a_child_kills_what_it_started),
        TEST(test_a_child_dies_with_us),
        TEST(test_a_child_that_cannot_start_leaves_nothing_open),
        TEST(test_several_threads_run_programs_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
