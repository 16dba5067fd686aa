/* bounds.h - how far off an approximation may be, by the PTX ISA. */
#pragma once
#include "golden/golden.h"

/* Whether a lane's `result` is as near to the truth as the instruction promises. Where the truth is
 * no number, or too large or small for one, and where nothing is promised, `gpu` has to be met or
 * the same kind of value. */
bool golden_within_bound(const GoldenCase *c, const uint64_t operands[4], const uint32_t *result,
                         const uint32_t *gpu);
