/* exec.c - exec:CMD: a command of the user's answers; prompt on stdin, reply on stdout.
 *
 * CMD goes to /bin/sh -c, as in git's and make's settings, so that pipes and arguments work as
 * they would at a prompt. It is the user's own program and needs its keys, hence it is the one
 * child that keeps the whole environment. CUTEGEN_STAGE and CUTEGEN_REQUEST tell it which request
 * it is answering. Any exit code but 0 means that the model failed; the end of what the command
 * wrote to stderr is the explanation.
 */
#include "model/provider.h"
#include <string.h>

static const double kTimeoutSeconds = 1800;
static const size_t kStderrShown = 600;

static bool exec_open(Arena *arena, Model *model, const char *argument, Error *err) {
    (void)err;
    model->state = arena_string(arena, argument);
    return true;
}

/* The last few hundred bytes, from the start of a line where possible, on one line. */
static const char *stderr_tail(Arena *arena, const ProcessResult *result) {
    const char *text = result->err;
    size_t bytes = result->err_bytes;
    while (bytes && strchr(" \t\r\n", text[bytes - 1]))
        bytes--;
    if (bytes > kStderrShown) {
        text += bytes - kStderrShown;
        bytes = kStderrShown;
        const char *line = memchr(text, '\n', bytes);
        if (line) bytes -= (size_t)(line + 1 - text), text = line + 1;
    }
    char *tail = arena_string_n(arena, text, bytes);
    for (char *c = tail; *c; c++)
        if ((unsigned char)*c < ' ') *c = ' ';
    return tail;
}

static bool exec_ask(Model *model, Arena *arena, const ModelRequest *request, ModelReply *reply,
                     Error *err) {
    const char *command = model->state;
    const char *input = request_text(arena, request);
    double timeout_s = model->options.timeout_s > 0 ? model->options.timeout_s : kTimeoutSeconds;
    const char *env[] = {
        arena_printf(arena, "CUTEGEN_STAGE=%s", stage_name(request->stage)),
        arena_printf(arena, "CUTEGEN_REQUEST=%d", request->number),
        NULL,
    };
    const ProcessOptions options = {
        .argv = (const char *const[]){"/bin/sh", "-c", command, NULL},
        .env = env,
        .keep_environment = true,
        .input = input,
        .input_bytes = strlen(input),
        .timeout_s = timeout_s,
        .max_output_bytes = MODEL_MAX_REPLY_BYTES,
        .cancel = model->options.cancel,
    };
    if (model->options.progress)
        model->options.progress(model->options.progress_context,
                                arena_printf(arena, "asking `%s`", command));
    ProcessResult result;
    if (!process_run(arena, &options, &result, err)) return false;
    if (result.timed_out)
        return error_stopped(err, "`%s` gave no reply within %.0f s", command, timeout_s);
    if (result.signal)
        return error_stopped(err, "`%s` was killed by signal %d: %s", command, result.signal,
                             stderr_tail(arena, &result));
    if (result.exit_code != 0)
        return error_stopped(err, "`%s` failed with exit code %d: %s", command, result.exit_code,
                             stderr_tail(arena, &result));
    if (result.output_truncated && result.out_bytes >= MODEL_MAX_REPLY_BYTES)
        return error_stopped(err, "`%s` answered with more than %zu MiB", command,
                             MODEL_MAX_REPLY_BYTES >> 20);
    *reply = reply_of(result.out, result.out_bytes, result.seconds);
    return true;
}

const Provider provider_exec = {
    .name = "exec", .argument = "CMD", .open = exec_open, .ask = exec_ask};
