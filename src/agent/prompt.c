/* prompt.c - fills the Markdown of prompts/ with a run's particulars.
 *
 * What a model needs to know is written down in prompts/, in whole sentences, and embedded in the
 * program; here only the holes are filled. The system prefix holds nothing that changes, so that
 * providers can cache it; the task and all that happened go into the prompt of a stage.
 */
#include "agent/prompt.h"
#include <ctype.h>
#include <math.h>
#include <string.h>

static const size_t kMaxReferenceBytes = (size_t)256 << 10;
static const size_t kTailBytes = 600;

const char *prompt_template(const char *name) {
    for (const EmbeddedText *text = embedded_prompts; text->name; text++)
        if (strcmp(text->name, name) == 0) return text->text;
    return NULL;
}

/* The length of a placeholder's name at `text` (behind "{{"); 0 if it is none. C++ has "{{" too. */
static size_t placeholder_length(const char *text) {
    size_t length = 0;
    while (islower((unsigned char)text[length]) || text[length] == '_')
        length++;
    return length && text[length] == '}' && text[length + 1] == '}' ? length : 0;
}

bool prompt_fill(Arena *arena, const char *template_name, const PromptValue *values, size_t count,
                 char **text, Error *err) {
    const char *at = prompt_template(template_name);
    if (!at) return error_harness(err, "there is no prompt %s.md", template_name);
    Buf out = {0};
    for (const char *open; (open = strstr(at, "{{"));) {
        size_t length = placeholder_length(open + 2);
        if (!length) {
            buf_append(&out, at, (size_t)(open + 1 - at));
            at = open + 1;
            continue;
        }
        const char *value = NULL;
        for (size_t i = 0; i < count && !value; i++)
            if (strlen(values[i].name) == length && memcmp(values[i].name, open + 2, length) == 0)
                value = values[i].value;
        if (!value) {
            buf_free(&out);
            return error_harness(err, "prompts/%s.md: nothing to put in {{%.*s}}", template_name,
                                 (int)length, open + 2);
        }
        buf_append(&out, at, (size_t)(open - at));
        buf_puts(&out, value);
        at = open + 2 + length + 2;
    }
    buf_puts(&out, at);
    *text = buf_take(arena, &out);
    return true;
}

/* Without the newlines at its end: the template has its own. */
static char *without_end(Arena *arena, const char *text) {
    size_t bytes = strlen(text);
    while (bytes && text[bytes - 1] == '\n')
        bytes--;
    return arena_string_n(arena, text, bytes);
}

/* ---- the task --------------------------------------------------------------------------- */

static void tensors_text(Buf *out, const Task *task) {
    for (int i = 0; i < task->tensor_count; i++) {
        const Tensor *tensor = &task->tensors[i];
        const DTypeInfo *dtype = dtype_info(tensor->dtype);
        buf_printf(out, "- %s `%s`: %s [", tensor->is_output ? "output" : "input", tensor->name,
                   dtype->name);
        for (int k = 0; k < tensor->rank; k++)
            buf_printf(out, "%s%s", k ? ", " : "", tensor->extent_text[k]);
        buf_puts(out, "]");
        if (tensor->is_output)
            buf_printf(out, ", right within rtol %g and atol %g", tensor->rtol, tensor->atol);
        buf_puts(out, "\n");
    }
}

static void shapes_text(Arena *arena, Buf *out, const Task *task) {
    buf_printf(out, "It is timed at %s, and must also be right at",
               dims_text(arena, task, &task->timed));
    for (int i = 0; i < task->check_count; i++)
        buf_printf(out, "%s %s", i ? ";" : "", dims_text(arena, task, &task->checks[i]));
    buf_puts(out, task->static_dims ? ". The dims are compile-time constants.\n"
                                    : ". Any other shape must work too.\n");
    double bytes = task_bytes(task, &task->timed), flops = task_flops(task, &task->timed);
    buf_printf(out, "At the timed shape every tensor once is %.4g MB", bytes / 1e6);
    if (isfinite(flops))
        buf_printf(out, ", the work %.4g GFLOP (%.3g flop per byte)", flops / 1e9, flops / bytes);
    buf_puts(out, ".\n");
}

/* What the place of execution cannot do, so that no reply is wasted on it. */
static const char *device_text(const char *device) {
    bool simulated = !device || strncmp(device, "sim", 3) == 0;
    return simulated
               ? "\nThere is no GPU: a simulator of SIMT PTX executes the kernel. What it does "
                 "not execute yet must not be used: tensor cores (`ldmatrix`, `mma`, "
                 "`wgmma`), TMA, bulk copies, mbarriers, clusters. `cp.async` is fine; "
                 "products go through `UniversalFMA`.\n"
               : "";
}

static bool task_text(Arena *arena, const PromptContext *context, char **text, Error *err) {
    const Task *task = context->task;
    char *reference;
    if (!file_read(arena, task->reference_path, kMaxReferenceBytes, &reference, NULL, err))
        return false;
    Buf tensors = {0}, shapes = {0};
    tensors_text(&tensors, task);
    shapes_text(arena, &shapes, task);
    const char *precision =
        task->exact_precision
            ? arena_printf(arena,
                           "Precision is judged against the reference in double: the error may be "
                           "at most %g times that of the same computation in plain float, so no "
                           "lower precision than the tensors' own, and sums in f32.",
                           task->parity_factor)
            : "Only the tolerances above bind the precision.";
    const PromptValue values[] = {
        {"name", task->name},
        {"summary", task->summary ? task->summary : task->name},
        {"class", class_name(task->class)},
        {"arch", context->arch ? context->arch : "sm_90a"},
        {"tensors", buf_take(arena, &tensors)},
        {"shapes", buf_take(arena, &shapes)},
        {"precision", precision},
        {"header", without_end(arena, task_kernel_header(arena, task))},
        {"reference_language", text_ends_with(task->reference_path, ".py") ? "python" : "c"},
        {"reference", without_end(arena, reference)},
        {"device", device_text(context->device)},
        {"hint", context->hint ? arena_printf(arena, "\nThe user adds: %s\n", context->hint) : ""},
    };
    return prompt_fill(arena, "task", values, COUNT_OF(values), text, err);
}

/* ---- stages ----------------------------------------------------------------------------- */

static const char *playbook(const Task *task) {
    static const char *const names[CLASS_COUNT] = {
        [CLASS_ELEMENTWISE] = "playbooks/elementwise",
        [CLASS_REDUCTION] = "playbooks/softmax",
        [CLASS_NORM] = "playbooks/softmax",
        [CLASS_SOFTMAX] = "playbooks/softmax",
        [CLASS_GEMM] = "playbooks/gemm",
    };
    const char *name = task->class < CLASS_COUNT ? names[task->class] : NULL;
    const char *text = prompt_template(name ? name : "playbooks/general");
    return text ? text : "";
}

static const char *section(Arena *arena, const char *title, const char *text) {
    return text && *text ? arena_printf(arena, "## %s\n\n%s\n\n", title, without_end(arena, text))
                         : "";
}

/* What a repairer is told, which as a rule begins with the message. */
static const char *evidence(Arena *arena, const PromptContext *context) {
    const char *message = context->message, *repair = context->repair;
    if (!message || !repair) return message;
    bool told = strstr(repair, message) != NULL;
    return without_end(arena, told ? repair : arena_printf(arena, "%s\n\n%s", message, repair));
}

bool prompt_system(Arena *arena, char **text, Error *err) {
    const char *card = prompt_template("cute_card");
    const PromptValue values[] = {{"cute_card", card ? card : ""}};
    return prompt_fill(arena, "system", values, COUNT_OF(values), text, err);
}

bool prompt_stage(Arena *arena, const PromptContext *context, char **text, Error *err) {
    char *task;
    if (!task_text(arena, context, &task, err)) return false;
    const PromptValue values[] = {
        {"task", task},
        {"playbook", playbook(context->task)},
        {"refusal", section(arena, "Your last reply could not be used", context->refusal)},
        {"history", section(arena, "Tried so far", context->history)},
        {"source", context->source ? without_end(arena, context->source) : NULL},
        {"verdict", context->verdict},
        {"evidence", evidence(arena, context)},
        {"objective", context->objective},
    };
    return prompt_fill(arena, stage_name(context->stage), values, COUNT_OF(values), text, err);
}

bool prompt_continue(Arena *arena, const char *stage_prompt, const char *reply, char **text,
                     Error *err) {
    size_t bytes = strlen(reply);
    const char *tail = bytes > kTailBytes ? reply + bytes - kTailBytes : reply;
    while (((unsigned char)*tail & 0xc0) == 0x80) // not within a character
        tail++;
    const PromptValue values[] = {{"prompt", stage_prompt}, {"tail", tail}};
    return prompt_fill(arena, "continue", values, COUNT_OF(values), text, err);
}
