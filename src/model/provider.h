/* provider.h - private to model/: what a provider is.
 *
 * Adding one is adding a file and a line in providers.c. A provider blocks in `ask`, looks at
 * options.cancel while it waits, and fails with
 *   ERROR_INPUT        the user can put it right (no such directory, no such command),
 *   ERROR_STOPPED      there is no reply to be had (the command failed, the recording ended),
 *   ERROR_INTERRUPTED  cancelled.
 */
#pragma once
#include "model/model.h"

#define MODEL_MAX_REPLY_BYTES ((size_t)10 << 20)

typedef struct Provider Provider;

struct Model {
    const Provider *provider;
    const char *name; // "manual:answers"
    ModelOptions options;
    void *state; // the provider's own, from the arena given to model_open
};

struct Provider {
    const char *name;
    const char *argument; // as usage shows it: "DIR"
    bool (*open)(Arena *arena, Model *model, const char *argument, Error *err);
    bool (*ask)(Model *model, Arena *arena, const ModelRequest *request, ModelReply *reply,
                Error *err);
    void (*close)(Model *model); // or NULL
};

extern const Provider provider_manual, provider_exec, provider_replay;

/* A reply of which only the text is known. */
ModelReply reply_of(const char *text, size_t bytes, double seconds);
/* System prefix and prompt as one text, for those that have one channel. */
char *request_text(Arena *arena, const ModelRequest *request);
