/* verdict.c - what a verdict is called, what evidence begins with, and how both look as JSON
 * (docs/verdicts.md, docs/schema/verdict.json).
 */
#include "judge/trial.h"
#include <string.h>

const char *verdict_name(VerdictKind kind) {
    static const char *const names[VERDICT_KIND_COUNT] = {
        [VERDICT_PASS] = "pass",
        [VERDICT_COMPILE_ERROR] = "compile_error",
        [VERDICT_FORBIDDEN] = "forbidden",
        [VERDICT_LAUNCH_ERROR] = "launch_error",
        [VERDICT_HANG] = "hang",
        [VERDICT_MEMORY_ERROR] = "memory_error",
        [VERDICT_RACE] = "race",
        [VERDICT_WRONG] = "wrong",
        [VERDICT_NONDETERMINISTIC] = "nondeterministic",
        [VERDICT_CHEATING] = "cheating",
        [VERDICT_HARNESS_FAULT] = "harness_fault",
    };
    return kind < VERDICT_KIND_COUNT ? names[kind] : "unknown";
}

/* How many bytes at `text` make one well-formed UTF-8 character; 0: none do. */
static size_t utf8_length(const char *text, size_t left) {
    for (size_t length = 1; length <= 4 && length <= left; length++)
        if (text_is_utf8(text, length)) return length;
    return 0;
}

char *text_cleaned(Arena *arena, const char *text, size_t bytes) {
    Buf clean = {0};
    for (size_t at = 0; at < bytes;) {
        size_t length = utf8_length(text + at, bytes - at);
        unsigned char byte = (unsigned char)text[at];
        bool control = (byte < 0x20 && byte != '\n' && byte != '\t') || byte == 0x7f;
        if (length && !control)
            buf_append(&clean, text + at, length);
        else if (byte != '\r')
            buf_puts(&clean, "?");
        at += length ? length : 1;
    }
    return buf_take(arena, &clean);
}

void evidence_set(Json *object, const char *key, Json *value) {
    json_object_set_new(object, key, value ? value : json_null());
}

void evidence_text(Json *object, const char *key, const char *text) {
    Arena *arena = arena_new();
    evidence_set(object, key, json_string(text_cleaned(arena, text, strlen(text))));
    arena_free(arena);
}

Json *json_finite(double value) {
    return isfinite(value) ? json_real(value) : json_null();
}

char *shape_text(Trial *trial) {
    Buf text = {0};
    for (int i = 0; trial->dims && i < trial->task->dim_count; i++)
        buf_printf(&text, "%s%s=%lld", i ? ", " : "", trial->task->dim_names[i],
                   (long long)trial->dims->value[i]);
    return buf_take(trial->arena, &text);
}

static Json *device_json(const Trial *trial) {
    const Judge *judge = trial->judge;
    Json *device = json_object();
    evidence_set(device, "simulated", json_boolean(judge->device.simulated));
    evidence_text(device, "name", judge->info.device_name);
    evidence_text(device, "arch", judge->info.arch);
    evidence_text(device, "isolation", judge->info.isolation);
    return device;
}

void verdict_begin(Trial *trial, VerdictKind kind, int line, const char *evidence, const char *fmt,
                   ...) {
    Verdict *verdict = trial->verdict;
    va_list args;
    va_start(args, fmt);
    const char *message = arena_vprintf(trial->arena, fmt, args);
    va_end(args);
    verdict->kind = kind;
    verdict->message = text_cleaned(trial->arena, message, strlen(message));
    verdict->place = (Place){.file = line > 0 ? "kernel.cu" : NULL, .line = line > 0 ? line : 0};

    Json *json = json_owned(trial->arena, json_object());
    evidence_set(json, "kind", json_string(evidence));
    if (trial->dims) {
        evidence_set(json, "dims", dims_json(trial->task, trial->dims));
        evidence_set(json, "seed", json_integer((json_int_t)trial->seed));
        evidence_set(json, "call", json_integer(trial->call));
        evidence_set(json, "poison", json_integer(trial->poison));
        evidence_set(json, "probe", json_boolean(trial->probe));
    }
    evidence_set(json, "first_seed", json_integer((json_int_t)trial->first_seed));
    evidence_set(json, "device", device_json(trial));
    verdict->evidence = json;
}

static Json *build_json(const BuildResult *build) {
    Json *json = json_object();
    Json *kernels = json_array(), *constructs = json_array();
    for (int i = 0; i < build->figure_count; i++) {
        const KernelFigures *figures = &build->figures[i];
        Json *kernel = json_object();
        evidence_text(kernel, "kernel", figures->kernel);
        evidence_set(kernel, "registers", json_integer(figures->registers));
        evidence_set(kernel, "shared_bytes", json_integer(figures->shared_bytes));
        evidence_set(kernel, "spill_store_bytes", json_integer(figures->spill_store_bytes));
        evidence_set(kernel, "spill_load_bytes", json_integer(figures->spill_load_bytes));
        evidence_set(kernel, "stack_bytes", json_integer(figures->stack_bytes));
        json_array_append_new(kernels, kernel);
    }
    for (int i = 0; i < build->construct_count; i++)
        json_array_append_new(constructs, json_string(build->constructs[i]));
    evidence_set(json, "key", json_string(build->key.hex));
    evidence_set(json, "from_cache", json_boolean(build->from_cache));
    evidence_set(json, "seconds", json_finite(build->seconds));
    evidence_set(json, "compiler_seconds", json_finite(build->compiler_seconds));
    evidence_set(json, "kernels", kernels);
    evidence_set(json, "constructs", constructs);
    return json;
}

Json *verdict_json(const Verdict *verdict) {
    Json *json = json_object();
    evidence_set(json, "schema", json_integer(1));
    evidence_set(json, "verdict", json_string(verdict_name(verdict->kind)));
    evidence_text(json, "message", verdict->message ? verdict->message : "");
    evidence_text(json, "repair", verdict->repair ? verdict->repair : "");
    Json *place = NULL;
    if (verdict->place.file) {
        place = json_object();
        evidence_set(place, "file", json_string(verdict->place.file));
        evidence_set(place, "line", json_integer(verdict->place.line));
        evidence_set(place, "column", json_integer(verdict->place.column));
    }
    evidence_set(json, "place", place);
    evidence_set(json, "evidence", json_incref(verdict->evidence));
    evidence_set(json, "build", build_json(&verdict->build));
    evidence_set(json, "time_ms", json_finite(verdict->time_ms));
    Json *interval = NULL;
    if (isfinite(verdict->time_ms)) {
        interval = json_array();
        json_array_append_new(interval, json_finite(verdict->time_ci_ms[0]));
        json_array_append_new(interval, json_finite(verdict->time_ci_ms[1]));
    }
    evidence_set(json, "time_ci_ms", interval);
    evidence_set(json, "cost_us", json_finite(verdict->cost_us));
    evidence_set(json, "seconds", json_finite(verdict->seconds));
    return json;
}
