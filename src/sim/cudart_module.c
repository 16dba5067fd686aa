/* cudart_module.c - from a host stub's address to a kernel that can be executed.
 *
 * Static constructors of an object register its fat binary, then every kernel and variable in it
 * by the address of a host-side stand-in. Nothing is parsed until a program asks for one: most
 * objects carry more than they use, and what cannot be executed matters only if it is launched.
 */
#include "sim/cudart.h"
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct Variable {
    struct Variable *next;
    Module *module;
    const void *host;       // the stand-in; NULL for a library's variable
    void **managed_pointer; // where a managed variable's address belongs, or NULL
    char *name;
} Variable;

struct Module {
    const void *wrapper; // NULL for a library
    char *owned;         // a library's own copy of its image
    const char *text;    // PTX
    size_t text_bytes;
    const uint8_t *cubin;
    size_t cubin_bytes;
    PtxModule *ptx;
    bool loaded; // tried
    cudaError_t problem;
    char message[512]; // why there is no ptx
    Function *functions;
    Variable *variables;
};

/* Guards the contents of modules, functions and variables. */
static pthread_mutex_t module_lock = PTHREAD_MUTEX_INITIALIZER;

void report_unsupported(const char *kernel, const char *message) {
    SimReport report = {.kind = SIM_UNSUPPORTED, .count = 1};
    snprintf(report.kernel, sizeof report.kernel, "%s", kernel);
    snprintf(report.message, sizeof report.message, "%s", message);
    report_add(&report);
}

/* ---- loading ------------------------------------------------------------------------------- */

static void module_load(Module *module) {
    if (module->loaded) return;
    module->loaded = true;
    if (module->wrapper) {
        if (!fatbin_find_ptx(module->wrapper, &module->text, &module->text_bytes,
                             module->message)) {
            module->problem = cudaErrorNoKernelImageForDevice;
            return;
        }
        fatbin_find_cubin(module->wrapper, &module->cubin, &module->cubin_bytes);
    }
    module->ptx = ptx_module_load(module->text, module->text_bytes, module->message);
    if (!module->ptx) module->problem = cudaErrorNotSupported;
}

static void function_load(Function *function) {
    Module *module = function->module;
    function->resolved = true;
    module_load(module);
    function->problem = module->problem;
    if (function->problem) {
        memcpy(function->message, module->message, sizeof function->message);
        return;
    }
    function->kernel = ptx_kernel(module->ptx, function->name, function->message);
    if (!function->kernel) {
        function->problem =
            function->message[0] ? cudaErrorNotSupported : cudaErrorInvalidDeviceFunction;
        return;
    }
    if (module->cubin)
        cubin_figures(module->cubin, module->cubin_bytes, function->name, &function->figures);
    function->static_shared = ptx_kernel_static_shared(function->kernel);
    function->max_threads = ptx_kernel_max_threads(function->kernel);
    function->local_bytes = function->figures.registers ? function->figures.stack_bytes
                                                        : ptx_kernel_local_bytes(function->kernel);
    function->max_dynamic_shared =
        function->static_shared < SHARED_PER_BLOCK ? SHARED_PER_BLOCK - function->static_shared : 0;
    function->carveout = -1;
}

/* Since CUDA 13 any handle of a kernel is taken where once a stub's address had to be given. */
#ifdef CUDART_12
#define UNKNOWN_FUNCTION cudaErrorInvalidDeviceFunction
#else
#define UNKNOWN_FUNCTION cudaErrorInvalidResourceHandle
#endif

cudaError_t function_resolve(const void *handle, Function **function) {
    Function *found = handle_find(handle, HANDLE_FUNCTION);
    if (!found) return UNKNOWN_FUNCTION;
    pthread_mutex_lock(&module_lock);
    if (!found->resolved) function_load(found);
    if (found->message[0]) report_unsupported(found->name, found->message);
    pthread_mutex_unlock(&module_lock);
    *function = found;
    return found->problem;
}

static cudaError_t module_variable(Module *module, const char *name, uint64_t *address,
                                   uint64_t *bytes) {
    pthread_mutex_lock(&module_lock);
    module_load(module);
    cudaError_t problem = module->problem;
    if (!problem && !ptx_variable(module->ptx, name, address, bytes))
        problem = cudaErrorInvalidSymbol;
    pthread_mutex_unlock(&module_lock);
    return problem;
}

cudaError_t variable_resolve(const void *symbol, uint64_t *address, uint64_t *bytes) {
    Variable *variable = handle_find(symbol, HANDLE_VARIABLE);
    if (!variable) return cudaErrorInvalidSymbol;
    return module_variable(variable->module, variable->name, address, bytes);
}

/* ---- making and dropping modules ------------------------------------------------------------- */

static Module *module_new(void) {
    Module *module = calloc(1, sizeof *module);
    if (module && !handle_add(module, HANDLE_MODULE, module)) {
        free(module);
        return NULL;
    }
    return module;
}

static void module_free(Module *module) {
    handle_remove(module, HANDLE_MODULE);
    while (module->functions) {
        Function *f = module->functions;
        module->functions = f->next;
        handle_remove(f, HANDLE_FUNCTION);
        if (f->stub && handle_find(f->stub, HANDLE_FUNCTION) == f)
            handle_remove(f->stub, HANDLE_FUNCTION);
        free(f->name);
        free(f);
    }
    while (module->variables) {
        Variable *v = module->variables;
        module->variables = v->next;
        if (handle_find(v->host, HANDLE_VARIABLE) == v) handle_remove(v->host, HANDLE_VARIABLE);
        free(v->name);
        free(v);
    }
    if (module->ptx) ptx_module_free(module->ptx);
    free(module->owned);
    free(module);
}

static Function *module_add_function(Module *module, const void *stub, const char *name) {
    Function *f = calloc(1, sizeof *f);
    char *copy = strdup(name);
    if (!f || !copy || !handle_add(f, HANDLE_FUNCTION, f)) {
        free(f);
        free(copy);
        return NULL;
    }
    f->module = module;
    f->stub = stub;
    f->name = copy;
    pthread_mutex_lock(&module_lock);
    f->next = module->functions;
    module->functions = f;
    pthread_mutex_unlock(&module_lock);
    if (stub) // a template's stub may be registered by several objects: the first one counts
        handle_add(stub, HANDLE_FUNCTION, f);
    return f;
}

static void module_add_variable(Module *module, const void *host, void **managed_pointer,
                                const char *name) {
    Variable *v = calloc(1, sizeof *v);
    char *copy = strdup(name);
    if (!v || !copy) {
        free(v);
        free(copy);
        return;
    }
    *v = (Variable){
        .module = module, .host = host, .managed_pointer = managed_pointer, .name = copy};
    pthread_mutex_lock(&module_lock);
    v->next = module->variables;
    module->variables = v;
    pthread_mutex_unlock(&module_lock);
    handle_add(host, HANDLE_VARIABLE, v);
}

/* ---- registration, called by nvcc's static constructors
 * ------------------------------------------ */

SIM_EXPORT void **__cudaRegisterFatBinary(void *wrapper) {
    Module *module = module_new();
    if (module) module->wrapper = wrapper;
    return (void **)module;
}

SIM_EXPORT void __cudaRegisterFatBinaryEnd(void **handle) {
    (void)handle;
}

SIM_EXPORT void __cudaUnregisterFatBinary(void **handle) {
    Module *module = handle_find(handle, HANDLE_MODULE);
    if (module) module_free(module);
}

SIM_EXPORT void __cudaRegisterFunction(void **handle, const char *stub, char *device_stub,
                                       const char *name, int thread_limit, void *tid, void *bid,
                                       void *block, void *grid, int *warp) {
    (void)device_stub, (void)thread_limit, (void)tid, (void)bid, (void)block, (void)grid,
        (void)warp;
    Module *module = handle_find(handle, HANDLE_MODULE);
    if (module && stub && name) module_add_function(module, stub, name);
}

SIM_EXPORT void __cudaRegisterVar(void **handle, char *host, char *device_address, const char *name,
                                  int ext, size_t bytes, int constant, int global) {
    (void)device_address, (void)ext, (void)bytes, (void)constant, (void)global;
    Module *module = handle_find(handle, HANDLE_MODULE);
    if (module && host && name) module_add_variable(module, host, NULL, name);
}

/* Host code reads and writes a managed variable through a pointer that is set before main. */
SIM_EXPORT void __cudaRegisterManagedVar(void **handle, void **host, char *device_address,
                                         const char *name, int ext, size_t bytes, int constant,
                                         int global) {
    (void)device_address, (void)ext, (void)bytes, (void)constant, (void)global;
    Module *module = handle_find(handle, HANDLE_MODULE);
    if (module && host && name) module_add_variable(module, host, host, name);
}

SIM_EXPORT char __cudaInitModule(void **handle) {
    Module *module = handle_find(handle, HANDLE_MODULE);
    if (!module) return 0;
    for (Variable *v = module->variables; v; v = v->next) {
        uint64_t address, bytes;
        if (v->managed_pointer && !module_variable(module, v->name, &address, &bytes)) {
            memory_untrack(address);
            *v->managed_pointer = (void *)address;
        }
    }
    return 1;
}

SIM_EXPORT cudaError_t __cudaGetKernel(void **kernel, const void *stub) {
    Function *function = handle_find(stub, HANDLE_FUNCTION);
    if (!kernel) return error_set(cudaErrorInvalidValue);
    *kernel = function;
    return function ? cudaSuccess : error_set(cudaErrorInvalidDeviceFunction);
}

/* ---- kernels and symbols
 * -------------------------------------------------------------------------- */

SIM_EXPORT cudaError_t cudaGetKernel(void **kernel, const void *stub) {
    return __cudaGetKernel(kernel, stub);
}

SIM_EXPORT cudaError_t cudaGetFuncBySymbol(void **function, const void *stub) {
    return __cudaGetKernel(function, stub);
}

SIM_EXPORT cudaError_t cudaFuncGetName(const char **name, const void *handle) {
    Function *function = handle_find(handle, HANDLE_FUNCTION);
    if (!name) return error_set(cudaErrorInvalidValue);
    if (!function) return error_set(cudaErrorInvalidDeviceFunction);
    *name = function->name;
    return cudaSuccess;
}

SIM_EXPORT cudaError_t cudaGetSymbolAddress(void **address, const void *symbol) {
    RETURN_IF_LOST();
    uint64_t base, bytes;
    if (!address) return error_set(cudaErrorInvalidValue);
    cudaError_t error = variable_resolve(symbol, &base, &bytes);
    if (!error) *address = (void *)base;
    return error_set(error);
}

SIM_EXPORT cudaError_t cudaGetSymbolSize(size_t *size, const void *symbol) {
    RETURN_IF_LOST();
    uint64_t base, bytes;
    if (!size) return error_set(cudaErrorInvalidValue);
    cudaError_t error = variable_resolve(symbol, &base, &bytes);
    if (!error) *size = bytes;
    return error_set(error);
}

/* ---- libraries
 * --------------------------------------------------------------------------------------- */

/* Takes `image`, a copy of `bytes` bytes and a final 0. */
static cudaError_t library_load(void **library, char *image, size_t bytes) {
    Module *module = module_new();
    if (!module) {
        free(image);
        return cudaErrorMemoryAllocation;
    }
    module->owned = image;
    if (bytes >= 4 && fatbin_is_container(image)) {
        if (!fatbin_container_ptx(image, bytes, &module->text, &module->text_bytes,
                                  module->message)) {
            module->loaded = true;
            module->problem = cudaErrorNoKernelImageForDevice;
        } else {
            fatbin_container_cubin(image, bytes, &module->cubin, &module->cubin_bytes);
        }
    } else if (bytes >= 4 && !memcmp(image, "\177ELF", 4)) {
        module->loaded = true;
        module->problem = cudaErrorNotSupported;
        snprintf(module->message, sizeof module->message,
                 "a library of machine code alone was loaded: only PTX can be executed");
    } else {
        module->text = image;
        module->text_bytes = strlen(image);
    }
    pthread_mutex_lock(&module_lock);
    module_load(module);
    pthread_mutex_unlock(&module_lock);
    cudaError_t problem = module->problem;
    if (problem) {
        report_unsupported("", module->message);
        module_free(module);
        return problem;
    }
    if (!handle_add(module, HANDLE_LIBRARY, module)) {
        module_free(module);
        return cudaErrorMemoryAllocation;
    }
    *library = module;
    return cudaSuccess;
}

/* The image's length is what its own header says; text ends with 0. */
static size_t image_bytes(const uint8_t *image) {
    uint32_t magic;
    memcpy(&magic, image, sizeof magic);
    if (fatbin_is_container(image)) {
        uint16_t header;
        uint64_t bytes;
        memcpy(&header, image + 6, sizeof header);
        memcpy(&bytes, image + 8, sizeof bytes);
        return bytes > WIRE_MAX_PAYLOAD ? SIZE_MAX : header + bytes;
    }
    return memcmp(image, "\177ELF", 4) ? strlen((const char *)image) : 4;
}

SIM_EXPORT cudaError_t cudaLibraryLoadData(void **library, const void *code, int *jit_options,
                                           void **jit_values, unsigned jit_count,
                                           int *library_options, void **library_values,
                                           unsigned library_count) {
    (void)jit_options, (void)jit_values, (void)jit_count;
    (void)library_options, (void)library_values, (void)library_count;
    RETURN_IF_LOST();
    if (!library || !code) return error_set(cudaErrorInvalidValue);
    size_t bytes = image_bytes(code);
    if (bytes > WIRE_MAX_PAYLOAD) return error_set(cudaErrorInvalidKernelImage);
    char *copy = malloc(bytes + 1);
    if (!copy) return error_set(cudaErrorMemoryAllocation);
    memcpy(copy, code, bytes);
    copy[bytes] = 0;
    return error_set(library_load(library, copy, bytes));
}

SIM_EXPORT cudaError_t cudaLibraryLoadFromFile(void **library, const char *path, int *jit_options,
                                               void **jit_values, unsigned jit_count,
                                               int *library_options, void **library_values,
                                               unsigned library_count) {
    (void)jit_options, (void)jit_values, (void)jit_count;
    (void)library_options, (void)library_values, (void)library_count;
    RETURN_IF_LOST();
    if (!library || !path) return error_set(cudaErrorInvalidValue);
    FILE *file = fopen(path, "rbe");
    if (!file) return error_set(cudaErrorFileNotFound);
    char *image = NULL;
    size_t bytes = 0, got;
    do {
        char *grown = realloc(image, bytes + 65536 + 1);
        if (!grown) {
            free(image);
            fclose(file);
            return error_set(cudaErrorMemoryAllocation);
        }
        image = grown;
        got = fread(image + bytes, 1, 65536, file);
        bytes += got;
    } while (got && bytes <= WIRE_MAX_PAYLOAD);
    fclose(file);
    image[bytes] = 0;
    return error_set(library_load(library, image, bytes));
}

SIM_EXPORT cudaError_t cudaLibraryUnload(void *library) {
    RETURN_IF_LOST();
    Module *module = handle_find(library, HANDLE_LIBRARY);
    if (!module) return error_set(cudaErrorInvalidResourceHandle);
    handle_remove(library, HANDLE_LIBRARY);
    module_free(module);
    return cudaSuccess;
}

static Function *library_kernel(Module *module, const char *name) {
    char message[512] = "";
    for (Function *f = module->functions; f; f = f->next)
        if (!strcmp(f->name, name)) return f;
    if (!ptx_kernel(module->ptx, name, message) && !message[0]) return NULL;
    return module_add_function(module, NULL, name);
}

SIM_EXPORT cudaError_t cudaLibraryGetKernel(void **kernel, void *library, const char *name) {
    RETURN_IF_LOST();
    Module *module = handle_find(library, HANDLE_LIBRARY);
    if (!kernel || !name) return error_set(cudaErrorInvalidValue);
    if (!module) return error_set(cudaErrorInvalidResourceHandle);
    *kernel = library_kernel(module, name);
    return *kernel ? cudaSuccess : error_set(cudaErrorSymbolNotFound);
}

/* Calls back with the name of each ".entry" in the text, as the text has no other form of it. */
static unsigned library_each_kernel(Module *module, void **kernels, unsigned capacity) {
    unsigned count = 0;
    const char *end = module->text + module->text_bytes;
    const char *at = module->text;
    while ((at = memmem(at, (size_t)(end - at), ".entry", 6))) {
        at += 6;
        at += strspn(at, " \t");
        size_t length = strcspn(at, " \t\r\n({");
        char *name = strndup(at, length);
        Function *function = name && length ? library_kernel(module, name) : NULL;
        free(name);
        if (function && count < capacity) kernels[count] = function;
        count += function != NULL;
    }
    return count;
}

SIM_EXPORT cudaError_t cudaLibraryGetKernelCount(unsigned *count, void *library) {
    RETURN_IF_LOST();
    Module *module = handle_find(library, HANDLE_LIBRARY);
    if (!count) return error_set(cudaErrorInvalidValue);
    if (!module) return error_set(cudaErrorInvalidResourceHandle);
    *count = library_each_kernel(module, NULL, 0);
    return cudaSuccess;
}

SIM_EXPORT cudaError_t cudaLibraryEnumerateKernels(void **kernels, unsigned capacity,
                                                   void *library) {
    RETURN_IF_LOST();
    Module *module = handle_find(library, HANDLE_LIBRARY);
    if (!kernels) return error_set(cudaErrorInvalidValue);
    if (!module) return error_set(cudaErrorInvalidResourceHandle);
    library_each_kernel(module, kernels, capacity);
    return cudaSuccess;
}

SIM_EXPORT cudaError_t cudaLibraryGetGlobal(void **pointer, size_t *bytes, void *library,
                                            const char *name) {
    RETURN_IF_LOST();
    Module *module = handle_find(library, HANDLE_LIBRARY);
    uint64_t address, size;
    if (!name) return error_set(cudaErrorInvalidValue);
    if (!module) return error_set(cudaErrorInvalidResourceHandle);
    if (module_variable(module, name, &address, &size)) return error_set(cudaErrorSymbolNotFound);
    if (pointer) *pointer = (void *)address;
    if (bytes) *bytes = size;
    return cudaSuccess;
}
