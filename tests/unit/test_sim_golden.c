/* The simulator gives the bits that a GPU gave: every recorded case (tests/golden/) is run again
 * and compared, under each instruction set this machine has.
 *
 * $GOLDEN_RESULTS names results.bin of the recording, if it is still at hand; a difference is then
 * shown with what was expected.
 */
#include "golden/bounds.h"
#include "golden/golden.h"
#include "support/sim_ptx.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define FOLDER SOURCE_ROOT "/tests/data/golden/"
#define SHOWN  3 // differences of a case

typedef struct {
    GoldenCases cases;
    GoldenRecord *exact, *approximate;
    size_t exact_count, approximate_count;
    char *full, *refused, *known; // results.bin; refused.txt; known_differences.txt
    size_t full_bytes;
} World;

static World world;

static char *file_bytes(const char *path, size_t *size) {
    char *bytes = NULL;
    FILE *out = open_memstream(&bytes, size), *in = path ? fopen(path, "rb") : NULL;
    char part[65536];
    for (size_t n; in && (n = fread(part, 1, sizeof part, in)) > 0;)
        fwrite(part, 1, n, out);
    if (in) fclose(in);
    fclose(out);
    return bytes;
}

static int build_world(void **state) {
    (void)state;
    size_t size;
    world.cases = golden_cases();
    world.refused = file_bytes(FOLDER "refused.txt", &size);
    world.known = file_bytes(FOLDER "known_differences.txt", &size);
    world.full = file_bytes(getenv("GOLDEN_RESULTS"), &world.full_bytes);
    return golden_read(FOLDER "rows.txt", &world.exact, &world.exact_count) &&
                   golden_read(FOLDER "approximations.txt", &world.approximate,
                               &world.approximate_count)
               ? 0
               : -1;
}

static int drop_world(void **state) {
    (void)state;
    golden_cases_free(&world.cases);
    golden_records_free(world.exact, world.exact_count);
    golden_records_free(world.approximate, world.approximate_count);
    free(world.refused);
    free(world.known);
    free(world.full);
    return 0;
}

static const GoldenRecord *record_of(const GoldenCase *c) {
    const GoldenRecord *records = c->approximate ? world.approximate : world.exact;
    size_t count = c->approximate ? world.approximate_count : world.exact_count;
    for (size_t i = 0; i < count; i++)
        if (!strcmp(records[i].name, c->name)) return &records[i];
    return NULL;
}

/* Its results in results.bin: "name words\n" and the words, case after case. NULL: not there. */
static const uint32_t *full_results(const GoldenCase *c) {
    static uint32_t copy[GOLDEN_MAX_LANES * GOLDEN_MAX_WORDS];
    size_t length = strlen(c->name);
    for (const char *at = world.full, *end = at + world.full_bytes; at < end;) {
        const char *line_end = memchr(at, '\n', (size_t)(end - at));
        size_t words = line_end ? strtoul(strchr(at, ' ') + 1, NULL, 10) : 0;
        if (!line_end || words > sizeof copy / 4 || line_end + 1 + 4 * words > end) return NULL;
        if (!strncmp(at, c->name, length) && at[length] == ' ')
            return memcpy(copy, line_end + 1, 4 * words);
        at = line_end + 1 + 4 * words;
    }
    return NULL;
}

/* ---- one case ---------------------------------------------------------------------------------
 */

typedef struct {
    uint64_t operands[GOLDEN_MAX_LANES][4];
    uint32_t results[GOLDEN_MAX_LANES * GOLDEN_MAX_WORDS];
} Memory;

/* False: the simulator does not have the instruction. */
static bool run_case(PtxModule *module, size_t index, Memory *memory) {
    const GoldenCase *c = &world.cases.all[index];
    char name[32], message[512] = "";
    snprintf(name, sizeof name, "k%zu", index);
    PtxKernel *kernel = ptx_kernel(module, name, message);
    if (!kernel) {
        if (!strstr(message, "unknown instruction")) fail_msg("%s: %s", c->name, message);
        return false;
    }
    golden_operands(c, memory->operands);
    memset(memory->results, 0, 4 * (size_t)c->lanes * c->words);
    const void *parameters[] = {memory->operands, memory->results};
    SimOptions options = {1, 1, 0, 1};
    Launch launch = {.grid = {c->lanes / GOLDEN_BLOCK, 1, 1},
                     .block = {GOLDEN_BLOCK, 1, 1},
                     .params = parameters,
                     .param_bytes = sizeof parameters,
                     .options = &options};
    ExecStatus status = exec_launch(kernel, &launch);
    SimReport report = {.message = "no report"};
    if (sim_take_reports(&report, 1) || status != EXEC_OK)
        fail_msg("%s: status %d, %s", c->name, status, report.message);
    return true;
}

static void print_lane(const GoldenCase *c, const Memory *memory, uint32_t lane,
                       const uint32_t *expected) {
    print_message("  %s, lane %u:", c->name, lane);
    for (size_t k = 0; c->sources[k]; k++)
        print_message(" %llx", (unsigned long long)memory->operands[lane][k]);
    print_message(" gives");
    for (uint32_t w = 0; w < c->words; w++)
        print_message(" %08x", memory->results[lane * c->words + w]);
    if (expected) print_message(", expected");
    for (uint32_t w = 0; expected && w < c->words; w++)
        print_message(" %08x", expected[lane * c->words + w]);
    print_message("\n");
}

/* Groups whose hash differs; the first lanes of the first ones are shown. */
static size_t differing_groups(const GoldenCase *c, const GoldenRecord *record,
                               const Memory *memory, bool quiet) {
    const uint32_t *full = full_results(c);
    size_t groups = c->lanes / GOLDEN_GROUP, wrong = 0, shown = 0;
    for (size_t g = 0; g < groups; g++) {
        size_t words = GOLDEN_GROUP * (size_t)c->words;
        if (golden_hash(memory->results + g * words, words) == record->values[g]) continue;
        wrong++;
        for (uint32_t i = 0; i < GOLDEN_GROUP && shown < SHOWN && !quiet; i++) {
            uint32_t lane = (uint32_t)g * GOLDEN_GROUP + i;
            if (full &&
                !memcmp(full + lane * c->words, memory->results + lane * c->words, 4 * c->words))
                continue;
            print_lane(c, memory, lane, full);
            shown++;
        }
    }
    if (wrong && !quiet)
        print_message("%s: %zu of %zu groups of %d lanes differ from the GPU's\n", c->name, wrong,
                      groups, GOLDEN_GROUP);
    return wrong;
}

/* Results that are further off than the ISA allows, the GPU's or the simulator's. */
static size_t out_of_bounds(const GoldenCase *c, const GoldenRecord *record, const Memory *memory) {
    size_t wrong = 0;
    for (uint32_t lane = 0; lane < c->lanes; lane++) {
        const uint32_t *gpu = record->values + lane * c->words;
        const uint32_t *ours = memory->results + lane * c->words;
        bool gpu_is_right = golden_within_bound(c, memory->operands[lane], gpu, gpu);
        if (gpu_is_right && golden_within_bound(c, memory->operands[lane], ours, gpu)) continue;
        if (wrong++ < SHOWN) {
            print_message(gpu_is_right ? "" : "  the GPU itself is out of bounds:\n");
            print_lane(c, memory, lane, record->values);
        }
    }
    if (wrong) print_message("%s: %zu of %u results are out of bounds\n", c->name, wrong, c->lanes);
    return wrong;
}

static void compare_all(bool approximate) {
    static Memory *memory;
    char message[512] = "", *ptx = golden_ptx(&world.cases, world.refused);
    PtxModule *module = ptx_module_load(ptx, strlen(ptx), message);
    if (!module) fail_msg("%s", message);
    memory = device_copy(NULL, sizeof *memory, "memory");
    size_t wrong = 0, compared = 0, known = 0, stale = 0, ahead = 0;
    for (size_t i = 0; i < world.cases.count; i++) {
        const GoldenCase *c = &world.cases.all[i];
        const GoldenRecord *record = record_of(c);
        if (c->approximate != approximate || !record) continue;
        if (!run_case(module, i, memory)) {
            ahead++;
            continue;
        }
        size_t values = (size_t)c->lanes * c->words / (approximate ? 1 : GOLDEN_GROUP * c->words);
        if (record->count != values ||
            record->key != golden_key(c, (const uint64_t(*)[4])memory->operands)) {
            print_message("%s is not the case that was recorded\n", c->name);
            stale++;
            continue;
        }
        compared++;
        bool is_known = golden_is_named(world.known, c->name);
        bool differs = approximate ? out_of_bounds(c, record, memory) != 0
                                   : differing_groups(c, record, memory, is_known) != 0;
        if (is_known && !differs)
            print_message("%s is right now: remove it from known_differences.txt\n", c->name);
        wrong += differs != is_known;
        known += is_known;
    }
    memory_free(memory);
    ptx_module_free(module);
    free(ptx);
    print_message("%zu cases compared, %zu known to differ; %zu recorded for instructions that are "
                  "not executed yet\n",
                  compared, known, ahead);
    assert_true(compared > 0);
    if (wrong || stale)
        fail_msg("%zu cases are not as expected, %zu are out of date", wrong, stale);
}

static void test_exact_instructions_give_the_bits_of_the_gpu(void **state) {
    (void)state;
    compare_all(false);
}

static void test_approximations_are_within_the_bound_as_the_gpu_is(void **state) {
    (void)state;
    compare_all(true);
}

/* A row that no record covers was added after the last recording; refused ones have none. */
static void test_rows_without_golden_bits_are_named(void **state) {
    (void)state;
    size_t missing = 0, refused = 0;
    for (size_t i = 0; i < world.cases.count; i++) {
        const GoldenCase *c = &world.cases.all[i];
        if (golden_is_named(world.refused, c->name))
            refused++;
        else if (!record_of(c))
            print_message("%s%s", missing++ ? " " : "not recorded yet: ", c->name);
    }
    print_message("%s%zu cases, %zu not recorded yet, %zu refused by ptxas\n", missing ? "\n" : "",
                  world.cases.count, missing, refused);
    assert_true(world.exact_count + world.approximate_count > 0);
}

static int with_isa(void **state) {
    setenv("CUTEGEN_SIM_ISA", *(const char **)*state, 1);
    return 0;
}

#define ON(test, isa)                                                                              \
    { #test " on " #isa, test, with_isa, NULL, (void *)(uintptr_t)&isa }
#define ON_EACH(test) ON(test, avx512), ON(test, avx2), ON(test, base)

int main(void) {
    static const char *avx512 = "avx512", *avx2 = "avx2", *base = "base";
    const struct CMUnitTest tests[] = {
        ON_EACH(test_exact_instructions_give_the_bits_of_the_gpu),
        ON_EACH(test_approximations_are_within_the_bound_as_the_gpu_is),
        cmocka_unit_test(test_rows_without_golden_bits_are_named),
    };
    return cmocka_run_group_tests(tests, build_world, drop_world);
}
