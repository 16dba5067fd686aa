/* test_exchange.c - the file through which tensors pass neither outlives its process for long nor
 * is taken from one that lives. */
#include "device/device.h"

#include <setjmp.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static char *create(Arena *arena) {
    Error err = {0};
    char *path = exchange_create(arena, &err);
    if (!path) fail_msg("%s", err.message);
    return path;
}

/* The exchange file of another process, which waits to be killed. */
static pid_t start_owner(char *path, size_t capacity) {
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    pid_t owner = fork();
    assert_true(owner >= 0);
    if (owner == 0) {
        alarm(60);
        const char *mine = create(arena_new());
        if (write(ends[1], mine, strlen(mine) + 1) < 0) _exit(1);
        for (;;)
            pause();
    }
    close(ends[1]);
    assert_true(read(ends[0], path, capacity) > 0);
    close(ends[0]);
    assert_true(path_exists(path));
    return owner;
}

static void end_owner(pid_t owner) {
    assert_int_equal(kill(owner, SIGKILL), 0);
    assert_int_equal(waitpid(owner, NULL, 0), owner);
}

static void test_exchange_goes_with_its_arena(void **state) {
    (void)state;
    Arena *arena = arena_new(), *other = arena_new();
    const char *path = arena_string(other, create(arena));
    assert_true(path_exists(path));
    arena_free(arena);
    assert_false(path_exists(path));
    arena_free(other);
}

static void test_exchange_of_a_killed_process_goes_when_the_next_is_created(void **state) {
    (void)state;
    char path[4096];
    Arena *arena = arena_new();
    end_owner(start_owner(path, sizeof path));
    create(arena);
    assert_false(path_exists(path));
    arena_free(arena);
}

static void test_exchange_of_a_living_process_stays(void **state) {
    (void)state;
    char path[4096];
    Arena *arena = arena_new();
    pid_t owner = start_owner(path, sizeof path);
    const char *mine = create(arena);
    assert_true(path_exists(path));
    assert_string_not_equal(mine, path);
    end_owner(owner);
    unlink(path);
    arena_free(arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exchange_goes_with_its_arena),
        cmocka_unit_test(test_exchange_of_a_killed_process_goes_when_the_next_is_created),
        cmocka_unit_test(test_exchange_of_a_living_process_stays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
