/* cache.c - keeps what was built, by the content of everything that went in.
 *
 * An entry is a directory named by its key: result.json, log.txt, kernel.so. The key covers the
 * source, the flags, the compilers and the task. Headers are not in it, because which ones a
 * source reaches is known only after preprocessing; instead an entry lists them, and holds only
 * while each still has the content it had.
 *
 * The list is the same for most kernels, so it is stored once by its own content and entries
 * refer to it. Everything is written under a temporary name and renamed; result.json comes last
 * and says how large the object is, so an entry that is not whole is not one.
 */
#include "build/cache.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#define CACHE_SCHEMA     1
#define MAX_RESULT_BYTES ((size_t)16 << 20)

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

/* ---- results ------------------------------------------------------------------------------ */

static const char *const kStatusNames[] = {
    [BUILD_OK] = "ok",
    [BUILD_COMPILE_ERROR] = "compile_error",
    [BUILD_FORBIDDEN] = "forbidden",
};

/* Header lists lie beside the entries, by their own content. */
static bool load_headers(Arena *arena, const char *directory, const char *hash, HeaderList *list) {
    char *text;
    size_t bytes;
    Error ignored;
    if (strlen(hash) != 64 || strspn(hash, "0123456789abcdef") != 64) return false;
    return file_read(arena, headers_path(arena, directory, hash), MAX_RESULT_BYTES, &text, &bytes,
                     &ignored) &&
           strcmp(hash_bytes(text, bytes).hex, hash) == 0 &&
           headers_parse(arena, text, bytes, list);
}

static Json *text_or_null(const char *text) {
    return text ? json_string(text) : json_null();
}

static Json *diagnostics_json(const BuildResult *result) {
    Json *list = json_array();
    for (int i = 0; i < result->diagnostic_count; i++) {
        const Diagnostic *item = &result->diagnostics[i];
        json_array_append_new(list, json_pack("{s:b, s:s, s:i, s:i, s:s, s:o, s:i}", "warning",
                                              item->level == DIAGNOSTIC_WARNING, "file", item->file,
                                              "line", item->line, "column", item->column, "message",
                                              item->message, "frames", text_or_null(item->frames),
                                              "user_line", item->user_line));
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
    for (int i = 0; i < count; i++)
        json_array_append_new(list, json_string(texts[i]));
    return list;
}

bool cache_store(Arena *arena, const char *directory, const BuildResult *result,
                 const HeaderList *headers, Error *err) {
    char *list = headers_text(arena, headers);
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
    if (!load_headers(arena, directory, json_text(json, "headers", ""), &headers) ||
        !headers_unchanged(&headers, &touched))
        return false;
    loaded.compiler_seconds = json_real_or(json, "compiler_seconds", 0);
    loaded.distilled = json_text(json, "distilled", "");
    loaded.diagnostics =
        load_diagnostics(arena, json_object_get(json, "diagnostics"), &loaded.diagnostic_count);
    loaded.figures = load_figures(arena, json_object_get(json, "figures"), &loaded.figure_count);
    loaded.forbidden =
        load_texts(arena, json_object_get(json, "forbidden"), &loaded.forbidden_count);
    loaded.constructs =
        load_texts(arena, json_object_get(json, "constructs"), &loaded.construct_count);
    // The next one need not hash them again; that it can be written is not important.
    if (touched) cache_store(arena, directory, &loaded, &headers, &ignored);
    *result = loaded;
    return true;
}
