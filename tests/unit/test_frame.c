/* test_frame.c - payloads and frames: what a dead, hung or hostile peer sends does no harm. */
#include "wire/wire.h"

#include <fcntl.h>
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static WireReader reader_of(const WireWriter *w, size_t bytes) {
    return (WireReader){.data = w->data, .bytes = bytes};
}

/* ---- payloads ---------------------------------------------------------------------------- */

static void put_one_of_each(WireWriter *w) {
    put_u8(w, 200);
    put_u32(w, 0x12345678);
    put_u64(w, UINT64_C(0xFEDCBA9876543210));
    put_i64(w, INT64_MIN);
    put_f64(w, -0.1);
    put_text(w, "rows");
    put_text(w, NULL);
    put_bytes(w, "\0\1\2", 3);
}

static void test_values_come_out_as_they_went_in(void **state) {
    (void)state;
    WireWriter w = {0};
    put_one_of_each(&w);
    static const uint8_t head[] = {200, 0x78, 0x56, 0x34, 0x12}; // little-endian
    assert_memory_equal(w.data, head, sizeof head);
    WireReader r = reader_of(&w, w.bytes);
    char text[16];
    size_t bytes;
    assert_int_equal(get_u8(&r), 200);
    assert_int_equal(get_u32(&r), 0x12345678);
    assert_true(get_u64(&r) == UINT64_C(0xFEDCBA9876543210));
    assert_true(get_i64(&r) == INT64_MIN);
    assert_true(get_f64(&r) == -0.1);
    get_text(&r, text, sizeof text);
    assert_string_equal(text, "rows");
    get_text(&r, text, sizeof text);
    assert_string_equal(text, "");
    const uint8_t *data = get_bytes(&r, &bytes);
    assert_int_equal(bytes, 3);
    assert_memory_equal(data, "\0\1\2", 3);
    assert_false(r.failed);
    assert_int_equal(r.at, r.bytes);
    wire_writer_free(&w);
}

static void test_payload_truncated_anywhere_fails_and_gives_zeros(void **state) {
    (void)state;
    WireWriter w = {0};
    put_one_of_each(&w);
    for (size_t cut = 0; cut < w.bytes; cut++) {
        uint8_t *exact = malloc(cut + 1); // so that a sanitizer sees a read past the cut
        assert_non_null(exact);
        memcpy(exact + 1, w.data, cut);
        WireReader r = {.data = exact + 1, .bytes = cut};
        char text[16];
        size_t bytes;
        get_u8(&r), get_u32(&r), get_u64(&r), get_i64(&r), get_f64(&r);
        get_text(&r, text, sizeof text);
        get_text(&r, text, sizeof text);
        assert_null(get_bytes(&r, &bytes));
        assert_int_equal(bytes, 0);
        assert_true(r.failed);
        assert_int_equal(get_u8(&r), 0); // and stays failed
        get_text(&r, text, sizeof text);
        assert_string_equal(text, "");
        free(exact);
    }
    wire_writer_free(&w);
}

static void test_text_with_a_lying_length_fails(void **state) {
    (void)state;
    WireWriter w = {0};
    put_u32(&w, UINT32_MAX);
    put_u8(&w, 'x');
    WireReader r = reader_of(&w, w.bytes);
    char text[4] = "abc";
    get_text(&r, text, sizeof text);
    assert_true(r.failed);
    assert_string_equal(text, "");
    wire_writer_free(&w);
}

static void test_long_text_is_cut_between_characters_and_reading_goes_on(void **state) {
    (void)state;
    WireWriter w = {0};
    put_text(&w, "aé∞z"); // 1 + 2 + 3 + 1 bytes
    put_u8(&w, 7);
    static const char *const expected[] = {"", "a", "a", "aé", "aé", "aé", "aé∞", "aé∞z"};
    for (size_t capacity = 1; capacity <= 8; capacity++) {
        WireReader r = reader_of(&w, w.bytes);
        char text[8];
        get_text(&r, text, capacity);
        assert_string_equal(text, expected[capacity - 1]);
        assert_int_equal(get_u8(&r), 7);
        assert_false(r.failed);
    }
    wire_writer_free(&w);
}

static SimReport sample_report(void) {
    SimReport report = {
        .kind = SIM_MISALIGNED,
        .is_write = 1,
        .space = "shared",
        .kernel = "void k<float>(float*)",
        .file = "kernel.cu",
        .line = 57,
        .chain = "kernel.cu:57 < copy.hpp:211",
        .instruction = "st.shared.v4.f32 [%r1], {%f1, %f2, %f3, %f4}",
        .thread = {3, 1, 2},
        .block = {7, 8, 9},
        .address = 0x7f00000004,
        .access_bytes = 16,
        .tensor = "x",
        .offset_bytes = -4,
        .tensor_bytes = 4096,
        .count = 1000000007,
        .message = "writes 16 bytes at an address that is a multiple of 4 only",
    };
    return report;
}

static Mismatch sample_mismatch(void) {
    Mismatch mismatch = {
        .elements = 1 << 20,
        .wrong = 12,
        .untouched = 3,
        .nonfinite = 1,
        .first = 4097,
        .rank = 3,
        .extents = {2, 3, 5},
        .got = 1.5,
        .expected = -2.5,
        .max_abs = 4,
        .max_rel = 1.6,
        .allowed = 1e-5,
        .error = 1e-3,
        .baseline_error = 1e-7,
        .shape = MISMATCH_ROWS,
        .sentence = "rows 4096 and up are untouched",
    };
    return mismatch;
}

static void test_report_and_mismatch_survive_the_wire(void **state) {
    (void)state;
    SimReport report = sample_report(), report_again;
    Mismatch mismatch = sample_mismatch(), mismatch_again;
    WireWriter w = {0};
    report_put(&w, &report);
    mismatch_put(&w, &mismatch);
    WireReader r = reader_of(&w, w.bytes);
    report_get(&r, &report_again);
    mismatch_get(&r, &mismatch_again);
    assert_false(r.failed);
    assert_int_equal(r.at, r.bytes);
    WireWriter again = {0};
    report_put(&again, &report_again);
    mismatch_put(&again, &mismatch_again);
    assert_int_equal(again.bytes, w.bytes);
    assert_memory_equal(again.data, w.data, w.bytes);
    assert_string_equal(report_again.chain, report.chain);
    assert_true(report_again.offset_bytes == -4 && report_again.count == 1000000007);
    assert_int_equal(mismatch_again.shape, MISMATCH_ROWS);
    assert_true(mismatch_again.first == 4097 && mismatch_again.baseline_error == 1e-7);
    wire_writer_free(&w);
    wire_writer_free(&again);
}

static void test_enumerations_and_ranks_out_of_range_are_refused(void **state) {
    (void)state;
    SimReport report = sample_report(), report_again;
    report.kind = (SimReportKind)SIM_REPORT_KIND_COUNT;
    WireWriter w = {0};
    report_put(&w, &report);
    WireReader r = reader_of(&w, w.bytes);
    report_get(&r, &report_again);
    assert_true(r.failed);
    wire_writer_free(&w);

    Mismatch mismatch = sample_mismatch(), mismatch_again;
    mismatch.rank = WIRE_MAX_RANK + 1;
    mismatch_put(&w, &mismatch);
    r = reader_of(&w, w.bytes);
    mismatch_get(&r, &mismatch_again);
    assert_true(r.failed && mismatch_again.rank <= WIRE_MAX_RANK);
    wire_writer_free(&w);
}

static void test_every_kind_and_shape_has_its_own_name(void **state) {
    (void)state;
    for (int i = 0; i < SIM_REPORT_KIND_COUNT; i++) {
        for (int j = 0; j < i; j++) {
            assert_string_not_equal(sim_report_kind_name((SimReportKind)i),
                                    sim_report_kind_name((SimReportKind)j));
        }
    }
    for (int i = 0; i < MISMATCH_SHAPE_COUNT; i++) {
        for (int j = 0; j < i; j++) {
            assert_string_not_equal(mismatch_shape_name((MismatchShape)i),
                                    mismatch_shape_name((MismatchShape)j));
        }
    }
    assert_string_equal(sim_report_kind_name((SimReportKind)99), "unknown");
    assert_string_equal(mismatch_shape_name((MismatchShape)99), "unknown");
}

/* ---- frames ------------------------------------------------------------------------------ */

typedef struct {
    int reader, writer;
} Pipe;

static Pipe pipe_new(void) {
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    return (Pipe){ends[0], ends[1]};
}

static void pipe_close(Pipe *p) {
    close(p->reader);
    if (p->writer >= 0) {
        close(p->writer);
    }
}

/* What a peer that sends exactly these bytes and then closes makes of a receive. */
static WireStatus receive_raw(const void *data, size_t bytes, Frame *frame) {
    Pipe p = pipe_new();
    assert_int_equal(write(p.writer, data, bytes), (ssize_t)bytes);
    close(p.writer);
    p.writer = -1;
    WireStatus status = frame_receive(p.reader, frame, 1);
    pipe_close(&p);
    return status;
}

static void test_frames_arrive_whole_and_in_order(void **state) {
    (void)state;
    Pipe p = pipe_new();
    assert_int_equal(frame_send(p.writer, RUNNER_LOAD, "kernel", 6, 1), WIRE_OK);
    assert_int_equal(frame_send(p.writer, RUNNER_QUIT, NULL, 0, 1), WIRE_OK);
    Frame frame = {0};
    assert_int_equal(frame_receive(p.reader, &frame, 1), WIRE_OK);
    assert_int_equal(frame.type, RUNNER_LOAD);
    assert_int_equal(frame.bytes, 6);
    assert_memory_equal(frame.payload, "kernel", 6);
    assert_int_equal(frame_receive(p.reader, &frame, 1), WIRE_OK);
    assert_int_equal(frame.type, RUNNER_QUIT);
    assert_int_equal(frame.bytes, 0);
    close(p.writer);
    p.writer = -1;
    assert_int_equal(frame_receive(p.reader, &frame, 1), WIRE_CLOSED);
    frame_free(&frame);
    pipe_close(&p);
}

static void test_a_frame_larger_than_the_pipe_arrives(void **state) {
    (void)state;
    enum { BYTES = 5000000 };
    Pipe p = pipe_new();
    uint8_t *payload = malloc(BYTES);
    assert_non_null(payload);
    for (int i = 0; i < BYTES; i++) {
        payload[i] = (uint8_t)(i * 7 + i / 256);
    }
    pid_t sender = fork();
    if (sender == 0) {
        close(p.reader);
        _exit(frame_send(p.writer, 9, payload, BYTES, 20) == WIRE_OK ? 0 : 1);
    }
    close(p.writer);
    p.writer = -1;
    Frame frame = {0};
    assert_int_equal(frame_receive(p.reader, &frame, 20), WIRE_OK);
    assert_int_equal(frame.bytes, BYTES);
    assert_memory_equal(frame.payload, payload, BYTES);
    int status;
    assert_int_equal(waitpid(sender, &status, 0), sender);
    assert_int_equal(status, 0);
    free(payload);
    frame_free(&frame);
    pipe_close(&p);
}

static const uint8_t good_frame[] = {'C', 'T', 'G', '1', 1, 0, 3, 0, 2, 0, 0, 0, 'o', 'k'};

static void test_the_frame_format_is_fixed(void **state) {
    (void)state;
    Pipe p = pipe_new();
    uint8_t bytes[32];
    assert_int_equal(frame_send(p.writer, RUNNER_OK, "ok", 2, 1), WIRE_OK);
    assert_int_equal(read(p.reader, bytes, sizeof bytes), sizeof good_frame);
    assert_memory_equal(bytes, good_frame, sizeof good_frame);
    pipe_close(&p);
}

static void test_a_frame_cut_anywhere_is_corrupt(void **state) {
    (void)state;
    Frame frame = {0};
    assert_int_equal(receive_raw(good_frame, 0, &frame), WIRE_CLOSED);
    for (size_t cut = 1; cut < sizeof good_frame; cut++) {
        assert_int_equal(receive_raw(good_frame, cut, &frame), WIRE_CORRUPT);
        assert_int_equal(frame.bytes, 0);
    }
    assert_int_equal(receive_raw(good_frame, sizeof good_frame, &frame), WIRE_OK);
    frame_free(&frame);
}

static void test_a_damaged_header_is_corrupt(void **state) {
    (void)state;
    Frame frame = {0};
    for (size_t at = 0; at < 12; at++) {
        if (at == 6 || at == 7) {
            continue; // the type is the receiver's business
        }
        uint8_t damaged[sizeof good_frame];
        memcpy(damaged, good_frame, sizeof damaged);
        damaged[at] ^= 0x40;
        assert_int_equal(receive_raw(damaged, sizeof damaged, &frame), WIRE_CORRUPT);
    }
    frame_free(&frame);
}

static void test_a_lying_length_costs_no_memory(void **state) {
    (void)state;
    static const uint8_t lying[] = {'C', 'T', 'G', '1', 1, 0, 3, 0, 0, 0, 0, 4, 'x'}; // 64 MiB
    Frame frame = {0};
    assert_int_equal(receive_raw(lying, sizeof lying, &frame), WIRE_CORRUPT);
    assert_true(frame.capacity <= 2 << 20);
    static const uint8_t beyond[] = {'C', 'T', 'G', '1', 1, 0, 3, 0, 1, 0, 0, 4, 'x'};
    assert_int_equal(receive_raw(beyond, sizeof beyond, &frame), WIRE_CORRUPT);
    frame_free(&frame);
}

static void test_a_silent_peer_is_a_timeout(void **state) {
    (void)state;
    Pipe p = pipe_new();
    Frame frame = {0};
    double begin = now();
    assert_int_equal(frame_receive(p.reader, &frame, 0.1), WIRE_TIMEOUT);
    assert_int_equal(write(p.writer, good_frame, 5), 5); // and one that stops midway
    assert_int_equal(frame_receive(p.reader, &frame, 0.1), WIRE_TIMEOUT);
    double waited = now() - begin;
    assert_true(waited >= 0.2 && waited < 2);
    frame_free(&frame);
    pipe_close(&p);
}

static void test_a_peer_that_does_not_read_is_a_timeout(void **state) {
    (void)state;
    Pipe p = pipe_new();
    enum { BYTES = 1 << 20 }; // more than a pipe holds
    uint8_t *payload = calloc(1, BYTES);
    assert_non_null(payload);
    double begin = now();
    assert_int_equal(frame_send(p.writer, 1, payload, BYTES, 0.1), WIRE_TIMEOUT);
    assert_true(now() - begin < 2);
    assert_false(fcntl(p.writer, F_GETFL) & O_NONBLOCK); // left as it was
    free(payload);
    pipe_close(&p);
}

static void test_sending_to_a_dead_peer_is_closed(void **state) {
    (void)state;
    Pipe p = pipe_new();
    close(p.reader);
    assert_int_equal(frame_send(p.writer, 1, "x", 1, 1), WIRE_CLOSED);
    close(p.writer);
    assert_int_equal(frame_send(-1, 1, "x", 1, 1), WIRE_CLOSED);
    Frame frame = {0};
    assert_int_equal(frame_receive(-1, &frame, -1), WIRE_CLOSED);
}

static void test_a_payload_beyond_the_limit_is_not_sent(void **state) {
    (void)state;
    Pipe p = pipe_new();
    uint8_t byte = 0;
    assert_int_equal(frame_send(p.writer, 1, &byte, WIRE_MAX_PAYLOAD + 1, 1), WIRE_CORRUPT);
    close(p.writer);
    p.writer = -1;
    assert_int_equal(read(p.reader, &byte, 1), 0);
    pipe_close(&p);
}

int main(void) {
    signal(SIGPIPE, SIG_IGN); // as every program that sends frames does
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values_come_out_as_they_went_in),
        cmocka_unit_test(test_payload_truncated_anywhere_fails_and_gives_zeros),
        cmocka_unit_test(test_text_with_a_lying_length_fails),
        cmocka_unit_test(test_long_text_is_cut_between_characters_and_reading_goes_on),
        cmocka_unit_test(test_report_and_mismatch_survive_the_wire),
        cmocka_unit_test(test_enumerations_and_ranks_out_of_range_are_refused),
        cmocka_unit_test(test_every_kind_and_shape_has_its_own_name),
        cmocka_unit_test(test_frames_arrive_whole_and_in_order),
        cmocka_unit_test(test_a_frame_larger_than_the_pipe_arrives),
        cmocka_unit_test(test_the_frame_format_is_fixed),
        cmocka_unit_test(test_a_frame_cut_anywhere_is_corrupt),
        cmocka_unit_test(test_a_damaged_header_is_corrupt),
        cmocka_unit_test(test_a_lying_length_costs_no_memory),
        cmocka_unit_test(test_a_silent_peer_is_a_timeout),
        cmocka_unit_test(test_a_peer_that_does_not_read_is_a_timeout),
        cmocka_unit_test(test_sending_to_a_dead_peer_is_closed),
        cmocka_unit_test(test_a_payload_beyond_the_limit_is_not_sent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
