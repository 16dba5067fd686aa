/* Every row of the instruction table computes what the PTX ISA says, with all lanes active and with
 * some, under each instruction set this machine has. */
#include "support/sim_case.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* ---- values as register bits ------------------------------------------------------------------------ */

static uint64_t F(float x) {
    uint32_t bits;
    memcpy(&bits, &x, 4);
    return bits;
}
static uint64_t D(double x) {
    uint64_t bits;
    memcpy(&bits, &x, 8);
    return bits;
}
static float float_of(uint64_t bits) {
    uint32_t low = (uint32_t)bits;
    float x;
    memcpy(&x, &low, 4);
    return x;
}
static double double_of(uint64_t bits) {
    double x;
    memcpy(&x, &bits, 8);
    return x;
}
static uint64_t I(int32_t x) { return (uint32_t)x; }
static uint64_t H(int16_t x) { return (uint16_t)x; }
static uint64_t L(int64_t x) { return (uint64_t)x; }

/* ---- integers --------------------------------------------------------------------------------------- */

static void test_integer_arithmetic(void **state) {
    (void)state;
    const Case cases[] = {
        {"add.u16", "hhh", 0x0001, 0xffff, 2, 0, 0},
        {"add.s32", "iii", I(INT32_MIN), I(INT32_MAX), 1, 0, 0},
        {"add.s64", "lll", 1, UINT64_MAX, 2, 0, 0},
        {"add.u16x2", "iii", 0x00010000, 0xffffffff, 0x00020001, 0, 0},
        {"add.sat.s32", "iii", I(INT32_MAX), I(INT32_MAX), 1, 0, 0},
        {"add.sat.s32", "iii", I(INT32_MIN), I(INT32_MIN), I(-1), 0, 0},
        {"sub.s16", "hhh", H(-3), 2, 5, 0, 0},
        {"sub.u32", "iii", I(-3), 2, 5, 0, 0},
        {"sub.u64", "lll", L(-3), 2, 5, 0, 0},
        {"sub.sat.s32", "iii", I(INT32_MIN), I(INT32_MIN), 1, 0, 0},
        {"mul.lo.s16", "hhh", H(-21), H(-3), 7, 0, 0},
        {"mul.lo.u32", "iii", 0x00000000, 0x80000000, 2, 0, 0},
        {"mul.lo.s64", "lll", L(-21), L(-3), 7, 0, 0},
        {"mul.hi.u16", "hhh", 0xfffe, 0xffff, 0xffff, 0, 0},
        {"mul.hi.s16", "hhh", 0, H(-1), H(-1), 0, 0},
        {"mul.hi.u32", "iii", 0xfffffffe, 0xffffffff, 0xffffffff, 0, 0},
        {"mul.hi.s32", "iii", I(-1), I(-1), 2, 0, 0},
        {"mul.hi.u64", "lll", UINT64_MAX - 1, UINT64_MAX, UINT64_MAX, 0, 0},
        {"mul.hi.s64", "lll", L(-1), L(-1), 2, 0, 0},
        {"mul.wide.u16", "ihh", 0xfffe0001, 0xffff, 0xffff, 0, 0},
        {"mul.wide.s16", "ihh", I(-21), H(-3), 7, 0, 0},
        {"mul.wide.u32", "lii", UINT64_C(0xfffffffe00000001), 0xffffffff, 0xffffffff, 0, 0},
        {"mul.wide.s32", "lii", L(-21), I(-3), 7, 0, 0},
        {"mul24.lo.u32", "iii", 6, 0xff000002, 0x01000003, 0, 0},
        {"mul24.lo.s32", "iii", I(-6), 0x00fffffe, 3, 0, 0},
        {"mad.lo.s16", "hhhh", 52, 7, 7, 3, 0},
        {"mad.lo.s32", "iiii", I(-18), I(-3), 7, 3, 0},
        {"mad.lo.s64", "llll", L(-18), L(-3), 7, 3, 0},
        {"mad.hi.u32", "iiii", 0xffffffff, 0xffffffff, 0xffffffff, 1, 0},
        {"mad.hi.s32", "iiii", 4, I(-1), 2, 5, 0},
        {"mad.hi.sat.s32", "iiii", I(INT32_MAX), I(INT32_MAX), 8, I(INT32_MAX), 0},
        {"mad.hi.u64", "llll", UINT64_MAX, UINT64_MAX, UINT64_MAX, 1, 0},
        {"mad.hi.s64", "llll", 4, L(-1), 2, 5, 0},
        {"mad.wide.u16", "ihhi", 0xfffe0002, 0xffff, 0xffff, 1, 0},
        {"mad.wide.s16", "ihhi", I(-20), H(-3), 7, 1, 0},
        {"mad.wide.u32", "liil", UINT64_C(0xfffffffe00000002), 0xffffffff, 0xffffffff, 1, 0},
        {"mad.wide.s32", "liil", L(-20), I(-3), 7, 1, 0},
        {"mad24.lo.u32", "iiii", 7, 0xff000002, 3, 1, 0},
        {"mad24.lo.s32", "iiii", I(-5), 0x00fffffe, 3, 1, 0},
        {"div.u16", "hhh", 0x5555, 0xffff, 3, 0, 0},
        {"div.s16", "hhh", H(-2), H(-7), 3, 0, 0},
        {"div.u32", "iii", 0x55555555, 0xffffffff, 3, 0, 0},
        {"div.s32", "iii", I(-2), I(-7), 3, 0, 0},
        {"div.s32", "iii", I(INT32_MIN), I(INT32_MIN), I(-1), 0, 0},
        {"div.u32", "iii", 0xffffffff, 5, 0, 0, 0},
        {"div.u64", "lll", UINT64_MAX / 3, UINT64_MAX, 3, 0, 0},
        {"div.s64", "lll", L(-2), L(-7), 3, 0, 0},
        {"rem.u16", "hhh", 1, 7, 3, 0, 0},
        {"rem.u32", "iii", 0xffffffff, 7, 0, 0, 0},
        {"rem.s16", "hhh", H(-1), H(-7), 3, 0, 0},
        {"rem.u32", "iii", 1, 7, 3, 0, 0},
        {"rem.s32", "iii", I(-1), I(-7), 3, 0, 0},
        {"rem.u64", "lll", 1, 7, 3, 0, 0},
        {"rem.s64", "lll", L(-1), L(-7), 3, 0, 0},
        {"abs.s16", "hh", 7, H(-7), 0, 0, 0},
        {"abs.s32", "ii", 0x80000000, I(INT32_MIN), 0, 0, 0},
        {"abs.s64", "ll", 7, L(-7), 0, 0, 0},
        {"neg.s16", "hh", H(-7), 7, 0, 0, 0},
        {"neg.s32", "ii", I(-7), 7, 0, 0, 0},
        {"neg.s64", "ll", L(-7), 7, 0, 0, 0},
        {"min.u16", "hhh", 1, 0xffff, 1, 0, 0},
        {"min.s16", "hhh", 0xffff, 0xffff, 1, 0, 0},
        {"min.u32", "iii", 1, 0xffffffff, 1, 0, 0},
        {"min.s32", "iii", I(-1), I(-1), 1, 0, 0},
        {"min.relu.s32", "iii", 0, I(-1), 1, 0, 0},
        {"min.u64", "lll", 1, UINT64_MAX, 1, 0, 0},
        {"min.s64", "lll", UINT64_MAX, UINT64_MAX, 1, 0, 0},
        {"max.u16", "hhh", 0xffff, 0xffff, 1, 0, 0},
        {"max.s16", "hhh", 1, 0xffff, 1, 0, 0},
        {"max.u32", "iii", 0xffffffff, 0xffffffff, 1, 0, 0},
        {"max.s32", "iii", 1, I(-1), 1, 0, 0},
        {"max.relu.s32", "iii", 0, I(-1), I(-5), 0, 0},
        {"max.u64", "lll", UINT64_MAX, UINT64_MAX, 1, 0, 0},
        {"max.s64", "lll", 1, UINT64_MAX, 1, 0, 0},
        {"sad.u32", "iiii", 0xfffffffe + 5u, 1, 0xffffffff, 5, 0},
        {"sad.s32", "iiii", 7, 1, I(-1), 5, 0},
        {"slct.b32.s32", "iiii", 1, 1, 2, 0, 0},
        {"slct.b32.s32", "iiii", 2, 1, 2, I(-1), 0},
        {"slct.u64.s32", "llli", 2, 1, 2, I(-1), 0},
        {"slct.f32.f32", "iiii", 1, 1, 2, F(-0.0f), 0},
        {"slct.f64.f32", "llli", 2, 1, 2, F(NAN), 0},
        {"slct.ftz.b32.f32", "iiii", 1, 1, 2, 0x80000001, 0},
        {"slct.ftz.f64.f32", "llli", 1, 1, 2, 0x80000001, 0},
    };
    EXPECT_ALL(cases);
}

static void test_bits_and_shifts(void **state) {
    (void)state;
    const Case cases[] = {
        {"and.b16", "hhh", 0x0f00, 0xff00, 0x0fff, 0, 0},
        {"and.b32", "iii", 0x0f000000, 0xff000000, 0x0fffffff, 0, 0},
        {"and.b64", "lll", 0xf0, 0xff0, 0xf0ff, 0, 0},
        {"or.b16", "hhh", 0xffff, 0xff00, 0x0fff, 0, 0},
        {"or.b32", "iii", 0x11, 0x10, 0x01, 0, 0},
        {"or.b64", "lll", 0x11, 0x10, 0x01, 0, 0},
        {"xor.b16", "hhh", 0xf0ff, 0xff00, 0x0fff, 0, 0},
        {"xor.b32", "iii", 0x11, 0x10, 0x01, 0, 0},
        {"xor.b64", "lll", 0x11, 0x10, 0x01, 0, 0},
        {"not.b16", "hh", 0xfff0, 0x000f, 0, 0, 0},
        {"not.b32", "ii", 0xfffffff0, 0x0000000f, 0, 0, 0},
        {"not.b64", "ll", ~UINT64_C(15), 15, 0, 0, 0},
        {"cnot.b16", "hh", 1, 0, 0, 0, 0},
        {"cnot.b32", "ii", 0, 5, 0, 0, 0},
        {"cnot.b64", "ll", 1, 0, 0, 0, 0},
        {"shl.b16", "hhi", 0x8000, 1, 15, 0, 0},
        {"shl.b16", "hhi", 0, 1, 16, 0, 0},
        {"shl.b32", "iii", 0x80000000, 1, 31, 0, 0},
        {"shl.b32", "iii", 0, 1, 32, 0, 0},
        {"shl.b64", "lli", 0, 1, 64, 0, 0},
        {"shl.b64", "lli", UINT64_C(1) << 40, 1, 40, 0, 0},
        {"shr.u16", "hhi", 0x0fff, 0xffff, 4, 0, 0},
        {"shr.s16", "hhi", 0xffff, 0x8000, 99, 0, 0},
        {"shr.u32", "iii", 0, 0xffffffff, 32, 0, 0},
        {"shr.s32", "iii", 0xffffffff, 0x80000000, 200, 0, 0},
        {"shr.b64", "lli", 1, UINT64_C(1) << 63, 63, 0, 0},
        {"shr.s64", "lli", UINT64_MAX, UINT64_C(1) << 63, 64, 0, 0},
        {"shf.l.wrap.b32", "iiii", 0x22222221, 0x11111111, 0x22222222, 36, 0},
        {"shf.l.clamp.b32", "iiii", 0x11111111, 0x11111111, 0x22222222, 40, 0},
        {"shf.r.wrap.b32", "iiii", 0x21111111, 0x11111111, 0x22222222, 4, 0},
        {"shf.r.clamp.b32", "iiii", 0x22222222, 0x11111111, 0x22222222, 32, 0},
        {"prmt.b32", "iiii", 0x55004477, 0x33221100, 0x77665544, 0x5047, 0},
        {"prmt.b32", "iiii", 0xff00ff00, 0x00008000, 0, 0x9090, 0},
        {"prmt.b32.f4e", "iiii", 0x44332211, 0x33221100, 0x77665544, 1, 0},
        {"prmt.b32.b4e", "iiii", 0x66770011, 0x33221100, 0x77665544, 1, 0},
        {"prmt.b32.rc8", "iiii", 0x22222222, 0x33221100, 0x77665544, 2, 0},
        {"prmt.b32.ecl", "iiii", 0x33222222, 0x33221100, 0x77665544, 2, 0},
        {"prmt.b32.ecr", "iiii", 0x11111100, 0x33221100, 0x77665544, 1, 0},
        {"prmt.b32.rc16", "iiii", 0x33223322, 0x33221100, 0x77665544, 1, 0},
        {"bfe.u32", "iiii", 0xcd, 0x12abcdef, 8, 8, 0},
        {"bfe.u32", "iiii", 0, 0x12abcdef, 8, 0, 0},
        {"bfe.s32", "iiii", I(-51), 0x12abcdef, 8, 8, 0},
        {"bfe.s32", "iiii", I(-1), 0x80000000, 31, 8, 0},
        {"bfe.u64", "llii", 0xcd, UINT64_C(0xcd00000000), 32, 8, 0},
        {"bfe.s64", "llii", L(-51), UINT64_C(0xcd00000000), 32, 8, 0},
        {"bfi.b32", "iiiii", 0x1234ff78, 0xff, 0x12345678, 8, 8},
        {"bfi.b32", "iiiii", 0x12345678, 0xff, 0x12345678, 8, 0},
        {"bfi.b64", "lllii", UINT64_C(0xab00000000), 0xab, 0, 32, 8},
        {"bmsk.clamp.b32", "iii", 0x00000ff0, 4, 8, 0, 0},
        {"bmsk.wrap.b32", "iii", 0x00000ff0, 36, 40, 0, 0},
        {"szext.clamp.u32", "iii", 0x7f, 0xffffffff, 7, 0, 0},
        {"szext.clamp.s32", "iii", I(-1), 0x7f, 7, 0, 0},
        {"popc.b32", "ii", 32, 0xffffffff, 0, 0, 0},
        {"popc.b64", "il", 33, UINT64_C(0x1ffffffff), 0, 0, 0},
        {"clz.b32", "ii", 32, 0, 0, 0, 0},
        {"clz.b64", "il", 63, 1, 0, 0, 0},
        {"brev.b32", "ii", 0x80000001, 0x80000001, 0, 0, 0},
        {"brev.b64", "ll", UINT64_C(0x4000000000000000), 2, 0, 0, 0},
        {"bfind.u32", "ii", 31, 0x80000000, 0, 0, 0},
        {"bfind.u32", "ii", 0xffffffff, 0, 0, 0, 0},
        {"bfind.s32", "ii", 0, I(-2), 0, 0, 0},
        {"bfind.u64", "il", 40, UINT64_C(1) << 40, 0, 0, 0},
        {"bfind.s64", "il", 0xffffffff, UINT64_MAX, 0, 0, 0},
        {"bfind.shiftamt.u32", "ii", 0, 0x80000000, 0, 0, 0},
        {"bfind.shiftamt.s32", "ii", 31, I(-2), 0, 0, 0},
        {"bfind.shiftamt.u64", "il", 63, 1, 0, 0, 0},
        {"bfind.shiftamt.s64", "il", 63, 1, 0, 0, 0},
        {"fns.b32", "iiii", 5, 0x2a, 0, 3, 0},
        {"fns.b32", "iiii", 0xffffffff, 0x2a, 0, 4, 0},
        {"fns.b32", "iiii", 1, 0x2a, 3, I(-2), 0},
        {"dp4a.u32.u32", "iiii", 255 * 2 + 3, 0xff000001, 0x02000003, 0, 0},
        {"dp4a.s32.u32", "iiii", I(-2 + 3), 0xff000001, 0x02000003, 0, 0},
        {"dp4a.u32.s32", "iiii", I(-2), 0x02000000, 0xff000000, 0, 0},
        {"dp4a.s32.s32", "iiii", 1 + 7, 0xff000000, 0xff000000, 7, 0},
        {"lop3.b32", "iiiin", 0x96, 0xf0, 0xcc, 0xaa, 0x96},
        {"lop3.b32", "iiiin", 0xe8, 0xf0, 0xcc, 0xaa, 0xe8},
    };
    EXPECT_ALL(cases);
}

/* ---- comparisons ---------------------------------------------------------------------------------------- */

static void test_comparisons(void **state) {
    (void)state;
    static const char *const order[] = {"eq", "ne", "lt", "le", "gt", "ge"};
    static const struct {
        const char *type, *operands;
        uint64_t small, large;
    } types[] = {
        {"s16", "phh", 0xffff, 1}, {"u16", "phh", 1, 0xffff},
        {"s32", "pii", 0xffffffff, 1}, {"u32", "pii", 1, 0xffffffff},
        {"s64", "pll", UINT64_MAX, 1}, {"u64", "pll", 1, UINT64_MAX},
        {"f32", "pii", 0, 0}, {"f64", "pll", 0, 0}, {"ftz.f32", "pii", 0, 0},
        {"f16", "phh", 0xbc00, 0x3c00}, {"ftz.f16", "phh", 0xbc00, 0x0001},
        {"bf16", "phh", 0xbf80, 0x3f80},
    };
    for (size_t t = 0; t < sizeof types / sizeof types[0]; t++) {
        uint64_t small = types[t].small, large = types[t].large;
        if (!small)
            small = t == 7 ? D(-1.5) : F(-1.5f), large = t == 7 ? D(2) : F(2);
        for (int k = 0; k < 6; k++) {
            char opcode[64];
            snprintf(opcode, sizeof opcode, "setp.%s.%s", order[k], types[t].type);
            expect(opcode, types[t].operands, k == 1 || k == 2 || k == 3, small, large, 0, 0);
            expect(opcode, types[t].operands, k == 1 || k >= 4, large, small, 0, 0);
            expect(opcode, types[t].operands, k == 0 || k == 3 || k == 5, small, small, 0, 0);
        }
    }
}

static void test_float_comparisons_with_nan(void **state) {
    (void)state;
    static const struct {
        const char *name;
        int with_nan, equal, less;
    } all[] = {{"eq", 0, 1, 0}, {"ne", 0, 0, 1}, {"lt", 0, 0, 1}, {"le", 0, 1, 1}, {"gt", 0, 0, 0},
               {"ge", 0, 1, 0}, {"equ", 1, 1, 0}, {"neu", 1, 0, 1}, {"ltu", 1, 0, 1},
               {"leu", 1, 1, 1}, {"gtu", 1, 0, 0}, {"geu", 1, 1, 0}, {"num", 0, 1, 1},
               {"nan", 1, 0, 0}};
    static const struct {
        const char *type, *operands;
        uint64_t one, two, nan;
    } types[] = {{"f32", "pii", 0x3f800000, 0x40000000, 0x7fc00000},
                 {"ftz.f32", "pii", 0x3f800000, 0x40000000, 0x7fc00000},
                 {"f64", "pll", 0x3ff0000000000000, 0x4000000000000000, 0x7ff8000000000000},
                 {"f16", "phh", 0x3c00, 0x4000, 0x7e00},
                 {"ftz.f16", "phh", 0x3c00, 0x4000, 0x7e00},
                 {"bf16", "phh", 0x3f80, 0x4000, 0x7fc0}};
    for (size_t t = 0; t < sizeof types / sizeof types[0]; t++)
        for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
            char opcode[64];
            snprintf(opcode, sizeof opcode, "setp.%s.%s", all[i].name, types[t].type);
            expect(opcode, types[t].operands, (uint64_t)all[i].with_nan, types[t].one, types[t].nan, 0, 0);
            expect(opcode, types[t].operands, (uint64_t)all[i].equal, types[t].one, types[t].one, 0, 0);
            expect(opcode, types[t].operands, (uint64_t)all[i].less, types[t].one, types[t].two, 0, 0);
        }
}

static void test_set_gives_ones_or_one(void **state) {
    (void)state;
    static const char *const order[] = {"eq", "ne", "lt", "le", "gt", "ge"};
    static const struct {
        const char *type, *operands;
        uint64_t small, large;
    } types[] = {{"s32", "iii", 0xffffffff, 1}, {"u32", "iii", 1, 0xffffffff},
                 {"s64", "ill", UINT64_MAX, 1}, {"u64", "ill", 1, UINT64_MAX}};
    char opcode[64];
    for (size_t t = 0; t < sizeof types / sizeof types[0]; t++)
        for (int k = 0; k < 6; k++) {
            bool less = k == 1 || k == 2 || k == 3;
            snprintf(opcode, sizeof opcode, "set.%s.u32.%s", order[k], types[t].type);
            expect(opcode, types[t].operands, less ? 0xffffffff : 0, types[t].small, types[t].large, 0, 0);
        }
    static const char *const floats[] = {"eq", "ne", "lt", "le", "gt", "ge", "neu", "ltu", "leu",
                                         "gtu", "geu", "nan"};
    for (int k = 0; k < 12; k++) {
        bool with_nan = k >= 6;
        snprintf(opcode, sizeof opcode, "set.%s.u32.f32", floats[k]);
        expect(opcode, "iii", with_nan ? 0xffffffff : 0, F(1), F(NAN), 0, 0);
        snprintf(opcode, sizeof opcode, "set.%s.f32.f32", floats[k]);
        expect(opcode, "iii", with_nan ? F(1) : 0, F(1), F(NAN), 0, 0);
    }
}

/* ---- floating point ----------------------------------------------------------------------------------------- */

#define TINY 0x00000001 // the smallest denormal
#define NAN32 0x7fffffff
#define NAN64 UINT64_C(0xfff8000000000000)

static void test_float_arithmetic(void **state) {
    (void)state;
    const uint64_t third = F(1.0f / 3), eps = F(0x1p-24f), one = F(1);
    const Case cases[] = {
        {"add.f32", "iii", F(0.5f), F(0.25f), F(0.25f), 0, 0},
        {"add.f32", "iii", NAN32, F(INFINITY), F(-INFINITY), 0, 0},
        {"add.f32", "iii", TINY + 1, TINY, TINY, 0, 0},
        {"add.ftz.f32", "iii", 0, TINY, TINY, 0, 0},
        {"add.sat.f32", "iii", F(1), F(1), F(1), 0, 0},
        {"add.sat.f32", "iii", 0, F(NAN), F(1), 0, 0},
        {"sub.f32", "iii", F(-0.5f), F(0.25f), F(0.75f), 0, 0},
        {"sub.ftz.f32", "iii", F(1), F(1), TINY, 0, 0},
        {"sub.sat.f32", "iii", 0, F(1), F(3), 0, 0},
        {"add.ftz.sat.f32", "iii", 0, TINY, TINY, 0, 0},
        {"sub.ftz.sat.f32", "iii", F(1), F(1), TINY, 0, 0},
        {"mul.f32", "iii", F(-3), F(1.5f), F(-2), 0, 0},
        {"mul.ftz.f32", "iii", 0, F(0x1p-100f), F(0x1p-40f), 0, 0},
        {"mul.sat.f32", "iii", F(1), F(5), F(5), 0, 0},
        {"mul.ftz.sat.f32", "iii", 0, F(-5), F(5), 0, 0},
        {"fma.rn.f32", "iiii", F(fmaf(1.0f / 3, 3, -1)), third, F(3), F(-1), 0},
        {"mad.rn.f32", "iiii", F(7), F(2), F(3), F(1), 0},
        {"fma.rn.ftz.f32", "iiii", F(1), TINY, F(0x1p100f), F(1), 0},
        {"fma.rn.sat.f32", "iiii", F(1), F(2), F(3), F(1), 0},
        {"fma.rn.ftz.sat.f32", "iiii", F(0), F(2), F(-3), F(1), 0},
        {"add.f64", "lll", D(0.75), D(0.5), D(0.25), 0, 0},
        {"sub.f64", "lll", NAN64, D(INFINITY), D(INFINITY), 0, 0},
        {"mul.f64", "lll", D(-3), D(1.5), D(-2), 0, 0},
        {"fma.rn.f64", "llll", D(fma(1.0 / 3, 3, -1)), D(1.0 / 3), D(3), D(-1), 0},
        {"div.rn.f32", "iii", third, one, F(3), 0, 0},
        {"div.rn.f32", "iii", F(INFINITY), one, 0, 0, 0},
        {"div.rn.ftz.f32", "iii", 0, TINY, F(1), 0, 0},
        {"div.approx.f32", "iii", F(0.5f), one, F(2), 0, 0},
        {"div.approx.f32", "iii", 0, one, F(0x1p127f), 0, 0},
        {"div.approx.ftz.f32", "iii", F(0.5f), one, F(2), 0, 0},
        {"div.full.f32", "iii", F(0.5f), one, F(2), 0, 0},
        {"div.full.ftz.f32", "iii", F(0.5f), one, F(2), 0, 0},
        {"div.rn.f64", "lll", D(1.0 / 3), D(1), D(3), 0, 0},
        {"rcp.rn.f32", "ii", third, F(3), 0, 0, 0},
        {"rcp.approx.ftz.f32", "ii", F(INFINITY), TINY, 0, 0, 0},
        {"rcp.rn.f64", "ll", D(1.0 / 3), D(3), 0, 0, 0},
        {"rcp.approx.ftz.f64", "ll", D(0.25), D(4), 0, 0, 0},
        {"sqrt.rn.f32", "ii", F(sqrtf(2)), F(2), 0, 0, 0},
        {"sqrt.rn.f32", "ii", NAN32, F(-2), 0, 0, 0},
        {"sqrt.approx.ftz.f32", "ii", 0, TINY, 0, 0, 0},
        {"sqrt.rn.f64", "ll", D(sqrt(2)), D(2), 0, 0, 0},
        {"rsqrt.approx.f32", "ii", F(0.5f), F(4), 0, 0, 0},
        {"rsqrt.approx.ftz.f32", "ii", F(INFINITY), TINY, 0, 0, 0},
        {"rsqrt.approx.f64", "ll", D(0.5), D(4), 0, 0, 0},
        {"rsqrt.approx.ftz.f64", "ll", D(0.5), D(4), 0, 0, 0},
        {"min.f32", "iii", F(-0.0f), F(0), F(-0.0f), 0, 0},
        {"min.f32", "iii", F(1), F(NAN), F(1), 0, 0},
        {"min.ftz.f32", "iii", 0, TINY, F(1), 0, 0},
        {"min.NaN.f32", "iii", NAN32, F(NAN), F(1), 0, 0},
        {"min.ftz.NaN.f32", "iii", NAN32, F(NAN), F(1), 0, 0},
        {"max.f32", "iii", F(0), F(-0.0f), F(0), 0, 0},
        {"max.f32", "iii", NAN32, F(NAN), F(-NAN), 0, 0},
        {"max.ftz.f32", "iii", 0, TINY, F(-1), 0, 0},
        {"max.NaN.f32", "iii", F(2), F(2), F(1), 0, 0},
        {"max.ftz.NaN.f32", "iii", F(2), F(2), F(1), 0, 0},
        {"min.f64", "lll", D(-2), D(-2), D(NAN), 0, 0},
        {"max.f64", "lll", D(3), D(-2), D(3), 0, 0},
        {"abs.f32", "ii", F(2), F(-2), 0, 0, 0},
        {"abs.ftz.f32", "ii", 0, 0x80000001, 0, 0, 0},
        {"abs.f64", "ll", D(2), D(-2), 0, 0, 0},
        {"neg.f32", "ii", F(2), F(-2), 0, 0, 0},
        {"neg.ftz.f32", "ii", 0x80000000, TINY, 0, 0, 0},
        {"neg.f64", "ll", D(2), D(-2), 0, 0, 0},
        {"copysign.f32", "iii", F(-2), F(-1), F(2), 0, 0},
        {"copysign.f64", "lll", D(-2), D(-1), D(2), 0, 0},
        {"add.rz.f32", "iii", one, one, eps, 0, 0},
        {"add.rm.f32", "iii", one, one, eps, 0, 0},
        {"add.rp.f32", "iii", F(1 + 0x1p-23f), one, eps, 0, 0},
        {"sub.rz.f32", "iii", F(1 - 0x1p-24f), one, F(0x1p-30f), 0, 0},
        {"sub.rm.f32", "iii", F(1 - 0x1p-24f), one, F(0x1p-30f), 0, 0},
        {"sub.rp.f32", "iii", one, one, F(0x1p-30f), 0, 0},
        {"mul.rz.f32", "iii", F(1 + 0x1p-22f), F(1 + 0x1p-23f), F(1 + 0x1p-23f), 0, 0},
        {"mul.rm.f32", "iii", F(1 + 0x1p-22f), F(1 + 0x1p-23f), F(1 + 0x1p-23f), 0, 0},
        {"mul.rp.f32", "iii", F(1 + 3 * 0x1p-23f), F(1 + 0x1p-23f), F(1 + 0x1p-23f), 0, 0},
        {"fma.rz.f32", "iiii", one, eps, one, one, 0},
        {"fma.rm.f32", "iiii", one, eps, one, one, 0},
        {"fma.rp.f32", "iiii", F(1 + 0x1p-23f), eps, one, one, 0},
        {"div.rz.f32", "iii", 0x3eaaaaaa, one, F(3), 0, 0},
        {"div.rm.f32", "iii", 0x3eaaaaaa, one, F(3), 0, 0},
        {"div.rp.f32", "iii", 0x3eaaaaab, one, F(3), 0, 0},
        {"rcp.rz.f32", "ii", 0x3eaaaaaa, F(3), 0, 0, 0},
        {"rcp.rm.f32", "ii", 0x3eaaaaaa, F(3), 0, 0, 0},
        {"rcp.rp.f32", "ii", 0x3eaaaaab, F(3), 0, 0, 0},
        {"sqrt.rz.f32", "ii", 0x3fb504f3, F(2), 0, 0, 0},
        {"sqrt.rm.f32", "ii", 0x3fb504f3, F(2), 0, 0, 0},
        {"sqrt.rp.f32", "ii", 0x3fb504f4, F(2), 0, 0, 0},
        {"ex2.approx.f32", "ii", F(8), F(3), 0, 0, 0},
        {"ex2.approx.f32", "ii", F(INFINITY), F(1000), 0, 0, 0},
        {"ex2.approx.ftz.f32", "ii", 0, F(-127), 0, 0, 0},
        {"lg2.approx.f32", "ii", F(3), F(8), 0, 0, 0},
        {"lg2.approx.f32", "ii", NAN32, F(-8), 0, 0, 0},
        {"lg2.approx.ftz.f32", "ii", F(-INFINITY), TINY, 0, 0, 0},
    };
    EXPECT_ALL(cases);
}

static void test_directed_rounding_of_doubles_and_denormals(void **state) {
    (void)state;
    static const char *const modes[] = {"rz", "rm", "rp"};
    char op[64];
    for (int m = 0; m < 3; m++) {
        bool up = m == 2;
        uint64_t one = D(1), eps = D(0x1p-53), above = D(1 + 0x1p-52), below = D(1 - 0x1p-53);
#define EACH(text, operands, expected, a, b, c)                                                    \
    snprintf(op, sizeof op, text, modes[m]);                                                       \
    expect(op, operands, expected, a, b, c, 0)
        EACH("add.%s.f64", "lll", up ? above : one, one, eps, 0);
        EACH("sub.%s.f64", "lll", up ? one : below, one, D(0x1p-60), 0);
        EACH("mul.%s.f64", "lll", up ? D(1 + 3 * 0x1p-52) : D(1 + 2 * 0x1p-52), above, above, 0);
        EACH("fma.%s.f64", "llll", up ? above : one, eps, one, one);
        EACH("div.%s.f64", "lll", up ? 0x3fd5555555555556 : 0x3fd5555555555555, one, D(3), 0);
        EACH("rcp.%s.f64", "ll", up ? 0x3fd5555555555556 : 0x3fd5555555555555, D(3), 0, 0);
        EACH("sqrt.%s.f64", "ll", up ? 0x3ff6a09e667f3bcd : 0x3ff6a09e667f3bcc, D(2), 0, 0);
        EACH("cvt.%s.f32.f64", "il", up ? F(1 + 0x1p-23f) : F(1), D(1 + 0x1p-40), 0, 0);
        EACH("cvt.%s.ftz.f32.f64", "il", 0, D(0x1p-140), 0, 0);
        EACH("cvt.%s.f32.s32", "ii", up ? 0x4b800001 : 0x4b800000, 16777217, 0, 0);
        EACH("cvt.%s.f32.u32", "ii", up ? 0x4f800000 : 0x4f7fffff, 0xffffffff, 0, 0);
        EACH("cvt.%s.f32.s64", "il", up ? 0x4b800001 : 0x4b800000, 16777217, 0, 0);
        EACH("cvt.%s.f32.u64", "il", up ? 0x5f800000 : 0x5f7fffff, UINT64_MAX, 0, 0);
        EACH("cvt.%s.f64.s64", "ll", up ? D(9007199254740994.) : D(9007199254740992.), 9007199254740993, 0, 0);
        EACH("cvt.%s.f64.u64", "ll", up ? D(0x1p64) : 0x43efffffffffffff, UINT64_MAX, 0, 0);
        EACH("add.%s.ftz.f32", "iii", 0, TINY, TINY, 0);
        EACH("sub.%s.ftz.f32", "iii", F(1), F(1), TINY, 0);
        EACH("mul.%s.ftz.f32", "iii", 0, TINY, F(1), 0);
        EACH("fma.%s.ftz.f32", "iiii", F(1), TINY, F(1), F(1));
        EACH("div.%s.ftz.f32", "iii", 0, TINY, F(1), 0);
        EACH("rcp.%s.ftz.f32", "ii", F(INFINITY), TINY, 0, 0);
        EACH("sqrt.%s.ftz.f32", "ii", 0, TINY, 0, 0);
#undef EACH
    }
}

/* Largest error over a sweep, in the measure the ISA names. */
static double sweep(const char *opcode, double (*truth)(double), double from, double to,
                    bool relative) {
    double worst = 0;
    for (int i = 0; i <= 60; i++) {
        float x = (float)(from + (to - from) * i / 60);
        uint64_t value[4] = {F(x)};
        double got = (double)float_of(case_run(opcode, "ii", value)), right = truth((double)x);
        double error = fabs(got - right) / (relative ? fabs(right) : 1);
        worst = error > worst ? error : worst;
    }
    return worst;
}

static void test_approximations_stay_within_the_stated_error(void **state) {
    (void)state;
    assert_true(sweep("ex2.approx.f32", exp2, -120, 120, true) < 0x1p-22);
    assert_true(sweep("lg2.approx.f32", log2, 3, 1e6, true) < 0x1p-22);
    assert_true(sweep("lg2.approx.f32", log2, 0.5, 2, false) < 0x1p-22);
    assert_true(sweep("sin.approx.f32", sin, -M_PI, M_PI, false) < 0x1p-20);
    assert_true(sweep("cos.approx.f32", cos, -M_PI, M_PI, false) < 0x1p-20);
    assert_true(sweep("sin.approx.ftz.f32", sin, -M_PI, M_PI, false) < 0x1p-20);
    assert_true(sweep("cos.approx.ftz.f32", cos, -M_PI, M_PI, false) < 0x1p-20);
    assert_true(sweep("tanh.approx.f32", tanh, -5, 5.1, true) < 0x1p-11);
}

/* ---- half precision ----------------------------------------------------------------------------------------- */

static void test_half_precision(void **state) {
    (void)state;
    const Case cases[] = {
        {"add.f16", "hhh", 0x4200, 0x3c00, 0x4000, 0, 0},
        {"add.f16", "hhh", 0x0002, 0x0001, 0x0001, 0, 0},
        {"sub.f16", "hhh", 0xbc00, 0x3c00, 0x4000, 0, 0},
        {"mul.f16", "hhh", 0x7c00, 0x7bff, 0x4000, 0, 0},
        {"fma.rn.f16", "hhhh", 0x4500, 0x4000, 0x4000, 0x3c00, 0},
        {"fma.rn.relu.f16", "hhhh", 0, 0xc000, 0x4000, 0x3c00, 0},
        {"min.f16", "hhh", 0x3c00, 0x3c00, 0x4000, 0, 0},
        {"max.f16", "hhh", 0x4000, 0x3c00, 0x4000, 0, 0},
        {"neg.f16", "hh", 0xbc00, 0x3c00, 0, 0, 0},
        {"abs.f16", "hh", 0x3c00, 0xbc00, 0, 0, 0},
        {"add.f16x2", "iii", 0x42003c00, 0x3c003800, 0x40003800, 0, 0},
        {"sub.f16x2", "iii", 0xbc000000, 0x3c003800, 0x40003800, 0, 0},
        {"mul.f16x2", "iii", 0x40003400, 0x3c003800, 0x40003800, 0, 0},
        {"fma.rn.f16x2", "iiii", 0x45003c00, 0x40003800, 0x40003800, 0x3c003a00, 0},
        {"fma.rn.relu.f16x2", "iiii", 0x00003c00, 0xc0003800, 0x40003800, 0x3c003a00, 0},
        {"min.f16x2", "iii", 0x3c003800, 0x3c003800, 0x40003c00, 0, 0},
        {"max.f16x2", "iii", 0x40003c00, 0x3c003800, 0x40003c00, 0, 0},
        {"neg.f16x2", "ii", 0xbc003800, 0x3c00b800, 0, 0, 0},
        {"abs.f16x2", "ii", 0x3c003800, 0xbc00b800, 0, 0, 0},
        {"add.bf16", "hhh", 0x4040, 0x3f80, 0x4000, 0, 0},
        {"sub.bf16", "hhh", 0xbf80, 0x3f80, 0x4000, 0, 0},
        {"mul.bf16", "hhh", 0x4000, 0x3f80, 0x4000, 0, 0},
        {"fma.rn.bf16", "hhhh", 0x40a0, 0x4000, 0x4000, 0x3f80, 0},
        {"fma.rn.relu.bf16", "hhhh", 0, 0xc000, 0x4000, 0x3f80, 0},
        {"min.bf16", "hhh", 0x3f80, 0x3f80, 0x4000, 0, 0},
        {"max.bf16", "hhh", 0x4000, 0x3f80, 0x4000, 0, 0},
        {"neg.bf16", "hh", 0xbf80, 0x3f80, 0, 0, 0},
        {"abs.bf16", "hh", 0x3f80, 0xbf80, 0, 0, 0},
        {"add.bf16x2", "iii", 0x40403f80, 0x3f803f00, 0x40003f00, 0, 0},
        {"sub.bf16x2", "iii", 0xbf800000, 0x3f803f00, 0x40003f00, 0, 0},
        {"mul.bf16x2", "iii", 0x40003e80, 0x3f803f00, 0x40003f00, 0, 0},
        {"fma.rn.bf16x2", "iiii", 0x40a03f80, 0x40003f00, 0x40003f00, 0x3f803f40, 0},
        {"fma.rn.relu.bf16x2", "iiii", 0x00003f80, 0xc0003f00, 0x40003f00, 0x3f803f40, 0},
        {"min.bf16x2", "iii", 0x3f803f00, 0x3f803f00, 0x40003f80, 0, 0},
        {"max.bf16x2", "iii", 0x40003f80, 0x3f803f00, 0x40003f80, 0, 0},
        {"neg.bf16x2", "ii", 0xbf803f00, 0x3f80bf00, 0, 0, 0},
        {"abs.bf16x2", "ii", 0x3f803f00, 0xbf80bf00, 0, 0, 0},
        {"ex2.approx.f16", "hh", 0x4800, 0x4200, 0, 0, 0},
        {"tanh.approx.f16", "hh", 0, 0, 0, 0, 0},
        {"ex2.approx.ftz.bf16", "hh", 0x4100, 0x4040, 0, 0, 0},
        {"tanh.approx.bf16", "hh", 0x3f80, 0x4200, 0, 0, 0},
        {"cvt.f32.f16", "ih", F(0x1p-24f), 1, 0, 0, 0},
        {"cvt.f32.f16", "ih", F(-INFINITY), 0xfc00, 0, 0, 0},
        {"cvt.ftz.f32.f16", "ih", F(1.5f), 0x3e00, 0, 0, 0},
        {"cvt.f64.f16", "lh", D(1.5), 0x3e00, 0, 0, 0},
        {"cvt.f32.bf16", "ih", F(1.5f), 0x3fc0, 0, 0, 0},
        {"cvt.f64.bf16", "lh", D(1.5), 0x3fc0, 0, 0, 0},
        {"cvt.rn.f16.f32", "hi", 0x3c00, F(1 + 0x1p-11f), 0, 0, 0},
        {"cvt.rn.f16.f32", "hi", 0x3c02, F(1 + 3 * 0x1p-11f), 0, 0, 0},
        {"cvt.rn.f16.f32", "hi", 0x7c00, F(65520), 0, 0, 0},
        {"cvt.rn.f16.f32", "hi", 0x0001, F(0x1p-24f), 0, 0, 0},
        {"cvt.rn.f16.f32", "hi", 0x7fff, F(NAN), 0, 0, 0},
        {"cvt.rz.f16.f32", "hi", 0x7bff, F(70000), 0, 0, 0},
        {"cvt.rz.f16.f32", "hi", 0x3c00, F(1.0009f), 0, 0, 0},
        {"cvt.rn.relu.f16.f32", "hi", 0, F(-3), 0, 0, 0},
        {"cvt.rn.f16.f64", "hl", 0x3c01, D(1 + 0x1p-11 + 0x1p-40), 0, 0, 0},
        {"cvt.rn.bf16.f32", "hi", 0x3f80, F(1 + 0x1p-8f), 0, 0, 0},
        {"cvt.rn.bf16.f32", "hi", 0x3f82, F(1 + 3 * 0x1p-8f), 0, 0, 0},
        {"cvt.rz.bf16.f32", "hi", 0x3f80, F(1.007f), 0, 0, 0},
        {"cvt.rn.relu.bf16.f32", "hi", 0, F(-3), 0, 0, 0},
        {"cvt.rn.bf16.f64", "hl", 0x3f81, D(1 + 0x1p-8 + 0x1p-40), 0, 0, 0},
        {"cvt.rn.bf16.f16", "hh", 0x3fc0, 0x3e00, 0, 0, 0},
        {"cvt.rn.f16.bf16", "hh", 0x3e00, 0x3fc0, 0, 0, 0},
        {"cvt.rn.f16x2.f32", "iii", 0x3c004000, F(1), F(2), 0, 0},
        {"cvt.rz.f16x2.f32", "iii", 0x3c004000, F(1), F(2), 0, 0},
        {"cvt.rn.relu.f16x2.f32", "iii", 0x00004000, F(-1), F(2), 0, 0},
        {"cvt.rn.bf16x2.f32", "iii", 0x3f804000, F(1), F(2), 0, 0},
        {"cvt.rz.bf16x2.f32", "iii", 0x3f804000, F(1), F(2), 0, 0},
        {"cvt.rn.relu.bf16x2.f32", "iii", 0x00004000, F(-1), F(2), 0, 0},
        {"cvt.rna.tf32.f32", "ii", F(1 + 0x1p-10f), F(1 + 0x1p-11f), 0, 0, 0},
        {"cvt.rna.satfinite.tf32.f32", "ii", 0x7f7fe000, F(INFINITY), 0, 0, 0},
        {"cvt.rn.tf32.f32", "ii", F(1), F(1 + 0x1p-11f), 0, 0, 0},
    };
    EXPECT_ALL(cases);
}

/* The one rounding of a half-precision fma must not be preceded by another. */
static void test_half_fma_rounds_once(void **state) {
    (void)state;
    /* 1025 * 1 + 2^-24: just above a tie is not a tie. */
    expect("fma.rn.f16", "hhhh", 0x6801, 0x6801, 0x3c00, 0x0001, 0);
    /* (1 + 2^-10)(1 + 2^-10) = 1 + 2^-9 + 2^-20, plus 2^-24: rounds to 1 + 2^-9. */
    expect("fma.rn.f16", "hhhh", 0x3c02, 0x3c01, 0x3c01, 0x0001, 0);
    /* 2048 + 1 is a tie that goes to even; 2048 + 1 + 2^-24 goes up. */
    expect("fma.rn.f16", "hhhh", 0x6800, 0x3c00, 0x3c00, 0x6800, 0);
}

/* ---- conversions ---------------------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    int bits;
    bool is_signed;
} int_types[] = {{"u8", 8, false}, {"s8", 8, true}, {"u16", 16, false}, {"s16", 16, true},
                 {"u32", 32, false}, {"s32", 32, true}, {"u64", 64, false}, {"s64", 64, true}};

static char letter_for(int bits) { return bits <= 16 ? 'h' : bits == 32 ? 'i' : 'l'; }

/* The value that `bits` of a type mean, in a type that holds them all. */
static __int128 value_of(uint64_t bits, int type) {
    int width = int_types[type].bits;
    if (width < 64)
        bits &= (UINT64_C(1) << width) - 1;
    if (int_types[type].is_signed && bits >> (width - 1) & 1)
        return (__int128)bits - ((__int128)1 << width);
    return (__int128)bits;
}

static uint64_t register_bits(__int128 value, int type) {
    int width = int_types[type].bits < 16 ? 16 : int_types[type].bits; // as the register holds it
    uint64_t bits = (uint64_t)value;
    return width == 64 ? bits : bits & ((UINT64_C(1) << width) - 1);
}

static __int128 saturated(__int128 value, int type) {
    int width = int_types[type].bits;
    bool is_signed = int_types[type].is_signed;
    __int128 low = is_signed ? -((__int128)1 << (width - 1)) : 0;
    __int128 high = is_signed ? ((__int128)1 << (width - 1)) - 1 : ((__int128)1 << width) - 1;
    return value < low ? low : value > high ? high : value;
}

static void test_conversions_between_integers(void **state) {
    (void)state;
    const uint64_t inputs[] = {0, 1, 0x7f, 0x80, 0x1234567890abcdef, UINT64_MAX,
                               UINT64_C(0x8000000000000000), 0x80000000};
    for (int to = 0; to < 8; to++)
        for (int from = 0; from < 8; from++)
            for (size_t i = 0; i < sizeof inputs / sizeof inputs[0]; i++) {
                char opcode[64], operands[3] = {letter_for(int_types[to].bits),
                                                letter_for(int_types[from].bits), 0};
                __int128 value = value_of(inputs[i], from);
                snprintf(opcode, sizeof opcode, "cvt.%s.%s", int_types[to].name,
                         int_types[from].name);
                __int128 cut = value_of((uint64_t)value, to);
                expect(opcode, operands, register_bits(cut, to), inputs[i], 0, 0, 0);
                snprintf(opcode, sizeof opcode, "cvt.sat.%s.%s", int_types[to].name,
                         int_types[from].name);
                expect(opcode, operands, register_bits(saturated(value, to), to), inputs[i], 0, 0, 0);
            }
}

static void test_conversions_from_float_round_and_clamp(void **state) {
    (void)state;
    static const struct {
        const char *name;
        double (*round)(double);
    } modes[] = {{"rni", rint}, {"rzi", trunc}, {"rmi", floor}, {"rpi", ceil}};
    static const double inputs[] = {0, 2.5, -2.5, 3.5, 127.75, -300, 70000.25, 3e9, -3e9};
    char opcode[64];
    for (size_t m = 0; m < 4; m++) {
        for (int to = 0; to < 8; to++) {
            char letter = letter_for(int_types[to].bits);
            for (size_t i = 0; i < sizeof inputs / sizeof inputs[0]; i++) {
                double x = inputs[i];
                uint64_t right = register_bits(saturated((__int128)modes[m].round(x), to), to);
                char single[3] = {letter, 'i', 0}, twice[3] = {letter, 'l', 0};
                char half[3] = {letter, 'h', 0};
                snprintf(opcode, sizeof opcode, "cvt.%s.%s.f32", modes[m].name, int_types[to].name);
                expect(opcode, single, right, F((float)x), 0, 0, 0);
                snprintf(opcode, sizeof opcode, "cvt.%s.ftz.%s.f32", modes[m].name, int_types[to].name);
                expect(opcode, single, right, F((float)x), 0, 0, 0);
                snprintf(opcode, sizeof opcode, "cvt.%s.%s.f64", modes[m].name, int_types[to].name);
                expect(opcode, twice, right, D(x), 0, 0, 0);
                if (fabs(x) > 4)
                    continue;
                static const uint16_t f16[] = {0, 0x4100, 0xc100, 0x4300};
                static const uint16_t bf16[] = {0, 0x4020, 0xc020, 0x4060};
                snprintf(opcode, sizeof opcode, "cvt.%s.%s.f16", modes[m].name, int_types[to].name);
                expect(opcode, half, right, f16[i], 0, 0, 0);
                snprintf(opcode, sizeof opcode, "cvt.%s.%s.bf16", modes[m].name, int_types[to].name);
                expect(opcode, half, right, bf16[i], 0, 0, 0);
            }
        }
        snprintf(opcode, sizeof opcode, "cvt.%s.f32.f32", modes[m].name);
        expect(opcode, "ii", F((float)modes[m].round(-2.5)), F(-2.5f), 0, 0, 0);
        snprintf(opcode, sizeof opcode, "cvt.%s.ftz.f32.f32", modes[m].name);
        expect(opcode, "ii", 0, TINY, 0, 0, 0);
        snprintf(opcode, sizeof opcode, "cvt.%s.f64.f64", modes[m].name);
        expect(opcode, "ll", D(modes[m].round(-2.5)), D(-2.5), 0, 0, 0);
        snprintf(opcode, sizeof opcode, "cvt.%s.f16.f16", modes[m].name);
        expect(opcode, "hh", m == 2 ? 0xc200 : 0xc000, 0xc100, 0, 0, 0);
        snprintf(opcode, sizeof opcode, "cvt.%s.bf16.bf16", modes[m].name);
        expect(opcode, "hh", m == 2 ? 0xc040 : 0xc000, 0xc020, 0, 0, 0);
    }
    expect("cvt.rzi.s32.f32", "ii", 0, F(NAN), 0, 0, 0);
    expect("cvt.rzi.u32.f32", "ii", 0xffffffff, F(INFINITY), 0, 0, 0);
    expect("cvt.rzi.s32.f32", "ii", 0x80000000, F(-INFINITY), 0, 0, 0);
}

static void test_conversions_to_float(void **state) {
    (void)state;
    char opcode[64];
    for (int from = 0; from < 8; from++) {
        char letter = letter_for(int_types[from].bits);
        uint64_t bits = int_types[from].is_signed ? (uint64_t)-77 : 77;
        double x = int_types[from].is_signed ? -77 : 77;
        snprintf(opcode, sizeof opcode, "cvt.rn.f32.%s", int_types[from].name);
        expect(opcode, (char[]){'i', letter, 0}, F((float)x), bits, 0, 0, 0);
        snprintf(opcode, sizeof opcode, "cvt.rn.sat.f32.%s", int_types[from].name);
        expect(opcode, (char[]){'i', letter, 0}, x < 0 ? 0 : F(1), bits, 0, 0, 0);
        snprintf(opcode, sizeof opcode, "cvt.rn.f64.%s", int_types[from].name);
        expect(opcode, (char[]){'l', letter, 0}, D(x), bits, 0, 0, 0);
        snprintf(opcode, sizeof opcode, "cvt.rn.f16.%s", int_types[from].name);
        expect(opcode, (char[]){'h', letter, 0}, x < 0 ? 0xd4d0 : 0x54d0, bits, 0, 0, 0);
        snprintf(opcode, sizeof opcode, "cvt.rn.bf16.%s", int_types[from].name);
        expect(opcode, (char[]){'h', letter, 0}, x < 0 ? 0xc29a : 0x429a, bits, 0, 0, 0);
    }
    const Case cases[] = {
        {"cvt.rn.f32.u32", "ii", F(4294967296.0f), 0xffffffff, 0, 0, 0},
        {"cvt.rn.f64.u64", "ll", D(18446744073709551616.0), UINT64_MAX, 0, 0, 0},
        {"cvt.f32.f32", "ii", F(1.5f), F(1.5f), 0, 0, 0},
        {"cvt.sat.f32.f32", "ii", F(1), F(1.5f), 0, 0, 0},
        {"cvt.ftz.sat.f32.f32", "ii", 0, F(-1.5f), 0, 0, 0},
        {"cvt.ftz.f32.f32", "ii", 0x80000000, 0x80000001, 0, 0, 0},
        {"cvt.f64.f32", "li", D(1.5), F(1.5f), 0, 0, 0},
        {"cvt.ftz.f64.f32", "li", 0, TINY, 0, 0, 0},
        {"cvt.rn.f32.f64", "il", F(1), D(1 + 0x1p-24), 0, 0, 0},
        {"cvt.rn.ftz.f32.f64", "il", 0, D(0x1p-140), 0, 0, 0},
    };
    EXPECT_ALL(cases);
}

/* ---- moves and predicates --------------------------------------------------------------------------------------- */

static void test_moves_selects_and_predicates(void **state) {
    (void)state;
    const Case cases[] = {
        {"mov.u16", "hh", 0x1234, 0x1234, 0, 0, 0},
        {"mov.f32", "ii", 0x12345678, 0x12345678, 0, 0, 0},
        {"mov.b64", "ll", UINT64_C(0x123456789abcdef0), UINT64_C(0x123456789abcdef0), 0, 0, 0},
        {"mov.pred", "pp", 1, 1, 0, 0, 0},
        {"and.pred", "ppp", 0, 1, 0, 0, 0},
        {"or.pred", "ppp", 1, 1, 0, 0, 0},
        {"xor.pred", "ppp", 0, 1, 1, 0, 0},
        {"not.pred", "pp", 1, 0, 0, 0, 0},
        {"selp.b16", "hhhp", 1, 1, 2, 1, 0},
        {"selp.f32", "iiip", 2, 1, 2, 0, 0},
        {"selp.s64", "lllp", 1, 1, 2, 1, 0},
        {"testp.finite.f32", "pi", 0, F(INFINITY), 0, 0, 0},
        {"testp.subnormal.f32", "pi", 1, TINY, 0, 0, 0},
        {"testp.notanumber.f64", "pl", 1, D(NAN), 0, 0, 0},
        {"testp.normal.f64", "pl", 1, D(1), 0, 0, 0},
        {"isspacep.global", "pl", 1, 0x1000, 0, 0, 0},
        {"isspacep.shared", "pl", 0, 0x1000, 0, 0, 0},
        {"cvta.shared.u64", "ll", (UINT64_C(1) << 60) + 16, 16, 0, 0, 0},
        {"cvta.to.shared.u64", "ll", 16, (UINT64_C(1) << 60) + 16, 0, 0, 0},
    };
    EXPECT_ALL(cases);
}

/* What is not a computation of a lane by itself has tests of its own, in test_sim_exec.c. */
static const char *const elsewhere[] = {
    "mov_128", "mov_clock", "local_address", "mov_pack", "mov_unpack", "widen_u", "widen_s",
    "narrow", "selp_pred", "ld", "ldu", "st", "ld_param", "atom", "red", "cp_async", "nothing",
    "shfl", "vote", "match", "redux", "elect", "activemask", "warp_sync", "barrier",
    "barrier_arrive", "barrier_red", "bra", "brx", "call", "ret", "exit", "trap", "brkpt",
    "nanosleep",
};

static void test_every_row_has_a_case(void **state) {
    (void)state;
    char missing[2048] = "";
    for (int row = 0; row < ROW_COUNT; row++) {
        bool known = case_covered[row] || sim_rows[row].family == FAMILY_CARRY;
        for (size_t i = 0; i < sizeof elsewhere / sizeof elsewhere[0]; i++)
            known |= !strcmp(sim_rows[row].id, elsewhere[i]);
        if (!known && strlen(missing) < 1900)
            sprintf(missing + strlen(missing), " %s", sim_rows[row].id);
    }
    if (*missing)
        fail_msg("rows without a case:%s", missing);
}

static int with_isa(void **state) {
    setenv("CUTEGEN_SIM_ISA", *(const char **)*state, 1);
    return 0;
}

#define ON(test, isa) {#test " on " #isa, test, with_isa, NULL, (void *)(uintptr_t)&isa}

int main(void) {
    static const char *avx512 = "avx512", *avx2 = "avx2", *base = "base";
    (void)double_of;
#define ON_EACH(test) ON(test, avx512), ON(test, avx2), ON(test, base)
    const struct CMUnitTest tests[] = {
        ON_EACH(test_integer_arithmetic),
        ON_EACH(test_bits_and_shifts),
        ON_EACH(test_comparisons),
        ON_EACH(test_float_comparisons_with_nan),
        ON_EACH(test_set_gives_ones_or_one),
        ON_EACH(test_float_arithmetic),
        ON_EACH(test_directed_rounding_of_doubles_and_denormals),
        ON_EACH(test_approximations_stay_within_the_stated_error),
        ON_EACH(test_half_precision),
        ON_EACH(test_half_fma_rounds_once),
        ON_EACH(test_conversions_between_integers),
        ON_EACH(test_conversions_from_float_round_and_clamp),
        ON_EACH(test_conversions_to_float),
        ON_EACH(test_moves_selects_and_predicates),
        cmocka_unit_test(test_every_row_has_a_case),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
