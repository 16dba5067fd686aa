#include "support/sim_ptx.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

char *ptx_around(const char *body) {
    static const char head[] = ".version 9.0\n.target sm_90a\n.address_size 64\n"
                               ".visible .entry k(.param .u64 p)\n{\n"
                               ".reg .pred %p<20>;\n.reg .b16 %h<40>;\n.reg .b32 %r<100>;\n"
                               ".reg .b64 %l<60>;\n";
    char *text = NULL;
    if (asprintf(&text, "%s%s\nret;\n}\n", head, body) < 0)
        abort();
    return text;
}

PtxRun ptx_run(const char *text, const char *name, const PtxLaunch *launch) {
    PtxRun run = {.status = EXEC_UNSUPPORTED};
    PtxModule *module = ptx_module_load(text, strlen(text), run.message);
    PtxKernel *kernel = module ? ptx_kernel(module, name, run.message) : NULL;
    if (kernel) {
        Launch l = {.dynamic_shared = launch->dynamic_shared, .params = launch->params,
                    .param_bytes = launch->param_bytes, .cooperative = launch->cooperative,
                    .options = &launch->options};
        for (int i = 0; i < 3; i++) {
            l.grid[i] = launch->grid[i] ? launch->grid[i] : 1;
            l.block[i] = launch->block[i] ? launch->block[i] : 1;
        }
        run.status = exec_launch(kernel, &l);
    }
    ptx_module_free(module);
    run.report_count = sim_take_reports(run.reports, sizeof run.reports / sizeof *run.reports);
    return run;
}

void *device_copy(const void *data, size_t bytes, const char *name) {
    void *memory = memory_allocate(bytes, name);
    if (!memory)
        abort();
    if (data)
        memcpy(memory, data, bytes);
    else
        memset(memory, 0, bytes);
    memory_mark((uint64_t)(uintptr_t)memory, bytes, true);
    return memory;
}
