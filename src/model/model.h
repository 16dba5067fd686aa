/* model.h - asking a model: one interface, one file per provider, one table (providers.c).
 */
#pragma once
#include "base/base.h"

typedef enum { STAGE_DRAFT, STAGE_DEBUG, STAGE_OPTIMISE, STAGE_DONE, STAGE_COUNT } Stage;
const char *stage_name(Stage stage);

typedef struct {
    Stage stage;
    int number;                // of this request within the run, from 1
    int stage_number;          // of this request among those of its stage, from 1
    const char *system;        // the stable prefix
    const char *prompt;
} ModelRequest;

typedef struct {
    const char *text;
    size_t bytes;
    bool truncated;            // cut off by the length limit
    int64_t input_tokens, output_tokens; // -1: not known
    double cost_dollars;       // NAN: not known
    double seconds;
} ModelReply;

typedef struct Model Model;

typedef struct {
    Cancel *cancel;
    double timeout_s;          // 0: the provider's own
    /* One line of progress; may be NULL. */
    void (*progress)(void *context, const char *line);
    void *progress_context;
} ModelOptions;

/* "manual:DIR", "exec:CMD", "replay:FILE"; PROVIDER/NAME is accepted too. An unknown provider is
 * an ERROR_INPUT that lists the known ones. */
bool model_open(Arena *arena, const char *spec, const ModelOptions *options, Model **model,
                Error *err);
const char *model_name(const Model *model);
bool model_ask(Model *model, Arena *arena, const ModelRequest *request, ModelReply *reply,
               Error *err);
void model_close(Model *model);
