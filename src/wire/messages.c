/* messages.c - the compound values inside messages: what the simulator saw in a kernel, and how
 * an output differs from its reference.
 *
 * Both come from a process that has run a model's code, so a reader gives only values that its
 * type can hold: an enumeration out of range marks the reader as failed.
 */
#include "wire/wire.h"

#include <string.h>

static const char *const report_kind_names[SIM_REPORT_KIND_COUNT] = {
    [SIM_OUT_OF_BOUNDS] = "out_of_bounds",
    [SIM_MISALIGNED] = "misaligned",
    [SIM_UNINITIALIZED] = "uninitialized",
    [SIM_BUDGET] = "budget",
    [SIM_BARRIER] = "barrier",
    [SIM_TRAP] = "trap",
    [SIM_ASSERT] = "assert",
    [SIM_UNSUPPORTED] = "unsupported",
};

static const char *const mismatch_shape_names[MISMATCH_SHAPE_COUNT] = {
    [MISMATCH_NONE] = "none",
    [MISMATCH_UNTOUCHED] = "untouched",
    [MISMATCH_NONFINITE] = "nonfinite",
    [MISMATCH_CONSTANT_FACTOR] = "constant_factor",
    [MISMATCH_CONSTANT_OFFSET] = "constant_offset",
    [MISMATCH_TRANSPOSED] = "transposed",
    [MISMATCH_SHIFTED] = "shifted",
    [MISMATCH_RAGGED_EDGE] = "ragged_edge",
    [MISMATCH_BEYOND_2G] = "beyond_2g",
    [MISMATCH_TILES] = "tiles",
    [MISMATCH_ROWS] = "rows",
    [MISMATCH_COLUMNS] = "columns",
    [MISMATCH_ACCUMULATION] = "accumulation",
    [MISMATCH_SCATTERED] = "scattered",
};

const char *sim_report_kind_name(SimReportKind kind) {
    return (unsigned)kind < SIM_REPORT_KIND_COUNT ? report_kind_names[kind] : "unknown";
}

const char *mismatch_shape_name(MismatchShape shape) {
    return (unsigned)shape < MISMATCH_SHAPE_COUNT ? mismatch_shape_names[shape] : "unknown";
}

static unsigned get_enum(WireReader *r, unsigned count) {
    unsigned value = get_u8(r);
    if (value >= count) {
        r->failed = true;
        return 0;
    }
    return value;
}

void report_put(WireWriter *w, const SimReport *report) {
    put_u8(w, (uint8_t)report->kind);
    put_u8(w, report->is_write);
    put_text(w, report->space);
    put_text(w, report->kernel);
    put_text(w, report->file);
    put_u32(w, report->line);
    put_text(w, report->chain);
    put_text(w, report->instruction);
    for (int i = 0; i < 3; i++) {
        put_u32(w, report->thread[i]);
    }
    for (int i = 0; i < 3; i++) {
        put_u32(w, report->block[i]);
    }
    put_u64(w, report->address);
    put_u64(w, report->access_bytes);
    put_text(w, report->tensor);
    put_i64(w, report->offset_bytes);
    put_u64(w, report->tensor_bytes);
    put_u64(w, report->count);
    put_text(w, report->message);
}

void report_get(WireReader *r, SimReport *report) {
    *report = (SimReport){.kind = (SimReportKind)get_enum(r, SIM_REPORT_KIND_COUNT)};
    report->is_write = get_u8(r);
    get_text(r, report->space, sizeof report->space);
    get_text(r, report->kernel, sizeof report->kernel);
    get_text(r, report->file, sizeof report->file);
    report->line = get_u32(r);
    get_text(r, report->chain, sizeof report->chain);
    get_text(r, report->instruction, sizeof report->instruction);
    for (int i = 0; i < 3; i++) {
        report->thread[i] = get_u32(r);
    }
    for (int i = 0; i < 3; i++) {
        report->block[i] = get_u32(r);
    }
    report->address = get_u64(r);
    report->access_bytes = get_u64(r);
    get_text(r, report->tensor, sizeof report->tensor);
    report->offset_bytes = get_i64(r);
    report->tensor_bytes = get_u64(r);
    report->count = get_u64(r);
    get_text(r, report->message, sizeof report->message);
}

void mismatch_put(WireWriter *w, const Mismatch *mismatch) {
    put_u64(w, mismatch->elements);
    put_u64(w, mismatch->wrong);
    put_u64(w, mismatch->untouched);
    put_u64(w, mismatch->nonfinite);
    put_i64(w, mismatch->first);
    put_u32(w, mismatch->rank);
    for (uint32_t i = 0; i < mismatch->rank && i < WIRE_MAX_RANK; i++) {
        put_i64(w, mismatch->extents[i]);
    }
    put_f64(w, mismatch->got);
    put_f64(w, mismatch->expected);
    put_f64(w, mismatch->max_abs);
    put_f64(w, mismatch->max_rel);
    put_f64(w, mismatch->allowed);
    put_f64(w, mismatch->error);
    put_f64(w, mismatch->baseline_error);
    put_u8(w, (uint8_t)mismatch->shape);
    put_text(w, mismatch->sentence);
}

void mismatch_get(WireReader *r, Mismatch *mismatch) {
    *mismatch = (Mismatch){.elements = get_u64(r)};
    mismatch->wrong = get_u64(r);
    mismatch->untouched = get_u64(r);
    mismatch->nonfinite = get_u64(r);
    mismatch->first = get_i64(r);
    mismatch->rank = get_u32(r);
    if (mismatch->rank > WIRE_MAX_RANK) {
        r->failed = true;
        mismatch->rank = 0;
    }
    for (uint32_t i = 0; i < mismatch->rank; i++) {
        mismatch->extents[i] = get_i64(r);
    }
    mismatch->got = get_f64(r);
    mismatch->expected = get_f64(r);
    mismatch->max_abs = get_f64(r);
    mismatch->max_rel = get_f64(r);
    mismatch->allowed = get_f64(r);
    mismatch->error = get_f64(r);
    mismatch->baseline_error = get_f64(r);
    mismatch->shape = (MismatchShape)get_enum(r, MISMATCH_SHAPE_COUNT);
    get_text(r, mismatch->sentence, sizeof mismatch->sentence);
}
