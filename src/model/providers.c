/* providers.c - the table of providers, and the interface that hides which one it is. */
#include "model/provider.h"
#include <math.h>
#include <string.h>

static const Provider *const kProviders[] = {&provider_manual, &provider_exec, &provider_replay};

const char *stage_name(Stage stage) {
    static const char *const names[STAGE_COUNT] = {
        [STAGE_DRAFT] = "draft",
        [STAGE_DEBUG] = "debug",
        [STAGE_OPTIMISE] = "optimise",
        [STAGE_DONE] = "done",
    };
    return names[stage];
}

static bool unknown_provider(Arena *arena, const char *spec, size_t length, Error *err) {
    const char *names[COUNT_OF(kProviders)];
    Buf known = {0};
    for (size_t i = 0; i < COUNT_OF(kProviders); i++) {
        names[i] = kProviders[i]->name;
        buf_printf(&known, "%s%s:%s", i ? ", " : "", names[i], kProviders[i]->argument);
    }
    char *list = buf_take(arena, &known);
    char *name = arena_string_n(arena, spec, length);
    const char *nearest = text_nearest(name, names, COUNT_OF(names));
    return error_input(err, "unknown model '%s'%s%s%s; known are %s", spec,
                       nearest ? "; did you mean " : "", nearest ? nearest : "",
                       nearest ? ":…" : "", list);
}

bool model_open(Arena *arena, const char *spec, const ModelOptions *options, Model **model,
                Error *err) {
    size_t length = strcspn(spec, ":/");
    for (size_t i = 0; i < COUNT_OF(kProviders); i++) {
        const Provider *provider = kProviders[i];
        if (strlen(provider->name) != length || strncmp(provider->name, spec, length) != 0)
            continue;
        const char *argument = spec[length] ? spec + length + 1 : "";
        if (!*argument)
            return error_input(err, "model '%s' lacks its %s: write %s:%s", spec,
                               provider->argument, provider->name, provider->argument);
        Model *opened = arena_new_of(arena, Model);
        opened->provider = provider;
        opened->name = arena_printf(arena, "%s:%s", provider->name, argument);
        if (options) opened->options = *options;
        if (!provider->open(arena, opened, argument, err)) return false;
        *model = opened;
        return true;
    }
    return unknown_provider(arena, spec, length, err);
}

const char *model_name(const Model *model) {
    return model->name;
}

bool model_ask(Model *model, Arena *arena, const ModelRequest *request, ModelReply *reply,
               Error *err) {
    if (cancelled(model->options.cancel))
        return error_interrupted(err, "interrupted before asking the model");
    return model->provider->ask(model, arena, request, reply, err);
}

void model_close(Model *model) {
    if (model && model->provider->close) model->provider->close(model);
}

ModelReply reply_of(const char *text, size_t bytes, double seconds) {
    return (ModelReply){.text = text,
                        .bytes = bytes,
                        .input_tokens = -1,
                        .output_tokens = -1,
                        .cost_dollars = NAN,
                        .seconds = seconds};
}

char *request_text(Arena *arena, const ModelRequest *request) {
    return arena_printf(arena, "%s\n\n%s", request->system, request->prompt);
}
