/* prompt.h - private to agent/: what the model is told. */
#pragma once
#include "agent/agent.h"

typedef struct {
    const char *name; // "draft", "playbooks/gemm"
    const char *text;
} EmbeddedText;
extern const EmbeddedText embedded_prompts[];  // ends with a NULL name
const char *prompt_template(const char *name); // NULL when there is none

typedef struct {
    const char *name, *value;
} PromptValue;

/* Fills {{name}} in a template. A placeholder without a value is an error: a prompt with a hole
 * would cost money and bring nonsense. Values are not looked through. */
bool prompt_fill(Arena *arena, const char *template_name, const PromptValue *values, size_t count,
                 char **text, Error *err);

typedef struct {
    const Task *task;
    const char *arch, *device;
    const char *hint; // of the user; or NULL
    Stage stage;
    const char *source;                     // what is to be edited; NULL for a draft
    const char *refusal;                    // why the last reply could not be used; or NULL
    const char *verdict, *message, *repair; // debug: of `source`
    const char *history;                    // what was tried so far, a line each; "" for nothing
    const char *objective;                  // optimise: "12.3 us (estimated)"; else NULL
} PromptContext;

/* The stable prefix: the same text for every request of every run. */
bool prompt_system(Arena *arena, char **text, Error *err);
bool prompt_stage(Arena *arena, const PromptContext *context, char **text, Error *err);
/* Asks for the rest of a reply that was cut off. */
bool prompt_continue(Arena *arena, const char *stage_prompt, const char *reply, char **text,
                     Error *err);
