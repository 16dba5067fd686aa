/* What the simulator finds wrong with a kernel, where it says it is, and what it leaves alone. */
#include "support/sim_ptx.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

typedef struct {
    uint32_t *in, *out;
    PtxRun run;
} World;

/* `in` and `out` have 64 words each; `in` is initialised up to word `written`. The kernel finds
 * them in %l0 and %l1, and the thread in %r0, the address of its word of `in` in %l2, of `out` in
 * %l3. */
static World run_in_world(const char *body, uint32_t threads, uint32_t written, uint64_t budget) {
    static const char head[] =
        ".version 9.0\n.target sm_90a\n.address_size 64\n"
        ".visible .entry k(.param .u64 a, .param .u64 b)\n{\n.reg .pred %p<9>;\n.reg .b16 %h<9>;\n"
        ".reg .b32 %r<20>;\n.reg .b64 %l<20>;\n.loc 1 40 1\n"
        "ld.param.u64 %l0, [a];\nld.param.u64 %l1, [b];\nmov.u32 %r0, %tid.x;\n"
        "mad.wide.u32 %l2, %r0, 4, %l0;\nmad.wide.u32 %l3, %r0, 4, %l1;\n"
        ".loc 1 57 3\n.loc 2 211 9, function_name $f, inlined_at 1 57 3\n"
        ".loc 3 30 5, function_name $g, inlined_at 2 211 9\n";
    static const char tail[] = "\nret;\n}\n.file 1 \"/home/me/kernel.cu\"\n"
                               ".file 2 \"/cutlass/cute/algorithm/copy.hpp\"\n.file 3 \"/cutlass/cute/atom.hpp\"\n";
    char *text = NULL;
    if (asprintf(&text, "%s%s%s", head, body, tail) < 0)
        abort();
    World world = {.in = memory_allocate(256, "x"), .out = memory_allocate(256, "y")};
    assert_non_null(world.in);
    assert_non_null(world.out);
    memset(world.in, 0, 256);
    memory_mark((uint64_t)(uintptr_t)world.in, written * 4, true);
    uint64_t params[2] = {(uint64_t)(uintptr_t)world.in, (uint64_t)(uintptr_t)world.out};
    world.run = ptx_run(text, "k", &(PtxLaunch){.block = {threads}, .params = params, .param_bytes = 16,
                                                .options = {1, 1, budget, 1}});
    free(text);
    if (*world.run.message)
        fail_msg("%s", world.run.message);
    return world;
}

static void end_world(World *world) {
    memory_free(world->in);
    memory_free(world->out);
}

static void expect_clean(const char *body, uint32_t threads, uint32_t written) {
    World w = run_in_world(body, threads, written, 0);
    if (w.run.status != EXEC_OK || w.run.report_count)
        fail_msg("status %d: %s", w.run.status, w.run.report_count ? w.run.reports[0].message : "");
    end_world(&w);
}

static SimReport expect_report(const char *body, uint32_t threads, uint32_t written,
                               ExecStatus status, SimReportKind kind) {
    World w = run_in_world(body, threads, written, 100000);
    assert_int_equal(w.run.status, status);
    assert_int_equal(w.run.report_count, 1);
    assert_int_equal(w.run.reports[0].kind, kind);
    end_world(&w);
    return w.run.reports[0];
}

/* ---- bounds ---------------------------------------------------------------------------------- */

static void test_read_past_the_end_names_line_thread_and_tensor(void **state) {
    (void)state;
    SimReport r = expect_report("ld.global.u32 %r1, [%l2];\nst.shared.u32 [0], 0;\n", 1, 64,
                                EXEC_ILLEGAL_ADDRESS, SIM_OUT_OF_BOUNDS);
    assert_string_equal(r.space, "shared");
    r = expect_report("ld.global.f32 %r1, [%l2];\n", 66, 64, EXEC_ILLEGAL_ADDRESS, SIM_OUT_OF_BOUNDS);
    assert_string_equal(r.file, "/home/me/kernel.cu");
    assert_int_equal(r.line, 57);
    assert_string_equal(r.chain, "kernel.cu:57 < copy.hpp:211 < atom.hpp:30");
    assert_string_equal(r.tensor, "x");
    assert_string_equal(r.space, "global");
    assert_string_equal(r.kernel, "k");
    assert_string_equal(r.instruction, "ld.global.f32 %r1, [%l2]");
    assert_int_equal(r.is_write, 0);
    assert_int_equal(r.thread[0], 64);
    assert_int_equal(r.offset_bytes, 256);
    assert_int_equal(r.access_bytes, 4);
    assert_int_equal(r.tensor_bytes, 256);
    assert_int_equal(r.count, 2);
}

static void test_write_before_the_start(void **state) {
    (void)state;
    SimReport r = expect_report("st.global.u32 [%l3+-8], %r0;\n", 3, 64, EXEC_ILLEGAL_ADDRESS,
                                SIM_OUT_OF_BOUNDS);
    assert_string_equal(r.tensor, "y");
    assert_int_equal(r.is_write, 1);
    assert_int_equal(r.offset_bytes, -8);
    assert_int_equal(r.count, 2);
}

static void test_vector_that_straddles_the_end(void **state) {
    (void)state;
    SimReport r = expect_report("ld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%l0+248];\n", 1, 64,
                                EXEC_ILLEGAL_ADDRESS, SIM_OUT_OF_BOUNDS);
    assert_int_equal(r.offset_bytes, 248);
    assert_int_equal(r.access_bytes, 16);
}

static void test_named_part_of_an_allocation_bounds_it(void **state) {
    (void)state;
    uint8_t *pool = device_copy(NULL, 1024, "pool");
    sim_name(pool + 256, 256, "weights");
    char *text = ptx_around("ld.param.u64 %l0, [p];\nld.global.u32 %r1, [%l0+256];\n");
    uint64_t address = (uint64_t)(uintptr_t)pool + 256;
    PtxLaunch launch = {.params = &address, .param_bytes = 8, .options = {1, 1, 0, 1}};
    PtxRun run = ptx_run(text, "k", &launch);
    assert_int_equal(run.status, EXEC_ILLEGAL_ADDRESS);
    assert_string_equal(run.reports[0].tensor, "weights");
    assert_int_equal(run.reports[0].offset_bytes, 256);
    launch.options.check_bounds = 0;
    run = ptx_run(text, "k", &launch);
    assert_int_equal(run.status, EXEC_OK);
    assert_int_equal(run.report_count, 0);
    memory_free(pool);
    free(text);
}

static void test_wild_address_is_no_crash_with_checks_off(void **state) {
    (void)state;
    char *text = ptx_around("mov.u64 %l0, 0x7000;\nld.global.u32 %r1, [%l0];\nst.global.u32 [%l0+4], %r1;\n");
    PtxRun run = ptx_run(text, "k", &(PtxLaunch){.block = {32}});
    assert_int_equal(run.status, EXEC_ILLEGAL_ADDRESS);
    free(text);
}

static void test_misaligned_access(void **state) {
    (void)state;
    SimReport r = expect_report("ld.global.v2.u32 {%r1, %r2}, [%l0+4];\n", 1, 64, EXEC_MISALIGNED,
                                SIM_MISALIGNED);
    assert_int_equal(r.offset_bytes, 4);
}

static void test_shared_and_local_bounds(void **state) {
    (void)state;
    SimReport r = expect_report(".shared .align 16 .b8 s[64];\nmov.u32 %r1, s;\nmad.lo.u32 %r1, %r0, 4, %r1;\n"
                                "st.shared.u32 [%r1], %r0;\n", 20, 64, EXEC_ILLEGAL_ADDRESS, SIM_OUT_OF_BOUNDS);
    assert_string_equal(r.space, "shared");
    assert_int_equal(r.thread[0], 16);
    assert_int_equal(r.count, 4);
    r = expect_report(".local .align 16 .b8 t[32];\nmov.u64 %l4, t;\nadd.u64 %l4, %l4, 32;\nst.local.u32 [%l4], %r0;\n",
                      1, 64, EXEC_ILLEGAL_ADDRESS, SIM_OUT_OF_BOUNDS);
    assert_string_equal(r.space, "local");
}

static void test_guarded_access_out_of_bounds_is_clean(void **state) {
    (void)state;
    expect_clean("setp.lt.u32 %p0, %r0, 64;\n@%p0 ld.global.u32 %r1, [%l2];\n@%p0 st.global.u32 [%l3], %r1;\n", 96, 64);
}

/* ---- initialised-ness ------------------------------------------------------------------------ */

static void test_uninitialised_value_reaches_a_store(void **state) {
    (void)state;
    SimReport r = expect_report("ld.global.u32 %r1, [%l2];\nadd.u32 %r2, %r1, 5;\nst.global.u32 [%l3], %r2;\n", 64, 60,
                                EXEC_OK, SIM_UNINITIALIZED);
    assert_int_equal(r.thread[0], 60);
    assert_int_equal(r.count, 4);
    assert_string_equal(r.tensor, "y");
    assert_int_equal(r.line, 57);
}

static void test_uninitialised_value_decides_a_branch(void **state) {
    (void)state;
    expect_report("ld.global.u32 %r1, [%l2];\nsetp.eq.u32 %p0, %r1, 5;\n@%p0 bra END;\nst.global.u32 [%l3], 1;\nEND:\n",
                  64, 63, EXEC_OK, SIM_UNINITIALIZED);
}

static void test_uninitialised_value_becomes_an_address(void **state) {
    (void)state;
    SimReport r = expect_report("ld.global.u32 %r1, [%l2];\nand.b32 %r1, %r1, 15;\nmad.wide.u32 %l4, %r1, 4, %l0;\n"
                                "ld.global.u32 %r2, [%l4];\n", 64, 63, EXEC_OK, SIM_UNINITIALIZED);
    assert_int_equal(r.thread[0], 63);
}

static void test_unwritten_shared_memory_reaches_a_store(void **state) {
    (void)state;
    SimReport r = expect_report(".shared .align 4 .b8 s[256];\nmov.u32 %r1, s;\nmad.lo.u32 %r2, %r0, 4, %r1;\n"
                                "setp.ne.u32 %p0, %r0, 7;\n@%p0 st.shared.u32 [%r2], %r0;\nbar.sync 0;\n"
                                "ld.shared.u32 %r3, [%r2];\nst.global.u32 [%l3], %r3;\n", 64, 64, EXEC_OK, SIM_UNINITIALIZED);
    assert_int_equal(r.thread[0], 7);
    assert_int_equal(r.count, 1);
}

static void test_unwritten_data_travels_through_shared_memory_and_shuffles(void **state) {
    (void)state;
    SimReport r = expect_report(".shared .align 4 .b8 s[256];\nmov.u32 %r1, s;\nmad.lo.u32 %r2, %r0, 4, %r1;\n"
                                "ld.global.u32 %r3, [%l2];\nst.shared.u32 [%r2], %r3;\nbar.sync 0;\nld.shared.u32 %r4, [%r2];\n"
                                "shfl.sync.bfly.b32 %r5, %r4, 1, 31, -1;\nst.global.u32 [%l3], %r5;\n", 32, 31, EXEC_OK, SIM_UNINITIALIZED);
    assert_int_equal(r.thread[0], 30);
    assert_int_equal(r.count, 1);
}

static void test_register_read_before_it_is_written(void **state) {
    (void)state;
    expect_report("add.u32 %r5, %r5, 1;\nst.global.u32 [%l3], %r5;\n", 1, 64, EXEC_OK, SIM_UNINITIALIZED);
}

static void test_tile_loaded_whole_and_masked_at_the_store_is_clean(void **state) {
    (void)state;
    expect_clean("ld.global.u32 %r1, [%l2];\nmul.lo.u32 %r2, %r1, 3;\nsetp.lt.u32 %p0, %r0, 50;\n"
                 "@%p0 st.global.u32 [%l3], %r2;\n", 64, 50);
    expect_clean("ld.global.u32 %r1, [%l2];\nsetp.lt.u32 %p0, %r0, 50;\nselp.b32 %r2, %r1, 0, %p0;\n"
                 "st.global.u32 [%l3], %r2;\n", 64, 50);
}

static void test_halves_of_a_word_are_told_apart(void **state) {
    (void)state;
    /* Words 8.. are unwritten; the last written word is only half there. */
    static const char body[] = "setp.ne.u32 %p0, %r0, 0;\n@%p0 ret;\nmov.u32 %r1, 7;\nst.global.u16 [%l0+32], %r1;\n"
                               "ld.global.u32 %r2, [%l0+32];\n";
    char text[1024];
    snprintf(text, sizeof text, "%smov.b32 {%%h1, %%h2}, %%r2;\nst.global.u16 [%%l3], %%h1;\n", body);
    expect_clean(text, 1, 8);
    snprintf(text, sizeof text, "%sand.b32 %%r3, %%r2, 0xffff;\nst.global.u32 [%%l3], %%r3;\n", body);
    expect_clean(text, 1, 8);
    snprintf(text, sizeof text, "%sshl.b32 %%r3, %%r2, 16;\nst.global.u32 [%%l3], %%r3;\n", body);
    expect_clean(text, 1, 8);
    snprintf(text, sizeof text, "%scvt.u16.u32 %%h1, %%r2;\nst.global.u16 [%%l3], %%h1;\n", body);
    expect_clean(text, 1, 8);
    snprintf(text, sizeof text, "%sprmt.b32 %%r3, %%r2, %%r1, 0x5410;\nst.global.u32 [%%l3], %%r3;\n", body);
    expect_clean(text, 1, 8);
    snprintf(text, sizeof text, "%sprmt.b32 %%r3, %%r2, %%r1, 0x5432;\nst.global.u32 [%%l3], %%r3;\n", body);
    expect_report(text, 1, 8, EXEC_OK, SIM_UNINITIALIZED);
    snprintf(text, sizeof text, "%sshr.u32 %%r3, %%r2, 16;\nst.global.u32 [%%l3], %%r3;\n", body);
    expect_report(text, 1, 8, EXEC_OK, SIM_UNINITIALIZED);
}

static void test_condition_that_bounds_decide_is_clean(void **state) {
    (void)state;
    static const char load[] = "ld.global.u32 %r1, [%l2];\nsetp.lt.u32 %p0, %r0, 50;\n";
    static const char *const ways[] = {
        "setp.eq.u32 %p1, %r1, 5;\nand.pred %p2, %p0, %p1;\n@%p2 st.global.u32 [%l3], %r0;\n",
        "setp.eq.and.u32 %p2, %r1, 5, %p0;\n@%p2 st.global.u32 [%l3], %r0;\n",
        "setp.ge.u32 %p3, %r0, 50;\nsetp.eq.or.u32 %p2, %r1, 5, %p3;\n@%p2 bra END;\nst.global.u32 [%l3], %r0;\nEND:\n",
        "setp.eq.u32 %p1, %r1, 5;\nnot.pred %p3, %p0;\nor.pred %p2, %p3, %p1;\n@!%p2 st.global.u32 [%l3], %r1;\n",
    };
    char text[1024];
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        snprintf(text, sizeof text, "%s%s", load, ways[i]);
        expect_clean(text, 64, 50);
    }
    snprintf(text, sizeof text, "%ssetp.eq.u32 %%p1, %%r1, 5;\nxor.pred %%p2, %%p0, %%p1;\n"
                                "@%%p2 st.global.u32 [%%l3], %%r0;\n", load);
    expect_report(text, 64, 50, EXEC_OK, SIM_UNINITIALIZED);
}

static void test_store_initialises_what_it_writes(void **state) {
    (void)state;
    expect_clean("st.global.u32 [%l3], %r0;\nld.global.u32 %r1, [%l3];\nst.global.u32 [%l3], %r1;\n"
                 "st.global.v2.u32 [%l1], {%r0, %r0};\nld.global.u64 %l5, [%l1];\nst.global.u64 [%l1+8], %l5;\n", 32, 64);
}

static void test_value_overwritten_before_use_is_clean(void **state) {
    (void)state;
    expect_clean("ld.global.u32 %r1, [%l2];\nmov.u32 %r1, 3;\nst.global.u32 [%l3], %r1;\n"
                 "ld.global.u32 %r2, [%l2];\n{ .reg .b64 t; ld.param.u64 t, [a]; }\nld.global.u32 %r2, [%l0];\nst.global.u32 [%l3], %r2;\n",
                 32, 4);
}

/* ---- ends ------------------------------------------------------------------------------------ */

static void test_endless_loop_is_stopped_by_budget_and_names_its_lines(void **state) {
    (void)state;
    SimReport r = expect_report(".loc 1 60 1\nLOOP: add.u32 %r0, %r0, 1;\n.loc 1 61 1\nadd.u32 %r1, %r0, 1;\n"
                                ".loc 1 63 1\nbra LOOP;\n", 32, 64, EXEC_BUDGET, SIM_BUDGET);
    assert_non_null(strstr(r.message, "lines 60 to 63"));
    assert_true(r.line >= 60 && r.line <= 63);
}

static void test_trap(void **state) {
    (void)state;
    SimReport r = expect_report("setp.eq.u32 %p0, %r0, 5;\n@%p0 trap;\n", 32, 64, EXEC_TRAP, SIM_TRAP);
    assert_int_equal(r.thread[0], 5);
}

static void test_assertion_names_its_condition(void **state) {
    (void)state;
    static const char text[] =
        ".version 9.0\n.target sm_90a\n.address_size 64\n"
        ".extern .func __assertfail(.param .b64 a, .param .b64 b, .param .b32 c, .param .b64 d, .param .b64 e);\n"
        ".global .align 1 .b8 what[6] = {110, 32, 62, 32, 48, 0};\n"
        ".visible .entry k()\n{\n.reg .b64 %l<9>;\nmov.u64 %l1, what;\ncvta.global.u64 %l2, %l1;\n"
        "{ .param .b64 p0; st.param.b64 [p0+0], %l2; .param .b64 p1; st.param.b64 [p1+0], %l2; .param .b32 p2;\n"
        "st.param.b32 [p2+0], 12; .param .b64 p3; st.param.b64 [p3+0], %l2; .param .b64 p4; st.param.b64 [p4+0], 1;\n"
        "call.uni __assertfail, (p0, p1, p2, p3, p4); }\nret;\n}\n";
    PtxRun run = ptx_run(text, "k", &(PtxLaunch){.block = {3}});
    assert_int_equal(run.status, EXEC_ASSERT);
    assert_string_equal(run.reports[0].message, "assertion 'n > 0' failed");
    assert_int_equal(run.reports[0].count, 3);
}

/* ---- text that is no good -------------------------------------------------------------------- */

static void expect_refusal(const char *text, const char *part) {
    PtxRun run = ptx_run(text, "k", &(PtxLaunch){.block = {1}});
    assert_int_equal(run.status, EXEC_UNSUPPORTED);
    if (!strstr(run.message, part))
        fail_msg("'%s' does not say '%s'", run.message, part);
}

static void test_bad_text_gives_line_and_token(void **state) {
    (void)state;
    expect_refusal("", "begins with .version");
    expect_refusal("\177ELF", "PTX line 1");
    expect_refusal(".version 12.0\n", "PTX line 1: at '12.0'");
    expect_refusal(".version 9.0\n.target sm_90a\n.address_size 32\n", "64-bit");
    expect_refusal(".version 9.0\n.visible .entry k(.param .u64 a)\n{\nadd.u32 ", "the text ends");
    expect_refusal(".version 9.0\n.visible .entry k(.param .u64 a)\n{\n.reg .b33 x;\n}", "PTX line 4: at '.b33'");
    expect_refusal(".version 9.0\n.visible .entry k()\n{\nmov.u32 {{{{{{{{{{{{", "PTX line 4");
    expect_refusal(".version 9.0\n.global .b8 x[99999999999999];\n", "too large");
    expect_refusal(".version 9.0\n.global .b8 x[2] = {1, 2, 3};\n", "longer than its variable");
    expect_refusal(".version 9.0\n\"abc", "PTX line 2");
}

static void test_unknown_instruction_spoils_only_the_kernel_that_holds_it(void **state) {
    (void)state;
    static const char text[] = ".version 9.0\n.target sm_90a\n.address_size 64\n"
                               ".visible .entry k()\n{\n.reg .b32 %r<4>;\nfoo.b32 %r1, %r2, [%r3, {1, 2}];\nret;\n}\n"
                               ".visible .entry fine()\n{\nret;\n}\n";
    expect_refusal(text, "unknown instruction 'foo.b32' at PTX line 7");
    PtxRun run = ptx_run(text, "fine", &(PtxLaunch){.block = {1}});
    assert_int_equal(run.status, EXEC_OK);
}

static void test_operands_that_do_not_fit_are_refused(void **state) {
    (void)state;
    static const struct {
        const char *body, *part;
    } cases[] = {
        {"add.u32 %r1, %r2;", "takes 3 operands"},
        {"add.u32 %l1, %p1, %r2;", "too narrow"},
        {"add.u64 %l1, %r1, %l2;", "too narrow"},
        {"bra NOWHERE;", "unknown label"},
        {"ld.global.v4.u32 {%r1, %r2}, [%l1];", "needs 4 elements"},
        {"mov.u32 %r1, %nonsense;", "unknown special register"},
        {"mov.u32 %r1, missing;", "unknown name"},
        {"ld.global.u32 %r1, %r2;", "has no address"},
        {"shfl.sync.up.b32 %r1, %r2;", "too few operands"},
        {"lop3.b32 %r1, %r2, %r3, %r4, %r5;", "table"},
        {"brx.idx %r1, here;", "branch targets"},
        {"call nobody, ();", "unknown function"},
        {"setp.eq.u32 %r1, %r2, %r3;", "predicate"},
        {"ld.param.u32 %r1, [p+8];", "outside"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char *text = ptx_around(cases[i].body);
        expect_refusal(text, cases[i].part);
        free(text);
    }
}

static void test_huge_register_range_costs_nothing(void **state) {
    (void)state;
    PtxRun run = ptx_run(".version 9.0\n.target sm_90a\n.address_size 64\n.visible .entry k()\n{\n"
                         ".reg .b32 %r<4000000000>;\nmov.u32 %r3999999999, 5;\nret;\n}\n",
                         "k", &(PtxLaunch){.block = {32}});
    if (run.status == EXEC_OK)
        return;
    assert_non_null(strstr(run.message, "line"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_read_past_the_end_names_line_thread_and_tensor),
        cmocka_unit_test(test_write_before_the_start),
        cmocka_unit_test(test_vector_that_straddles_the_end),
        cmocka_unit_test(test_named_part_of_an_allocation_bounds_it),
        cmocka_unit_test(test_wild_address_is_no_crash_with_checks_off),
        cmocka_unit_test(test_misaligned_access),
        cmocka_unit_test(test_shared_and_local_bounds),
        cmocka_unit_test(test_guarded_access_out_of_bounds_is_clean),
        cmocka_unit_test(test_uninitialised_value_reaches_a_store),
        cmocka_unit_test(test_uninitialised_value_decides_a_branch),
        cmocka_unit_test(test_uninitialised_value_becomes_an_address),
        cmocka_unit_test(test_unwritten_shared_memory_reaches_a_store),
        cmocka_unit_test(test_unwritten_data_travels_through_shared_memory_and_shuffles),
        cmocka_unit_test(test_register_read_before_it_is_written),
        cmocka_unit_test(test_tile_loaded_whole_and_masked_at_the_store_is_clean),
        cmocka_unit_test(test_halves_of_a_word_are_told_apart),
        cmocka_unit_test(test_condition_that_bounds_decide_is_clean),
        cmocka_unit_test(test_store_initialises_what_it_writes),
        cmocka_unit_test(test_value_overwritten_before_use_is_clean),
        cmocka_unit_test(test_endless_loop_is_stopped_by_budget_and_names_its_lines),
        cmocka_unit_test(test_trap),
        cmocka_unit_test(test_assertion_names_its_condition),
        cmocka_unit_test(test_bad_text_gives_line_and_token),
        cmocka_unit_test(test_unknown_instruction_spoils_only_the_kernel_that_holds_it),
        cmocka_unit_test(test_operands_that_do_not_fit_are_refused),
        cmocka_unit_test(test_huge_register_range_costs_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
