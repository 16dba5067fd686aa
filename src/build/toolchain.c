/* toolchain.c - finds nvcc, the CUTLASS headers and the host compiler.
 *
 * Looked for where a user expects them: an explicit variable first, then the system, then what
 * `make setup` put below the project's .cache/. A candidate that exists but will not do (too
 * old) is remembered, so that the error can say why it was passed over.
 */
#include "build/toolchain.h"

#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define DEFAULT_ARCH "sm_90a"

/* Below a directory that holds a CUDA toolkit; the later ones are how NVIDIA's wheels unpack. */
static const char *const kNvccPlaces[] = {
    "bin/nvcc",
    "nvidia/cu13/bin/nvcc",
    "nvidia/cuda_nvcc/bin/nvcc",
};
static const char *const kProjectToolkits[] = {".cache/cuda", ".cache/nvcc", ".cache/toolchain"};
static const char *const kProjectCutlass[] = {
    ".cache/cutlass/include",
    ".cache/cutlass/cutlass_library/source/include",
};

static bool is_executable(const char *path) {
    struct stat status;
    return stat(path, &status) == 0 && S_ISREG(status.st_mode) && access(path, X_OK) == 0;
}

static char *find_in_path(Arena *arena, const char *program) {
    const char *path = getenv("PATH");
    while (path && *path) {
        size_t length = strcspn(path, ":");
        char *directory = length ? arena_string_n(arena, path, length) : arena_string(arena, ".");
        char *candidate = path_absolute(arena, path_join(arena, directory, program));
        if (is_executable(candidate)) return candidate;
        path += length + (path[length] == ':');
    }
    return NULL;
}

/* Where .cache/ may lie: the working directory, or one above the program (build/cutegen). */
static int project_roots(Arena *arena, const char *roots[], int capacity) {
    int count = 0;
    char path[PATH_MAX];
    if (getcwd(path, sizeof path) && count < capacity) roots[count++] = arena_string(arena, path);
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    if (length <= 0) return count;
    path[length] = '\0';
    const char *directory = arena_string(arena, path);
    for (int up = 0; up < 4 && count < capacity; up++) {
        directory = path_directory(arena, directory);
        roots[count++] = directory;
        if (strcmp(directory, "/") == 0) break;
    }
    return count;
}

int nvcc_version_parse(Arena *arena, const char *text, const char **full) {
    const char *release = strstr(text, "release ");
    int major, minor, patch;
    if (!release || sscanf(release, "release %d.%d, V%*d.%*d.%d", &major, &minor, &patch) != 3)
        return 0;
    if (full) *full = arena_printf(arena, "%d.%d.%d", major, minor, patch);
    return major * 1000 + minor * 10;
}

bool arch_parse(Arena *arena, const char *text, const char **arch, Error *err) {
    if (!text) {
        *arch = DEFAULT_ARCH;
        return true;
    }
    const char *digits = text;
    if (text_starts_with(text, "sm_"))
        digits += 3;
    else if (text_starts_with(text, "compute_"))
        digits += 8;
    char number[16];
    size_t length = 0;
    bool dot = false;
    while (length + 1 < sizeof number && (isdigit((unsigned char)*digits) || *digits == '.')) {
        if (*digits == '.' && dot) break;
        if (*digits == '.')
            dot = true;
        else
            number[length++] = *digits;
        digits++;
    }
    number[length] = '\0';
    bool feature = *digits == 'a' || *digits == 'f';
    if (length < 2 || length > 3 || digits[feature] != '\0' || atoi(number) < 80)
        return error_input(err, "unknown arch '%s'; use sm_80, sm_86, sm_89 or sm_90a", text);
    *arch = arena_printf(arena, "sm_%s%.*s", number, (int)feature, digits);
    return true;
}

char *arch_virtual(Arena *arena, const char *arch) {
    return arena_printf(arena, "compute_%s", arch + strlen("sm_"));
}

/* ---- the host compiler ------------------------------------------------------------------- */

static bool find_host(Arena *arena, Toolchain *toolchain, const char **version, Error *err) {
    static const char *const kNames[] = {"gcc", "cc"};
    for (size_t i = 0; i < COUNT_OF(kNames) && !toolchain->cc; i++)
        toolchain->cc = find_in_path(arena, kNames[i]);
    if (!toolchain->cc)
        return error_input(err, "no C compiler found: install gcc and g++, or run 'make setup'");
    const char *argv[] = {toolchain->cc, "-dumpfullversion", NULL};
    ProcessOptions options = {.argv = argv, .timeout_s = 20};
    ProcessResult result;
    if (!process_run(arena, &options, &result, err)) return false;
    if (result.exit_code != 0)
        return error_input(err, "%s does not work: '%s -dumpfullversion' failed", toolchain->cc,
                           toolchain->cc);
    *version = arena_string_n(arena, result.out, strcspn(result.out, "\n"));
    return true;
}

bool toolchain_find_host(Arena *arena, Toolchain *toolchain, Error *err) {
    *toolchain = (Toolchain){.arch = DEFAULT_ARCH};
    const char *version = "";
    if (!find_host(arena, toolchain, &version, err)) return false;
    toolchain->identity = arena_printf(arena, "gcc %s", version);
    return true;
}

/* ---- nvcc -------------------------------------------------------------------------------- */

typedef struct {
    const char *path, *full_version;
    int version;
    const char *old_path, *old_version; // the best of those that would not do
    const char *broken_path;
} NvccSearch;

/* Looks at one candidate; true when it will do and the search is over. */
static bool consider_nvcc(Arena *arena, const char *path, NvccSearch *search) {
    if (!path || !is_executable(path)) return false;
    const char *argv[] = {path, "--version", NULL};
    ProcessOptions options = {.argv = argv, .timeout_s = 20};
    ProcessResult result;
    Error ignored;
    const char *full = NULL;
    int version = 0;
    if (process_run(arena, &options, &result, &ignored) && result.exit_code == 0)
        version = nvcc_version_parse(arena, result.out, &full);
    if (version == 0) {
        if (!search->broken_path) search->broken_path = path;
        return false;
    }
    if (version < OLDEST_NVCC) {
        if (!search->old_path) search->old_path = path, search->old_version = full;
        return false;
    }
    search->path = path;
    search->full_version = full;
    search->version = version;
    return true;
}

static bool search_nvcc(Arena *arena, NvccSearch *search) {
    static const char *const kVariables[] = {"CUDA_HOME", "CUDA_PATH"};
    for (size_t i = 0; i < COUNT_OF(kVariables); i++) {
        const char *home = getenv(kVariables[i]);
        if (!home || !*home) continue;
        char *path = path_absolute(arena, path_join(arena, home, "bin/nvcc"));
        if (consider_nvcc(arena, path, search)) return true;
    }
    if (consider_nvcc(arena, find_in_path(arena, "nvcc"), search)) return true;
    if (consider_nvcc(arena, "/usr/local/cuda/bin/nvcc", search)) return true;
    const char *roots[8];
    int count = project_roots(arena, roots, COUNT_OF(roots));
    for (int root = 0; root < count; root++)
        for (size_t kit = 0; kit < COUNT_OF(kProjectToolkits); kit++)
            for (size_t place = 0; place < COUNT_OF(kNvccPlaces); place++) {
                char *directory = path_join(arena, roots[root], kProjectToolkits[kit]);
                char *path = path_join(arena, directory, kNvccPlaces[place]);
                if (consider_nvcc(arena, path, search)) return true;
            }
    return false;
}

static bool find_nvcc(Arena *arena, NvccSearch *search, Error *err) {
    if (search_nvcc(arena, search)) return true;
    const char *remedy = "install CUDA 12.8 or newer, or run 'make setup' to use the pip wheel";
    if (search->old_path)
        return error_input(err, "nvcc %s at %s is too old: %s", search->old_version,
                           search->old_path, remedy);
    if (search->broken_path)
        return error_input(err, "%s does not run ('nvcc --version' fails): %s", search->broken_path,
                           remedy);
    return error_input(err, "nvcc not found: %s", remedy);
}

/* ---- CUTLASS ----------------------------------------------------------------------------- */

static bool has_cute(Arena *arena, const char *include) {
    return path_exists(path_join(arena, include, "cute/tensor.hpp"));
}

static bool find_cutlass(Arena *arena, Toolchain *toolchain, Error *err) {
    const char *given = getenv("CUTLASS_PATH");
    if (given && *given) {
        const char *places[] = {given, path_join(arena, given, "include")};
        for (size_t i = 0; i < COUNT_OF(places); i++)
            if (has_cute(arena, places[i])) {
                toolchain->cutlass_include = path_absolute(arena, places[i]);
                return true;
            }
        return error_input(err,
                           "CUTLASS_PATH=%s holds no cute/tensor.hpp: point it at CUTLASS's "
                           "include directory, or unset it and run 'make setup'",
                           given);
    }
    const char *roots[8];
    int count = project_roots(arena, roots, COUNT_OF(roots));
    for (int root = 0; root < count; root++)
        for (size_t place = 0; place < COUNT_OF(kProjectCutlass); place++) {
            char *include = path_join(arena, roots[root], kProjectCutlass[place]);
            if (!has_cute(arena, include)) continue;
            toolchain->cutlass_include = path_absolute(arena, include);
            return true;
        }
    return error_input(err, "CUTLASS headers not found: run 'make setup', or set CUTLASS_PATH to "
                            "the include directory of CUTLASS 4.2");
}

bool toolchain_find(Arena *arena, const char *arch, Toolchain *toolchain, Error *err) {
    *toolchain = (Toolchain){0};
    if (!arch_parse(arena, arch, &toolchain->arch, err)) return false;
    NvccSearch search = {0};
    if (!find_nvcc(arena, &search, err)) return false;
    toolchain->nvcc = search.path;
    toolchain->version = search.version;
    if (!find_cutlass(arena, toolchain, err)) return false;
    const char *gcc_version = "";
    if (!find_host(arena, toolchain, &gcc_version, err)) return false;
    if (!find_in_path(arena, "g++"))
        return error_input(err, "g++ not found: nvcc needs it; install g++, or run 'make setup'");
    toolchain->identity = arena_printf(arena, "nvcc %s, gcc %s", search.full_version, gcc_version);
    return true;
}

void toolchain_fingerprint(Arena *arena, const Toolchain *toolchain, Hasher *hasher) {
    hasher_add_text(hasher, toolchain->identity);
    const char *bin = toolchain->nvcc ? path_directory(arena, toolchain->nvcc) : NULL;
    const char *binaries[] = {
        toolchain->nvcc,
        bin ? path_join(arena, bin, "cudafe++") : NULL,
        bin ? path_join(arena, bin, "ptxas") : NULL,
        bin ? path_join(arena, bin, "../nvvm/bin/cicc") : NULL,
        toolchain->cc,
    };
    for (size_t i = 0; i < COUNT_OF(binaries); i++) {
        struct stat status;
        if (!binaries[i] || stat(binaries[i], &status) != 0) continue;
        int64_t facts[] = {status.st_size, status.st_mtim.tv_sec, status.st_mtim.tv_nsec};
        hasher_add_text(hasher, binaries[i]);
        hasher_add(hasher, facts, sizeof facts);
    }
}
