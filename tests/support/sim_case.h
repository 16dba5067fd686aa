/* sim_case.h - runs one instruction on given values and compares its result, for tests.
 *
 * Operands are named by letter, the target first: h 16, i 32, l 64 bits, p predicate, n an
 * immediate. A lane that a predicate switches off must keep what its target held.
 */
#pragma once
#include "sim/decode.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
    const char *opcode, *operands;
    uint64_t expected, a, b, c, e;
} Case;

extern bool case_covered[ROW_COUNT]; // rows that some case of this program has run
uint64_t case_run(const char *opcode, const char *operands, const uint64_t *values);
void expect(const char *opcode, const char *operands, uint64_t expected, uint64_t a, uint64_t b,
            uint64_t c, uint64_t e);
void expect_all(const Case *cases, size_t count);
#define EXPECT_ALL(cases) expect_all(cases, sizeof(cases) / sizeof(cases)[0])
