/* json.c - jansson, tied to arenas.
 *
 * jansson counts references; json_owned hands one reference to an arena so that a JSON value
 * lives as long as everything else of its run. Readers of optional members give the value to use
 * when the member is absent or of another type: what comes from outside is checked by whoever
 * knows what it should look like.
 */
#include "base/base.h"

#include <stdlib.h>
#include <string.h>

static void json_release(void *json) {
    json_decref(json);
}

Json *json_owned(Arena *arena, Json *json) {
    if (json) {
        arena_defer(arena, json_release, json);
    }
    return json;
}

char *json_line(Arena *arena, const Json *json) {
    // JSON_REAL_PRECISION 17 would print 0.1 as 0.10000000000000001; jansson's default of 17
    // significant digits is needed to read the same double back.
    char *text = json_dumps(json, JSON_COMPACT | JSON_ENCODE_ANY);
    char *line = arena_string(arena, text ? text : "null");
    free(text);
    return line;
}

bool json_parse(Arena *arena, const char *text, size_t bytes, const char *where, Json **json,
                Error *err) {
    json_error_t error;
    Json *parsed =
        json_loadb(text, bytes, JSON_DECODE_ANY | JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &error);
    if (!parsed) {
        return error_input(err, "%s:%d:%d: not valid JSON: %s", where, error.line, error.column,
                           error.text);
    }
    *json = json_owned(arena, parsed);
    return true;
}

const char *json_text(const Json *object, const char *key, const char *otherwise) {
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : otherwise;
}

double json_real_or(const Json *object, const char *key, double otherwise) {
    const Json *value = json_object_get(object, key);
    return json_is_number(value) ? json_number_value(value) : otherwise;
}

int64_t json_int_or(const Json *object, const char *key, int64_t otherwise) {
    const Json *value = json_object_get(object, key);
    return json_is_integer(value) ? (int64_t)json_integer_value(value) : otherwise;
}
