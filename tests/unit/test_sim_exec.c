/* What lanes, warps and blocks do together: divergence and its progress, barriers, shuffles,
 * atomics, memory in all spaces and widths, calls. */
#include "support/sim_ptx.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

/* Runs `body` with `words` zeroed words as parameter `p`; %l0 holds their address, %r0 the thread
 * in the block, %r1 the block. The words are returned; free with memory_free. */
static uint32_t *run_words(const char *body, PtxLaunch launch, size_t words, PtxRun *result) {
    static const char start[] = "ld.param.u64 %l0, [p];\nmov.u32 %r0, %tid.x;\n"
                                "mov.u32 %r1, %ctaid.x;\n";
    char *whole = malloc(strlen(start) + strlen(body) + 1);
    assert_non_null(whole);
    strcat(strcpy(whole, start), body);
    char *text = ptx_around(whole);
    uint32_t *memory = device_copy(NULL, words * 4, "words");
    launch.params = &memory;
    launch.param_bytes = 8;
    launch.options = (SimOptions){1, 1, launch.options.budget ? launch.options.budget : 200000000,
                                  launch.options.threads ? launch.options.threads : 2};
    *result = ptx_run(text, "k", &launch);
    free(text);
    free(whole);
    if (*result->message)
        fail_msg("%s", result->message);
    return memory;
}

static uint32_t *run_clean(const char *body, PtxLaunch launch, size_t words) {
    PtxRun result;
    uint32_t *memory = run_words(body, launch, words, &result);
    if (result.status != EXEC_OK || result.report_count)
        fail_msg("status %d: %s", result.status,
                 result.report_count ? result.reports[0].message : "");
    return memory;
}

/* Stores %r9 at word number thread (of block 0). */
#define STORE_R9 "mad.wide.u32 %l9, %r0, 4, %l0;\nst.global.b32 [%l9], %r9;\n"
#define BLOCK(n) ((PtxLaunch){.block = {n}})

/* ---- divergence ------------------------------------------------------------------------------ */

static void test_diverged_lanes_meet_after_if_and_else(void **state) {
    (void)state;
    uint32_t *w = run_clean("and.b32 %r2, %r0, 3;\nsetp.eq.u32 %p0, %r2, 0;\n"
                            "mov.u32 %r9, 100;\n@%p0 bra YES;\nadd.u32 %r9, %r9, %r0;\nbra END;\n"
                            "YES: mul.lo.u32 %r9, %r9, 2;\nEND:\nactivemask.b32 %r3;\n"
                            "setp.eq.u32 %p1, %r3, 0xffffffff;\n@%p1 add.u32 %r9, %r9, 1000;\n" STORE_R9,
                            BLOCK(32), 32);
    for (uint32_t i = 0; i < 32; i++)
        assert_int_equal(w[i], 1000 + (i % 4 ? 100 + i : 200));
    memory_free(w);
}

static void test_lanes_leave_a_loop_one_by_one(void **state) {
    (void)state;
    uint32_t *w = run_clean("mov.u32 %r9, 0;\nmov.u32 %r2, 0;\n"
                            "LOOP: add.u32 %r9, %r9, %r2;\nadd.u32 %r2, %r2, 1;\n"
                            "setp.le.u32 %p0, %r2, %r0;\n@%p0 bra LOOP;\n"
                            "activemask.b32 %r3;\npopc.b32 %r3, %r3;\nmad.lo.u32 %r9, %r3, 10000, %r9;\n"
                            STORE_R9, BLOCK(64), 64);
    for (uint32_t i = 0; i < 64; i++)
        assert_int_equal(w[i], 320000 + i * (i + 1) / 2);
    memory_free(w);
}

static void test_nested_branches_in_a_loop(void **state) {
    (void)state;
    /* Collatz steps of thread + 1. */
    uint32_t *w = run_clean("mov.u32 %r9, 0;\nadd.u32 %r2, %r0, 1;\n"
                            "LOOP: setp.eq.u32 %p0, %r2, 1;\n@%p0 bra DONE;\nadd.u32 %r9, %r9, 1;\n"
                            "and.b32 %r3, %r2, 1;\nsetp.eq.u32 %p1, %r3, 0;\n@%p1 bra EVEN;\n"
                            "mad.lo.u32 %r2, %r2, 3, 1;\nbra LOOP;\n"
                            "EVEN: shr.u32 %r2, %r2, 1;\nbra LOOP;\nDONE:\n" STORE_R9,
                            BLOCK(100), 100);
    for (uint32_t i = 0; i < 100; i++) {
        uint32_t n = i + 1, steps = 0;
        for (; n != 1; steps++)
            n = n & 1 ? 3 * n + 1 : n / 2;
        assert_int_equal(w[i], steps);
    }
    memory_free(w);
}

static void test_branch_by_index(void **state) {
    (void)state;
    uint32_t *w = run_clean("and.b32 %r2, %r0, 3;\nts: .branchtargets A, B, C, D;\n"
                            "brx.idx %r2, ts;\nA: mov.u32 %r9, 10;\nbra E;\nB: mov.u32 %r9, 11;\nbra E;\n"
                            "C: mov.u32 %r9, 12;\nbra E;\nD: mov.u32 %r9, 13;\nE:\n"
                            "activemask.b32 %r3;\npopc.b32 %r3, %r3;\nadd.u32 %r9, %r9, %r3;\n" STORE_R9,
                            BLOCK(32), 32);
    for (uint32_t i = 0; i < 32; i++)
        assert_int_equal(w[i], 42 + i % 4);
    memory_free(w);
}

static void test_labels_and_registers_of_a_scope_repeat(void **state) {
    (void)state;
    uint32_t *w = run_clean("mov.u32 %r9, 0;\n"
                            "{ .reg .b32 t; mov.u32 t, 3; L: add.u32 %r9, %r9, t; sub.u32 t, t, 1;\n"
                            "  .reg .pred q; setp.ne.u32 q, t, 0; @q bra L; }\n"
                            "{ .reg .b32 t; mov.u32 t, 2; L: add.u32 %r9, %r9, 100; sub.u32 t, t, 1;\n"
                            "  .reg .pred q; setp.ne.u32 q, t, 0; @q bra L; }\n" STORE_R9,
                            BLOCK(32), 32);
    assert_int_equal(w[31], 206);
    memory_free(w);
}

/* ---- progress -------------------------------------------------------------------------------- */

static void test_lanes_of_a_warp_take_a_spin_lock(void **state) {
    (void)state;
    /* The lane that holds the lock leaves the inner loop first and waits for nobody. */
    uint32_t *w = run_clean("LOCK: atom.global.cas.b32 %r2, [%l0], 0, 1;\nsetp.ne.u32 %p0, %r2, 0;\n"
                            "@%p0 bra LOCK;\nld.volatile.global.u32 %r3, [%l0+4];\nadd.u32 %r3, %r3, 1;\n"
                            "st.volatile.global.u32 [%l0+4], %r3;\nmembar.gl;\n"
                            "atom.global.exch.b32 %r4, [%l0], 0;\n",
                            (PtxLaunch){.block = {64}, .grid = {3}}, 2);
    assert_int_equal(w[1], 192);
    memory_free(w);
}

static void test_lane_waits_for_a_store_that_follows_the_meeting_point(void **state) {
    (void)state;
    uint32_t *w = run_clean("setp.ne.u32 %p0, %r0, 0;\n@%p0 bra MEET;\n"
                            "SPIN: ld.volatile.global.u32 %r2, [%l0];\nsetp.eq.u32 %p1, %r2, 0;\n@%p1 bra SPIN;\n"
                            "MEET: mov.u32 %r3, 1;\n@%p0 st.volatile.global.u32 [%l0], %r3;\n"
                            "add.u32 %r9, %r0, 5;\nadd.u32 %r0, %r0, 1;\n" STORE_R9,
                            BLOCK(32), 33);
    assert_int_equal(w[1], 5);
    memory_free(w);
}

static void test_warps_wait_for_each_other(void **state) {
    (void)state;
    uint32_t *w = run_clean("setp.ge.u32 %p0, %r0, 32;\n@%p0 bra SECOND;\n"
                            "SPIN: ld.volatile.global.u32 %r2, [%l0];\nsetp.eq.u32 %p1, %r2, 0;\n@%p1 bra SPIN;\n"
                            "ret;\nSECOND: mov.u32 %r3, 7;\nst.volatile.global.u32 [%l0], %r3;\n",
                            BLOCK(64), 1);
    assert_int_equal(w[0], 7);
    memory_free(w);
}

static void test_block_waits_for_a_later_block(void **state) {
    (void)state;
    uint32_t *w = run_clean("setp.ne.u32 %p0, %r1, 0;\n@%p0 bra LATER;\n"
                            "SPIN: ld.acquire.gpu.global.u32 %r2, [%l0];\nsetp.eq.u32 %p1, %r2, 0;\n"
                            "@%p1 bra SPIN;\nret;\nLATER: mov.u32 %r3, 7;\nst.release.gpu.global.u32 [%l0], %r3;\n",
                            (PtxLaunch){.block = {32}, .grid = {2}}, 1);
    assert_int_equal(w[0], 7);
    memory_free(w);
}

static void test_all_blocks_of_a_cooperative_launch_are_resident(void **state) {
    (void)state;
    uint32_t *w = run_clean("setp.ne.u32 %p0, %r0, 0;\n@%p0 bra END;\n"
                            "atom.global.add.u32 %r2, [%l0], 1;\n"
                            "SPIN: ld.volatile.global.u32 %r2, [%l0];\nsetp.lt.u32 %p1, %r2, 40;\n@%p1 bra SPIN;\nEND:\n",
                            (PtxLaunch){.block = {64}, .grid = {40}, .cooperative = true}, 1);
    assert_int_equal(w[0], 40);
    memory_free(w);
}

static void test_last_block_sees_what_all_wrote(void **state) {
    (void)state;
    uint32_t *w = run_clean("mad.wide.u32 %l1, %r1, 4, %l0;\nadd.u32 %r2, %r1, 1;\nst.global.u32 [%l1+8], %r2;\n"
                            "membar.gl;\natom.global.inc.u32 %r3, [%l0], 49;\nsetp.ne.u32 %p0, %r3, 49;\n@%p0 ret;\n"
                            "mov.u32 %r4, 0;\nmov.u32 %r5, 0;\nadd.u64 %l2, %l0, 8;\n"
                            "SUM: ld.global.u32 %r6, [%l2];\nadd.u32 %r4, %r4, %r6;\nadd.u64 %l2, %l2, 4;\n"
                            "add.u32 %r5, %r5, 1;\nsetp.lt.u32 %p1, %r5, 50;\n@%p1 bra SUM;\nst.global.u32 [%l0+4], %r4;\n",
                            (PtxLaunch){.block = {1}, .grid = {50}}, 60);
    assert_int_equal(w[0], 0);
    assert_int_equal(w[1], 50 * 51 / 2);
    memory_free(w);
}

/* ---- barriers -------------------------------------------------------------------------------- */

static void test_barrier_orders_shared_memory(void **state) {
    (void)state;
    uint32_t *w = run_clean(".shared .align 4 .b8 s[512];\nmov.u32 %r2, s;\nmad.lo.u32 %r3, %r0, 4, %r2;\n"
                            "st.shared.u32 [%r3], %r0;\nbar.sync 0;\nxor.b32 %r4, %r0, 127;\n"
                            "mad.lo.u32 %r4, %r4, 4, %r2;\nld.shared.u32 %r9, [%r4];\n" STORE_R9,
                            BLOCK(128), 128);
    for (uint32_t i = 0; i < 128; i++)
        assert_int_equal(w[i], i ^ 127);
    memory_free(w);
}

static void test_barrier_counts_threads_that_have_not_exited(void **state) {
    (void)state;
    uint32_t *w = run_clean("setp.ge.u32 %p0, %r0, 40;\n@%p0 ret;\nbar.sync 0;\nmov.u32 %r9, 1;\n" STORE_R9,
                            BLOCK(100), 100);
    assert_int_equal(w[39], 1);
    assert_int_equal(w[40], 0);
    memory_free(w);
}

static void test_barrier_reduces_predicates(void **state) {
    (void)state;
    uint32_t *w = run_clean("setp.lt.u32 %p0, %r0, 50;\nbar.red.popc.u32 %r9, 0, %p0;\n"
                            "bar.red.and.pred %p1, 1, %p0;\nbar.red.or.pred %p2, 2, !%p0;\n"
                            "@%p1 add.u32 %r9, %r9, 1000;\n@%p2 add.u32 %r9, %r9, 2000;\n" STORE_R9,
                            BLOCK(64), 64);
    assert_int_equal(w[0], 2050);
    assert_int_equal(w[63], 2050);
    memory_free(w);
}

static void test_producers_arrive_and_consumers_wait(void **state) {
    (void)state;
    uint32_t *w = run_clean("setp.lt.u32 %p0, %r0, 32;\n@%p0 bra WAIT;\nst.volatile.global.u32 [%l0], %r0;\n"
                            "bar.arrive 3, 64;\nret;\nWAIT: bar.sync 3, 64;\nld.volatile.global.u32 %r9, [%l0];\n"
                            "add.u32 %r0, %r0, 1;\n" STORE_R9, BLOCK(64), 64);
    assert_int_equal(w[1], 63);
    memory_free(w);
}

static void test_barrier_that_some_never_reach_is_a_deadlock(void **state) {
    (void)state;
    PtxRun result;
    uint32_t *w = run_words("setp.lt.u32 %p0, %r0, 32;\n@%p0 bra A;\nbar.sync 1;\nret;\nA: bar.sync 2;\n",
                            BLOCK(64), 1, &result);
    assert_int_equal(result.status, EXEC_DEADLOCK);
    assert_int_equal(result.reports[0].kind, SIM_BARRIER);
    memory_free(w);
}

/* ---- lanes together -------------------------------------------------------------------------- */

static void test_shuffles(void **state) {
    (void)state;
    uint32_t *w = run_clean("shfl.sync.up.b32 %r2|%p0, %r0, 1, 0, 0xffffffff;\n"
                            "shfl.sync.down.b32 %r3|%p1, %r0, 2, 31, 0xffffffff;\n"
                            "shfl.sync.bfly.b32 %r4, %r0, 16, 31, 0xffffffff;\n"
                            "shfl.sync.idx.b32 %r5, %r0, 3, 0x181f, 0xffffffff;\n"
                            "mad.lo.u32 %r9, %r3, 100, %r2;\nmad.lo.u32 %r9, %r4, 10000, %r9;\n"
                            "mad.lo.u32 %r9, %r5, 1000000, %r9;\n"
                            "@%p0 add.u32 %r9, %r9, 0x40000000;\n@%p1 add.u32 %r9, %r9, 0x80000000;\n" STORE_R9,
                            BLOCK(32), 32);
    for (uint32_t i = 0; i < 32; i++) {
        uint32_t up = i ? i - 1 : i, down = i < 30 ? i + 2 : i, idx = (i & 24) | 3;
        assert_int_equal(w[i], up + 100 * down + 10000 * (i ^ 16) + 1000000 * idx +
                                   (i ? 0x40000000u : 0) + (i < 30 ? 0x80000000u : 0));
    }
    memory_free(w);
}

static void test_shuffle_waits_for_diverged_members(void **state) {
    (void)state;
    /* Both ways jump to the shuffle, one after a detour: the exchange is still of all lanes. */
    uint32_t *w = run_clean("and.b32 %r2, %r0, 1;\nsetp.eq.u32 %p0, %r2, 0;\n@%p0 bra SHFL;\n"
                            "add.u32 %r3, %r0, 0;\nSHFL: shfl.sync.bfly.b32 %r9, %r0, 1, 31, 0xffffffff;\n" STORE_R9,
                            BLOCK(32), 32);
    for (uint32_t i = 0; i < 32; i++)
        assert_int_equal(w[i], i ^ 1);
    memory_free(w);
}

static void test_votes_matches_and_reductions(void **state) {
    (void)state;
    uint32_t *w = run_clean("setp.lt.u32 %p0, %r0, 5;\nvote.sync.ballot.b32 %r9, %p0, 0xffffffff;\n" STORE_R9
                            "vote.sync.any.pred %p1, %p0, 0xffffffff;\nvote.sync.all.pred %p2, %p0, 0xffffffff;\n"
                            "vote.sync.uni.pred %p3, !%p0, 0xffffffff;\nselp.u32 %r2, 1, 0, %p1;\n"
                            "@%p2 add.u32 %r2, %r2, 2;\n@%p3 add.u32 %r2, %r2, 4;\nst.global.u32 [%l9+128], %r2;\n"
                            "and.b32 %r3, %r0, 1;\nmatch.any.sync.b32 %r4, %r3, 0xffffffff;\nst.global.u32 [%l9+256], %r4;\n"
                            "match.all.sync.b32 %r5|%p4, %r3, 0xffffffff;\nst.global.u32 [%l9+384], %r5;\n"
                            "redux.sync.add.u32 %r6, %r0, 0xffffffff;\nst.global.u32 [%l9+512], %r6;\n"
                            "sub.u32 %r7, %r0, 9;\nredux.sync.min.s32 %r6, %r7, 0xffffffff;\nst.global.u32 [%l9+640], %r6;\n"
                            "redux.sync.max.u32 %r6, %r0, 0xffffffff;\nst.global.u32 [%l9+768], %r6;\n"
                            "elect.sync %r6|%p5, 0xffffffff;\nselp.u32 %r6, 1, 0, %p5;\nst.global.u32 [%l9+896], %r6;\n",
                            BLOCK(32), 256);
    for (uint32_t i = 0; i < 32; i++) {
        assert_int_equal(w[i], 0x1f);
        assert_int_equal(w[32 + i], 1);
        assert_int_equal(w[64 + i], i % 2 ? 0xaaaaaaaa : 0x55555555);
        assert_int_equal(w[96 + i], 0);
        assert_int_equal(w[128 + i], 496);
        assert_int_equal((int32_t)w[160 + i], -9);
        assert_int_equal(w[192 + i], 31);
        assert_int_equal(w[224 + i], i == 0);
    }
    memory_free(w);
}

/* ---- memory ---------------------------------------------------------------------------------- */

static void test_loads_and_stores_of_all_widths(void **state) {
    (void)state;
    static const char body[] =
        "mov.u32 %r2, 0x80fe;\nst.global.u8 [%l0+1], %r2;\nst.global.b16 [%l0+2], %h0;\n"
        "mov.b16 %h1, 0x8001;\nst.global.u16 [%l0+2], %h1;\n"
        "ld.global.u8 %r3, [%l0+1];\nst.global.u32 [%l0+4], %r3;\nld.global.s8 %r3, [%l0+1];\nst.global.u32 [%l0+8], %r3;\n"
        "ld.global.s16 %r3, [%l0+2];\nst.global.u32 [%l0+12], %r3;\n"
        "ld.global.s8 %l1, [%l0+1];\nst.global.u64 [%l0+16], %l1;\n"
        "mov.b64 %l2, 0x1122334455667788;\nst.global.v2.u64 [%l0+32], {%l2, %l1};\n"
        "ld.global.nc.L1::no_allocate.L2::128B.v4.u32 {%r4, _, %r6, %r7}, [%l0+32];\nst.global.v4.b32 [%l0+48], {%r7, %r6, %r4, %r4};\n"
        "st.global.u32 [%l0+64], %l2;\nld.global.v2.u8 {%h2, %h3}, [%l0+64];\nst.global.v2.u16 [%l0+68], {%h3, %h2};\n";
    uint32_t *w = run_clean("mov.b16 %h0, 0;\n", BLOCK(1), 1);
    memory_free(w);
    char *text = malloc(sizeof body + 32);
    assert_non_null(text);
    strcat(strcpy(text, "mov.b16 %h0, 0;\n"), body);
    w = run_clean(text, BLOCK(1), 20);
    free(text);
    const uint8_t *bytes = (const uint8_t *)w;
    assert_int_equal(bytes[1], 0xfe);
    assert_int_equal(w[1], 0xfe);
    assert_int_equal(w[2], 0xfffffffe);
    assert_int_equal(w[3], 0xffff8001);
    assert_int_equal(w[4], 0xfffffffe);
    assert_int_equal(w[5], 0xffffffff);
    assert_int_equal(w[8], 0x55667788);
    assert_int_equal(w[12], 0xffffffff);
    assert_int_equal(w[13], 0xfffffffe);
    assert_int_equal(w[14], 0x55667788);
    assert_int_equal(w[16], 0x55667788);
    assert_int_equal(w[17], 0x00880077);
    memory_free(w);
}

static void test_packing_and_unpacking(void **state) {
    (void)state;
    uint32_t *w = run_clean("mov.b32 {%h0, %h1}, 0x12345678;\nmov.b32 %r2, {%h1, %h0};\nst.global.u32 [%l0], %r2;\n"
                            "mov.b64 %l1, {%r2, 7};\nst.global.u64 [%l0+8], %l1;\nmov.b64 {%r3, %r4}, %l1;\n"
                            "add.u32 %r3, %r3, %r4;\nst.global.u32 [%l0+4], %r3;\n"
                            "mov.b64 {%h2, %h3, %h4, %h5}, %l1;\nst.global.v4.u16 [%l0+16], {%h5, %h4, %h3, %h2};\n",
                            BLOCK(1), 6);
    assert_int_equal(w[0], 0x56781234);
    assert_int_equal(w[1], 0x5678123b);
    assert_int_equal(w[2], 0x56781234);
    assert_int_equal(w[3], 7);
    assert_int_equal(w[4], 0x00070000);
    assert_int_equal(w[5], 0x12345678);
    memory_free(w);
}

static void test_generic_addresses_reach_every_space(void **state) {
    (void)state;
    uint32_t *w = run_clean(".shared .align 8 .b8 s[128];\n.local .align 8 .b8 t[16];\n"
                            "mov.u64 %l1, s;\ncvta.shared.u64 %l2, %l1;\nmov.u64 %l3, t;\ncvta.local.u64 %l4, %l3;\n"
                            "mad.wide.u32 %l6, %r0, 4, %l2;\nst.u32 [%l6], %r0;\nadd.u32 %r3, %r0, 50;\nst.u32 [%l4+4], %r3;\n"
                            "and.b32 %r4, %r0, 1;\nsetp.eq.u32 %p0, %r4, 0;\nselp.b64 %l5, %l6, %l4, %p0;\n"
                            "@!%p0 add.u64 %l5, %l5, 4;\nld.u32 %r9, [%l5];\n"
                            "isspacep.shared %p1, %l5;\n@%p1 add.u32 %r9, %r9, 1000;\nld.local.u32 %r5, [t+4];\n"
                            "add.u32 %r9, %r9, %r5;\ncvta.to.shared.u64 %l7, %l2;\ncvt.u32.u64 %r6, %l7;\nld.shared.u32 %r7, [%r6];\n"
                            "add.u32 %r9, %r9, %r7;\n" STORE_R9, BLOCK(32), 32);
    for (uint32_t i = 0; i < 32; i++)
        assert_int_equal(w[i], (i % 2 ? i + 50 : i + 1000) + i + 50);
    memory_free(w);
}

static void test_atomics(void **state) {
    (void)state;
    uint32_t *w = run_clean("atom.global.add.u32 %r2, [%l0], 1;\nred.global.max.s32 [%l0+4], %r0;\n"
                            "red.global.or.b32 [%l0+8], %r0;\nmov.f32 %r3, 0f3F800000;\nred.global.add.f32 [%l0+12], %r3;\n"
                            "atom.global.dec.u32 %r4, [%l0+16], 5;\ncvt.u64.u32 %l1, %r0;\nred.global.add.u64 [%l0+24], %l1;\n"
                            "atom.global.min.u32 %r5, [%l0+32], %r0;\nmov.u32 %r6, 0x3c003c00;\n"
                            "red.global.add.noftz.f16x2 [%l0+36], %r6;\n"
                            ".shared .align 4 .u32 s;\nst.shared.u32 [s], 0;\nbar.sync 0;\n"
                            "atom.shared.add.u32 %r7, [s], 2;\nbar.sync 0;\nld.shared.u32 %r8, [s];\nst.global.u32 [%l0+40], %r8;\n",
                            (PtxLaunch){.block = {64}, .grid = {2}}, 11);
    assert_int_equal(w[0], 128);
    assert_int_equal(w[1], 63);
    assert_int_equal(w[2], 63);
    float sum;
    memcpy(&sum, &w[3], 4);
    assert_true(sum == 128);
    assert_int_equal(w[4], 4);
    assert_int_equal(w[6], 2 * 63 * 32);
    assert_int_equal(w[8], 0);
    assert_int_equal(w[9], 0x58005800);
    assert_int_equal(w[10], 128);
    memory_free(w);
}

static void test_asynchronous_copy_fills_the_rest_with_zeros(void **state) {
    (void)state;
    uint32_t *w = run_clean(".shared .align 16 .b8 s[512];\nmov.u32 %r2, s;\nmad.lo.u32 %r3, %r0, 16, %r2;\n"
                            "mov.u32 %r4, 0xabababab;\nmad.wide.u32 %l1, %r0, 16, %l0;\nst.global.v4.u32 [%l1], {%r4, %r4, %r4, %r4};\n"
                            "cp.async.cg.shared.global.L2::128B [%r3], [%l1], 16, 8;\ncp.async.commit_group;\ncp.async.wait_group 0;\n"
                            "ld.shared.v4.u32 {%r5, %r6, %r7, %r8}, [%r3];\nst.global.v4.u32 [%l1], {%r5, %r6, %r7, %r8};\n",
                            BLOCK(32), 128);
    for (int i = 0; i < 128; i++)
        assert_int_equal(w[i], i % 4 < 2 ? 0xabababab : 0);
    memory_free(w);
}

static void test_carries_pass_from_word_to_word(void **state) {
    (void)state;
    uint32_t *w = run_clean("mov.u32 %r2, 0xffffffff;\nadd.cc.u32 %r3, %r2, 1;\naddc.cc.u32 %r4, %r2, 0;\naddc.u32 %r5, 0, 0;\n"
                            "st.global.v2.u32 [%l0], {%r3, %r4};\nst.global.u32 [%l0+8], %r5;\n"
                            "sub.cc.u32 %r3, 0, 1;\nsubc.cc.u32 %r4, 5, 2;\nsubc.u32 %r5, 0, 0;\n"
                            "st.global.v2.u32 [%l0+16], {%r3, %r4};\nst.global.u32 [%l0+24], %r5;\n"
                            "mad.lo.cc.u32 %r3, %r2, %r2, %r2;\nmadc.hi.cc.u32 %r4, %r2, %r2, 0;\nmadc.hi.u32 %r5, 0, 0, 0;\n"
                            "st.global.v2.u32 [%l0+32], {%r3, %r4};\nst.global.u32 [%l0+40], %r5;\n"
                            "mov.u64 %l1, 0xffffffffffffffff;\nadd.cc.u64 %l2, %l1, 1;\naddc.u64 %l3, 0, 0;\nst.global.v2.u64 [%l0+48], {%l2, %l3};\n",
                            BLOCK(1), 16);
    const uint32_t expected[16] = {0, 0, 1, 0, 0xffffffff, 2, 0, 0, 0, 0xffffffff, 0, 0, 0, 0, 1, 0};
    for (int i = 0; i < 16; i++)
        if (i % 4 != 3)
            assert_int_equal(w[i], expected[i]);
    memory_free(w);
}

/* ---- functions and variables ----------------------------------------------------------------- */

static void test_recursion_with_lanes_at_different_depths(void **state) {
    (void)state;
    static const char text[] =
        ".version 9.0\n.target sm_90a\n.address_size 64\n"
        ".global .align 4 .u32 table[4] = {10, 20, 30, 40};\n.const .align 8 .u64 where = table;\n"
        ".func (.param .b32 r) sum(.param .b32 n);\n"
        ".func (.param .b32 r) sum(.param .b32 n)\n{\n.reg .b32 %r<9>;\n.reg .pred %p<2>;\n"
        "ld.param.b32 %r1, [n];\nsetp.eq.u32 %p1, %r1, 0;\nmov.u32 %r2, 0;\n@%p1 bra END;\nsub.u32 %r3, %r1, 1;\n"
        "{ .param .b32 a; st.param.b32 [a], %r3; .param .b32 b; call.uni (b), sum, (a); ld.param.b32 %r4, [b]; }\n"
        "add.u32 %r2, %r4, %r1;\nEND: st.param.b32 [r], %r2;\nret;\n}\n"
        ".visible .entry k(.param .u64 p)\n{\n.reg .b32 %r<9>;\n.reg .b64 %l<9>;\n"
        "ld.param.u64 %l1, [p];\nmov.u32 %r1, %tid.x;\n"
        "{ .param .b32 a; st.param.b32 [a], %r1; .param .b32 b; call (b), sum, (a); ld.param.b32 %r2, [b]; }\n"
        "activemask.b32 %r3;\npopc.b32 %r3, %r3;\nmad.lo.u32 %r2, %r3, 10000, %r2;\n"
        "ld.const.u64 %l3, [where];\nand.b32 %r4, %r1, 3;\nmad.wide.u32 %l3, %r4, 4, %l3;\nld.global.u32 %r5, [%l3];\nadd.u32 %r2, %r2, %r5;\n"
        "mad.wide.u32 %l2, %r1, 4, %l1;\nst.global.u32 [%l2], %r2;\nret;\n}\n";
    uint32_t *w = device_copy(NULL, 256, "w");
    PtxRun run = ptx_run(text, "k", &(PtxLaunch){.block = {64}, .params = &w, .param_bytes = 8,
                                                 .options = {1, 1, 0, 1}});
    if (run.status != EXEC_OK || run.report_count)
        fail_msg("status %d %s %s", run.status, run.message,
                 run.report_count ? run.reports[0].message : "");
    for (uint32_t i = 0; i < 64; i++)
        assert_int_equal(w[i], 320000 + i * (i + 1) / 2 + 10 * (i % 4 + 1));
    memory_free(w);
}

static void test_printf_formats_each_lane(void **state) {
    (void)state;
    static const char text[] =
        ".version 9.0\n.target sm_90a\n.address_size 64\n"
        ".extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);\n"
        ".global .align 1 .b8 f[22] = {37, 100, 58, 37, 53, 46, 50, 102, 32, 37, 108, 108, 120, 32, 37, 115, 37, 37, 10, 0};\n"
        ".global .align 1 .b8 s[3] = {111, 107, 0};\n"
        ".visible .entry k()\n{\n.reg .b32 %r<4>;\n.reg .b64 %l<9>;\n.local .align 8 .b8 t[32];\n"
        "mov.u32 %r1, %tid.x;\ncvta.local.u64 %l1, t;\nst.local.u32 [t], %r1;\nmov.b64 %l2, 0d3FF8000000000000;\n"
        "st.local.u64 [t+8], %l2;\nmov.u64 %l3, 0xabcdef012345;\nst.local.u64 [t+16], %l3;\nmov.u64 %l4, s;\n"
        "st.local.u64 [t+24], %l4;\nmov.u64 %l5, f;\ncvta.global.u64 %l6, %l5;\n"
        "{ .param .b64 p0; st.param.b64 [p0], %l6; .param .b64 p1; st.param.b64 [p1], %l1; .param .b32 q;\n"
        "call.uni (q), vprintf, (p0, p1); ld.param.b32 %r2, [q]; }\nret;\n}\n";
    FILE *file = tmpfile();
    assert_non_null(file);
    fflush(stdout);
    int saved = dup(STDOUT_FILENO);
    assert_true(saved >= 0 && dup2(fileno(file), STDOUT_FILENO) >= 0);
    PtxRun run = ptx_run(text, "k", &(PtxLaunch){.block = {2}});
    fflush(stdout);
    assert_true(dup2(saved, STDOUT_FILENO) >= 0);
    close(saved);
    char printed[128] = "";
    rewind(file);
    size_t bytes = fread(printed, 1, sizeof printed - 1, file);
    fclose(file);
    printed[bytes] = 0;
    assert_string_equal(run.message, "");
    assert_int_equal(run.status, EXEC_OK);
    assert_string_equal(printed, "0: 1.50 abcdef012345 ok%\n1: 1.50 abcdef012345 ok%\n");
}

static void test_special_registers(void **state) {
    (void)state;
    uint32_t *w = run_clean("mov.u32 %r2, %tid.y;\nmov.u32 %r3, %ntid.x;\nmad.lo.u32 %r4, %r2, %r3, %r0;\n"
                            "mov.u32 %r5, %ctaid.y;\nmov.u32 %r6, %nctaid.x;\nmad.lo.u32 %r5, %r5, %r6, %r1;\n"
                            "mov.u32 %r7, %ntid.y;\nmul.lo.u32 %r7, %r7, %r3;\nmad.lo.u32 %r8, %r5, %r7, %r4;\n"
                            "mad.wide.u32 %l1, %r8, 4, %l0;\nmov.u32 %r9, %laneid;\nmov.u32 %r10, %lanemask_lt;\n"
                            "popc.b32 %r10, %r10;\nsub.u32 %r9, %r9, %r10;\nadd.u32 %r9, %r9, %r8;\nst.global.u32 [%l1], %r9;\n",
                            (PtxLaunch){.block = {8, 6}, .grid = {3, 2}}, 288);
    for (uint32_t i = 0; i < 288; i++)
        assert_int_equal(w[i], i);
    memory_free(w);
}

static void test_results_do_not_depend_on_the_number_of_threads(void **state) {
    (void)state;
    static const char body[] = "cvt.rn.f32.u32 %r2, %r1;\nadd.f32 %r2, %r2, 0f3DCCCCCD;\nrcp.approx.f32 %r2, %r2;\n"
                               "red.global.add.f32 [%l0], %r2;\natom.global.add.u32 %r3, [%l0+4], 1;\n"
                               "mad.wide.u32 %l1, %r3, 4, %l0;\nst.global.u32 [%l1+8], %r1;\n";
    uint32_t *one = run_clean(body, (PtxLaunch){.block = {4}, .grid = {200}, .options = {.threads = 1}}, 810);
    uint32_t *many = run_clean(body, (PtxLaunch){.block = {4}, .grid = {200}, .options = {.threads = 7}}, 810);
    assert_memory_equal(one, many, 810 * 4);
    memory_free(one);
    memory_free(many);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_diverged_lanes_meet_after_if_and_else),
        cmocka_unit_test(test_lanes_leave_a_loop_one_by_one),
        cmocka_unit_test(test_nested_branches_in_a_loop),
        cmocka_unit_test(test_branch_by_index),
        cmocka_unit_test(test_labels_and_registers_of_a_scope_repeat),
        cmocka_unit_test(test_lanes_of_a_warp_take_a_spin_lock),
        cmocka_unit_test(test_lane_waits_for_a_store_that_follows_the_meeting_point),
        cmocka_unit_test(test_warps_wait_for_each_other),
        cmocka_unit_test(test_block_waits_for_a_later_block),
        cmocka_unit_test(test_all_blocks_of_a_cooperative_launch_are_resident),
        cmocka_unit_test(test_last_block_sees_what_all_wrote),
        cmocka_unit_test(test_barrier_orders_shared_memory),
        cmocka_unit_test(test_barrier_counts_threads_that_have_not_exited),
        cmocka_unit_test(test_barrier_reduces_predicates),
        cmocka_unit_test(test_producers_arrive_and_consumers_wait),
        cmocka_unit_test(test_barrier_that_some_never_reach_is_a_deadlock),
        cmocka_unit_test(test_shuffles),
        cmocka_unit_test(test_shuffle_waits_for_diverged_members),
        cmocka_unit_test(test_votes_matches_and_reductions),
        cmocka_unit_test(test_loads_and_stores_of_all_widths),
        cmocka_unit_test(test_packing_and_unpacking),
        cmocka_unit_test(test_generic_addresses_reach_every_space),
        cmocka_unit_test(test_atomics),
        cmocka_unit_test(test_asynchronous_copy_fills_the_rest_with_zeros),
        cmocka_unit_test(test_carries_pass_from_word_to_word),
        cmocka_unit_test(test_recursion_with_lanes_at_different_depths),
        cmocka_unit_test(test_printf_formats_each_lane),
        cmocka_unit_test(test_special_registers),
        cmocka_unit_test(test_results_do_not_depend_on_the_number_of_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
