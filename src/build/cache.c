/* cache.c - keeps what was built, by the content of everything that went in.
 *
 * An entry is a directory named by its key: result.json, log.txt, kernel.so. The key covers the
 * source, the flags, the compilers and the task. Headers are not in it, because which ones a
 * source reaches is known only after preprocessing; instead an entry lists them, and holds only
 * while each still has the content it had. A header whose size and times are unchanged is taken
 * to be unchanged, so a hit costs a stat for each header and no hashing; one that was touched is
 * hashed, once. The change time counts as well, because archives unpack different contents with
 * one modification time.
 *
 * The list is the same for most kernels, so it is stored once by its own content and entries
 * refer to it. Everything is written under a temporary name and renamed; result.json comes last
 * and says how large the object is, so an entry that is not whole is not one.
 */
#include "build/cache.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define CACHE_SCHEMA 1
#define MAX_RESULT_BYTES ((size_t)16 << 20)

static int64_t nanoseconds(struct timespec time) {
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

/* ---- which headers were reached ----------------------------------------------------------- */

/* A set of paths, open addressing. */
typedef struct {
    Arena *arena;
    const char **slots;
    size_t capacity, count;
} PathSet;

/* The slot that holds `path`, or the free one where it would go. */
static size_t path_slot(const PathSet *set, const char *path) {
    uint64_t hash = 1469598103934665603u; // FNV-1a
    for (const char *c = path; *c; c++) hash = (hash ^ (unsigned char)*c) * 1099511628211u;
    size_t at = (size_t)hash & (set->capacity - 1);
    while (set->slots[at] && strcmp(set->slots[at], path) != 0) at = (at + 1) & (set->capacity - 1);
    return at;
}

static bool path_set_has(const PathSet *set, const char *path) {
    return set->capacity > 0 && set->slots[path_slot(set, path)];
}

static void path_set_add(PathSet *set, const char *path) {
    if (set->count * 2 >= set->capacity) {
        PathSet larger = {.arena = set->arena, .capacity = set->capacity ? set->capacity * 2 : 1024};
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
    while (*at >= '0' && *at <= '9') at++;
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
    if (stat(header->path, &status) != 0 || !hash_file(header->path, &header->hash, &ignored))
        return false;
    header->bytes = status.st_size;
    header->mtime_ns = nanoseconds(status.st_mtim);
    header->ctime_ns = nanoseconds(status.st_ctim);
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
        if (!path || path[0] != '/') continue; // relative: in the scratch directory, in the key
        if (strncmp(path, directory, own) == 0 && path[own] == '/') continue;
        HeaderState *header = &list->items[list->count++];
        header->path = path;
        if (!look_at(header) || header->mtime_ns >= start_ns || header->ctime_ns >= start_ns)
            *complete = false;
    }
    qsort(list->items, (size_t)list->count, sizeof *list->items, compare_headers);
    if (set.count == 0) *complete = false; // nothing is known about what was reached
    return true;
}

/* ---- where entries lie ------------------------------------------------------------------- */

static char *cache_root(Arena *arena, Error *err) {
    char *cache = directory_cache(arena, err);
    return cache ? path_join(arena, cache, "build") : NULL;
}

char *cache_entry_directory(Arena *arena, const Hash *key, Error *err) {
    char *root = cache_root(arena, err);
    if (!root) return NULL;
    char *directory = arena_printf(arena, "%s/%.2s/%s", root, key->hex, key->hex);
    return directory_make(directory, err) ? directory : NULL;
}

/* Header lists lie beside the entries: <root>/headers/<hash>.json. */
static char *headers_path(Arena *arena, const char *directory, const char *hash) {
    return arena_printf(arena, "%s/../../headers/%s.json", directory, hash);
}

/* ---- header lists ------------------------------------------------------------------------ */

static Json *headers_json(const HeaderList *headers) {
    Json *list = json_array();
    for (int i = 0; i < headers->count; i++) {
        const HeaderState *header = &headers->items[i];
        json_array_append_new(list, json_pack("[s, I, I, I, s]", header->path,
                                              (json_int_t)header->bytes,
                                              (json_int_t)header->mtime_ns,
                                              (json_int_t)header->ctime_ns, header->hash.hex));
    }
    return list;
}

static bool headers_load(Arena *arena, const char *directory, const char *hash, HeaderList *list) {
    char *text;
    size_t bytes, index;
    Json *json, *item;
    Error ignored;
    if (strlen(hash) != 64 || strspn(hash, "0123456789abcdef") != 64) return false;
    char *path = headers_path(arena, directory, hash);
    if (!file_read(arena, path, MAX_RESULT_BYTES, &text, &bytes, &ignored) ||
        strcmp(hash_bytes(text, bytes).hex, hash) != 0 ||
        !json_parse(arena, text, bytes, path, &json, &ignored))
        return false;
    *list = (HeaderList){0};
    list->items = arena_array_of(arena, HeaderState, json_array_size(json) + 1);
    json_array_foreach(json, index, item) {
        HeaderState *header = &list->items[list->count++];
        const char *digest;
        json_int_t size, modified, changed;
        if (json_unpack(item, "[s, I, I, I, s]", &header->path, &size, &modified, &changed,
                        &digest) != 0 ||
            strlen(digest) != 64)
            return false;
        header->bytes = size;
        header->mtime_ns = modified;
        header->ctime_ns = changed;
        strcpy(header->hash.hex, digest);
    }
    return list->count > 0;
}

/* Whether every header has the content it had. `touched`: some were hashed to tell, and the list
 * now holds their new times. */
static bool headers_unchanged(HeaderList *list, bool *touched) {
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

/* ---- results ------------------------------------------------------------------------------ */

static const char *const kStatusNames[] = {
    [BUILD_OK] = "ok",
    [BUILD_COMPILE_ERROR] = "compile_error",
    [BUILD_FORBIDDEN] = "forbidden",
};

static Json *text_or_null(const char *text) { return text ? json_string(text) : json_null(); }

static Json *diagnostics_json(const BuildResult *result) {
    Json *list = json_array();
    for (int i = 0; i < result->diagnostic_count; i++) {
        const Diagnostic *item = &result->diagnostics[i];
        json_array_append_new(
            list, json_pack("{s:b, s:s, s:i, s:i, s:s, s:o, s:i}", "warning",
                            item->level == DIAGNOSTIC_WARNING, "file", item->file, "line",
                            item->line, "column", item->column, "message", item->message, "frames",
                            text_or_null(item->frames), "user_line", item->user_line));
    }
    return list;
}

static Json *figures_json(const BuildResult *result) {
    Json *list = json_array();
    for (int i = 0; i < result->figure_count; i++) {
        const KernelFigures *item = &result->figures[i];
        json_array_append_new(
            list, json_pack("{s:s, s:i, s:i, s:i, s:i, s:i}", "kernel", item->kernel, "registers",
                            item->registers, "shared_bytes", item->shared_bytes,
                            "spill_store_bytes", item->spill_store_bytes, "spill_load_bytes",
                            item->spill_load_bytes, "stack_bytes", item->stack_bytes));
    }
    return list;
}

static Json *texts_json(const char *const *texts, int count) {
    Json *list = json_array();
    for (int i = 0; i < count; i++) json_array_append_new(list, json_string(texts[i]));
    return list;
}

bool cache_store(Arena *arena, const char *directory, const BuildResult *result,
                 const HeaderList *headers, Error *err) {
    char *list = json_line(arena, json_owned(arena, headers_json(headers)));
    Hash hash = hash_bytes(list, strlen(list));
    char *path = headers_path(arena, directory, hash.hex);
    if (!path_exists(path) && (!directory_make(path_directory(arena, path), err) ||
                               !file_write_atomic(path, list, strlen(list), err)))
        return false;

    struct stat status = {0};
    if (result->object && stat(result->object, &status) != 0)
        return error_harness(err, "cannot look at %s: %s", result->object, strerror(errno));
    Json *json = json_pack(
        "{s:i, s:s, s:s, s:s, s:I, s:f, s:s, s:o, s:o, s:o, s:o}", "schema", CACHE_SCHEMA, "key",
        result->key.hex, "status", kStatusNames[result->status], "headers", hash.hex,
        "object_bytes", (json_int_t)status.st_size, "compiler_seconds", result->compiler_seconds,
        "distilled", result->distilled, "diagnostics", diagnostics_json(result), "figures",
        figures_json(result), "forbidden", texts_json(result->forbidden, result->forbidden_count),
        "constructs", texts_json(result->constructs, result->construct_count));
    if (!json) return error_harness(err, "a build result is not valid UTF-8");
    char *text = json_line(arena, json_owned(arena, json));
    return file_write_atomic(path_join(arena, directory, "result.json"), text, strlen(text), err);
}

static const char **load_texts(Arena *arena, const Json *list, int *count) {
    *count = (int)json_array_size(list);
    const char **texts = arena_array_of(arena, const char *, (size_t)*count + 1);
    for (int i = 0; i < *count; i++) {
        const char *text = json_string_value(json_array_get(list, (size_t)i));
        texts[i] = text ? text : "";
    }
    return texts;
}

static const Diagnostic *load_diagnostics(Arena *arena, const Json *list, int *count) {
    *count = (int)json_array_size(list);
    Diagnostic *items = arena_array_of(arena, Diagnostic, (size_t)*count + 1);
    for (int i = 0; i < *count; i++) {
        const Json *item = json_array_get(list, (size_t)i);
        items[i] = (Diagnostic){
            .level = json_is_true(json_object_get(item, "warning")) ? DIAGNOSTIC_WARNING
                                                                    : DIAGNOSTIC_ERROR,
            .file = json_text(item, "file", "?"),
            .line = (int)json_int_or(item, "line", 0),
            .column = (int)json_int_or(item, "column", 0),
            .message = json_text(item, "message", ""),
            .frames = json_text(item, "frames", NULL),
            .user_line = (int)json_int_or(item, "user_line", 0),
        };
    }
    return items;
}

static const KernelFigures *load_figures(Arena *arena, const Json *list, int *count) {
    *count = (int)json_array_size(list);
    KernelFigures *items = arena_array_of(arena, KernelFigures, (size_t)*count + 1);
    for (int i = 0; i < *count; i++) {
        const Json *item = json_array_get(list, (size_t)i);
        items[i] = (KernelFigures){
            .kernel = json_text(item, "kernel", "?"),
            .registers = (int)json_int_or(item, "registers", 0),
            .shared_bytes = (int)json_int_or(item, "shared_bytes", 0),
            .spill_store_bytes = (int)json_int_or(item, "spill_store_bytes", 0),
            .spill_load_bytes = (int)json_int_or(item, "spill_load_bytes", 0),
            .stack_bytes = (int)json_int_or(item, "stack_bytes", 0),
        };
    }
    return items;
}

static bool status_parse(const char *name, BuildStatus *status) {
    for (size_t i = 0; i < COUNT_OF(kStatusNames); i++)
        if (strcmp(kStatusNames[i], name) == 0) {
            *status = (BuildStatus)i;
            return true;
        }
    return false;
}

bool cache_load(Arena *arena, const char *directory, const Hash *key, BuildResult *result) {
    char *text;
    size_t bytes;
    Json *json;
    Error ignored;
    char *path = path_join(arena, directory, "result.json");
    if (!path_exists(path) || !file_read(arena, path, MAX_RESULT_BYTES, &text, &bytes, &ignored) ||
        !json_parse(arena, text, bytes, path, &json, &ignored))
        return false;
    BuildResult loaded = {.key = *key, .from_cache = true};
    if (json_int_or(json, "schema", 0) != CACHE_SCHEMA ||
        strcmp(json_text(json, "key", ""), key->hex) != 0 ||
        !status_parse(json_text(json, "status", ""), &loaded.status))
        return false;
    loaded.log_path = path_join(arena, directory, "log.txt");
    if (!path_exists(loaded.log_path)) return false;
    if (loaded.status == BUILD_OK) {
        struct stat status;
        loaded.object = path_join(arena, directory, "kernel.so");
        if (stat(loaded.object, &status) != 0 || status.st_size == 0 ||
            status.st_size != json_int_or(json, "object_bytes", -1))
            return false;
    }
    HeaderList headers;
    bool touched = false;
    if (!headers_load(arena, directory, json_text(json, "headers", ""), &headers) ||
        !headers_unchanged(&headers, &touched))
        return false;
    loaded.compiler_seconds = json_real_or(json, "compiler_seconds", 0);
    loaded.distilled = json_text(json, "distilled", "");
    loaded.diagnostics = load_diagnostics(arena, json_object_get(json, "diagnostics"),
                                          &loaded.diagnostic_count);
    loaded.figures =
        load_figures(arena, json_object_get(json, "figures"), &loaded.figure_count);
    loaded.forbidden =
        load_texts(arena, json_object_get(json, "forbidden"), &loaded.forbidden_count);
    loaded.constructs =
        load_texts(arena, json_object_get(json, "constructs"), &loaded.construct_count);
    // The next one need not hash them again; that it can be written is not important.
    if (touched) cache_store(arena, directory, &loaded, &headers, &ignored);
    *result = loaded;
    return true;
}
