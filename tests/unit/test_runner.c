/* test_runner.c - the real runner on the real simulator, fed with well-behaved and with vicious
 * objects. Whatever they do, it is told apart and the parent goes on.
 */
#include "device/device.h"
#include "support/object.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define SECONDS 10.0

#define ENTRY_BEGIN                                                                                \
    "int cudaMemcpy(void *, const void *, size_t, int); enum { UP = 1, DOWN };"                    \
    "int cutegen_entry_v1(void *const *t, const int64_t *dims, void *ws, size_t b, void *s) {"
#define ENTRY(body) ENTRY_BEGIN " " body " }"

/* y[i] = 2 * x[i] for the n of the first dim. */
#define DOUBLE_IT                                                                                  \
    ENTRY("size_t n = dims[0] * sizeof(float); float *y = malloc(n);"                              \
          "cudaMemcpy(y, t[0], n, DOWN);"                                                          \
          "for (int64_t i = 0; i < dims[0]; i++) y[i] *= 2;"                                       \
          "cudaMemcpy(t[1], y, n, UP);"                                                            \
          "free(y); return 0;")

typedef struct {
    Arena *arena;
    const char *scratch, *exchange;
    Installation installation;
    DeviceSpec device;
    Peer runner;
    RunnerInfo info;
    Error err;
} World;

static int set_up(void **state) {
    World *world = calloc(1, sizeof *world);
    assert_non_null(world);
    world->arena = arena_new();
    *state = world;
    assert_true(installation_find(world->arena, &world->installation, &world->err));
    assert_true(device_parse(world->arena, "sim", &world->device, &world->err));
    world->scratch = directory_scratch(world->arena, "cutegen-test", &world->err);
    world->exchange = exchange_create(world->arena, &world->err);
    assert_non_null(world->scratch);
    assert_non_null(world->exchange);
    return 0;
}

static int tear_down(void **state) {
    World *world = *state;
    peer_stop(&world->runner);
    unlink(world->exchange);
    assert_true(directory_remove(world->scratch, &world->err));
    arena_free(world->arena);
    free(world);
    return 0;
}

static bool start(World *world) {
    return runner_start(world->arena, &world->installation, &world->device, "sm_90a",
                        world->exchange, NULL, &world->runner, &world->info, &world->err);
}

static PeerStatus ask(World *world, RunnerMessage type, WireWriter *request, RunnerMessage expected,
                      double seconds) {
    PeerStatus status = peer_ask(&world->runner, type, request, expected, seconds, &world->err);
    wire_writer_free(request);
    *request = (WireWriter){0};
    return status;
}

static PeerStatus load(World *world, const char *object, bool *loaded, double seconds) {
    WireWriter request = {0};
    put_text(&request, object);
    PeerStatus status = ask(world, RUNNER_LOAD, &request, RUNNER_LOADED, seconds);
    if (status == PEER_OK) {
        WireReader answer = frame_reader(&world->runner.answer);
        *loaded = get_u8(&answer);
    }
    return status;
}

/* Input x and output y of n floats. */
static PeerStatus make_tensors(World *world, int64_t n) {
    WireWriter request = {0};
    put_u32(&request, 2);
    for (int i = 0; i < 2; i++) {
        put_text(&request, i ? "y" : "x");
        put_u8(&request, (uint8_t)i);
        put_u8(&request, DTYPE_F32);
        put_i64(&request, n);
    }
    return ask(world, RUNNER_TENSORS, &request, RUNNER_OK, SECONDS);
}

static PeerStatus poison(World *world, uint8_t pattern) {
    WireWriter request = {0};
    put_u8(&request, pattern);
    return ask(world, RUNNER_POISON, &request, RUNNER_OK, SECONDS);
}

static PeerStatus fill(World *world, uint64_t seed) {
    WireWriter request = {0};
    put_u64(&request, seed);
    put_u32(&request, 1);
    put_u8(&request, FILL_NORMAL);
    put_f64(&request, 0);
    put_f64(&request, 0);
    return ask(world, RUNNER_FILL, &request, RUNNER_OK, SECONDS);
}

typedef struct {
    int64_t error;
    char name[64];
    LaunchPhase phase;
    uint64_t workspace_bytes;
} Launched;

static PeerStatus launch(World *world, int64_t n, Launched *launched, double seconds) {
    WireWriter request = {0};
    put_u32(&request, 1);
    put_i64(&request, n);
    put_u64(&request, 0);
    PeerStatus status = ask(world, RUNNER_LAUNCH, &request, RUNNER_LAUNCHED, seconds);
    if (status == PEER_OK && launched) {
        char meaning[100];
        WireReader answer = frame_reader(&world->runner.answer);
        launched->error = get_i64(&answer);
        get_text(&answer, launched->name, sizeof launched->name);
        get_text(&answer, meaning, sizeof meaning);
        launched->phase = get_u8(&answer);
        launched->workspace_bytes = get_u64(&answer);
        assert_false(answer.failed);
    }
    return status;
}

static void export(World *world, uint32_t tensor, void *out, size_t bytes) {
    WireWriter request = {0};
    put_u32(&request, tensor);
    assert_int_equal(ask(world, RUNNER_EXPORT, &request, RUNNER_EXPORTED, SECONDS), PEER_OK);
    WireReader answer = frame_reader(&world->runner.answer);
    assert_int_equal(get_u8(&answer), 0);
    uint64_t offset = get_u64(&answer);
    assert_int_equal(get_u64(&answer), bytes);
    int fd = open(world->exchange, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(pread(fd, out, bytes, (off_t)offset), bytes);
    close(fd);
}

/* A runner with `text` loaded and tensors of n floats, poisoned and filled. */
static void begin(World *world, const char *text, int64_t n) {
    bool loaded = false;
    assert_true(start(world));
    const char *object = object_compile(world->arena, world->scratch, "kernel", text);
    assert_int_equal(load(world, object, &loaded, SECONDS), PEER_OK);
    assert_true(loaded);
    assert_int_equal(make_tensors(world, n), PEER_OK);
    assert_int_equal(poison(world, 0xFF), PEER_OK);
    assert_int_equal(fill(world, 7), PEER_OK);
}

/* ---- what it does ---------------------------------------------------------------------------- */

static void test_runner_greets_with_the_simulated_device(void **state) {
    World *world = *state;
    assert_true(start(world));
    assert_true(world->info.simulated);
    assert_string_equal(world->info.arch, "sm_90a");
    assert_true(world->info.multiprocessors > 0);
    assert_true(world->info.memory_bytes > 0);
    assert_non_null(strstr(world->info.isolation, "no_new_privs"));
}

static void test_fill_launch_and_export_give_the_generators_bits(void **state) {
    World *world = *state;
    enum { N = 1009 };
    float filled[N], x[N], y[N];
    Launched launched;
    begin(world, DOUBLE_IT, N);
    assert_int_equal(launch(world, N, &launched, SECONDS), PEER_OK);
    assert_int_equal(launched.error, 0);
    export(world, 0, x, sizeof x);
    export(world, 1, y, sizeof y);
    fill_generate((Fill){.kind = FILL_NORMAL}, DTYPE_F32, 7, 0, 0, N, filled);
    assert_memory_equal(x, filled, sizeof x);
    for (int i = 0; i < N; i++)
        assert_true(y[i] == 2 * x[i]);
}

static void test_outputs_hold_poison_until_they_are_written(void **state) {
    World *world = *state;
    uint8_t y[12], expected[12];
    begin(world, DOUBLE_IT, 3);
    assert_int_equal(poison(world, 0x5A), PEER_OK);
    export(world, 1, y, sizeof y);
    memset(expected, 0x5A, sizeof expected);
    assert_memory_equal(y, expected, sizeof y);
}

static void test_tensors_larger_than_the_staging_buffer_arrive_whole(void **state) {
    World *world = *state;
    enum { N = 700001 };
    float *x = calloc(N, sizeof *x), *filled = calloc(N, sizeof *filled);
    begin(world, DOUBLE_IT, N);
    export(world, 0, x, N * sizeof *x);
    fill_generate((Fill){.kind = FILL_NORMAL}, DTYPE_F32, 7, 0, 0, N, filled);
    assert_memory_equal(x, filled, N * sizeof *x);
    free(x);
    free(filled);
}

static void test_a_byte_past_an_output_shows_in_its_red_zone(void **state) {
    World *world = *state;
    begin(world,
          ENTRY("char c, *past = (char *)t[1] + 4 * dims[0] + 2; cudaMemcpy(&c, past, 1, DOWN);"
                "c ^= 1; cudaMemcpy(past, &c, 1, UP); return 0;"),
          5);
    assert_int_equal(launch(world, 5, NULL, SECONDS), PEER_OK);
    WireWriter request = {0};
    assert_int_equal(ask(world, RUNNER_REDZONES, &request, RUNNER_REDZONES, SECONDS), PEER_OK);
    WireReader answer = frame_reader(&world->runner.answer);
    assert_int_equal(get_u32(&answer), 1);
    assert_int_equal(get_u32(&answer), 1);
    assert_int_equal(get_i64(&answer), 22);
    assert_int_equal(get_u64(&answer), 1);
}

static void test_red_zones_of_a_careful_kernel_are_whole(void **state) {
    World *world = *state;
    begin(world, DOUBLE_IT, 5);
    assert_int_equal(launch(world, 5, NULL, SECONDS), PEER_OK);
    WireWriter request = {0};
    assert_int_equal(ask(world, RUNNER_REDZONES, &request, RUNNER_REDZONES, SECONDS), PEER_OK);
    WireReader answer = frame_reader(&world->runner.answer);
    assert_int_equal(get_u32(&answer), 0);
}

static void test_what_a_kernel_prints_does_not_reach_the_frames(void **state) {
    World *world = *state;
    begin(world, ENTRY("puts(\"CTG1 hello\"); fflush(stdout); return getchar() == EOF ? 0 : 1;"),
          5);
    Launched launched;
    assert_int_equal(launch(world, 5, &launched, SECONDS), PEER_OK);
    assert_int_equal(launched.error, 0);
}

static void test_what_a_kernel_prints_does_not_fill_the_disk(void **state) {
    World *world = *state;
    begin(world,
          ENTRY("static char page[4096]; for (int i = 0; i < 10000; i++)"
                "fwrite(page, 1, sizeof page, stderr); return 0;"),
          5);
    assert_int_equal(launch(world, 5, NULL, SECONDS), PEER_OK);
    struct stat status;
    assert_int_equal(fstat(world->runner.child.stderr_file, &status), 0);
    assert_true(status.st_size < 20 << 20);
}

static void test_host_memory_of_a_simulated_kernel_is_limited(void **state) {
    World *world = *state;
    Launched launched = {0};
    begin(world,
          "#include <sys/resource.h>\n" ENTRY("struct rlimit limit; getrlimit(RLIMIT_AS, &limit);"
                                              "return limit.rlim_cur == RLIM_INFINITY;"),
          5);
    assert_int_equal(launch(world, 5, &launched, SECONDS), PEER_OK);
#ifndef __SANITIZE_ADDRESS__
    assert_int_equal(launched.error, 0);
#endif
}

static void test_workspace_has_the_size_the_kernel_asked_for(void **state) {
    World *world = *state;
    begin(world,
          "size_t cutegen_workspace_bytes_v1(const int64_t *dims) { return 100 * dims[0]; }" ENTRY(
              "unsigned char c = 0; cudaMemcpy(&c, ws, 1, DOWN);"
              "return b == 500 && (uintptr_t)ws % 256 == 0 && c == 0xFF ? 0 : 1;"),
          5);
    Launched launched;
    assert_int_equal(launch(world, 5, &launched, SECONDS), PEER_OK);
    assert_int_equal(launched.error, 0);
    assert_int_equal(launched.workspace_bytes, 500);
}

static void test_host_code_that_touches_device_memory_crashes_as_on_a_gpu(void **state) {
    World *world = *state;
    static const char *const accesses[] = {"return *(volatile int *)t[0] == 7;",
                                           "*(volatile int *)t[1] = 7; return 0;"};
    static const char *const words[] = {"host code touches the device memory of x",
                                        "host code touches the device memory of y"};
    for (int i = 0; i < 2; i++) {
        begin(world, arena_printf(world->arena, "%s%s }", ENTRY_BEGIN, accesses[i]), 5);
        assert_int_equal(launch(world, 5, NULL, SECONDS), PEER_DIED);
        assert_int_equal(world->runner.signal, SIGSEGV);
        assert_non_null(strstr(world->runner.last_words, words[i]));
        peer_stop(&world->runner);
    }
}

static void test_workspace_beyond_the_device_is_told_as_such(void **state) {
    World *world = *state;
    begin(world,
          "size_t cutegen_workspace_bytes_v1(const int64_t *dims) { return (size_t)-9; }" DOUBLE_IT,
          5);
    Launched launched;
    assert_int_equal(launch(world, 5, &launched, SECONDS), PEER_OK);
    assert_int_equal(launched.phase, LAUNCH_WORKSPACE);
    assert_string_equal(launched.name, "cudaErrorMemoryAllocation");
}

static void test_error_that_launch_returns_is_named(void **state) {
    World *world = *state;
    begin(world, ENTRY("return 1;"), 5);
    Launched launched;
    assert_int_equal(launch(world, 5, &launched, SECONDS), PEER_OK);
    assert_int_equal(launched.error, 1);
    assert_string_equal(launched.name, "cudaErrorInvalidValue");
    assert_int_equal(launched.phase, LAUNCH_RETURNED);
}

static void test_error_that_launch_swallows_is_found_pending(void **state) {
    World *world = *state;
    begin(world, "int cudaSetDevice(int);" ENTRY("cudaSetDevice(99); return 0;"), 5);
    Launched launched;
    assert_int_equal(launch(world, 5, &launched, SECONDS), PEER_OK);
    assert_string_equal(launched.name, "cudaErrorInvalidDevice");
    assert_int_equal(launched.phase, LAUNCH_PENDING);
}

/* ---- objects that misbehave --------------------------------------------------------------------
 */

static void test_object_without_entry_is_not_loaded(void **state) {
    World *world = *state;
    bool loaded = true;
    assert_true(start(world));
    const char *object = object_compile(world->arena, world->scratch, "kernel", "int x;");
    assert_int_equal(load(world, object, &loaded, SECONDS), PEER_OK);
    assert_false(loaded);
}

static void test_object_that_is_no_object_is_not_loaded(void **state) {
    World *world = *state;
    bool loaded = true;
    assert_true(start(world));
    assert_int_equal(load(world, __FILE__, &loaded, SECONDS), PEER_OK);
    assert_false(loaded);
}

static void test_static_constructor_that_hangs_is_a_timeout_of_load(void **state) {
    World *world = *state;
    bool loaded;
    assert_true(start(world));
    const char *object =
        object_compile(world->arena, world->scratch, "kernel",
                       "__attribute__((constructor)) static void f(void) { for (;;) pause(); }");
    assert_int_equal(load(world, object, &loaded, 0.5), PEER_TIMEOUT);
    assert_false(peer_running(&world->runner));
}

static void test_static_constructor_that_crashes_is_a_death_at_load(void **state) {
    World *world = *state;
    bool loaded;
    assert_true(start(world));
    const char *object =
        object_compile(world->arena, world->scratch, "kernel",
                       "__attribute__((constructor)) static void f(void) { raise(SIGILL); }");
    assert_int_equal(load(world, object, &loaded, SECONDS), PEER_DIED);
    assert_int_equal(world->runner.signal, SIGILL);
}

static void test_launch_that_aborts_leaves_signal_and_last_words(void **state) {
    World *world = *state;
    begin(world, ENTRY("fprintf(stderr, \"no such tile\\n\"); abort();"), 5);
    assert_int_equal(launch(world, 5, NULL, SECONDS), PEER_DIED);
    assert_int_equal(world->runner.signal, SIGABRT);
    assert_non_null(strstr(world->runner.last_words, "no such tile"));
}

static void test_launch_that_exits_is_a_death_with_exit_code(void **state) {
    World *world = *state;
    begin(world, ENTRY("_exit(7);"), 5);
    assert_int_equal(launch(world, 5, NULL, SECONDS), PEER_DIED);
    assert_int_equal(world->runner.signal, 0);
    assert_int_equal(world->runner.exit_code, 7);
}

static void test_launch_that_hangs_is_killed_at_the_deadline(void **state) {
    World *world = *state;
    begin(world, ENTRY("for (;;) ;"), 5);
    assert_int_equal(launch(world, 5, NULL, 0.5), PEER_TIMEOUT);
    assert_false(peer_running(&world->runner));
}

static void test_garbage_on_the_frames_descriptor_is_told_from_an_answer(void **state) {
    World *world = *state;
    begin(world,
          ENTRY("for (int fd = 3; fd < 128; fd++) write(fd, \"garbage garbage\", 15);"
                "return 0;"),
          5);
    assert_int_equal(launch(world, 5, NULL, SECONDS), PEER_GARBLED);
    assert_false(peer_running(&world->runner));
}

static void test_frame_that_claims_too_many_bytes_is_garbled(void **state) {
    World *world = *state;
    begin(world,
          ENTRY("for (int fd = 3; fd < 128; fd++)"
                "    write(fd, \"CTG1\\1\\0\\11\\0\\377\\377\\377\\377\", 12);"
                "return 0;"),
          5);
    assert_int_equal(launch(world, 5, NULL, SECONDS), PEER_GARBLED);
}

static void test_wrong_but_well_formed_frame_is_garbled(void **state) {
    World *world = *state;
    begin(world,
          ENTRY("for (int fd = 3; fd < 128; fd++)"
                "    write(fd, \"CTG1\\1\\0\\3\\0\\0\\0\\0\\0\", 12);"
                "return 0;"),
          5);
    assert_int_equal(launch(world, 5, NULL, SECONDS), PEER_GARBLED);
}

/* ---- death and silence at every frame
 * ------------------------------------------------------------ */

/* Takes the steps before the `at`-th request, does `signal` to the runner, and asks. -1: there
 * are no more requests. */
static int status_after(World *world, int signal, int at) {
    const char *object = object_compile(world->arena, world->scratch, "kernel", DOUBLE_IT);
    bool loaded;
    WireWriter request = {0};
    assert_true(start(world));
    for (int step = 0;; step++) {
        double seconds = step == at && signal == SIGSTOP ? 0.2 : SECONDS;
        if (step == at) kill(world->runner.child.pid, signal);
        PeerStatus status;
        switch (step) {
        case 0:
            status = load(world, object, &loaded, seconds);
            break;
        case 1:
            put_u32(&request, 0);
            status = ask(world, RUNNER_TENSORS, &request, RUNNER_OK, seconds);
            break;
        case 2:
            put_u8(&request, 1);
            status = ask(world, RUNNER_POISON, &request, RUNNER_OK, seconds);
            break;
        case 3:
            put_u64(&request, 1);
            put_u32(&request, 0);
            status = ask(world, RUNNER_FILL, &request, RUNNER_OK, seconds);
            break;
        case 4:
            status = launch(world, 0, NULL, seconds);
            break;
        case 5:
            status = ask(world, RUNNER_REDZONES, &request, RUNNER_REDZONES, seconds);
            break;
        case 6:
            status = ask(world, RUNNER_COUNTERS, &request, RUNNER_COUNTERS, seconds);
            break;
        case 7:
            put_u32(&request, 0);
            status = ask(world, RUNNER_EXPORT, &request, RUNNER_EXPORTED, seconds);
            if (step != at) assert_int_equal(status, PEER_FAULT); // there are no tensors
            break;
        default:
            peer_stop(&world->runner);
            return -1;
        }
        if (step == at) {
            peer_stop(&world->runner);
            return (int)status;
        }
        assert_true(status == PEER_OK || step == 7);
    }
}

static void test_runner_may_die_before_any_answer(void **state) {
    int at = 0;
    for (int status; (status = status_after(*state, SIGKILL, at)) >= 0; at++) {
        assert_int_equal(status, PEER_DIED);
        assert_int_equal(((World *)*state)->runner.signal, SIGKILL);
    }
    assert_int_equal(at, 8);
}

static void test_runner_may_fall_silent_before_any_answer(void **state) {
    int at = 0;
    for (int status; (status = status_after(*state, SIGSTOP, at)) >= 0; at++)
        assert_int_equal(status, PEER_TIMEOUT);
    assert_int_equal(at, 8);
}

static void test_asking_a_dead_runner_again_does_no_harm(void **state) {
    World *world = *state;
    assert_true(start(world));
    peer_stop(&world->runner);
    peer_stop(&world->runner);
    assert_int_equal(make_tensors(world, 5), PEER_DIED);
}

/* ---- damaged requests
 * ---------------------------------------------------------------------------- */

static void test_requests_cut_short_are_faults_and_the_runner_lives_on(void **state) {
    World *world = *state;
    static const uint8_t zeros[64];
    assert_true(start(world));
    for (int type = RUNNER_TENSORS; type < RUNNER_QUIT; type++) {
        if (type == RUNNER_REDZONES || type == RUNNER_COUNTERS) continue; // nothing to cut
        WireWriter request = {0};
        for (int i = 0; i < 3 && type != RUNNER_POISON; i++) // poison is complete with one byte
            put_u8(&request, 0xFF);
        PeerStatus status = ask(world, (RunnerMessage)type, &request, RUNNER_HELLO, SECONDS);
        assert_int_equal(status, PEER_FAULT);
    }
    WireWriter request = {0};
    for (size_t i = 0; i < sizeof zeros; i++)
        put_u8(&request, zeros[i]);
    assert_int_equal(ask(world, (RunnerMessage)999, &request, RUNNER_OK, SECONDS), PEER_FAULT);
    assert_int_equal(make_tensors(world, 5), PEER_OK);
}

static void test_launch_without_a_kernel_is_a_fault(void **state) {
    World *world = *state;
    assert_true(start(world));
    assert_int_equal(launch(world, 5, NULL, SECONDS), PEER_FAULT);
}

static void test_tensors_beyond_the_device_are_a_fault_that_names_one(void **state) {
    World *world = *state;
    assert_true(start(world));
    assert_int_equal(make_tensors(world, (int64_t)1 << 39), PEER_FAULT);
    assert_non_null(strstr(world->err.message, "of x"));
}

/* ---- starting
 * ------------------------------------------------------------------------------------- */

static void test_missing_exchange_file_is_said_at_the_start(void **state) {
    World *world = *state;
    const char *real = world->exchange;
    world->exchange = path_join(world->arena, world->scratch, "absent");
    assert_false(start(world));
    assert_non_null(strstr(world->err.message, "absent"));
    world->exchange = real;
}

static void test_missing_simulator_is_said_at_the_start(void **state) {
    World *world = *state;
    world->installation.sim_library_dir = world->scratch;
    assert_false(start(world));
    assert_int_equal(world->err.kind, ERROR_INPUT);
    assert_non_null(strstr(world->err.message, "simulator"));
}

static void test_machine_without_a_gpu_is_said_at_the_start(void **state) {
    World *world = *state;
    assert_true(device_parse(world->arena, "cuda:7000", &world->device, &world->err));
    assert_false(start(world));
    assert_int_equal(world->err.kind, ERROR_INPUT);
    assert_non_null(strstr(world->err.message, "cuda:7000"));
}

static void test_via_puts_its_words_in_front(void **state) {
    World *world = *state;
    assert_true(
        device_parse(world->arena, "sim via env 'A=b c' nice -n 1", &world->device, &world->err));
    assert_true(start(world));
    assert_true(world->info.simulated);
}

static void test_via_with_an_open_quote_is_refused(void **state) {
    World *world = *state;
    assert_true(device_parse(world->arena, "sim via ssh 'box", &world->device, &world->err));
    assert_false(start(world));
    assert_string_equal(world->err.message, "device: unmatched ' in 'via ssh 'box'");
}

static void test_devices_are_read_as_written(void **state) {
    World *world = *state;
    static const struct {
        const char *text;
        bool good, simulated;
        int index;
        const char *via;
    } rows[] = {
        {"sim", true, true, 0, NULL},       {"cuda", true, false, 0, NULL},
        {"cuda:3", true, false, 3, NULL},   {"cuda via ssh gpubox", true, false, 0, "ssh gpubox"},
        {"cuda:", false, false, 0, NULL},   {"cuda:-1", false, false, 0, NULL},
        {"cuda:1x", false, false, 0, NULL}, {"gpu", false, false, 0, NULL},
        {"", false, false, 0, NULL},        {"sim via  ", false, false, 0, NULL},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        DeviceSpec spec;
        assert_int_equal(device_parse(world->arena, rows[i].text, &spec, &world->err),
                         rows[i].good);
        if (!rows[i].good) {
            assert_int_equal(world->err.kind, ERROR_INPUT);
            continue;
        }
        assert_int_equal(spec.simulated, rows[i].simulated);
        assert_int_equal(spec.index, rows[i].index);
        if (rows[i].via)
            assert_string_equal(spec.via, rows[i].via);
        else
            assert_null(spec.via);
    }
}

static void test_cancelling_ends_the_wait(void **state) {
    World *world = *state;
    static atomic_int cancel;
    begin(world, ENTRY("for (;;) ;"), 5);
    world->runner.cancel = &cancel;
    atomic_store(&cancel, 1);
    assert_int_equal(launch(world, 5, NULL, 60), PEER_CANCELLED);
    assert_int_equal(world->err.kind, ERROR_INTERRUPTED);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
    signal(SIGPIPE, SIG_IGN); // as main() of cutegen does
    const struct CMUnitTest tests[] = {
        TEST(test_runner_greets_with_the_simulated_device),
        TEST(test_fill_launch_and_export_give_the_generators_bits),
        TEST(test_outputs_hold_poison_until_they_are_written),
        TEST(test_tensors_larger_than_the_staging_buffer_arrive_whole),
        TEST(test_a_byte_past_an_output_shows_in_its_red_zone),
        TEST(test_red_zones_of_a_careful_kernel_are_whole),
        TEST(test_what_a_kernel_prints_does_not_reach_the_frames),
        TEST(test_what_a_kernel_prints_does_not_fill_the_disk),
        TEST(test_host_memory_of_a_simulated_kernel_is_limited),
        TEST(test_workspace_has_the_size_the_kernel_asked_for),
        TEST(test_host_code_that_touches_device_memory_crashes_as_on_a_gpu),
        TEST(test_workspace_beyond_the_device_is_told_as_such),
        TEST(test_error_that_launch_returns_is_named),
        TEST(test_error_that_launch_swallows_is_found_pending),
        TEST(test_object_without_entry_is_not_loaded),
        TEST(test_object_that_is_no_object_is_not_loaded),
        TEST(test_static_constructor_that_hangs_is_a_timeout_of_load),
        TEST(test_static_constructor_that_crashes_is_a_death_at_load),
        TEST(test_launch_that_aborts_leaves_signal_and_last_words),
        TEST(test_launch_that_exits_is_a_death_with_exit_code),
        TEST(test_launch_that_hangs_is_killed_at_the_deadline),
        TEST(test_garbage_on_the_frames_descriptor_is_told_from_an_answer),
        TEST(test_frame_that_claims_too_many_bytes_is_garbled),
        TEST(test_wrong_but_well_formed_frame_is_garbled),
        TEST(test_runner_may_die_before_any_answer),
        TEST(test_runner_may_fall_silent_before_any_answer),
        TEST(test_asking_a_dead_runner_again_does_no_harm),
        TEST(test_requests_cut_short_are_faults_and_the_runner_lives_on),
        TEST(test_launch_without_a_kernel_is_a_fault),
        TEST(test_tensors_beyond_the_device_are_a_fault_that_names_one),
        TEST(test_missing_exchange_file_is_said_at_the_start),
        TEST(test_missing_simulator_is_said_at_the_start),
        TEST(test_machine_without_a_gpu_is_said_at_the_start),
        TEST(test_via_puts_its_words_in_front),
        TEST(test_via_with_an_open_quote_is_refused),
        TEST(test_devices_are_read_as_written),
        TEST(test_cancelling_ends_the_wait),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
