/* operands.c - the operands of a case: values at which instructions differ from each other and
 * implementations from the standard, then random ones.
 *
 * Kinds: h i l integers of 16, 32, 64 bits; b g halves (f16, bf16); B G pairs of them; f d floats;
 * p a predicate; c a carry (0 or 1); s a lane's number and a little more; k the clamp and segment
 * operand of shfl; v V predicates that are alike in many a warp or block; n N few different
 * values in a warp, 32 or 64 bits; q four bytes.
 */
#include "golden/golden.h"
#include <string.h>

// clang-format off
static const uint64_t ints16[] = {
    0, 1, 2, 3, 7, 8, 15, 16, 17, 31, 32, 33, 63, 64, 100, 127, 128, 129, 255, 256, 257, 0x1234,
    0x3fff, 0x4000, 0x5555, 0x7f80, 0x7ffe, 0x7fff, 0x8000, 0x8001, 0x80ff, 0xaaaa, 0xff00,
    0xff7f, 0xff80, 0xff81, 0xfffd, 0xfffe, 0xffff, 0x00ff,
};
static const uint64_t ints32[] = {
    0, 1, 2, 3, 7, 8, 15, 16, 24, 31, 32, 33, 63, 64, 65, 127, 128, 255, 256, 0x7fff, 0x8000,
    0xffff, 0x10000, 0x7fffff, 0x800000, 0xffffff, 0x1000000, 0x12345678, 0x55555555,
    0x7ffffffe, 0x7fffffff, 0x80000000, 0x80000001, 0xaaaaaaaa, 0xff000000, 0xffff0000,
    0xffff8000, 0xffffff80, 0xfffffffe, 0xffffffff, 0x1000001, 0xffffff7f, 0x80808080,
    0x7f7f7f7f, 0x01010101, 0xfeffffff, 0x8040c0e1, 0x00ff00ff, 0xffffff00, 0x7fffff80,
};
static const uint64_t ints64[] = {
    0, 1, 2, 3, 7, 31, 32, 63, 64, 65, 127, 128, 255, 0x7fff, 0xffff, 0x10000, 0xffffff,
    0x1000001, 0x7fffffff, 0x80000000, 0xffffffff, 0x100000000, 0x100000001, 0x1fffffffffffff,
    0x20000000000000, 0x20000000000001, 0x5555555555555555, 0x7fffff8000000000,
    0x7fffffffffffffff, 0x8000000000000000, 0x8000000000000001, 0x123456789abcdef0,
    0xaaaaaaaaaaaaaaaa, 0xffffffff00000000, 0xffffffff7fffffff, 0xffffffff80000000,
    0xffffffffffff8000, 0xffffffffffffff80, 0xfffffffffffffffe, 0xffffffffffffffff,
    0x7ffffffffffffdff, 0x7ffffffffffffe00, 0x7fffffbfffffffff, 0x7fffffc000000000,
    0xfffffffffffff800, 0xfffffffffffffbff, 0xffffff7fffffffff, 0xffffff8000000000,
    0x8000000000000400, 0x8000008000000000,
};
static const uint64_t floats32[] = {
    0x00000000, 0x80000000, 0x00000001, 0x80000001, 0x007fffff, 0x807fffff, 0x00800000,
    0x80800000, 0x00800001, 0x3f800000, 0xbf800000, 0x3f800001, 0xbf7fffff, 0x40000000,
    0x3f000000, 0xbf000000, 0x3fc00000, 0x40200000, 0x40400000, 0x7f7fffff, 0xff7fffff,
    0x7f800000, 0xff800000, 0x7fc00000, 0xffc00000, 0x7f800001, 0xff812345, 0x7fffffff,
    0x4b000001, 0x4b800000, 0x4b800001, 0x33800000, 0x34000000, 0x4f000000, 0xcf000000,
    0x7f000000, 0x7e800000, 0x00400000, 0x3f7ffffe, 0x7fd23456,
    // a unary instruction sees these as well: around the limits of integers, halves, periods
    0x3effffff, 0x3f000001, 0xbf000001, 0xbf800001, 0x3fbfffff, 0xc0200000, 0xc0600000,
    0x42fe0000, 0x42ff0000, 0x42ff0001, 0x43000000, 0xc3000000, 0xc3008000, 0xc3010000,
    0x437f0000, 0x437f8000, 0x437f7fff, 0x43800000, 0x46fffe00, 0x46ffff00, 0x47000000,
    0xc7000000, 0xc7000100, 0x477fff00, 0x477fff80, 0x47800000, 0x4afffffd, 0x4affffff,
    0x4effffff, 0x4f7fffff, 0x4f800000, 0xcf000001, 0x5effffff, 0x5f000000, 0xdf000000,
    0xdf000001, 0x5f7fffff, 0x5f800000, 0x5f800001, 0x7149f2ca, 0x33000000, 0x33000001,
    0x33800001, 0x337fffff, 0x33c00000, 0x38800000, 0x387fffff, 0x387fe000, 0x387ff000,
    0x477fe000, 0x477fefff, 0x477ff000, 0x3f801000, 0x3f803000, 0x3f800fff, 0x3f808000,
    0x3f818000, 0x3f807fff, 0x3f802000, 0x7f7f8000, 0x7f7f7fff, 0x00008000, 0x00018000,
    0x00007fff, 0x3fc90fdb, 0x40490fdb, 0x40c90fdb, 0xc0490fdb, 0x4016cbe4, 0x43480000,
    0x44800000, 0x4e000000, 0xc2fc0000, 0xc2fe0000, 0xc3150000, 0xc3160000, 0xc2fbffff,
    0x42ffffff, 0x43e00000, 0x43dfffff, 0x43e80000, 0x43e80001, 0x43f00000, 0x47600000,
    0x47700000, 0x476fffff, 0x3c800000, 0x3b000000, 0x3a800000, 0x37800000, 0x37000000,
    0x36800000, 0x7fffe000, 0x7f801000, 0x3f7fffff, 0xc1200000,
};
static const uint64_t floats64[] = {
    0x0000000000000000, 0x8000000000000000, 0x0000000000000001, 0x8000000000000001,
    0x000fffffffffffff, 0x0010000000000000, 0x8010000000000000, 0x3ff0000000000000,
    0xbff0000000000000, 0x3ff0000000000001, 0xbfefffffffffffff, 0x4000000000000000,
    0x3fe0000000000000, 0xbfe0000000000000, 0x3ff8000000000000, 0x4004000000000000,
    0x4008000000000000, 0x7fefffffffffffff, 0xffefffffffffffff, 0x7ff0000000000000,
    0xfff0000000000000, 0x7ff8000000000000, 0xfff8000000000000, 0x7ff0000000000001,
    0xfff0123456789abc, 0x7fffffffffffffff, 0x4340000000000000, 0x4340000000000001,
    0x3ca0000000000000, 0x3cb0000000000000, 0x47efffffe0000000, 0x47effffff0000000,
    0x36a0000000000000, 0x3690000000000000, 0x7fe0000000000000, 0x0008000000000000,
    0xc024000000000000, 0x7ff8123456789abc, 0x41dfffffffc00000, 0x43e0000000000000,
    0x3fdfffffffffffff, 0x3fe0000000000001, 0xbff8000000000000, 0xc004000000000000,
    0x405fc00000000000, 0x405fe00000000000, 0x4060000000000000, 0xc060000000000000,
    0xc060100000000000, 0x406fe00000000000, 0x406ff00000000000, 0x4070000000000000,
    0x40dfffc000000000, 0x40dfffe000000000, 0xc0e0000000000000, 0xc0e0002000000000,
    0x40efffe000000000, 0x40effff000000000, 0x41dfffffffe00000, 0x41e0000000000000,
    0xc1e0000000000000, 0xc1e0000000200000, 0x41efffffffe00000, 0x41effffffff00000,
    0x41f0000000000000, 0x43dfffffffffffff, 0xc3e0000000000000, 0xc3e0000000000001,
    0x43efffffffffffff, 0x43f0000000000000, 0x432fffffffffffff, 0x3ff0000010000000,
    0x3ff0000030000000, 0x3ff000000fffffff, 0x3ff0000010000001, 0x380fffffe0000000,
    0x3810000000000000, 0x380ffffff0000000, 0x47efffffefffffff, 0x40effdffffffffff,
    0x40effe0000000000, 0x3ff0020000000000, 0x3ff0060000000000, 0x3ff0100000000000,
    0x3ff0300000000000, 0x3e60000000000000, 0x3e60000000000001, 0x3e70000000000000,
};
static const uint64_t halves[] = {
    0x0000, 0x8000, 0x0001, 0x8001, 0x0002, 0x03ff, 0x83ff, 0x0400, 0x8400, 0x0401, 0x3c00,
    0xbc00, 0x3c01, 0xbbff, 0x4000, 0x3800, 0xb800, 0x3e00, 0x4100, 0x4200, 0x7bff, 0xfbff,
    0x7c00, 0xfc00, 0x7e00, 0xfe00, 0x7c01, 0xfd23, 0x7fff, 0xffff, 0x6400, 0x6401, 0x6800,
    0x1000, 0x1400, 0x77ff, 0x7800, 0x0200, 0xc900, 0x6bff, 0x3801, 0xc100, 0xc300, 0x57f0,
    0x57f8, 0x5800, 0xd800, 0xd808, 0x5bf8, 0x5bfc, 0x5c00, 0x37ff,
};
static const uint64_t bfloats[] = {
    0x0000, 0x8000, 0x0001, 0x8001, 0x0002, 0x007f, 0x807f, 0x0080, 0x8080, 0x0081, 0x3f80,
    0xbf80, 0x3f81, 0xbf7f, 0x4000, 0x3f00, 0xbf00, 0x3fc0, 0x4020, 0x4040, 0x7f7f, 0xff7f,
    0x7f80, 0xff80, 0x7fc0, 0xffc0, 0x7f81, 0xffa3, 0x7fff, 0xffff, 0x4300, 0x4301, 0x4380,
    0x3b00, 0x3b80, 0x7eff, 0x7f00, 0x0040, 0xc120, 0x4f80, 0x3f01, 0xc020, 0xc060, 0x42fe,
    0x42ff, 0x4300, 0xc300, 0xc301, 0x437f, 0x4380, 0x4eff, 0x5f00, 0x3eff, 0x477f, 0x4780,
    0x4700, 0xc700, 0x5f80, 0xdf00, 0xcf00,
};
// clang-format on

/* splitmix64 */
static uint64_t draw(uint64_t *state) {
    uint64_t z = *state += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}

/* A number near one whose last bits are often zero: sums cancel, products tie. */
static uint64_t near_one(uint64_t *state, int exponent_bits, int mantissa_bits, int spread) {
    uint64_t r = draw(state);
    int64_t bias = (1 << (exponent_bits - 1)) - 1;
    uint64_t exponent = (uint64_t)(bias + (int64_t)(r % (uint64_t)(2 * spread + 1)) - spread);
    uint64_t mantissa = draw(state) & ((UINT64_C(1) << mantissa_bits) - 1);
    uint64_t cut = (r >> 32) % (uint64_t)(mantissa_bits + 1);
    mantissa = mantissa >> cut << cut;
    return (r >> 62 & 1) << (exponent_bits + mantissa_bits) | exponent << mantissa_bits | mantissa;
}

static uint64_t of_any_size(uint64_t *state, int bits) {
    uint64_t r = draw(state);
    uint64_t value = draw(state) >> (64 - bits) >> r % (uint64_t)bits;
    return r >> 63 ? 0 - value : value;
}

typedef struct {
    const uint64_t *values;
    uint32_t count;
} Edges;
#define EDGES(table)                                                                               \
    (Edges) {                                                                                      \
        table, sizeof(table) / sizeof *(table)                                                     \
    }

static Edges edges_of(char kind) {
    switch (kind) {
    case 'h':
        return EDGES(ints16);
    case 'i':
    case 'n':
    case 'q':
        return EDGES(ints32);
    case 'l':
    case 'N':
        return EDGES(ints64);
    case 'f':
        return EDGES(floats32);
    case 'd':
        return EDGES(floats64);
    case 'b':
        return EDGES(halves);
    case 'g':
        return EDGES(bfloats);
    default:
        return (Edges){NULL, 0};
    }
}

static uint64_t shaped(uint64_t *state, char kind) {
    switch (kind) {
    case 'h':
        return of_any_size(state, 16);
    case 'i':
        return of_any_size(state, 32);
    case 'l':
        return of_any_size(state, 64);
    case 'f':
        return near_one(state, 8, 23, 14);
    case 'd':
        return near_one(state, 11, 52, 30);
    case 'b':
        return near_one(state, 5, 10, 7);
    case 'g':
        return near_one(state, 8, 7, 9);
    default:
        return draw(state);
    }
}

static uint64_t any_operand(uint64_t *state, char kind) {
    static const uint64_t segments[] = {0x1f, 0x1c1f, 0x181f, 0x101f, 0x1e1f,
                                        0,    0x0f,   0x1c03, 0x1f1f};
    uint64_t r = draw(state);
    Edges edges = edges_of(kind);
    switch (kind) {
    case 'p':
    case 'c':
        return r >> 40 & 1;
    case 's':
        return r & 1 ? r >> 32 & 31 : of_any_size(state, 32);
    case 'k':
        return r & 3 ? segments[(r >> 32) % (sizeof segments / sizeof *segments)] : r >> 51;
    case 'B':
    case 'G': {
        char half = kind == 'B' ? 'b' : 'g';
        uint64_t low = any_operand(state, half) & 0xffff;
        return (any_operand(state, half) & 0xffff) << 16 | low;
    }
    default:
        return r % 8 < 4 && edges.count ? edges.values[(r >> 32) % edges.count]
               : r % 8 < 7              ? shaped(state, kind)
                                        : draw(state);
    }
}

/* Lanes of a warp or block that are meant to agree, all or but one, or not. */
static void alike(uint64_t *state, uint64_t (*operands)[4], uint32_t lanes, int at,
                  uint32_t group) {
    for (uint32_t i = 0; i < lanes; i += group) {
        uint64_t pattern = i / group % 5, lone = draw(state) % group;
        for (uint32_t k = 0; k < group; k++)
            operands[i + k][at] = pattern == 0   ? 1
                                  : pattern == 1 ? 0
                                  : pattern == 2 ? k == lone
                                  : pattern == 3 ? k != lone
                                                 : draw(state) >> 40 & 1;
    }
}

static void few(uint64_t *state, uint64_t (*operands)[4], uint32_t lanes, int at, char kind) {
    Edges edges = edges_of(kind);
    for (uint32_t i = 0; i < lanes; i += 32) {
        uint64_t different = 1 + i / 32 % 5, values[5];
        for (uint64_t k = 0; k < different; k++)
            values[k] = edges.values[draw(state) % edges.count];
        for (uint32_t k = 0; k < 32; k++)
            operands[i + k][at] = values[draw(state) % different];
    }
}

void golden_operands(const GoldenCase *c, uint64_t (*operands)[4]) {
    uint64_t state = 0;
    size_t count = strlen(c->sources);
    for (const char *at = c->sources; *at; at++) // the same for all cases of a shape
        state = state * 131 + (unsigned char)*at;
    memset(operands, 0, c->lanes * sizeof *operands);
    for (uint32_t i = 0; i < c->lanes; i++)
        for (size_t k = 0; k < count; k++)
            operands[i][k] = any_operand(&state, c->sources[k]);
    Edges first = edges_of(c->sources[0]), second = edges_of(count > 1 ? c->sources[1] : 0);
    if (count == 1 && first.count)
        for (uint32_t i = 0; i < c->lanes; i++)
            operands[i][0] = i < first.count ? first.values[i]
                             : i % 2         ? shaped(&state, c->sources[0])
                                             : draw(&state);
    uint32_t across = first.count < 40 ? first.count : 40,
             down = second.count < 40 ? second.count : 40;
    if (count == 2)
        for (uint32_t i = 0; i < across * down && i < c->lanes; i++) {
            operands[i][0] = first.values[i / down];
            operands[i][1] = second.values[i % down];
        }
    for (size_t k = 0; k < count; k++) {
        if (c->sources[k] == 'v' || c->sources[k] == 'V')
            alike(&state, operands, c->lanes, (int)k, c->sources[k] == 'v' ? 32 : GOLDEN_BLOCK);
        if (c->sources[k] == 'n' || c->sources[k] == 'N')
            few(&state, operands, c->lanes, (int)k, c->sources[k]);
    }
}
