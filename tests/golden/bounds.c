/* bounds.c - the error bounds that the PTX ISA states, and the functions they are about. */
#include "golden/bounds.h"
#include <math.h>
#include <string.h>

static double quotient(double a, double b) {
    return a / b;
}
static double reciprocal(double a, double b) {
    return (void)b, 1 / a;
}
static double root(double a, double b) {
    return (void)b, sqrt(a);
}
static double inverse_root(double a, double b) {
    return (void)b, 1 / sqrt(a);
}
static double power_of_two(double a, double b) {
    return (void)b, exp2(a);
}
static double logarithm(double a, double b) {
    return (void)b, log2(a);
}
static double sine(double a, double b) {
    return (void)b, sin(a);
}
static double cosine(double a, double b) {
    return (void)b, cos(a);
}
static double hyperbolic(double a, double b) {
    return (void)b, tanh(a);
}

typedef struct {
    const char *prefix, *type;
    double (*truth)(double, double);
    double relative, absolute, ulps; // the largest of what they allow
    double range;                    // beyond it nothing is promised; 0: everywhere
} Bound;

/* The first that fits. A last place of the format is allowed to small halves too. */
static const Bound bounds[] = {
    {"div.", "f32", quotient, 0, 0, 2, 0},
    {"rcp.approx.ftz", "f64", reciprocal, 0x1p-20, 0, 0, 0},
    {"rcp.", "f32", reciprocal, 0, 0, 1, 0},
    {"sqrt.", "f32", root, 0x1p-23, 0, 0, 0},
    {"rsqrt.approx.ftz", "f64", inverse_root, 0x1p-20, 0, 0, 0},
    {"rsqrt.", "f64", inverse_root, 0x1p-52, 0, 0, 0},
    {"rsqrt.", "f32", inverse_root, 0x1.126p-23, 0, 0, 0}, // 2^-22.9
    {"ex2.", "f16", power_of_two, 0x1.126p-10, 0, 1, 0},   // 2^-9.9
    {"ex2.", "bf16", power_of_two, 0x1p-7, 0, 1, 0},
    {"ex2.", "f32", power_of_two, 0, 0, 2, 0},
    {"lg2.", "f32", logarithm, 0x1p-22, 0x1p-22, 0, 0},  // absolute between 0.5 and 2
    {"sin.", "f32", sine, 0, 0x1.6a1p-21, 0, 6.2831855}, // 2^-20.5
    {"cos.", "f32", cosine, 0, 0x1.6a1p-21, 0, 6.2831855},
    {"tanh.", "f16", hyperbolic, 0, 0x1.025p-11, 0, 0}, // 2^-10.987
    {"tanh.", "bf16", hyperbolic, 0, 0x1p-8, 0, 0},
    {"tanh.", "f32", hyperbolic, 0x1p-11, 0, 0, 0},
};

typedef struct {
    int exponent_bits, mantissa_bits;
} Format;

static double value_of(uint64_t bits, Format f) {
    uint64_t mantissa = bits & ((UINT64_C(1) << f.mantissa_bits) - 1);
    int exponent = (int)(bits >> f.mantissa_bits & ((1u << f.exponent_bits) - 1));
    int bias = (1 << (f.exponent_bits - 1)) - 1;
    bool negative = bits >> (f.exponent_bits + f.mantissa_bits) & 1;
    double size = exponent == 2 * bias + 1
                      ? (mantissa ? NAN : INFINITY)
                      : ldexp((double)(mantissa | (exponent ? UINT64_C(1) << f.mantissa_bits : 0)),
                              (exponent ? exponent : 1) - bias - f.mantissa_bits);
    return negative ? -size : size;
}

static double smallest_normal(Format f) {
    return ldexp(1, 2 - (1 << (f.exponent_bits - 1)));
}

static double last_place(double x, Format f) {
    double size = fabs(x) < smallest_normal(f) ? smallest_normal(f) : fabs(x);
    return ldexp(1, ilogb(size) - f.mantissa_bits);
}

static bool is_near(const Bound *bound, const char *name, Format f, double a, double b,
                    uint64_t result_bits, uint64_t gpu_bits) {
    bool flushes = strstr(name, ".ftz");
    double tiny = smallest_normal(f);
    if (flushes && fabs(a) < tiny) a = copysign(0, a);
    if (flushes && fabs(b) < tiny) b = copysign(0, b);
    double result = value_of(result_bits, f), gpu = value_of(gpu_bits, f);
    double truth = bound->truth(a, b);
    if (result_bits == gpu_bits && isnan(truth)) return isnan(result);
    if (isnan(truth) || isnan(result) || isnan(gpu)) return result_bits == gpu_bits;
    if (!strncmp(name, "div.approx", 10) && fabs(b) > 0x1p126)
        return result_bits == gpu_bits && result == 0; // flushed, says the ISA
    if (bound->range && fabs(a) > bound->range) return fabs(result) <= 1;
    double largest = ldexp(2 - ldexp(1, -f.mantissa_bits), (1 << (f.exponent_bits - 1)) - 1);
    if (fabs(truth) > largest) return signbit(result) == signbit(truth) && fabs(result) >= largest;
    if (truth == 0) return result_bits == gpu_bits && result == 0;
    double error = fabs(result - truth);
    double allowed = fmax(bound->relative * fabs(truth), bound->ulps * last_place(truth, f));
    bool middle = bound->absolute && bound->relative && (a <= 0.5 || a >= 2); // of lg2
    if (bound->absolute && !middle) allowed = fmax(allowed, bound->absolute);
    allowed = fmax(allowed, last_place(truth, f) * 0.5); // exact but for its rounding
    return error <= allowed || (flushes && fabs(truth) < tiny * (1 + 0x1p-6) && result == 0);
}

bool golden_within_bound(const GoldenCase *c, const uint64_t operands[4], const uint32_t *result,
                         const uint32_t *gpu) {
    static const struct {
        const char *type;
        Format format;
    } formats[] = {{"f32", {8, 23}}, {"f64", {11, 52}}, {"bf16", {8, 7}}, {"f16", {5, 10}}};
    const char *type = strrchr(c->name, '.') + 1;
    bool pair = strstr(type, "x2");
    size_t length = strlen(type) - (pair ? 2 : 0);
    Format f = {0};
    for (size_t i = 0; i < 4; i++)
        if (strlen(formats[i].type) == length && !strncmp(type, formats[i].type, length))
            f = formats[i].format;
    for (size_t i = 0; i < sizeof bounds / sizeof *bounds; i++) {
        const Bound *bound = &bounds[i];
        if (strncmp(c->name, bound->prefix, strlen(bound->prefix)) ||
            strncmp(type, bound->type, length) || strlen(bound->type) != length)
            continue;
        uint64_t a = operands[0];
        if (c->words == 2 && strstr(c->name, ".ftz"))
            a &= ~UINT64_C(0xffffffff); // these look at the upper half alone
        if (c->words == 2)
            return is_near(bound, c->name, f, value_of(a, f), value_of(operands[1], f),
                           (uint64_t)result[1] << 32 | result[0], (uint64_t)gpu[1] << 32 | gpu[0]);
        bool near = true;
        for (int shift = 0; shift < (pair ? 32 : 16); shift += 16) {
            uint32_t mask = f.mantissa_bits < 16 ? 0xffff : UINT32_MAX;
            near &= is_near(bound, c->name, f, value_of(operands[0] >> shift & mask, f),
                            value_of(operands[1] >> shift & mask, f), result[0] >> shift & mask,
                            gpu[0] >> shift & mask);
        }
        return near;
    }
    return false; // an approximation without a bound
}
