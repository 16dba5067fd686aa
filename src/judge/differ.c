/* differ.c - what the oracle saw: outputs that are off, inputs that were changed, precision lost.
 *
 * Precision is judged apart from tolerance. On zero-mean inputs the relative Frobenius error
 * tells f32 from TF32 or f16 arithmetic by two orders of magnitude; on [0,1) inputs it cannot.
 */
#include "judge/trial.h"
#include <string.h>

/* Above this the output is not imprecise, but something else. */
#define STILL_IMPRECISION 0.02

static char *index_text(Trial *trial, const char *name, const Mismatch *mismatch) {
    int64_t index[WIRE_MAX_RANK] = {0}, rest = mismatch->first;
    uint32_t rank = mismatch->rank < WIRE_MAX_RANK ? mismatch->rank : WIRE_MAX_RANK;
    for (uint32_t axis = rank; axis-- > 0 && mismatch->extents[axis] > 0;) {
        index[axis] = rest % mismatch->extents[axis];
        rest /= mismatch->extents[axis];
    }
    Buf text = {0};
    buf_printf(&text, "%s[", name);
    for (uint32_t axis = 0; axis < rank; axis++)
        buf_printf(&text, "%s%lld", axis ? "," : "", (long long)index[axis]);
    buf_puts(&text, "]");
    return buf_take(trial->arena, &text);
}

static Json *mismatch_json(Trial *trial, int output) {
    const Mismatch *mismatch = &trial->mismatches[output];
    Json *json = json_object(), *extents = json_array();
    for (uint32_t axis = 0; axis < mismatch->rank && axis < WIRE_MAX_RANK; axis++)
        json_array_append_new(extents, json_integer(mismatch->extents[axis]));
    evidence_set(json, "tensor", json_string(trial->task->tensors[output].name));
    evidence_set(json, "shape", json_string(mismatch_shape_name(mismatch->shape)));
    evidence_text(json, "sentence", mismatch->sentence);
    evidence_set(json, "extents", extents);
    evidence_set(json, "elements", json_integer((json_int_t)mismatch->elements));
    evidence_set(json, "wrong", json_integer((json_int_t)mismatch->wrong));
    evidence_set(json, "untouched", json_integer((json_int_t)mismatch->untouched));
    evidence_set(json, "nonfinite", json_integer((json_int_t)mismatch->nonfinite));
    evidence_set(json, "first", json_integer(mismatch->first));
    evidence_set(json, "got", json_finite(mismatch->got));
    evidence_set(json, "expected", json_finite(mismatch->expected));
    evidence_set(json, "allowed", json_finite(mismatch->allowed));
    evidence_set(json, "max_abs", json_finite(mismatch->max_abs));
    evidence_set(json, "max_rel", json_finite(mismatch->max_rel));
    evidence_set(json, "error", json_finite(mismatch->error));
    evidence_set(json, "reference_error", json_finite(mismatch->baseline_error));
    return json;
}

static const char *advice_for(MismatchShape shape) {
    switch (shape) {
    case MISMATCH_UNTOUCHED:
        return "Nothing was written there: look at the grid's extent, at early returns, and at "
               "stores that are masked off.";
    case MISMATCH_RAGGED_EDGE:
        return "Only the last, partial tile is off: look at its mask, and at what padding "
               "contributes to sums and maxima.";
    case MISMATCH_ACCUMULATION:
        return "Small everywhere: accumulate in f32 (or in more terms), not in the input's type.";
    case MISMATCH_BEYOND_2G:
        return "An index or a byte offset overflows 32 bits: compute it in int64_t.";
    case MISMATCH_TRANSPOSED:
        return "Two modes are swapped: compare the layout's strides with [rows, cols] row-major.";
    default:
        return NULL;
    }
}

Outcome explain_mismatches(Trial *trial) {
    const Task *task = trial->task;
    int worst = -1;
    for (int i = task->input_count; i < task->tensor_count; i++)
        if (trial->mismatches[i].wrong && worst < 0) worst = i;
    if (worst < 0) return GO_ON;

    const Mismatch *mismatch = &trial->mismatches[worst];
    const char *name = task->tensors[worst].name;
    verdict_begin(trial, VERDICT_WRONG, 0, "mismatch",
                  "kernel.cu: %s is wrong: %s; %s is %.9g, expected %.9g (%llu of %llu elements "
                  "are off; %s)",
                  name, mismatch->sentence, index_text(trial, name, mismatch), mismatch->got,
                  mismatch->expected, (unsigned long long)mismatch->wrong,
                  (unsigned long long)mismatch->elements, shape_text(trial));
    Json *outputs = json_array();
    Buf details = {0};
    for (int i = task->input_count; i < task->tensor_count; i++) {
        const Mismatch *each = &trial->mismatches[i];
        json_array_append_new(outputs, mismatch_json(trial, i));
        if (i != worst && each->wrong)
            buf_printf(&details, "%s too: %s (%llu of %llu elements)\n", task->tensors[i].name,
                       each->sentence, (unsigned long long)each->wrong,
                       (unsigned long long)each->elements);
    }
    evidence_set(trial->verdict->evidence, "outputs", outputs);
    evidence_set(trial->verdict->evidence, "kernels", json_integer(trial->launch.launches));
    buf_printf(&details, "largest difference %.6g absolute, %.6g relative; allowed there %.6g\n",
               mismatch->max_abs, mismatch->max_rel, mismatch->allowed);
    if (!trial->launch.launches) buf_puts(&details, "launch() started no kernel.\n");
    if (trial->call > 1)
        buf_printf(&details,
                   "The first call on these tensors was right, call %d with other data was not: "
                   "nothing may be kept from one call to the next.\n",
                   trial->call);
    if (advice_for(mismatch->shape)) buf_printf(&details, "%s\n", advice_for(mismatch->shape));
    repair_write(trial, buf_take(trial->arena, &details));
    return JUDGED;
}

Outcome explain_mutation(Trial *trial, uint32_t input, int64_t element) {
    const char *name = trial->task->tensors[input].name;
    verdict_begin(trial, VERDICT_WRONG, 0, "input_changed",
                  "kernel.cu: the kernel changes its input %s, the first at %s[%lld] (%s)", name,
                  name, (long long)element, shape_text(trial));
    evidence_set(trial->verdict->evidence, "tensor", json_string(name));
    evidence_set(trial->verdict->evidence, "first", json_integer(element));
    repair_write(trial, "Inputs are read-only: write to outputs and workspace alone.");
    return JUDGED;
}

/* Positive inputs (variances, probabilities) keep their fill: a negative one would make the task
 * itself meaningless. Integers and constants are no matter of precision. */
Fill probe_fill(const Tensor *tensor) {
    bool spread = tensor->fill.kind == FILL_UNIFORM && tensor->fill.low <= 0;
    if (dtype_info(tensor->dtype)->is_float && spread) return (Fill){.kind = FILL_NORMAL};
    return tensor->fill;
}

/* Even a perfect kernel rounds its output once. */
static double rounding_floor(DType dtype) {
    return ldexp(1.0, -(dtype_info(dtype)->mantissa_bits + 1));
}

Outcome explain_precision(Trial *trial) {
    const Task *task = trial->task;
    for (int i = task->input_count; i < task->tensor_count; i++) {
        const Tensor *tensor = &task->tensors[i];
        const Mismatch *seen = &trial->mismatches[i];
        if (!dtype_info(tensor->dtype)->is_float || !isfinite(seen->baseline_error))
            continue; // exact, or the reference itself has no finite answer on the probe
        double honest = fmax(seen->baseline_error, rounding_floor(tensor->dtype));
        double limit = task->parity_factor * honest;
        if (seen->error <= limit) continue;

        bool imprecise = seen->error < STILL_IMPRECISION;
        const char *type = dtype_info(tensor->dtype)->name;
        verdict_begin(trial, VERDICT_WRONG, 0, "precision",
                      "kernel.cu: %s has a relative error of %.2g on zero-mean inputs, the "
                      "reference in float one of %.2g (allowed: %g times that)%s (%s)",
                      tensor->name, seen->error, honest, task->parity_factor,
                      imprecise ? "; this looks like arithmetic in lower precision" : "",
                      shape_text(trial));
        Json *evidence = trial->verdict->evidence;
        evidence_set(evidence, "tensor", json_string(tensor->name));
        evidence_set(evidence, "error", json_finite(seen->error));
        evidence_set(evidence, "reference_error", json_finite(seen->baseline_error));
        evidence_set(evidence, "rounding_floor", json_finite(rounding_floor(tensor->dtype)));
        evidence_set(evidence, "limit", json_finite(limit));
        repair_write(trial,
                     imprecise
                         ? arena_printf(trial->arena,
                                        "The output is %s and its task asks for that precision "
                                        "throughout: no TF32 or f16 products, no accumulation in "
                                        "f16, no approximate functions with large error; or split "
                                        "operands so that the error is that of f32.",
                                        type)
                         : "With inputs of both signs the result is not merely imprecise.");
        return JUDGED;
    }
    return GO_ON;
}
