/* fuzz_ptx.c - libFuzzer target: hostile PTX is parsed, decoded and, if it gets that far, run.
 *
 *   ninja fuzz_ptx && ./fuzz_ptx -max_len=65536 CORPUS SEEDS
 */
#include "sim/ptx.h"
#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static void run(PtxModule *module, const char *name) {
    char message[512];
    PtxKernel *kernel = ptx_kernel(module, name, message);
    if (!kernel || ptx_kernel_static_shared(kernel) > (64u << 10) ||
        ptx_kernel_local_bytes(kernel) > (128u << 10))
        return;
    static const uint64_t params[512] = {0};
    SimOptions options = {.check_bounds = 1, .check_initialized = 1, .budget = 20000, .threads = 1};
    Launch launch = {.grid = {2, 1, 1}, .block = {40, 1, 1}, .dynamic_shared = 256,
                     .params = params, .param_bytes = ptx_kernel_params(kernel)->bytes,
                     .options = &options};
    if (launch.param_bytes <= sizeof params)
        exec_launch(kernel, &launch);
    SimReport report;
    sim_take_reports(&report, 1);
    counters_begin();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    char message[512];
    PtxModule *module = ptx_module_load((const char *)data, bytes, message);
    for (PtxFunction *f = module ? module->functions : NULL; f; f = f->next)
        if (f->is_entry)
            run(module, f->name);
    ptx_module_free(module);
    return 0;
}
