/* exec_handlers.c - picks the build of the lane loops that suits this machine.
 *
 * $CUTEGEN_SIM_ISA (base, avx2, avx512) asks for a lower one, to compare them: all give the same
 * bits.
 */
#include "sim/exec.h"
#include <stdlib.h>
#include <string.h>

extern const RunFn sim_handlers_base[];
#ifdef SIM_HAS_X86
extern const RunFn sim_handlers_avx2[], sim_handlers_avx512[];

static bool allowed(const char *isa) {
    const char *asked = getenv("CUTEGEN_SIM_ISA");
    if (!asked || !*asked || !strcmp(asked, "avx512")) return true;
    return !strcmp(asked, "avx2") && !strcmp(isa, "avx2");
}

const RunFn *exec_handlers(void) {
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("fma") && allowed("avx512"))
        return sim_handlers_avx512;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
        __builtin_cpu_supports("bmi2") && allowed("avx2"))
        return sim_handlers_avx2;
    return sim_handlers_base;
}
#else
const RunFn *exec_handlers(void) {
    return sim_handlers_base;
}
#endif
