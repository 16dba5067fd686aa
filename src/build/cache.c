/* cache.c - keeps what the compilers made, by the content of everything that went in.
 *
 * An entry is a directory named by its key: result.json, log.txt, kernel.so. The key covers the
 * source, the flags, the compilers and the task. Headers are not in it, because which ones a
 * source reaches is known only after preprocessing; instead an entry lists them, and holds only
 * while each still has the content it had.
 *
 * Only what took the compilers' time is kept. Diagnostics, imports, figures and constructs are
 * read from log and object each time, in a few milliseconds, so that a cached build is judged by
 * the same rules as a fresh one.
 *
 * The list of headers is the same for most kernels, so it is stored once by its own content and
 * entries refer to it. Everything is written under a temporary name and renamed; result.json comes
 * last and holds the hashes of the other two, so an entry that is not whole is not one.
 */
#include "build/cache.h"

#include <string.h>

#define CACHE_SCHEMA     2
#define MAX_RESULT_BYTES ((size_t)16 << 20)
#define MAX_LOG_BYTES    ((size_t)64 << 20)
#define MAX_OBJECT_BYTES ((size_t)256 << 20)

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

/* ---- entries ------------------------------------------------------------------------------ */

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

static bool copy_object(const char *made, const char *kept, Error *err) {
    char *data;
    size_t bytes;
    Arena *scratch = arena_new();
    bool good = file_read(scratch, made, MAX_OBJECT_BYTES, &data, &bytes, err) &&
                file_write_atomic(kept, data, bytes, err);
    arena_free(scratch);
    return good;
}

char *cache_log_path(Arena *arena, const char *directory) {
    return path_join(arena, directory, "log.txt");
}

bool cache_keep(Arena *arena, const char *directory, CompileOutcome *outcome, Error *err) {
    if (!file_write_atomic(cache_log_path(arena, directory), outcome->log, strlen(outcome->log),
                           err))
        return false;
    if (outcome->status != COMPILE_OK) return true;
    char *kept = path_join(arena, directory, "kernel.so");
    if (!copy_object(outcome->object, kept, err)) return false;
    outcome->object = kept;
    return true;
}

bool cache_store(Arena *arena, const char *directory, const Hash *key,
                 const CompileOutcome *outcome, const HeaderList *headers, Error *err) {
    char *list = headers_text(arena, headers);
    Hash list_hash = hash_bytes(list, strlen(list)), object = {""};
    Hash log = hash_bytes(outcome->log, strlen(outcome->log));
    char *path = headers_path(arena, directory, list_hash.hex);
    if (!path_exists(path) && (!directory_make(path_directory(arena, path), err) ||
                               !file_write_atomic(path, list, strlen(list), err)))
        return false;
    bool linked = outcome->status == COMPILE_OK;
    if (linked && !hash_file(outcome->object, &object, err)) return false;
    Json *json = json_owned(arena, json_pack("{s:i, s:s, s:b, s:s, s:s, s:s, s:f}", "schema",
                                             CACHE_SCHEMA, "key", key->hex, "linked", linked,
                                             "headers", list_hash.hex, "log", log.hex, "object",
                                             object.hex, "compiler_seconds", outcome->seconds));
    char *text = json_line(arena, json);
    return file_write_atomic(path_join(arena, directory, "result.json"), text, strlen(text), err);
}

bool cache_load(Arena *arena, const char *directory, const Hash *key, CompileOutcome *outcome) {
    char *text;
    size_t bytes;
    Json *json;
    Hash hash;
    Error ignored;
    char *path = path_join(arena, directory, "result.json");
    if (!path_exists(path) || !file_read(arena, path, MAX_RESULT_BYTES, &text, &bytes, &ignored) ||
        !json_parse(arena, text, bytes, path, &json, &ignored) ||
        json_int_or(json, "schema", 0) != CACHE_SCHEMA ||
        strcmp(json_text(json, "key", ""), key->hex) != 0)
        return false;
    bool linked = json_is_true(json_object_get(json, "linked"));
    CompileOutcome loaded = {.status = linked ? COMPILE_OK : COMPILE_FAILED,
                             .seconds = json_real_or(json, "compiler_seconds", 0)};
    if (!file_read(arena, cache_log_path(arena, directory), MAX_LOG_BYTES, &loaded.log, &bytes,
                   &ignored) ||
        strcmp(hash_bytes(loaded.log, bytes).hex, json_text(json, "log", "")) != 0)
        return false;
    if (linked) {
        loaded.object = path_join(arena, directory, "kernel.so");
        if (!hash_file(loaded.object, &hash, &ignored) ||
            strcmp(hash.hex, json_text(json, "object", "")) != 0)
            return false;
    }
    HeaderList headers;
    bool touched = false;
    if (!load_headers(arena, directory, json_text(json, "headers", ""), &headers) ||
        !headers_unchanged(&headers, &touched))
        return false;
    // The next one need not hash them again; that it can be written is not important.
    if (touched) cache_store(arena, directory, key, &loaded, &headers, &ignored);
    *outcome = loaded;
    return true;
}
