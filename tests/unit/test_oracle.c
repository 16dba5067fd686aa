/* test_oracle.c - the real oracle, asked well and badly, with references that misbehave. Whatever
 * happens, a frame answers or the process ends; nobody waits for ever.
 */
#include "device/device.h"
#include "support/object.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define SECONDS 20.0
#define POISON  0xA5

/* One input x and one output y of n elements each. */
#define PROLOGUE                                                                                   \
    "#include <math.h>\n"                                                                          \
    "typedef struct { const real *x; } Inputs; typedef struct { real *y; } Outputs;"               \
    "typedef struct { int64_t n; } Dims;\n"
#define REFERENCE(body)                                                                            \
    PROLOGUE "void reference(const Inputs *in, Outputs *out, const Dims *d, int64_t begin,"        \
             " int64_t end) { " body " }"
#define EACH(statement) REFERENCE("for (int64_t i = begin; i < end; i++) { " statement " }")
#define TRIPLE          EACH("out->y[i] = 3 * in->x[i];")

typedef struct {
    Arena *arena;
    const char *scratch, *exchange;
    Installation installation;
    DeviceSpec device;
    Peer oracle;
    Error err;
    DType dtype; // of x and y
    int64_t n;
} World;

static int set_up(void **state) {
    World *w = calloc(1, sizeof(*w));
    assert_non_null(w);
    *state = w;
    w->arena = arena_new();
    w->dtype = DTYPE_F32;
    w->n = 1000;
    signal(SIGPIPE, SIG_IGN);
    w->installation.oracle = BUILD_ROOT "/cutegen-oracle";
    assert_true(device_parse(w->arena, "sim", &w->device, &w->err));
    w->scratch = directory_scratch(w->arena, "cutegen-test", &w->err);
    assert_non_null(w->scratch);
    // Of our own, since tests replace it: others may sweep what exchange_create() did not lock.
    w->exchange = path_join(w->arena, w->scratch, "exchange");
    close(open(w->exchange, O_CREAT | O_WRONLY, 0600));
    if (!oracle_start(w->arena, &w->installation, &w->device, w->exchange, NULL, &w->oracle,
                      &w->err))
        fail_msg("%s", w->err.message);
    return 0;
}

static int tear_down(void **state) {
    World *w = *state;
    peer_stop(&w->oracle);
    assert_true(directory_remove(w->scratch, &w->err));
    arena_free(w->arena);
    free(w);
    return 0;
}

/* Sends what `ask` holds, frees it, and returns how the oracle answered. */
static PeerStatus ask(World *w, uint16_t type, WireWriter *request, uint16_t expected) {
    PeerStatus status = peer_ask(&w->oracle, type, request, expected, SECONDS, &w->err);
    wire_writer_free(request);
    *request = (WireWriter){0};
    return status;
}

static PeerStatus load_objects(World *w, const char *in_double, const char *in_float) {
    WireWriter r = {0};
    put_text(&r, in_double);
    put_text(&r, in_float);
    put_u32(&r, 2);
    put_text(&r, "x");
    put_u8(&r, 0);
    put_u8(&r, (uint8_t)w->dtype);
    put_text(&r, "y");
    put_u8(&r, 1);
    put_u8(&r, (uint8_t)w->dtype);
    return ask(w, ORACLE_TASK, &r, ORACLE_OK);
}

static PeerStatus load(World *w, const char *text) {
    const char *reals[] = {"double", "float"}, *objects[2];
    for (int i = 0; i < 2; i++)
        objects[i] = object_compile(w->arena, w->scratch, reals[i],
                                    arena_printf(w->arena, "typedef %s real;\n%s", reals[i], text));
    return load_objects(w, objects[0], objects[1]);
}

static void put_truth(const World *w, WireWriter *r, uint64_t seed) {
    put_u64(r, seed);
    put_u32(r, 1);
    put_i64(r, w->n);
    for (int t = 0; t < 2; t++) {
        put_u32(r, 1);
        put_i64(r, w->n);
    }
    put_u8(r, FILL_NORMAL);
    put_f64(r, 0);
    put_f64(r, 0);
}

static PeerStatus truth(World *w, uint64_t seed) {
    WireWriter r = {0};
    put_truth(w, &r, seed);
    return ask(w, ORACLE_TRUTH, &r, ORACLE_OK);
}

static size_t tensor_bytes(const World *w) {
    return (size_t)w->n * (size_t)dtype_info(w->dtype)->bytes;
}

/* What a kernel that computes 3x leaves in the exchange file: x, then y. */
static uint8_t *tripled(World *w, uint64_t seed) {
    size_t bytes = tensor_bytes(w);
    uint8_t *data = arena_alloc(w->arena, 2 * bytes);
    fill_generate((Fill){.kind = FILL_NORMAL}, w->dtype, seed, 0, 0, w->n, data);
    for (int64_t i = 0; i < w->n; i++)
        dtype_store(w->dtype, data + bytes, i, 3 * dtype_load(w->dtype, data, i));
    return data;
}

static void export(World *w, const void *data, size_t bytes) {
    int fd = open(w->exchange, O_WRONLY | O_TRUNC);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, data, bytes), bytes);
    close(fd);
}

static void put_compare(const World *w, WireWriter *r) {
    put_u8(r, POISON);
    put_f64(r, 1e-4);
    put_f64(r, 1e-6);
    for (uint64_t t = 0; t < 2; t++) {
        put_u64(r, t * tensor_bytes(w));
        put_u64(r, tensor_bytes(w));
    }
}

static PeerStatus compare(World *w) {
    WireWriter r = {0};
    put_compare(w, &r);
    return ask(w, ORACLE_COMPARE, &r, ORACLE_COMPARED);
}

/* Compares and takes the answer apart. */
static Mismatch compared(World *w, uint32_t *mutated, int64_t *first) {
    if (compare(w) != PEER_OK) fail_msg("%s", w->err.message);
    WireReader answer = frame_reader(&w->oracle.answer);
    *mutated = get_u32(&answer);
    *first = -1;
    for (uint32_t i = 0; i < *mutated; i++) {
        assert_int_equal(get_u32(&answer), 0);
        *first = get_i64(&answer);
    }
    Mismatch seen;
    mismatch_get(&answer, &seen);
    assert_false(answer.failed);
    assert_int_equal(answer.at, answer.bytes);
    return seen;
}

static Mismatch judged(World *w) {
    uint32_t mutated;
    int64_t first;
    Mismatch seen = compared(w, &mutated, &first);
    assert_int_equal(mutated, 0);
    return seen;
}

/* It still answers. */
static void expect_alive(World *w) {
    w->n = 10;
    assert_int_equal(load(w, TRIPLE), PEER_OK);
    assert_int_equal(truth(w, 5), PEER_OK);
    export(w, tripled(w, 5), 2 * tensor_bytes(w));
    assert_int_equal(judged(w).wrong, 0);
}

#define expect_fault(w, status, text)                                                              \
    do {                                                                                           \
        assert_int_equal(status, PEER_FAULT);                                                      \
        assert_string_equal((w)->err.message, "oracle: " text);                                    \
    } while (0)

/* ---- what it is for -------------------------------------------------------------------------- */

static void test_right_output_matches(void **state) {
    World *w = *state;
    for (int64_t n = 1; n <= 100003; n = n * 10 + 3) { // on one core, then on all
        w->n = n;
        assert_int_equal(load(w, TRIPLE), PEER_OK);
        assert_int_equal(truth(w, 7), PEER_OK);
        export(w, tripled(w, 7), 2 * tensor_bytes(w));
        Mismatch seen = judged(w);
        assert_int_equal(seen.elements, n);
        assert_int_equal(seen.wrong, 0);
        assert_true(seen.error < 1e-7);
    }
}

static void test_wrong_output_is_described(void **state) {
    World *w = *state;
    assert_int_equal(load(w, EACH("out->y[i] = 6 * in->x[i];")), PEER_OK);
    assert_int_equal(truth(w, 7), PEER_OK);
    export(w, tripled(w, 7), 2 * tensor_bytes(w));
    Mismatch seen = judged(w);
    assert_int_equal(seen.shape, MISMATCH_CONSTANT_FACTOR);
    assert_string_equal(seen.sentence, "every element is 0.5 x the expected value");
    assert_true(fabs(seen.error - 0.5) < 1e-6);
}

static void test_untouched_output_is_recognised_by_its_poison(void **state) {
    World *w = *state;
    assert_int_equal(load(w, EACH("out->y[i] = 10 + in->x[i];")), PEER_OK);
    assert_int_equal(truth(w, 7), PEER_OK);
    uint8_t *data = tripled(w, 7);
    memset(data + tensor_bytes(w), POISON, tensor_bytes(w));
    export(w, data, 2 * tensor_bytes(w));
    assert_string_equal(judged(w).sentence, "every element is untouched (never written)");
}

static void test_changed_input_is_reported_with_its_element(void **state) {
    World *w = *state;
    w->n = 200000;
    assert_int_equal(load(w, TRIPLE), PEER_OK);
    assert_int_equal(truth(w, 7), PEER_OK);
    uint8_t *data = tripled(w, 7);
    data[4 * 150001 + 1] ^= 1;
    data[4 * 177777] ^= 1;
    export(w, data, 2 * tensor_bytes(w));
    uint32_t mutated;
    int64_t first;
    Mismatch seen = compared(w, &mutated, &first);
    assert_int_equal(mutated, 1);
    assert_int_equal(first, 150001);
    assert_int_equal(seen.wrong, 0);
}

static void test_baseline_is_the_reference_in_float_rounded_to_the_outputs_type(void **state) {
    World *w = *state;
    w->n = 50000;
    struct {
        DType dtype;
        double low, high;
    } cases[] = {{DTYPE_F32, 1e-9, 6e-8}, {DTYPE_F16, 1e-4, 3e-4}, {DTYPE_BF16, 8e-4, 3e-3}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        w->dtype = cases[i].dtype;
        assert_int_equal(load(w, EACH("out->y[i] = in->x[i] / 3;")), PEER_OK);
        assert_int_equal(truth(w, 7), PEER_OK);
        export(w, tripled(w, 7), 2 * tensor_bytes(w));
        double error = judged(w).baseline_error;
        assert_true(error > cases[i].low && error < cases[i].high);
    }
}

static void test_same_request_is_computed_once(void **state) {
    World *w = *state;
    const char *text = REFERENCE("static int calls; if (calls++) abort();"
                                 "for (int64_t i = begin; i < end; i++) out->y[i] = 3 * in->x[i];");
    assert_int_equal(load(w, text), PEER_OK);
    assert_int_equal(truth(w, 7), PEER_OK);
    assert_int_equal(truth(w, 7), PEER_OK);
    export(w, tripled(w, 7), 2 * tensor_bytes(w));
    assert_int_equal(judged(w).wrong, 0);
    assert_int_equal(truth(w, 8), PEER_DIED); // another seed is another computation
    assert_int_equal(w->oracle.signal, SIGABRT);
}

static void test_old_results_give_way(void **state) {
    World *w = *state;
    assert_int_equal(load(w, TRIPLE), PEER_OK);
    for (uint64_t seed = 0; seed < 100; seed++)
        assert_int_equal(truth(w, seed), PEER_OK);
    assert_int_equal(truth(w, 0), PEER_OK);
    export(w, tripled(w, 0), 2 * tensor_bytes(w));
    assert_int_equal(judged(w).wrong, 0);
}

/* ---- references that misbehave ----------------------------------------------------------------
 */

static void test_reference_that_prints_does_not_garble_frames(void **state) {
    World *w = *state;
    const char *text = REFERENCE("printf(\"row %d\\n\", 1); fflush(stdout); write(1, \"CTG1\", 4);"
                                 "for (int64_t i = begin; i < end; i++) out->y[i] = 3 * in->x[i];");
    assert_int_equal(load(w, text), PEER_OK);
    assert_int_equal(truth(w, 7), PEER_OK);
    export(w, tripled(w, 7), 2 * tensor_bytes(w));
    assert_int_equal(judged(w).wrong, 0);
}

static void test_reference_that_crashes_dies_by_its_signal(void **state) {
    World *w = *state;
    assert_int_equal(load(w, REFERENCE("*(volatile int *)0 = 1;")), PEER_OK);
    assert_int_equal(truth(w, 7), PEER_DIED);
    assert_int_equal(w->oracle.signal, SIGSEGV);
}

static void test_reference_that_writes_past_the_end_crashes(void **state) {
    World *w = *state;
    assert_int_equal(load(w, REFERENCE("for (int64_t i = begin; i <= end; i++) out->y[i] = 1;")),
                     PEER_OK);
    assert_int_equal(truth(w, 7), PEER_DIED);
    assert_int_equal(w->oracle.signal, SIGSEGV);
}

static void test_reference_that_exits_is_seen_to_end(void **state) {
    World *w = *state;
    assert_int_equal(load(w, REFERENCE("_exit(7);")), PEER_OK);
    assert_int_equal(truth(w, 7), PEER_DIED);
    assert_int_equal(w->oracle.exit_code, 7);
}

static void test_reference_that_hangs_is_given_up(void **state) {
    World *w = *state;
    assert_int_equal(load(w, REFERENCE("for (;;) sleep(1);")), PEER_OK);
    WireWriter r = {0};
    put_truth(w, &r, 7);
    assert_int_equal(peer_ask(&w->oracle, ORACLE_TRUTH, &r, ORACLE_OK, 0.3, &w->err), PEER_TIMEOUT);
    wire_writer_free(&r);
    assert_false(peer_running(&w->oracle));
}

static void test_reference_that_leaves_elements_out_is_told(void **state) {
    World *w = *state;
    assert_int_equal(load(w, EACH("if (i != 17) out->y[i] = 1;")), PEER_OK);
    expect_fault(
        w, truth(w, 7),
        "reference() leaves element 17 of 'y' unwritten, or reads it before it is written");
    assert_int_equal(load(w, EACH("out->y[i] += 1;")), PEER_OK);
    expect_fault(w, truth(w, 7),
                 "reference() leaves element 0 of 'y' unwritten, or reads it before it is written");
    expect_alive(w);
}

static void test_reference_may_make_nan(void **state) {
    World *w = *state;
    assert_int_equal(load(w, EACH("out->y[i] = sqrt(-1 - in->x[i] * in->x[i]);")), PEER_OK);
    assert_int_equal(truth(w, 7), PEER_OK);
    uint8_t *data = tripled(w, 7);
    for (int64_t i = 0; i < w->n; i++)
        dtype_store(w->dtype, data + tensor_bytes(w), i, NAN);
    export(w, data, 2 * tensor_bytes(w));
    assert_int_equal(judged(w).wrong, 0);
}

static void test_object_without_reference_is_a_fault(void **state) {
    World *w = *state;
    expect_fault(w, load(w, "int something_else;"),
                 "it does not define reference(); see reference.h");
    const char *missing = path_join(w->arena, w->scratch, "missing.so");
    assert_int_equal(load_objects(w, missing, missing), PEER_FAULT);
    assert_non_null(strstr(w->err.message, "oracle: the reference cannot be loaded: "));
    expect_fault(w, load_objects(w, "relative.so", "relative.so"),
                 "the reference's object must have an absolute path");
    expect_alive(w);
}

/* ---- requests out of order, damaged, absurd ----------------------------------------------------
 */

static void test_requests_out_of_order_are_faults(void **state) {
    World *w = *state;
    expect_fault(w, truth(w, 1), "no task has been loaded");
    expect_fault(w, compare(w), "no expected values have been asked for");
    WireWriter none = {0};
    expect_fault(w, ask(w, 200, &none, ORACLE_OK), "unknown request 200");
    assert_int_equal(load(w, TRIPLE), PEER_OK);
    assert_int_equal(truth(w, 1), PEER_OK);
    assert_int_equal(load(w, TRIPLE), PEER_OK); // a new task forgets the old one's values
    expect_fault(w, compare(w), "no expected values have been asked for");
    expect_alive(w);
}

/* Every proper prefix of a request is refused, and none harms. */
static void test_cut_requests_are_faults(void **state) {
    World *w = *state;
    assert_int_equal(load(w, TRIPLE), PEER_OK);
    WireWriter whole = {0};
    put_truth(w, &whole, 1);
    for (size_t bytes = 0; bytes < whole.bytes; bytes++) {
        WireWriter cut = {.data = whole.data, .bytes = bytes};
        PeerStatus status = peer_ask(&w->oracle, ORACLE_TRUTH, &cut, ORACLE_OK, SECONDS, &w->err);
        expect_fault(w, status, "a damaged request for expected values");
    }
    wire_writer_free(&whole);
    assert_int_equal(truth(w, 1), PEER_OK);
    export(w, tripled(w, 1), 2 * tensor_bytes(w));
    whole = (WireWriter){0};
    put_compare(w, &whole);
    for (size_t bytes = 0; bytes < whole.bytes; bytes++) {
        WireWriter cut = {.data = whole.data, .bytes = bytes};
        PeerStatus status =
            peer_ask(&w->oracle, ORACLE_COMPARE, &cut, ORACLE_COMPARED, SECONDS, &w->err);
        expect_fault(w, status, "a damaged request to compare");
    }
    wire_writer_free(&whole);
    assert_int_equal(judged(w).wrong, 0);
}

static void test_absurd_numbers_are_faults(void **state) {
    World *w = *state;
    WireWriter r = {0};
    put_text(&r, "/a");
    put_text(&r, "/b");
    put_u32(&r, 0xffffffff);
    expect_fault(w, ask(w, ORACLE_TASK, &r, ORACLE_OK), "a damaged request to load a task");
    assert_int_equal(load(w, TRIPLE), PEER_OK);
    int64_t absurd[] = {0, -1, INT64_MAX, INT64_C(1) << 41};
    for (size_t i = 0; i < COUNT_OF(absurd); i++) {
        w->n = absurd[i];
        expect_fault(w, truth(w, 1), "a damaged request for expected values");
    }
    w->n = INT64_C(1) << 40; // allowed, but no machine has this much
    assert_int_equal(truth(w, 1), PEER_FAULT);
    assert_non_null(strstr(w->err.message, "the reference needs 17592.2 GB of memory"));
    put_u64(&r, 1);
    put_u32(&r, 0xffffffff);
    expect_fault(w, ask(w, ORACLE_TRUTH, &r, ORACLE_OK), "a damaged request for expected values");
    expect_alive(w);
}

static void test_garbage_ends_the_oracle(void **state) {
    World *w = *state;
    const struct {
        const char *bytes;
        size_t count;
    } garbage[] = {
        {"hello, oracle", 13},
        {"CTG1\x02\x00\x44\x00\x00\x00\x00\x00", 12}, // another version
        {"CTG1\x01\x00\x44\x00\xff\xff\xff\xff", 12}, // a payload of 4 GiB
    };
    for (size_t i = 0; i < COUNT_OF(garbage); i++) {
        assert_int_equal(write(w->oracle.child.to_child, garbage[i].bytes, garbage[i].count),
                         garbage[i].count);
        assert_true(child_ended(&w->oracle.child, SECONDS));
        assert_int_equal(peer_receive(&w->oracle, ORACLE_OK, SECONDS, &w->err), PEER_DIED);
        assert_int_equal(w->oracle.exit_code, 3);
        peer_stop(&w->oracle);
        w->oracle = (Peer){0};
        assert_true(oracle_start(w->arena, &w->installation, &w->device, w->exchange, NULL,
                                 &w->oracle, &w->err));
    }
}

static void test_parent_that_goes_away_ends_the_oracle(void **state) {
    World *w = *state;
    assert_int_equal(write(w->oracle.child.to_child, "CTG1\x01\x00", 6), 6); // half a header
    close(w->oracle.child.to_child);
    w->oracle.child.to_child = -1;
    assert_true(child_ended(&w->oracle.child, SECONDS));
}

/* ---- the exchange file ------------------------------------------------------------------------
 */

static void test_exchange_file_is_not_trusted(void **state) {
    World *w = *state;
    assert_int_equal(load(w, TRIPLE), PEER_OK);
    assert_int_equal(truth(w, 7), PEER_OK);
    uint8_t *data = tripled(w, 7);
    export(w, data, 2 * tensor_bytes(w) - 1);
    expect_fault(w, compare(w), "the exchange file is too short to hold 'y'");
    export(w, data, 0);
    expect_fault(w, compare(w), "the exchange file is too short to hold 'x'");

    uint64_t places[][4] = {{0, 3999, 4000, 4000}, {0, 4000, UINT64_MAX - 100, 4000}};
    const char *faults[] = {"oracle: 'x' has 4000 bytes, but 3999 were exported",
                            "oracle: the exchange file is too short to hold 'y'"};
    export(w, data, 2 * tensor_bytes(w));
    for (int i = 0; i < 2; i++) {
        WireWriter r = {0};
        put_u8(&r, POISON);
        put_f64(&r, 1e-4);
        put_f64(&r, 1e-6);
        for (int k = 0; k < 4; k++)
            put_u64(&r, places[i][k]);
        assert_int_equal(ask(w, ORACLE_COMPARE, &r, ORACLE_COMPARED), PEER_FAULT);
        assert_string_equal(w->err.message, faults[i]);
    }
    assert_int_equal(judged(w).wrong, 0);

    assert_int_equal(unlink(w->exchange), 0);
    expect_fault(w, compare(w), "the exchange file cannot be read");
    assert_int_equal(symlink("/etc/passwd", w->exchange), 0);
    expect_fault(w, compare(w), "the exchange file cannot be read");
    assert_int_equal(unlink(w->exchange), 0);
    assert_int_equal(mkfifo(w->exchange, 0600), 0);
    expect_fault(w, compare(w), "the exchange file cannot be read");
    assert_int_equal(unlink(w->exchange), 0);
    close(open(w->exchange, O_CREAT | O_WRONLY, 0600));
    expect_alive(w);
}

/* ---- dying and hanging, at every frame ----------------------------------------------------------
 */

/* The steps of a judgement; `step` asks the n-th and says how it went. */
#define STEPS 3
static PeerStatus step(World *w, int n, const char *in_double, const char *in_float) {
    switch (n) {
    case 0:
        return load_objects(w, in_double, in_float);
    case 1:
        return truth(w, 7);
    default:
        return compare(w);
    }
}

static void signal_at_every_frame(World *w, int what, PeerStatus expected) {
    assert_int_equal(load(w, TRIPLE), PEER_OK);
    const char *in_double = path_join(w->arena, w->scratch, "double.so");
    const char *in_float = path_join(w->arena, w->scratch, "float.so");
    export(w, tripled(w, 7), 2 * tensor_bytes(w));
    for (int fatal = 0; fatal < STEPS; fatal++) {
        peer_stop(&w->oracle);
        w->oracle = (Peer){0};
        assert_true(oracle_start(w->arena, &w->installation, &w->device, w->exchange, NULL,
                                 &w->oracle, &w->err));
        for (int n = 0; n < fatal; n++)
            assert_int_equal(step(w, n, in_double, in_float), PEER_OK);
        assert_int_equal(kill(w->oracle.child.pid, what), 0);
        if (what == SIGKILL) {
            assert_int_equal(step(w, fatal, in_double, in_float), expected);
        } else { // the deadline, not SECONDS
            WireWriter none = {0};
            assert_int_equal(peer_ask(&w->oracle, ORACLE_QUIT, &none, ORACLE_OK, 0.2, &w->err),
                             expected);
        }
        assert_false(peer_running(&w->oracle));
    }
}

static void test_oracle_killed_at_any_frame_is_seen_to_have_died(void **state) {
    signal_at_every_frame(*state, SIGKILL, PEER_DIED);
}

static void test_oracle_stopped_at_any_frame_is_given_up(void **state) {
    signal_at_every_frame(*state, SIGSTOP, PEER_TIMEOUT);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_right_output_matches),
        TEST(test_wrong_output_is_described),
        TEST(test_untouched_output_is_recognised_by_its_poison),
        TEST(test_changed_input_is_reported_with_its_element),
        TEST(test_baseline_is_the_reference_in_float_rounded_to_the_outputs_type),
        TEST(test_same_request_is_computed_once),
        TEST(test_old_results_give_way),
        TEST(test_reference_that_prints_does_not_garble_frames),
        TEST(test_reference_that_crashes_dies_by_its_signal),
        TEST(test_reference_that_writes_past_the_end_crashes),
        TEST(test_reference_that_exits_is_seen_to_end),
        TEST(test_reference_that_hangs_is_given_up),
        TEST(test_reference_that_leaves_elements_out_is_told),
        TEST(test_reference_may_make_nan),
        TEST(test_object_without_reference_is_a_fault),
        TEST(test_requests_out_of_order_are_faults),
        TEST(test_cut_requests_are_faults),
        TEST(test_absurd_numbers_are_faults),
        TEST(test_garbage_ends_the_oracle),
        TEST(test_parent_that_goes_away_ends_the_oracle),
        TEST(test_exchange_file_is_not_trusted),
        TEST(test_oracle_killed_at_any_frame_is_seen_to_have_died),
        TEST(test_oracle_stopped_at_any_frame_is_given_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
