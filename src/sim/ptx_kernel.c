/* ptx_kernel.c - modules and kernels as the runtime API asks for them.
 *
 * A kernel is decoded when it is first asked for, and kept; several host threads may ask at once.
 */
#include "sim/exec.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_SOURCE_BYTES ((size_t)256 << 20)

static pthread_mutex_t decode_lock = PTHREAD_MUTEX_INITIALIZER;

uint64_t variable_place(PtxModule *module, PtxVariable *variable);

PtxModule *ptx_module_load(const char *text, size_t bytes, char message[512]) {
    message[0] = 0;
    if (bytes > MAX_SOURCE_BYTES) {
        snprintf(message, 512, "the PTX is larger than 256 MiB");
        return NULL;
    }
    while (bytes && !text[bytes - 1]) // padding of fat binaries
        bytes--;
    PtxModule *module = calloc(1, sizeof *module);
    if (!module) abort();
    module->arena = ptx_arena_new();
    module->source = ptx_text(module->arena, text, bytes);
    module->source_bytes = bytes;
    if (ptx_parse(module, message)) return module;
    ptx_module_free(module);
    return NULL;
}

void ptx_module_free(PtxModule *module) {
    if (!module) return;
    for (PtxFunction *f = module->functions; f; f = f->next) {
        code_free(f->code);
        free(f->failure);
        free(f->registers);
        free(f->statements);
        free(f->labels);
        free(f->scope_parents);
        free(f->locs);
    }
    for (PtxVariable *v = module->variables; v; v = v->next)
        if (v->placed) memory_free((void *)(uintptr_t)v->address);
    free(module->names);
    ptx_arena_free(module->arena);
    free(module);
}

PtxKernel *ptx_kernel(PtxModule *module, const char *name, char message[512]) {
    message[0] = 0;
    PtxFunction *f = ptx_find_function(module, name);
    if (!f || !f->is_entry || !f->has_body) return NULL;
    pthread_mutex_lock(&decode_lock);
    if (!f->code && !f->failure) {
        f->code = decode_function(module, f, message);
        if (!f->code) f->failure = strdup(message);
    }
    if (!f->code) snprintf(message, 512, "%s", f->failure ? f->failure : "out of memory");
    pthread_mutex_unlock(&decode_lock);
    return f->code;
}

const ParamLayout *ptx_kernel_params(const PtxKernel *kernel) {
    return &((const Code *)kernel)->params;
}
uint32_t ptx_kernel_static_shared(const PtxKernel *kernel) {
    return ((const Code *)kernel)->static_shared;
}
uint32_t ptx_kernel_max_threads(const PtxKernel *kernel) {
    return ((const Code *)kernel)->function->max_threads;
}
uint32_t ptx_kernel_local_bytes(const PtxKernel *kernel) {
    return ((const Code *)kernel)->stack_bytes;
}

bool ptx_variable(PtxModule *module, const char *name, uint64_t *address, uint64_t *bytes) {
    PtxVariable *v = ptx_find_variable(module, name);
    if (!v || (v->space != SPACE_GLOBAL && v->space != SPACE_CONST)) return false;
    *address = variable_place(module, v);
    *bytes = v->bytes;
    return *address != 0;
}
