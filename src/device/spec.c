/* spec.c - which device the user means, and where our companion programs lie.
 *
 * A device is written "sim", "cuda" or "cuda:1", optionally followed by " via CMD" where CMD is a
 * command that starts programs in another place (ssh, srun, docker exec).
 */
#include "device/device.h"
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DEVICE_FORMS "sim, cuda or cuda:N, each optionally followed by ' via COMMAND'"

bool device_parse(Arena *arena, const char *text, DeviceSpec *spec, Error *err) {
    *spec = (DeviceSpec){.text = arena_string(arena, text)};
    const char *via = strstr(text, " via ");
    char *device = arena_string_n(arena, text, via ? (size_t)(via - text) : strlen(text));
    if (via) {
        via += strlen(" via ");
        via += strspn(via, " ");
        if (!*via) return error_input(err, "device '%s': no command after 'via'", text);
        spec->via = arena_string(arena, via);
    }
    if (!strcmp(device, "sim")) {
        spec->simulated = true;
        return true;
    }
    if (!strcmp(device, "cuda")) return true;
    if (text_starts_with(device, "cuda:")) {
        const char *digits = device + strlen("cuda:");
        size_t length = strlen(digits);
        if (length > 0 && length <= 4 && strspn(digits, "0123456789") == length) {
            spec->index = atoi(digits);
            return true;
        }
    }
    return error_input(err, "unknown device '%s': write %s", text, DEVICE_FORMS);
}

/* A build tree knows its source: CMake notes it in its cache. */
static char *source_of_build_tree(Arena *arena, const char *build) {
    static const char key[] = "CMAKE_HOME_DIRECTORY:INTERNAL=";
    char *text;
    Error ignored = {0};
    if (!file_read(arena, path_join(arena, build, "CMakeCache.txt"), 4 << 20, &text, NULL,
                   &ignored))
        return NULL;
    char *line = strstr(text, key);
    if (!line) return NULL;
    line += strlen(key);
    return arena_string_n(arena, line, strcspn(line, "\r\n"));
}

bool installation_find(Arena *arena, Installation *installation, Error *err) {
    char executable[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", executable, sizeof executable - 1);
    if (length < 0)
        return error_harness(err, "cannot tell where cutegen itself lies: /proc is not mounted");
    executable[length] = 0;
    const char *here = path_directory(arena, executable);

    const char *programs = here, *root = source_of_build_tree(arena, here);
    if (!path_exists(path_join(arena, here, "cutegen-runner"))) {
        const char *prefix = path_directory(arena, here);
        programs = path_join(arena, prefix, "lib/cutegen");
        root = path_join(arena, prefix, "share/cutegen");
        if (!path_exists(path_join(arena, programs, "cutegen-runner")))
            return error_input(err,
                               "cutegen-runner found neither in %s nor in %s: the installation is "
                               "incomplete; run `make` again",
                               here, programs);
    }
    const char *given = getenv("CUTEGEN_ROOT");
    if (given && *given) root = path_absolute(arena, given);
    if (!root || !path_is_directory(root))
        return error_input(err,
                           "the directory with prompts/ and tasks/ is not at %s: set CUTEGEN_ROOT",
                           root ? root : path_join(arena, programs, "../share/cutegen"));

    installation->runner = path_join(arena, programs, "cutegen-runner");
    installation->oracle = path_join(arena, programs, "cutegen-oracle");
    installation->sim_library_dir =
        path_join(arena, programs, programs == here ? "lib/cutegen/sim" : "sim");
    installation->root = root;
    return true;
}
