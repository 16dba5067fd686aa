/* golden.h - what a GPU was asked once, and the simulator is asked ever after.
 *
 * A case is one instruction on many operands: a kernel of a few lines in which every thread loads
 * its operands, executes the instruction, and stores what it made. The cases of the simulator's
 * table follow from its rows; those of instructions that need a shape of their own (memory, warps,
 * blocks) stand in cases.def. README.md says how they are recorded.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define GOLDEN_BLOCK     128 // threads of a block; all lanes of a case are whole blocks
#define GOLDEN_MAX_LANES 2048
#define GOLDEN_MAX_WORDS 16
#define GOLDEN_GROUP     64 // lanes that share a hash

typedef struct {
    char name[96];    // the opcode; "/tag" follows where one opcode has several cases
    char *body;       // PTX between loading the operands and storing the results
    char sources[8];  // kinds of the operands, see operands.c; operand i is register i
    char results[48]; // registers to store, in order: "r0 p5"
    uint32_t lanes;
    uint32_t words;   // 32-bit words that a lane stores
    bool approximate; // specified to an error bound: its results are kept, not hashed
    int row;          // of the simulator's table; -1: written by hand
} GoldenCase;

typedef struct {
    GoldenCase *all;
    size_t count;
} GoldenCases;

GoldenCases golden_cases(void);
void golden_cases_free(GoldenCases *cases);

/* The module that holds case i as kernel "k<i>", without those named in `refused` (may be NULL:
 * lines of "name<TAB>why"). A kernel takes two pointers: operands and zeroed results. */
char *golden_ptx(const GoldenCases *cases, const char *refused);
/* Whether a list has a line for the case. */
bool golden_is_named(const char *list, const char *name);

/* Operands of each lane, 8 bytes each; the same ones on every machine. */
void golden_operands(const GoldenCase *c, uint64_t (*operands)[4]);

/* Names text and operands of a case: what was recorded for another key is out of date. */
uint32_t golden_key(const GoldenCase *c, const uint64_t (*operands)[4]);
uint32_t golden_hash(const uint32_t *words, size_t count);

/* How a case was written, as one line of rows.txt (hashes) or approximations.txt (results). */
void golden_write_line(FILE *file, const GoldenCase *c, uint32_t key, const uint32_t *results);

typedef struct {
    char name[96];
    uint32_t key;
    uint32_t *values; // hashes of groups, or results
    size_t count;
} GoldenRecord;

/* Reads such a file; lines that begin with '#' are skipped. False: it is damaged or absent. */
bool golden_read(const char *path, GoldenRecord **records, size_t *count);
void golden_records_free(GoldenRecord *records, size_t count);
