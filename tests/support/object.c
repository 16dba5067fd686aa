/* object.c - see object.h. */
#include "support/object.h"
#include <setjmp.h>
#include <string.h>

#include <cmocka.h>

const char *object_compile(Arena *arena, const char *directory, const char *name,
                           const char *text) {
    static const char headers[] = "#define _GNU_SOURCE\n"
                                  "#include <signal.h>\n#include <stddef.h>\n#include <stdint.h>\n"
                                  "#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n"
                                  "#include <unistd.h>\n";
    const char *source = arena_printf(arena, "%s/%s.c", directory, name);
    const char *object = arena_printf(arena, "%s/%s.so", directory, name);
    const char *whole = arena_printf(arena, "%s%s\n", headers, text);
    Error err = {0};
    if (!file_write_atomic(source, whole, strlen(whole), &err)) fail_msg("%s", err.message);
    const char *const argv[] = {"cc", "-w", "-shared", "-fPIC", "-o", object, source, NULL};
    ProcessOptions options = {.argv = argv, .timeout_s = 60};
    ProcessResult result;
    if (!process_run(arena, &options, &result, &err)) fail_msg("%s", err.message);
    if (result.exit_code != 0) fail_msg("%s", result.err);
    return object;
}
