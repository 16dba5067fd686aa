/* Promises of the journal, on real SQLite files. */
#include "journal/filesystem.h"
#include "journal/journal.h"
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

typedef struct {
    Arena *arena;
    const char *directory, *path;
    Error err;
} World;

static int set_up(void **state) {
    Arena *arena = arena_new();
    World *world = arena_new_of(arena, World);
    world->arena = arena;
    world->directory = directory_scratch(arena, "journal", &world->err);
    assert_non_null(world->directory);
    world->path = path_join(arena, world->directory, "run.db");
    *state = world;
    return 0;
}

static int tear_down(void **state) {
    World *world = *state;
    chmod(world->directory, 0700);
    directory_remove(world->directory, &world->err);
    arena_free(world->arena);
    return 0;
}

static void require(bool good, const Error *err) {
    if (!good) fail_msg("%s", err->message);
}

static Journal *create(World *world) {
    Journal *journal;
    require(journal_create(world->path, &journal, &world->err), &world->err);
    return journal;
}

static void append(World *world, Journal *journal, const char *kind, int number) {
    Json *body = json_pack("{s:i}", "number", number);
    require(journal_append(journal, kind, body, NULL, &world->err), &world->err);
    json_decref(body);
}

static void sql(const char *path, const char *text) {
    sqlite3 *db;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, text, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
}

static void refuses(World *world, bool (*open)(const char *, Journal **, Error *), ErrorKind kind,
                    const char *words) {
    Journal *journal;
    if (open(world->path, &journal, &world->err)) fail_msg("opened, expected: %s", words);
    assert_null(journal);
    assert_int_equal(world->err.kind, kind);
    if (!strstr(world->err.message, words))
        fail_msg("'%s' does not say '%s'", world->err.message, words);
    assert_non_null(strstr(world->err.message, world->path));
}

static void test_events_come_back_in_order_after_reopening(void **state) {
    World *world = *state;
    Journal *journal = create(world);
    append(world, journal, "one", 1);
    append(world, journal, "two", 2);
    journal_close(journal);
    require(journal_open(world->path, &journal, &world->err), &world->err);
    append(world, journal, "three", 3);

    JournalEvent *events;
    size_t count;
    require(journal_events(journal, world->arena, 1, &events, &count, &world->err), &world->err);
    assert_int_equal(count, 2);
    assert_int_equal(events[0].seq, 2);
    assert_string_equal(events[0].kind, "two");
    assert_int_equal(json_int_or(events[1].body, "number", 0), 3);
    assert_int_equal(strlen(events[1].time), strlen("2026-01-31T12:34:56.789Z"));
    journal_close(journal);
}

static void test_blob_is_stored_once_and_byte_exact(void **state) {
    World *world = *state;
    Journal *journal = create(world);
    const char data[] = "a\0b\xff";
    Hash hash, again;
    require(journal_put_blob(journal, data, 4, &hash, &world->err), &world->err);
    require(journal_put_blob(journal, data, 4, &again, &world->err), &world->err);
    assert_string_equal(hash.hex, again.hex);
    Hash empty;
    require(journal_put_blob(journal, NULL, 0, &empty, &world->err), &world->err);

    char *back;
    size_t bytes;
    require(journal_get_blob(journal, world->arena, hash.hex, &back, &bytes, &world->err),
            &world->err);
    assert_int_equal(bytes, 4);
    assert_memory_equal(back, data, 4);
    require(journal_get_blob(journal, world->arena, empty.hex, &back, &bytes, &world->err),
            &world->err);
    assert_int_equal(bytes, 0);
    assert_false(journal_get_blob(journal, world->arena, "00ff", &back, &bytes, &world->err));
    assert_non_null(strstr(world->err.message, "incomplete"));
    journal_close(journal);
}

static void test_tables_are_the_documented_ones(void **state) {
    World *world = *state;
    journal_close(create(world));
    sql(world->path, "insert into event(seq, time, kind, json) values(1, '', '', '{}');"
                     "insert into blob(hash, bytes) values('', x'00');"
                     "update meta set value = value where key = 'schema';");
}

static void test_local_journal_is_write_ahead_and_leaves_one_file(void **state) {
    World *world = *state;
    Journal *journal = create(world);
    append(world, journal, "one", 1);
    char *wal = arena_printf(world->arena, "%s-wal", world->path);
    assert_int_equal(path_exists(wal), filesystem_is_local(world->path));
    journal_close(journal);
    assert_false(path_exists(wal));
}

static void test_network_file_systems_are_known(void **state) {
    (void)state;
    assert_false(filesystem_type_is_local(0x6969));     // NFS
    assert_false(filesystem_type_is_local(0x0bd00bd0)); // Lustre
    assert_false(filesystem_type_is_local(0x47504653)); // GPFS
    assert_true(filesystem_type_is_local(0xef53));      // ext4
    assert_true(filesystem_type_is_local(0x01021994));  // tmpfs
    assert_false(filesystem_is_local("/nowhere/at/all"));
}

static void test_second_owner_is_told_who_the_first_is(void **state) {
    World *world = *state;
    int ready[2], done[2];
    assert_int_equal(pipe(ready), 0);
    assert_int_equal(pipe(done), 0);
    pid_t owner = fork();
    if (owner == 0) {
        Journal *journal;
        char byte = journal_create(world->path, &journal, &world->err) ? 'y' : 'n';
        _exit(write(ready[1], &byte, 1) != 1 || read(done[0], &byte, 1) != 1);
    }
    char byte;
    assert_int_equal(read(ready[0], &byte, 1), 1);
    assert_int_equal(byte, 'y');
    char *words = arena_printf(world->arena, "is in use by process %d", (int)owner);
    refuses(world, journal_open, ERROR_INPUT, words);
    Journal *reader;
    require(journal_open_read_only(world->path, &reader, &world->err), &world->err);
    journal_close(reader);

    assert_int_equal(write(done[1], "x", 1), 1);
    int status;
    assert_int_equal(waitpid(owner, &status, 0), owner);
    Journal *journal; // the owner died without closing: the next one takes over
    require(journal_open(world->path, &journal, &world->err), &world->err);
    journal_close(journal);
    close(ready[0]), close(ready[1]), close(done[0]), close(done[1]);
}

static void test_reader_sees_what_the_owner_appends(void **state) {
    World *world = *state;
    Journal *owner = create(world), *reader;
    append(world, owner, "one", 1);
    require(journal_open_read_only(world->path, &reader, &world->err), &world->err);
    append(world, owner, "two", 2);
    JournalEvent *events;
    size_t count;
    require(journal_events(reader, world->arena, 0, &events, &count, &world->err), &world->err);
    assert_int_equal(count, 2);
    Json *body = json_object();
    assert_false(journal_append(reader, "three", body, NULL, &world->err));
    json_decref(body);
    journal_close(reader);
    journal_close(owner);
}

static void test_existing_run_is_not_created_over(void **state) {
    World *world = *state;
    journal_close(create(world));
    refuses(world, journal_create, ERROR_INPUT, "exists already");
}

static void test_missing_run_is_named(void **state) {
    World *world = *state;
    refuses(world, journal_open, ERROR_INPUT, "no such run");
    refuses(world, journal_open_read_only, ERROR_INPUT, "no such run");
}

static void test_newer_schema_is_refused(void **state) {
    World *world = *state;
    journal_close(create(world));
    sql(world->path, "update meta set value = '7' where key = 'schema'");
    refuses(world, journal_open, ERROR_INPUT, "has schema 7");
    refuses(world, journal_open_read_only, ERROR_INPUT, "has schema 7");
}

static void test_foreign_database_is_refused(void **state) {
    World *world = *state;
    sql(world->path, "create table t(x)");
    refuses(world, journal_open, ERROR_INPUT, "not the journal of a run");
}

static void test_events_without_their_columns_are_survived(void **state) {
    World *world = *state;
    sql(world->path, "create table meta(key, value); insert into meta values('schema', '1');"
                     "create table event(seq, time, kind, json); create table blob(hash, bytes);"
                     "insert into event(seq, json) values(1, '{}');");
    Journal *journal;
    JournalEvent *events;
    size_t count;
    require(journal_open_read_only(world->path, &journal, &world->err), &world->err);
    require(journal_events(journal, world->arena, 0, &events, &count, &world->err), &world->err);
    assert_int_equal(count, 1);
    assert_string_equal(events[0].kind, "");
    assert_string_equal(events[0].time, "");
    journal_close(journal);
}

static void test_damaged_file_is_refused_with_what_to_do(void **state) {
    World *world = *state;
    Journal *journal = create(world);
    for (int i = 0; i < 500; i++)
        append(world, journal, "event", i);
    journal_close(journal);
    int fd = open(world->path, O_WRONLY);
    char garbage[4096];
    memset(garbage, 0xa5, sizeof garbage);
    for (int page = 2; page < 6; page++)
        assert_int_equal(pwrite(fd, garbage, sizeof garbage, page * 4096), sizeof garbage);
    refuses(world, journal_open, ERROR_INPUT, "is damaged");
    assert_non_null(strstr(world->err.message, ".recover"));
    assert_int_equal(pwrite(fd, garbage, sizeof garbage, 0), sizeof garbage);
    close(fd);
    refuses(world, journal_open, ERROR_INPUT, "is damaged");
    refuses(world, journal_open_read_only, ERROR_INPUT, "is damaged");
}

static void test_unwritable_directory_gives_one_clear_error(void **state) {
    World *world = *state;
    if (geteuid() == 0) {
        // Permissions do not bind root; a directory that is not there stands in.
        world->path = path_join(world->arena, world->directory, "absent/run.db");
        Journal *journal;
        assert_false(journal_create(world->path, &journal, &world->err));
        assert_int_equal(world->err.kind, ERROR_INPUT);
        assert_non_null(strstr(world->err.message, "absent/run.db"));
        return;
    }
    assert_int_equal(chmod(world->directory, 0500), 0);
    Journal *journal;
    assert_false(journal_create(world->path, &journal, &world->err));
    assert_int_equal(world->err.kind, ERROR_INPUT);
}

/* Runs in a child, since the limit cannot be raised again. Exit code: 0 as expected. */
static int fill_up(World *world) {
    signal(SIGXFSZ, SIG_IGN);
    Journal *journal;
    if (!journal_create(world->path, &journal, &world->err)) return 2;
    struct rlimit limit = {.rlim_cur = 256 << 10, .rlim_max = 256 << 10};
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0) return 3;
    char *data = arena_alloc(world->arena, 100 << 10);
    for (int i = 0; i < 50; i++) {
        data[0] = (char)i;
        Hash hash;
        if (journal_put_blob(journal, data, 100 << 10, &hash, &world->err)) continue;
        printf("%s\n", world->err.message);
        bool good = world->err.kind == ERROR_HARNESS && strstr(world->err.message, "no room") &&
                    strstr(world->err.message, world->path);
        journal_close(journal);
        return good ? 0 : 4;
    }
    return 5;
}

static void test_full_disk_gives_one_clear_error_and_an_intact_file(void **state) {
    World *world = *state;
    pid_t child = fork();
    if (child == 0) {
        int code = fill_up(world);
        fflush(stdout);
        _exit(code);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    Journal *journal;
    require(journal_open(world->path, &journal, &world->err), &world->err);
    append(world, journal, "later", 1);
    journal_close(journal);
}

static void test_killed_owner_loses_nothing_that_was_appended(void **state) {
    World *world = *state;
    int pipe_fds[2];
    assert_int_equal(pipe(pipe_fds), 0);
    pid_t child = fork();
    if (child == 0) {
        Journal *journal;
        if (!journal_create(world->path, &journal, &world->err)) _exit(1);
        for (int i = 1;; i++) {
            Json *body = json_pack("{s:i}", "number", i);
            if (!journal_append(journal, "event", body, NULL, &world->err)) _exit(2);
            json_decref(body);
            if (write(pipe_fds[1], &i, sizeof i) != sizeof i) _exit(3);
        }
    }
    close(pipe_fds[1]);
    int last = 0, number;
    while (last < 20 && read(pipe_fds[0], &number, sizeof number) == sizeof number)
        last = number;
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    while (read(pipe_fds[0], &number, sizeof number) == sizeof number)
        last = number;
    close(pipe_fds[0]);

    Journal *journal;
    JournalEvent *events;
    size_t count;
    require(journal_open(world->path, &journal, &world->err), &world->err);
    require(journal_events(journal, world->arena, 0, &events, &count, &world->err), &world->err);
    assert_in_range(count, (size_t)last, (size_t)last + 1);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(json_int_or(events[i].body, "number", 0), (int)i + 1);
    journal_close(journal);
}

static void test_export_inlines_each_blob_once(void **state) {
    World *world = *state;
    Journal *journal = create(world);
    Hash text, binary;
    require(journal_put_blob(journal, "hello\n", 6, &text, &world->err), &world->err);
    require(journal_put_blob(journal, "\xff\x00", 2, &binary, &world->err), &world->err);
    Json *body = json_pack("{s:s,s:s}", "reply", text.hex, "source", binary.hex);
    require(journal_append(journal, "a", body, NULL, &world->err), &world->err);
    require(journal_append(journal, "b", body, NULL, &world->err), &world->err);
    json_decref(body);
    Buf out = {0};
    require(journal_export(journal, &out, &world->err), &world->err);
    journal_close(journal);

    char *second = strchr(out.data, '\n') + 1;
    Json *a, *b;
    require(json_parse(world->arena, out.data, (size_t)(second - out.data), "a", &a, &world->err),
            &world->err);
    require(json_parse(world->arena, second, strlen(second), "b", &b, &world->err), &world->err);
    assert_int_equal(json_int_or(a, "seq", 0), 1);
    assert_string_equal(json_text(a, "kind", ""), "a");
    Json *blobs = json_object_get(a, "blobs");
    assert_string_equal(json_text(blobs, text.hex, ""), "hello\n");
    assert_string_equal(json_text(json_object_get(blobs, binary.hex), "hex", ""), "ff00");
    assert_null(json_object_get(b, "blobs"));
    buf_free(&out);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_events_come_back_in_order_after_reopening),
        TEST(test_blob_is_stored_once_and_byte_exact),
        TEST(test_tables_are_the_documented_ones),
        TEST(test_local_journal_is_write_ahead_and_leaves_one_file),
        TEST(test_network_file_systems_are_known),
        TEST(test_second_owner_is_told_who_the_first_is),
        TEST(test_reader_sees_what_the_owner_appends),
        TEST(test_existing_run_is_not_created_over),
        TEST(test_missing_run_is_named),
        TEST(test_newer_schema_is_refused),
        TEST(test_foreign_database_is_refused),
        TEST(test_events_without_their_columns_are_survived),
        TEST(test_damaged_file_is_refused_with_what_to_do),
        TEST(test_unwritable_directory_gives_one_clear_error),
        TEST(test_full_disk_gives_one_clear_error_and_an_intact_file),
        TEST(test_killed_owner_loses_nothing_that_was_appended),
        TEST(test_export_inlines_each_blob_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
