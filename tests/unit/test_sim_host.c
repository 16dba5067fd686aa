/* test_sim_host.c - the simulator's memory, fat binaries and reports, without any kernel. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "sim/host.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* ---- memory -------------------------------------------------------------------------------- */

static bool initialized(uint64_t address) {
    const Allocation *a = memory_find(address);
    uint64_t at = address - a->base;
    return !a->initialized || a->initialized[at / 8] >> at % 8 & 1;
}

static void test_allocation_is_aligned_and_bounded_to_the_byte(void **state) {
    (void)state;
    for (size_t bytes = 1; bytes < 9000; bytes = bytes * 3 + 1) {
        uint64_t p = (uint64_t)memory_allocate(bytes, NULL);
        assert_non_null((void *)p);
        assert_int_equal(p % 256, 0);
        assert_ptr_equal(memory_find(p), memory_find(p + bytes - 1));
        assert_int_equal(memory_find(p)->bytes, bytes);
        assert_null(memory_find(p + bytes));
        assert_null(memory_find(p - 1));
        assert_true(memory_free((void *)p));
        assert_null(memory_find(p));
    }
}

static void test_stray_address_is_attributed_to_the_nearest_allocation(void **state) {
    (void)state;
    uint64_t a = (uint64_t)memory_allocate(1000, "first");
    uint64_t b = (uint64_t)memory_allocate(1000, "second");
    assert_string_equal(memory_nearest(a + 1003)->name, "first");
    assert_string_equal(memory_nearest(b - 4)->name, "second");
    assert_string_equal(memory_nearest(b + 70000)->name, "second");
    memory_free((void *)a);
    memory_free((void *)b);
    assert_null(memory_nearest(a));
}

static void test_overrun_by_its_own_size_does_not_reach_a_neighbour(void **state) {
    (void)state;
    const size_t bytes = 1 << 20;
    uint64_t a = (uint64_t)memory_allocate(bytes, NULL);
    uint64_t b = (uint64_t)memory_allocate(bytes, NULL);
    assert_null(memory_find(a + 2 * bytes - 1));
    assert_null(memory_find(b - bytes));
    memory_free((void *)a);
    memory_free((void *)b);
}

static void test_freed_address_is_not_handed_out_again(void **state) {
    (void)state;
    void *first = memory_allocate(4096, NULL);
    memory_free(first);
    for (int i = 0; i < 100; i++) {
        void *next = memory_allocate(4096, NULL);
        assert_ptr_not_equal(next, first);
        memory_free(next);
    }
}

static void test_free_of_what_is_not_ours_is_refused(void **state) {
    (void)state;
    char local;
    char *p = memory_allocate(100, NULL);
    assert_false(memory_free(&local));
    assert_false(memory_free(p + 1));
    assert_false(memory_free(NULL));
    assert_true(memory_free(p));
    assert_false(memory_free(p));
}

static void test_more_than_the_device_has_is_refused_and_used_is_given_back(void **state) {
    (void)state;
    uint64_t before = memory_used();
    assert_null(memory_allocate((size_t)1 << 40, NULL));
    assert_null(memory_allocate(SIZE_MAX, NULL));
    assert_null(memory_allocate(0, NULL));
    void *half = memory_allocate(memory_total() / 2 + (1 << 20), NULL);
    assert_non_null(half);
    assert_null(memory_allocate(memory_total() / 2 + (1 << 20), NULL));
    assert_true(memory_used() - before >= memory_total() / 2);
    assert_true(memory_free(half));
    assert_int_equal(memory_used(), before);
}

static void test_fresh_memory_is_poisoned_and_counts_as_unwritten(void **state) {
    (void)state;
    uint8_t *p = memory_allocate(1000, NULL);
    assert_int_equal(p[0], 0xFF);
    assert_int_equal(p[999], 0xFF);
    for (int i = 0; i < 1000; i++)
        assert_false(initialized((uint64_t)p + (uint64_t)i));
    memory_free(p);
}

static void test_marks_cover_exactly_the_bytes_given(void **state) {
    (void)state;
    uint64_t p = (uint64_t)memory_allocate(64, NULL);
    for (uint64_t begin = 0; begin < 20; begin++) {
        for (uint64_t end = begin; end <= 40; end++) {
            memory_mark(p, 64, false);
            memory_mark(p + begin, end - begin, true);
            for (uint64_t i = 0; i < 64; i++)
                assert_int_equal(initialized(p + i), i >= begin && i < end);
        }
    }
    memory_mark(p + 60, 1000, true); // clipped at the end
    assert_true(initialized(p + 63));
    memory_free((void *)p);
}

static void test_copied_marks_follow_the_bytes(void **state) {
    (void)state;
    uint64_t from = (uint64_t)memory_allocate(256, NULL);
    uint64_t to = (uint64_t)memory_allocate(256, NULL);
    for (uint64_t i = 0; i < 256; i += 3)
        memory_mark(from + i, 1, true);
    for (uint64_t shift = 0; shift < 9; shift++) {
        memory_mark(to, 256, false);
        memory_copy_marks(to + shift, from + 5, 100);
        for (uint64_t i = 0; i < 256; i++) {
            bool copied = i >= shift && i < shift + 100;
            assert_int_equal(initialized(to + i), copied && (i - shift + 5) % 3 == 0);
        }
    }
    char host[16];
    memory_copy_marks(to + 200, (uint64_t)host, 16); // from where nothing is tracked
    assert_true(initialized(to + 200) && initialized(to + 215));
    assert_false(initialized(to + 216));
    memory_free((void *)from);
    memory_free((void *)to);
}

static void test_host_and_managed_memory_counts_as_written(void **state) {
    (void)state;
    void *host = memory_allocate_kind(100, NULL, MEMORY_HOST);
    void *managed = memory_allocate_kind(100, NULL, MEMORY_MANAGED);
    assert_true(initialized((uint64_t)host));
    assert_true(initialized((uint64_t)managed));
    assert_int_equal(memory_kind(memory_find((uint64_t)host)), MEMORY_HOST);
    memory_free(host);
    memory_free(managed);
}

static void test_registered_host_memory_is_found_until_it_is_unregistered(void **state) {
    (void)state;
    static char buffer[1000];
    assert_true(memory_register(buffer, sizeof buffer));
    assert_false(memory_register(buffer + 999, 10));
    assert_non_null(memory_find((uint64_t)buffer + 999));
    assert_false(memory_free(buffer));
    assert_true(memory_unregister(buffer));
    assert_null(memory_find((uint64_t)buffer));
    assert_false(memory_unregister(buffer));
}

static void test_name_limits_what_may_be_touched_until_it_is_forgotten(void **state) {
    (void)state;
    char *p = memory_allocate(1000, NULL);
    sim_name(p + 256, 400, "x");
    const Allocation *a = memory_find((uint64_t)p);
    assert_string_equal(a->name, "x");
    assert_int_equal(a->named_base, (uint64_t)p + 256);
    assert_int_equal(a->named_bytes, 400);
    sim_name(p + 256, 4000, "x");
    assert_int_equal(a->named_bytes, 1000 - 256);
    sim_name(p, 0, NULL);
    assert_string_equal(a->name, "");
    assert_int_equal(a->named_base, 0);
    sim_name(&a, 10, "nobody's"); // not ours: ignored
    memory_free(p);
}

static void test_memory_freed_during_a_launch_stays_readable_until_it_ends(void **state) {
    (void)state;
    char *p = memory_allocate(100, NULL);
    memory_enter();
    memory_enter();
    const Allocation *held = memory_find((uint64_t)p);
    p[5] = 6;
    assert_true(memory_free(p));
    assert_null(memory_find((uint64_t)p));
    memory_leave();
    assert_int_equal(held->bytes, 100);
    assert_int_equal(p[5], 6);
    memory_leave();
}

static void *allocate_and_free(void *context) {
    for (int i = 0; i < 2000; i++) {
        void *p = memory_allocate(64, NULL);
        if (!p || !memory_free(p)) *(bool *)context = true;
    }
    return NULL;
}

static void test_lookups_are_right_while_others_allocate(void **state) {
    (void)state;
    bool failed = false;
    pthread_t writer;
    uint64_t p = (uint64_t)memory_allocate(1000, NULL);
    assert_int_equal(pthread_create(&writer, NULL, allocate_and_free, &failed), 0);
    for (int i = 0; i < 200000; i++) {
        memory_enter();
        const Allocation *a = memory_find(p + 500);
        assert_true(a && a->base == p && a->bytes == 1000);
        memory_leave();
    }
    pthread_join(writer, NULL);
    assert_false(failed);
    memory_free((void *)p);
}

/* ---- fat binaries ------------------------------------------------------------------------------
 */

/* A container that ends where its page ends: one byte too many is a crash. */
typedef struct {
    uint8_t *begin, *end;
    uint8_t *pages;
} Image;

enum { IMAGE_PAGES = 4, PAGE = 4096 };

static Image image_new(size_t bytes) {
    uint8_t *pages = mmap(NULL, (IMAGE_PAGES + 1) * PAGE, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(pages, MAP_FAILED);
    uint8_t *end = pages + IMAGE_PAGES * PAGE;
    assert_int_equal(mprotect(end, PAGE, PROT_NONE), 0);
    return (Image){.begin = end - bytes, .end = end, .pages = pages};
}

static void image_free(Image *image) {
    munmap(image->pages, (IMAGE_PAGES + 1) * PAGE);
}

typedef struct {
    uint16_t kind;
    uint32_t arch;
    uint64_t flags;
    const void *payload;
    uint64_t bytes;
} Part;

#define PTX_FLAGS      0x11
#define SPECIFIC_FLAGS 0x100011
#define ZSTD_FLAGS     0x8011

static Image container(const Part *parts, size_t count) {
    size_t bytes = 16;
    for (size_t i = 0; i < count; i++)
        bytes += 64 + parts[i].bytes;
    Image image = image_new(bytes);
    uint8_t *at = image.begin;
    uint64_t body = bytes - 16;
    memcpy(at, "\x50\xed\x55\xba\x01\x00\x10\x00", 8);
    memcpy(at + 8, &body, 8);
    at += 16;
    for (size_t i = 0; i < count; i++) {
        uint32_t header = 64;
        memset(at, 0, 64);
        memcpy(at, &parts[i].kind, 2);
        memcpy(at + 4, &header, 4);
        memcpy(at + 8, &parts[i].bytes, 8);
        memcpy(at + 28, &parts[i].arch, 4);
        memcpy(at + 40, &parts[i].flags, 8);
        memcpy(at + 64, parts[i].payload, parts[i].bytes);
        at += 64 + parts[i].bytes;
    }
    return image;
}

static size_t image_bytes(const Image *image) {
    return (size_t)(image->end - image->begin);
}

static void test_ptx_for_the_device_is_picked_from_several(void **state) {
    (void)state;
    const Part parts[] = {{2, 90, SPECIFIC_FLAGS, "ELF.", 4},
                          {1, 80, PTX_FLAGS, "for 80\0", 8},
                          {1, 90, SPECIFIC_FLAGS, "for 90a", 8},
                          {1, 90, PTX_FLAGS, "for 90\0", 8},
                          {1, 100, PTX_FLAGS, "for 100", 8}};
    Image image = container(parts, 5);
    const char *text;
    size_t bytes;
    char message[512];
    setenv("CUTEGEN_SIM_ARCH", "sm_90a", 1);
    assert_true(fatbin_container_ptx(image.begin, image_bytes(&image), &text, &bytes, message));
    assert_string_equal(text, "for 90a");
    assert_int_equal(bytes, 7);
    setenv("CUTEGEN_SIM_ARCH", "sm_89", 1);
    assert_true(fatbin_container_ptx(image.begin, image_bytes(&image), &text, &bytes, message));
    assert_string_equal(text, "for 80");
    unsetenv("CUTEGEN_SIM_ARCH");
    image_free(&image);
}

static void assert_refused(const Part *part, size_t count, const char *expected) {
    Image image = container(part, count);
    const char *text;
    size_t bytes;
    char message[512] = "";
    assert_false(fatbin_container_ptx(image.begin, image_bytes(&image), &text, &bytes, message));
    assert_string_equal(message, expected);
    image_free(&image);
}

static void test_container_without_usable_ptx_is_refused_with_what_to_do(void **state) {
    (void)state;
    const Part elf = {2, 90, SPECIFIC_FLAGS, "ELF.", 4};
    const Part newer = {1, 100, PTX_FLAGS, "text", 5};
    const Part packed = {1, 90, ZSTD_FLAGS, "text", 5};
    assert_refused(&elf, 1, "built without PTX: add code=[compute_XX,sm_XX] to -gencode");
    assert_refused(NULL, 0, "built without PTX: add code=[compute_XX,sm_XX] to -gencode");
    assert_refused(&newer, 1,
                   "its PTX is for compute_100, which sm_90a does not run: build it for sm_90a");
    assert_refused(&packed, 1, "its PTX is compressed: add --no-compress to nvcc's flags");
}

static void test_text_that_fills_its_entry_is_not_read_past_the_end(void **state) {
    (void)state;
    const Part part = {1, 90, PTX_FLAGS, "unterminated", 12};
    Image image = container(&part, 1);
    const char *text;
    size_t bytes;
    char message[512];
    assert_true(fatbin_container_ptx(image.begin, image_bytes(&image), &text, &bytes, message));
    assert_int_equal(bytes, 12);
    image_free(&image);
}

static void test_container_with_any_byte_damaged_is_read_within_its_bounds(void **state) {
    (void)state;
    const Part parts[] = {{1, 90, PTX_FLAGS, "some PTX text", 14}, {2, 90, PTX_FLAGS, "ELF", 4}};
    Image image = container(parts, 2);
    size_t size = image_bytes(&image);
    const char *text;
    const uint8_t *cubin;
    size_t bytes;
    char message[512];
    for (size_t at = 0; at < size; at++) {
        for (int bit = 0; bit < 8; bit++) {
            image.begin[at] ^= (uint8_t)(1 << bit);
            if (fatbin_container_ptx(image.begin, size, &text, &bytes, message))
                assert_true((const uint8_t *)text + bytes <= image.end);
            if (fatbin_container_cubin(image.begin, size, &cubin, &bytes))
                assert_true(cubin + bytes <= image.end);
            image.begin[at] ^= (uint8_t)(1 << bit);
        }
    }
    for (size_t cut = 0; cut < size; cut++) // truncated, the header saying the full length
        fatbin_container_ptx(image.begin, cut, &text, &bytes, message);
    image_free(&image);
}

static void test_wrapper_without_magic_is_refused(void **state) {
    (void)state;
    static const uint64_t zeros[8];
    const char *text;
    size_t bytes;
    char message[512];
    assert_false(fatbin_find_ptx(zeros, &text, &bytes, message));
    assert_string_equal(message, "not a fat binary: its wrapper has no magic number");
    assert_false(fatbin_find_ptx(NULL, &text, &bytes, message));
    const uint64_t wrapper[3] = {0x1466243b1ull, (uint64_t)zeros, 0};
    assert_false(fatbin_find_ptx(wrapper, &text, &bytes, message));
    assert_string_equal(message, "not a fat binary: its container has no magic number");
}

/* Builds real machine code with the ptxas that is installed. */
static size_t build_cubin(uint8_t *out, size_t capacity) {
    FILE *pipe = popen("bash " SOURCE_ROOT "/tests/support/build_cubin.sh " SOURCE_ROOT, "r");
    assert_non_null(pipe);
    size_t bytes = fread(out, 1, capacity, pipe);
    assert_int_equal(pclose(pipe), 0);
    return bytes;
}

static void test_registers_and_stack_are_read_from_machine_code(void **state) {
    (void)state;
    static uint8_t cubin[1 << 16];
    size_t bytes = build_cubin(cubin, sizeof cubin);
    CubinFigures figures;
    assert_true(cubin_figures(cubin, bytes, "simple", &figures));
    assert_in_range(figures.registers, 4, 32);
    assert_int_equal(figures.stack_bytes, 0);
    assert_true(cubin_figures(cubin, bytes, "with_stack", &figures));
    assert_int_equal(figures.stack_bytes, 400);
    assert_false(cubin_figures(cubin, bytes, "absent", &figures));
}

static void test_damaged_machine_code_is_read_within_its_bounds(void **state) {
    (void)state;
    static uint8_t cubin[1 << 14];
    size_t bytes = build_cubin(cubin, sizeof cubin);
    Image image = image_new(bytes);
    CubinFigures figures;
    srand(1);
    for (int round = 0; round < 20000; round++) {
        memcpy(image.begin, cubin, bytes);
        for (int i = 0; i < 4; i++)
            image.begin[(size_t)rand() % (round % 2 ? bytes : 64)] = (uint8_t)rand();
        cubin_figures(image.begin, bytes, "with_stack", &figures);
    }
    memcpy(image.begin, cubin, bytes);
    for (size_t cut = 0; cut < bytes; cut += 7)
        cubin_figures(image.end - cut, cut, "with_stack", &figures);
    image_free(&image);
}

/* ---- reports
 * -------------------------------------------------------------------------------------- */

static SimReport finding(uint32_t line, uint32_t block, uint32_t thread) {
    SimReport r = {.kind = SIM_OUT_OF_BOUNDS, .line = line, .thread = {thread}, .block = {block}};
    snprintf(r.kernel, sizeof r.kernel, "k");
    snprintf(r.file, sizeof r.file, "kernel.cu");
    snprintf(r.tensor, sizeof r.tensor, "x");
    return r;
}

static void add(SimReport report) {
    report_add(&report);
}

static void test_findings_at_one_place_are_counted_and_the_first_thread_is_named(void **state) {
    (void)state;
    SimReport reports[8];
    add(finding(57, 3, 5));
    add(finding(57, 1, 9));
    add(finding(57, 1, 8));
    add(finding(57, 2, 0));
    assert_int_equal(sim_take_reports(NULL, 0), 1);
    assert_int_equal(sim_take_reports(reports, 8), 1);
    assert_int_equal(reports[0].count, 4);
    assert_int_equal(reports[0].block[0], 1);
    assert_int_equal(reports[0].thread[0], 8);
    assert_int_equal(sim_take_reports(reports, 8), 0);
}

static void test_findings_that_differ_in_kind_line_or_tensor_stay_apart(void **state) {
    (void)state;
    SimReport reports[8];
    SimReport other_kind = finding(10, 0, 0), other_tensor = finding(10, 0, 0);
    other_kind.kind = SIM_UNINITIALIZED;
    snprintf(other_tensor.tensor, sizeof other_tensor.tensor, "y");
    add(finding(20, 0, 0));
    add(other_tensor);
    add(other_kind);
    add(finding(10, 0, 0));
    assert_int_equal(sim_take_reports(reports, 8), 4);
    assert_int_equal(reports[0].line, 10);
    assert_int_equal(reports[3].line, 20);
    assert_string_equal(reports[0].tensor, "x");
    assert_string_equal(reports[1].tensor, "y");
    assert_int_equal(reports[2].kind, SIM_UNINITIALIZED);
}

static void test_more_places_than_are_kept_are_dropped_without_harm(void **state) {
    (void)state;
    for (uint32_t line = 0; line < 5000; line++)
        add(finding(line, 0, 0));
    SimReport *reports = calloc(5000, sizeof *reports);
    assert_int_equal(sim_take_reports(reports, 5000), 4096);
    assert_int_equal(reports[17].line, 17);
    free(reports);
}

static void *add_many(void *context) {
    for (uint32_t i = 0; i < 5000; i++)
        add(finding(i % 7, i, *(uint32_t *)context));
    return NULL;
}

static void test_threads_adding_at_once_give_the_same_reports(void **state) {
    (void)state;
    pthread_t threads[4];
    uint32_t ids[4] = {3, 1, 2, 0};
    SimReport reports[8];
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, add_many, &ids[i]), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(sim_take_reports(reports, 8), 7);
    uint64_t sum = 0;
    for (uint32_t i = 0; i < 7; i++) {
        sum += reports[i].count;
        assert_int_equal(reports[i].line, i);
        assert_int_equal(reports[i].block[0], i);
        assert_int_equal(reports[i].thread[0], 0);
    }
    assert_int_equal(sum, 20000);
}

static void test_counters_add_up_until_the_next_launch(void **state) {
    (void)state;
    SimCounter counters[4];
    counter_add("old", "inst", 1);
    counters_begin();
    counter_add("k", "sectors", 2);
    counter_add("k", "inst", 10);
    counter_add("k", "inst", 5);
    assert_int_equal(sim_take_counters(counters, 4), 2);
    assert_string_equal(counters[0].counter, "inst");
    assert_true(counters[0].value == 15);
    assert_string_equal(counters[1].counter, "sectors");
}

/* ---- the device
 * ------------------------------------------------------------------------------------ */

static void test_device_follows_the_chosen_architecture(void **state) {
    (void)state;
    assert_string_equal(sim_arch(), "sm_90a");
    assert_int_equal(sim_device()->multiprocessors, 132);
    assert_int_equal(sim_device()->shared_per_block_optin, 227 << 10);
    setenv("CUTEGEN_SIM_ARCH", "sm_86", 1);
    assert_string_equal(sim_arch(), "sm_86");
    assert_int_equal(sim_device()->minor, 6);
    assert_int_equal(sim_device()->shared_per_block_optin, 99 << 10);
    unsetenv("CUTEGEN_SIM_ARCH");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_allocation_is_aligned_and_bounded_to_the_byte),
        cmocka_unit_test(test_stray_address_is_attributed_to_the_nearest_allocation),
        cmocka_unit_test(test_overrun_by_its_own_size_does_not_reach_a_neighbour),
        cmocka_unit_test(test_freed_address_is_not_handed_out_again),
        cmocka_unit_test(test_free_of_what_is_not_ours_is_refused),
        cmocka_unit_test(test_more_than_the_device_has_is_refused_and_used_is_given_back),
        cmocka_unit_test(test_fresh_memory_is_poisoned_and_counts_as_unwritten),
        cmocka_unit_test(test_marks_cover_exactly_the_bytes_given),
        cmocka_unit_test(test_copied_marks_follow_the_bytes),
        cmocka_unit_test(test_host_and_managed_memory_counts_as_written),
        cmocka_unit_test(test_registered_host_memory_is_found_until_it_is_unregistered),
        cmocka_unit_test(test_name_limits_what_may_be_touched_until_it_is_forgotten),
        cmocka_unit_test(test_memory_freed_during_a_launch_stays_readable_until_it_ends),
        cmocka_unit_test(test_lookups_are_right_while_others_allocate),
        cmocka_unit_test(test_ptx_for_the_device_is_picked_from_several),
        cmocka_unit_test(test_container_without_usable_ptx_is_refused_with_what_to_do),
        cmocka_unit_test(test_text_that_fills_its_entry_is_not_read_past_the_end),
        cmocka_unit_test(test_container_with_any_byte_damaged_is_read_within_its_bounds),
        cmocka_unit_test(test_wrapper_without_magic_is_refused),
        cmocka_unit_test(test_registers_and_stack_are_read_from_machine_code),
        cmocka_unit_test(test_damaged_machine_code_is_read_within_its_bounds),
        cmocka_unit_test(test_findings_at_one_place_are_counted_and_the_first_thread_is_named),
        cmocka_unit_test(test_findings_that_differ_in_kind_line_or_tensor_stay_apart),
        cmocka_unit_test(test_more_places_than_are_kept_are_dropped_without_harm),
        cmocka_unit_test(test_threads_adding_at_once_give_the_same_reports),
        cmocka_unit_test(test_counters_add_up_until_the_next_launch),
        cmocka_unit_test(test_device_follows_the_chosen_architecture),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
