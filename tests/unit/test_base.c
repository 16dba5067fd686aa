/* test_base.c - errors, arenas, text, JSON, files, locks and hashes. */
#include "base/base.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

typedef struct {
    Arena *arena;
    char *directory; // a scratch directory of its own for each test
    Error err;
} World;

static int set_up(void **state) {
    World *world = calloc(1, sizeof *world);
    assert_non_null(world);
    world->arena = arena_new();
    world->directory = directory_scratch(world->arena, "test-base", &world->err);
    assert_non_null(world->directory);
    *state = world;
    return 0;
}

static int tear_down(void **state) {
    World *world = *state;
    assert_true(directory_remove(world->directory, &world->err));
    arena_free(world->arena);
    free(world);
    return 0;
}

static char *inside(World *world, const char *name) {
    return path_join(world->arena, world->directory, name);
}

static void write_file(World *world, const char *path, const char *text) {
    assert_true(file_write_atomic(path, text, strlen(text), &world->err));
}

static char *contents(World *world, const char *path) {
    char *text;
    assert_true(file_read(world->arena, path, 1 << 20, &text, NULL, &world->err));
    return text;
}

/* ---- errors and memory ------------------------------------------------------------------- */

static void test_error_may_quote_the_message_it_replaces(void **state) {
    World *world = *state;
    assert_false(error_input(&world->err, "line %d", 3));
    assert_false(error_harness(&world->err, "task.yaml: %s", world->err.message));
    assert_int_equal(world->err.kind, ERROR_HARNESS);
    assert_string_equal(world->err.message, "task.yaml: line 3");
}

static void test_an_endless_error_is_cut_between_characters(void **state) {
    World *world = *state;
    char longer[4096];
    for (size_t offset = 0; offset < 3; offset++) {
        memset(longer, 'a', offset);
        for (size_t i = offset; i + 3 < sizeof longer; i += 3) {
            memcpy(longer + i, "∞", 4);
        }
        assert_false(error_stopped(&world->err, "%s", longer));
        assert_true(text_ends_with(world->err.message, "…"));
        assert_true(text_is_utf8(world->err.message, strlen(world->err.message)));
    }
}

static void test_arena_memory_is_zeroed_aligned_and_apart(void **state) {
    World *world = *state;
    unsigned char *before = NULL;
    for (size_t bytes = 0; bytes < 3000; bytes += 7) {
        unsigned char *at = arena_alloc(world->arena, bytes);
        assert_int_equal((uintptr_t)at % 16, 0);
        assert_ptr_not_equal(at, before);
        for (size_t i = 0; i < bytes; i++) {
            assert_int_equal(at[i], 0);
        }
        memset(at, 0xFF, bytes);
        before = at;
    }
    char *large = arena_alloc(world->arena, 10 << 20);
    assert_int_equal(large[0] | large[(10 << 20) - 1], 0);
}

static char order[8];
static void note_order(void *what) {
    strcat(order, what);
}

static void test_deferred_cleanups_run_in_reverse_order(void **state) {
    (void)state;
    Arena *arena = arena_new();
    order[0] = '\0';
    arena_defer(arena, note_order, "a");
    arena_defer(arena, note_order, "b");
    arena_defer(arena, note_order, arena_string(arena, "c")); // its memory is still there
    arena_free(arena);
    assert_string_equal(order, "cba");
    arena_free(NULL);
}

/* ---- text and JSON ------------------------------------------------------------------------ */

static void test_buf_grows_and_moves_into_an_arena(void **state) {
    World *world = *state;
    Buf buf = {0};
    assert_string_equal(buf_take(world->arena, &buf), "");
    for (int i = 0; i < 1000; i++) {
        buf_printf(&buf, "%d,", i);
    }
    buf_append(&buf, "\0z", 2);
    size_t length = buf.length;
    char *text = buf_take(world->arena, &buf);
    assert_null(buf.data);
    assert_int_equal(length, 10 * 2 + 90 * 3 + 900 * 4 + 2);
    assert_true(text_starts_with(text, "0,1,2,"));
    assert_memory_equal(text + length - 6, "999,\0z", 6);
    assert_int_equal(text[length], '\0');
}

static void test_nearest_word_is_offered_only_when_it_is_near(void **state) {
    (void)state;
    static const char *const words[] = {"f32", "f16", "bf16", "normal", "uniform", "integers"};
    assert_string_equal(text_nearest("fp32", words, COUNT_OF(words)), "f32");
    assert_string_equal(text_nearest("nromal", words, COUNT_OF(words)), "normal");
    assert_string_equal(text_nearest("integer", words, COUNT_OF(words)), "integers");
    assert_null(text_nearest("complex", words, COUNT_OF(words)));
    assert_null(text_nearest("", words, COUNT_OF(words)));
    assert_null(text_nearest("f32", words, 0));
    char endless[5000];
    memset(endless, 'f', sizeof endless - 1);
    endless[sizeof endless - 1] = '\0';
    assert_null(text_nearest(endless, words, COUNT_OF(words)));
}

static void test_utf8_is_told_from_other_bytes(void **state) {
    (void)state;
    static const char *const good[] = {"", "plain", "é∞😀", "\xEF\xBF\xBD", "\xF4\x8F\xBF\xBF"};
    static const char *const bad[] = {"\xFF",         "\xC3",         "\xC0\x80",
                                      "\xE0\x80\x80", "\xED\xA0\x80", "\xF4\x90\x80\x80",
                                      "a\x80",        "\xE2\x28\xA1", "\xF0\x9F\x98"};
    for (size_t i = 0; i < COUNT_OF(good); i++) {
        assert_true(text_is_utf8(good[i], strlen(good[i])));
    }
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        assert_false(text_is_utf8(bad[i], strlen(bad[i])));
    }
}

static void test_json_keeps_order_and_every_bit_of_a_number(void **state) {
    World *world = *state;
    static const char line[] = "{\"z\":1,\"a\":[true,null],\"t\":0.10000000000000001}";
    Json *json;
    assert_true(json_parse(world->arena, line, strlen(line), "here", &json, &world->err));
    assert_string_equal(json_line(world->arena, json), line);
    assert_true(json_real_or(json, "t", 0) == 0.1);
    assert_true(json_real_or(json, "z", 0) == 1);
    assert_int_equal(json_int_or(json, "z", 0), 1);
    assert_int_equal(json_int_or(json, "t", -1), -1);
    assert_string_equal(json_text(json, "missing", "otherwise"), "otherwise");
    assert_null(json_text(json, "z", NULL));
}

static void test_bad_json_is_an_input_error_with_its_place(void **state) {
    World *world = *state;
    static const char text[] = "{\n  \"a\": 1,\n  \"a\": 2\n}";
    Json *json = NULL;
    assert_false(json_parse(world->arena, text, strlen(text), "run.jsonl", &json, &world->err));
    assert_int_equal(world->err.kind, ERROR_INPUT);
    assert_true(text_starts_with(world->err.message, "run.jsonl:3:"));
    assert_non_null(strstr(world->err.message, "duplicate"));
    assert_false(json_parse(world->arena, "", 0, "empty", &json, &world->err));
    assert_false(json_parse(world->arena, "\xFF\xFE", 2, "binary", &json, &world->err));
    assert_false(json_parse(world->arena, "1 2", 3, "two", &json, &world->err));
    char deep[20000];
    memset(deep, '[', sizeof deep);
    assert_false(json_parse(world->arena, deep, sizeof deep, "deep", &json, &world->err));
    assert_null(json);
}

/* ---- paths and files ---------------------------------------------------------------------- */

static void test_paths_are_joined_and_taken_apart(void **state) {
    World *world = *state;
    Arena *a = world->arena;
    assert_string_equal(path_join(a, "a", "b"), "a/b");
    assert_string_equal(path_join(a, "a/", "b"), "a/b");
    assert_string_equal(path_join(a, "a", "/b"), "/b");
    assert_string_equal(path_join(a, "", "b"), "b");
    assert_string_equal(path_base("/x/y.cu"), "y.cu");
    assert_string_equal(path_base("y.cu"), "y.cu");
    assert_string_equal(path_directory(a, "/x/y"), "/x");
    assert_string_equal(path_directory(a, "/x"), "/");
    assert_string_equal(path_directory(a, "x"), ".");
    char *here = path_absolute(a, ".");
    assert_string_equal(path_absolute(a, "new.file"), path_join(a, here, "new.file"));
    assert_string_equal(path_absolute(a, "./new.file"), path_join(a, here, "new.file"));
    assert_int_equal(path_absolute(a, "no/such/dir")[0], '/');
}

static void test_file_is_replaced_whole_and_leaves_nothing_beside_it(void **state) {
    World *world = *state;
    char *path = inside(world, "best.cu");
    write_file(world, path, "old");
    write_file(world, path, "new text");
    assert_string_equal(contents(world, path), "new text");
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(world->directory), 0); // empty, so no temporary file is left
}

static void test_reading_names_the_file_and_the_reason(void **state) {
    World *world = *state;
    char *path = inside(world, "task.yaml"), *text = NULL;
    assert_false(file_read(world->arena, path, 10, &text, NULL, &world->err));
    assert_int_equal(world->err.kind, ERROR_INPUT);
    assert_string_equal(
        world->err.message,
        arena_printf(world->arena, "cannot read %s: No such file or directory", path));
    assert_false(file_read(world->arena, world->directory, 10, &text, NULL, &world->err));
    assert_non_null(strstr(world->err.message, "Is a directory"));
    write_file(world, path, "12345678901");
    assert_false(file_read(world->arena, path, 10, &text, NULL, &world->err));
    assert_string_equal(
        world->err.message,
        arena_printf(world->arena, "%s is larger than 10 bytes, the most that is read", path));
    assert_false(file_read(world->arena, "/dev/zero", 4 << 20, &text, NULL, &world->err));
    assert_non_null(strstr(world->err.message, "larger than 4 MiB"));
    size_t bytes;
    assert_true(file_read(world->arena, path, 11, &text, &bytes, &world->err));
    assert_int_equal(bytes, 11);
}

static void test_full_disk_is_a_harness_fault_and_keeps_the_old_file(void **state) {
    World *world = *state;
    char *path = inside(world, "run.json");
    write_file(world, path, "old");
    struct rlimit before, small = {.rlim_cur = 1000, .rlim_max = RLIM_INFINITY};
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    small.rlim_max = before.rlim_max;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    char large[5000] = {0};
    bool written = file_write_atomic(path, large, sizeof large, &world->err);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_false(written);
    assert_int_equal(world->err.kind, ERROR_HARNESS);
    assert_string_equal(world->err.message,
                        arena_printf(world->arena,
                                     "cannot write %s: File too large; raise the limit (ulimit -f)",
                                     path));
    assert_string_equal(contents(world, path), "old");
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(world->directory), 0);
}

static void test_writing_below_a_file_or_nowhere_is_an_input_error(void **state) {
    World *world = *state;
    write_file(world, inside(world, "file"), "x");
    assert_false(file_write_atomic(inside(world, "file/below"), "x", 1, &world->err));
    assert_int_equal(world->err.kind, ERROR_INPUT);
    assert_false(file_write_atomic(inside(world, "none/below"), "x", 1, &world->err));
    assert_non_null(strstr(world->err.message, "No such file or directory"));
    assert_false(directory_make(inside(world, "file/below"), &world->err));
    assert_non_null(strstr(world->err.message, "Not a directory"));
}

static void test_directories_are_made_with_parents_and_again(void **state) {
    World *world = *state;
    char *path = inside(world, "a/b//c/");
    assert_true(directory_make(path, &world->err));
    assert_true(directory_make(path, &world->err));
    assert_true(path_is_directory(inside(world, "a/b/c")));
    assert_true(directory_make("/", &world->err));
    assert_false(directory_make("", &world->err));
}

static void test_removing_a_directory_follows_no_link(void **state) {
    World *world = *state;
    write_file(world, inside(world, "precious"), "keep");
    assert_true(directory_make(inside(world, "kept/inner"), &world->err));
    assert_true(directory_make(inside(world, "gone/a/b"), &world->err));
    write_file(world, inside(world, "gone/a/b/file"), "x");
    assert_int_equal(symlink("../precious", inside(world, "gone/link")), 0);
    assert_int_equal(symlink(inside(world, "kept"), inside(world, "gone/dirlink")), 0);
    assert_int_equal(chmod(inside(world, "gone/a"), 0), 0);
    assert_true(directory_remove(inside(world, "gone"), &world->err));
    assert_false(path_exists(inside(world, "gone")));
    assert_string_equal(contents(world, inside(world, "precious")), "keep");
    assert_true(path_is_directory(inside(world, "kept/inner")));
    assert_true(directory_remove(inside(world, "gone"), &world->err)); // a missing one is fine
    assert_int_equal(symlink(inside(world, "kept"), inside(world, "top")), 0);
    assert_true(directory_remove(inside(world, "top"), &world->err));
    assert_true(path_is_directory(inside(world, "kept/inner")));
}

static void test_cache_directory_follows_xdg(void **state) {
    World *world = *state;
    char *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    xdg = arena_string(world->arena, xdg);
    home = arena_string(world->arena, home);
    setenv("XDG_CACHE_HOME", inside(world, "xdg"), 1);
    setenv("HOME", world->directory, 1);
    assert_string_equal(directory_cache(world->arena, &world->err), inside(world, "xdg/cutegen"));
    setenv("XDG_CACHE_HOME", "relative", 1);
    assert_string_equal(directory_cache(world->arena, &world->err),
                        inside(world, ".cache/cutegen"));
    assert_true(path_is_directory(inside(world, ".cache/cutegen")));
    unsetenv("XDG_CACHE_HOME");
    unsetenv("HOME");
    assert_null(directory_cache(world->arena, &world->err));
    assert_int_equal(world->err.kind, ERROR_INPUT);
    if (xdg) {
        setenv("XDG_CACHE_HOME", xdg, 1);
    }
    if (home) {
        setenv("HOME", home, 1);
    }
}

static void test_a_held_lock_is_waited_for_refused_or_interrupted(void **state) {
    World *world = *state;
    char *path = inside(world, "lock");
    int held = file_lock(path, true, NULL, &world->err);
    assert_true(held >= 0);
    world->err.kind = ERROR_HARNESS;
    assert_int_equal(file_lock(path, false, NULL, &world->err), -1);
    assert_int_equal(world->err.kind, ERROR_NONE);
    atomic_int stop = 1;
    assert_int_equal(file_lock(path, true, &stop, &world->err), -1);
    assert_int_equal(world->err.kind, ERROR_INTERRUPTED);

    pid_t releaser = fork();
    if (releaser == 0) {
        _exit(0);
    }
    assert_int_equal(waitpid(releaser, NULL, 0), releaser); // shares `held`, lets nothing go
    assert_int_equal(file_lock(path, false, NULL, &world->err), -1);
    close(held);
    int again = file_lock(path, true, NULL, &world->err);
    assert_true(again >= 0);
    close(again);
    assert_int_equal(file_lock(inside(world, "none/lock"), true, NULL, &world->err), -1);
    assert_int_equal(world->err.kind, ERROR_INPUT);
}

typedef struct {
    const char *path;
    int held;
} Replacement;

static void *replace_lock_file(void *argument) {
    Replacement *replacement = argument;
    usleep(100 * 1000);
    unlink(replacement->path);
    close(replacement->held);
    return NULL;
}

static void test_a_lock_on_a_removed_file_is_taken_anew(void **state) {
    World *world = *state;
    char *path = inside(world, "lock");
    Replacement replacement = {.path = path, .held = file_lock(path, true, NULL, &world->err)};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, replace_lock_file, &replacement), 0);
    int fd = file_lock(path, true, NULL, &world->err);
    pthread_join(thread, NULL);
    assert_true(fd >= 0);
    assert_true(path_exists(path)); // ours is the file that others will see
    assert_int_equal(file_lock(path, false, NULL, &world->err), -1);
    close(fd);
}

/* ---- hashes, time, log -------------------------------------------------------------------- */

static void test_hashes_are_sha256(void **state) {
    World *world = *state;
    static const char abc[] = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    assert_string_equal(hash_bytes("abc", 3).hex, abc);
    char *path = inside(world, "abc");
    write_file(world, path, "abc");
    Hash hash;
    assert_true(hash_file(path, &hash, &world->err));
    assert_string_equal(hash.hex, abc);
    assert_false(hash_file(inside(world, "none"), &hash, &world->err));
    Hasher *hasher = hasher_new();
    hasher_add(hasher, "a", 1);
    hasher_add(hasher, "bc", 2);
    assert_string_equal(hasher_finish(hasher).hex, abc);
}

static Hash hash_of_two(const char *first, const char *second) {
    Hasher *hasher = hasher_new();
    hasher_add_text(hasher, first);
    hasher_add_text(hasher, second);
    return hasher_finish(hasher);
}

static void test_moving_a_byte_between_fields_gives_another_hash(void **state) {
    (void)state;
    assert_string_not_equal(hash_of_two("ab", "c").hex, hash_of_two("a", "bc").hex);
    assert_string_not_equal(hash_of_two("", "abc").hex, hash_of_two("abc", "").hex);
}

static void test_random_bytes_differ(void **state) {
    World *world = *state;
    unsigned char a[32] = {0}, b[32] = {0};
    assert_true(random_bytes(a, sizeof a, &world->err));
    assert_true(random_bytes(b, sizeof b, &world->err));
    assert_memory_not_equal(a, b, sizeof a);
}

static void test_dates_have_their_documented_form(void **state) {
    World *world = *state;
    char *utc = clock_utc(world->arena), *compact = clock_utc_compact(world->arena);
    assert_int_equal(strlen(utc), strlen("2026-01-31T12:34:56.789Z"));
    assert_true(utc[10] == 'T' && utc[19] == '.' && utc[23] == 'Z');
    assert_int_equal(strlen(compact), strlen("20260131-123456"));
    double a = clock_seconds();
    assert_true(clock_seconds() >= a);
}

static void test_log_appends_whole_lines_to_the_file_named(void **state) {
    World *world = *state;
    char *path = inside(world, "log");
    unsetenv("CUTEGEN_LOG");
    log_debug("nowhere");
    setenv("CUTEGEN_LOG", path, 1);
    log_debug("one %d", 1);
    char endless[5000];
    memset(endless, 'x', sizeof endless - 1);
    endless[sizeof endless - 1] = '\0';
    log_debug("%s", endless);
    unsetenv("CUTEGEN_LOG");
    char *text = contents(world, path);
    assert_non_null(strstr(text, " one 1\n"));
    assert_true(text_ends_with(text, "x\n"));
    assert_null(strstr(text, "nowhere"));
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void) {
    signal(SIGXFSZ, SIG_IGN); // as main() does
    const struct CMUnitTest tests[] = {
        TEST(test_error_may_quote_the_message_it_replaces),
        TEST(test_an_endless_error_is_cut_between_characters),
        TEST(test_arena_memory_is_zeroed_aligned_and_apart),
        TEST(test_deferred_cleanups_run_in_reverse_order),
        TEST(test_buf_grows_and_moves_into_an_arena),
        TEST(test_nearest_word_is_offered_only_when_it_is_near),
        TEST(test_utf8_is_told_from_other_bytes),
        TEST(test_json_keeps_order_and_every_bit_of_a_number),
        TEST(test_bad_json_is_an_input_error_with_its_place),
        TEST(test_paths_are_joined_and_taken_apart),
        TEST(test_file_is_replaced_whole_and_leaves_nothing_beside_it),
        TEST(test_reading_names_the_file_and_the_reason),
        TEST(test_full_disk_is_a_harness_fault_and_keeps_the_old_file),
        TEST(test_writing_below_a_file_or_nowhere_is_an_input_error),
        TEST(test_directories_are_made_with_parents_and_again),
        TEST(test_removing_a_directory_follows_no_link),
        TEST(test_cache_directory_follows_xdg),
        TEST(test_a_held_lock_is_waited_for_refused_or_interrupted),
        TEST(test_a_lock_on_a_removed_file_is_taken_anew),
        TEST(test_hashes_are_sha256),
        TEST(test_moving_a_byte_between_fields_gives_another_hash),
        TEST(test_random_bytes_differ),
        TEST(test_dates_have_their_documented_form),
        TEST(test_log_appends_whole_lines_to_the_file_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
