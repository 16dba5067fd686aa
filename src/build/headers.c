/* headers.c - which headers a source reached, and whether they are still what they were.
 *
 * The line markers of a preprocessed source name every file that was entered. Each is kept with
 * its size, times and hash. A header whose size and times are unchanged is taken to be unchanged,
 * so looking costs a stat for each and no hashing; one that was touched is hashed, once. The
 * change time counts as well, because archives unpack different contents with one modification
 * time.
 */
#include "build/headers.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

static int64_t nanoseconds(struct timespec time) {
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

int64_t headers_clock_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return nanoseconds(now);
}

/* ---- finding them ------------------------------------------------------------------------- */

/* A set of paths, open addressing. */
typedef struct {
    Arena *arena;
    const char **slots;
    size_t capacity, count;
} PathSet;

/* The slot that holds `path`, or the free one where it would go. */
static size_t path_slot(const PathSet *set, const char *path) {
    uint64_t hash = 1469598103934665603u; // FNV-1a
    for (const char *c = path; *c; c++)
        hash = (hash ^ (unsigned char)*c) * 1099511628211u;
    size_t at = (size_t)hash & (set->capacity - 1);
    while (set->slots[at] && strcmp(set->slots[at], path) != 0)
        at = (at + 1) & (set->capacity - 1);
    return at;
}

static bool path_set_has(const PathSet *set, const char *path) {
    return set->capacity > 0 && set->slots[path_slot(set, path)];
}

static void path_set_add(PathSet *set, const char *path) {
    if (set->count * 2 >= set->capacity) {
        PathSet larger = {.arena = set->arena,
                          .capacity = set->capacity ? set->capacity * 2 : 1024};
        larger.slots = arena_array_of(set->arena, const char *, larger.capacity);
        for (size_t i = 0; i < set->capacity; i++)
            if (set->slots[i]) path_set_add(&larger, set->slots[i]);
        *set = larger;
    }
    set->slots[path_slot(set, path)] = path;
    set->count++;
}

/* A marker that enters a file: # 1 "/usr/include/stdio.h" 1 3 4. Undoes the quoting; false when
 * the line is something else. */
static bool marker_path(const char *line, char path[PATH_MAX]) {
    if (line[0] != '#' || line[1] != ' ') return false;
    const char *at = line + 2;
    while (*at >= '0' && *at <= '9')
        at++;
    if (at[0] != ' ' || at[1] != '"') return false;
    at += 2;
    size_t length = 0;
    for (; *at && *at != '"' && length + 1 < PATH_MAX; at++) {
        if (*at == '\\' && at[1]) at++;
        path[length++] = *at;
    }
    path[length] = '\0';
    return strncmp(at, "\" 1", 3) == 0 && path[0] != '<';
}

/* Reads line by line: a preprocessed source is some 9 MB. */
static bool collect_paths(Arena *arena, const char *file, PathSet *set, Error *err) {
    FILE *stream = fopen(file, "re");
    if (!stream) return error_harness(err, "cannot read %s: %s", file, strerror(errno));
    char *line = NULL, path[PATH_MAX];
    size_t capacity = 0;
    while (getline(&line, &capacity, stream) > 0)
        if (line[0] == '#' && marker_path(line, path) && !path_set_has(set, path))
            path_set_add(set, arena_string(arena, path));
    bool good = !ferror(stream);
    free(line);
    fclose(stream);
    return good || error_harness(err, "cannot read %s: %s", file, strerror(errno));
}

static int compare_headers(const void *a, const void *b) {
    return strcmp(((const HeaderState *)a)->path, ((const HeaderState *)b)->path);
}

static bool collect_directory(Arena *arena, const char *directory, PathSet *set, Error *err) {
    DIR *stream = opendir(directory);
    if (!stream) return error_harness(err, "cannot read %s: %s", directory, strerror(errno));
    bool good = true;
    for (struct dirent *entry; good && (entry = readdir(stream));)
        if (text_ends_with(entry->d_name, ".ii"))
            good = collect_paths(arena, path_join(arena, directory, entry->d_name), set, err);
    closedir(stream);
    return good;
}

/* Fills in the header's state as it is now. */
static bool look_at(HeaderState *header) {
    struct stat status;
    Error ignored;
    // A line marker may name /dev/zero, which has no end, or a pipe that nobody writes to.
    if (stat(header->path, &status) != 0 || !S_ISREG(status.st_mode) ||
        !hash_file(header->path, &header->hash, &ignored))
        return false;
    header->bytes = status.st_size;
    header->mtime_ns = nanoseconds(status.st_mtim);
    header->ctime_ns = nanoseconds(status.st_ctim);
    return true;
}

static bool leads_up(const char *path) {
    for (const char *at = path; (at = strstr(at, "..")); at += 2)
        if ((at == path || at[-1] == '/') && (at[2] == '/' || !at[2])) return true;
    return false;
}

bool headers_reach_all(const char *source) {
    static const char *const kOthers[] = {"incbin", "__has_include", "#embed", "__has_embed"};
    for (size_t i = 0; i < COUNT_OF(kOthers); i++)
        if (strstr(source, kOthers[i])) return false;
    return true;
}

bool headers_collect(Arena *arena, const char *directory, int64_t start_ns, HeaderList *list,
                     bool *complete, Error *err) {
    *list = (HeaderList){0};
    *complete = true;
    PathSet set = {.arena = arena};
    if (!collect_directory(arena, directory, &set, err)) return false;
    list->items = arena_array_of(arena, HeaderState, set.count + 1);
    size_t own = strlen(directory);
    for (size_t i = 0; i < set.capacity; i++) {
        const char *path = set.slots[i];
        if (!path) continue;
        bool inside = path[0] != '/' || (strncmp(path, directory, own) == 0 && path[own] == '/');
        if (inside && !leads_up(path)) continue; // what lies in the directory is in the key
        if (inside) {
            *complete = false; // "../x.h": beside a directory that the next build does not have
            continue;
        }
        HeaderState *header = &list->items[list->count++];
        header->path = path;
        if (!look_at(header) || header->mtime_ns >= start_ns || header->ctime_ns >= start_ns)
            *complete = false;
    }
    qsort(list->items, (size_t)list->count, sizeof *list->items, compare_headers);
    if (set.count == 0) *complete = false; // nothing is known about what was reached
    return true;
}

/* ---- keeping and checking them ------------------------------------------------------------- */

char *headers_text(Arena *arena, const HeaderList *headers) {
    Json *list = json_owned(arena, json_array());
    for (int i = 0; i < headers->count; i++) {
        const HeaderState *header = &headers->items[i];
        json_array_append_new(list,
                              json_pack("[s, I, I, I, s]", header->path, (json_int_t)header->bytes,
                                        (json_int_t)header->mtime_ns, (json_int_t)header->ctime_ns,
                                        header->hash.hex));
    }
    return json_line(arena, list);
}

bool headers_parse(Arena *arena, const char *text, size_t bytes, HeaderList *headers) {
    size_t index;
    Json *list, *item;
    Error ignored;
    *headers = (HeaderList){0};
    if (!json_parse(arena, text, bytes, "headers", &list, &ignored)) return false;
    headers->items = arena_array_of(arena, HeaderState, json_array_size(list) + 1);
    json_array_foreach(list, index, item) {
        HeaderState *header = &headers->items[headers->count++];
        const char *digest;
        json_int_t size, modified, changed;
        if (json_unpack(item, "[s, I, I, I, s]", &header->path, &size, &modified, &changed,
                        &digest) != 0 ||
            strlen(digest) + 1 != sizeof header->hash.hex)
            return false;
        header->bytes = size;
        header->mtime_ns = modified;
        header->ctime_ns = changed;
        memcpy(header->hash.hex, digest, sizeof header->hash.hex);
    }
    return headers->count > 0;
}

bool headers_unchanged(HeaderList *list, bool *touched) {
    for (int i = 0; i < list->count; i++) {
        HeaderState *header = &list->items[i];
        struct stat status;
        if (stat(header->path, &status) != 0 || status.st_size != header->bytes) return false;
        if (nanoseconds(status.st_mtim) == header->mtime_ns &&
            nanoseconds(status.st_ctim) == header->ctime_ns)
            continue;
        Hash before = header->hash;
        if (!look_at(header) || strcmp(header->hash.hex, before.hex) != 0) return false;
        *touched = true;
    }
    return true;
}
