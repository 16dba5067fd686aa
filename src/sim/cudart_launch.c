/* cudart_launch.c - kernel launches: what is refused at once, and what a failure turns into.
 *
 * Launches reach us by four roads: nvcc's stubs (a pushed configuration, then __cudaLaunchKernel
 * or, from CUDA 12, cudaLaunchKernel), cudaLaunchKernelExC with attributes, and cooperative
 * launches. All become one KernelLaunch. Limits are checked here with CUDA's error codes, in the
 * order in which they are hit on a device.
 */
#include "sim/cudart.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { GRID_MAX_YZ = 65535, BLOCK_MAX_Z = 64 };

/* ---- the configuration between <<< >>> ------------------------------------------------------- */

enum { CONFIGURATION_DEPTH = 16 };

typedef struct {
    dim3 grid, block;
    size_t shared;
    void *stream;
} Configuration;

static _Thread_local struct {
    Configuration stack[CONFIGURATION_DEPTH];
    unsigned depth;
} configurations;

SIM_EXPORT unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared,
                                                void *stream) {
    if (configurations.depth == CONFIGURATION_DEPTH) return 1;
    configurations.stack[configurations.depth++] =
        (Configuration){.grid = grid, .block = block, .shared = shared, .stream = stream};
    return 0;
}

SIM_EXPORT cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared,
                                                  void *stream) {
    if (!configurations.depth || !grid || !block || !shared || !stream)
        return error_set(cudaErrorMissingConfiguration);
    const Configuration *top = &configurations.stack[--configurations.depth];
    *grid = top->grid;
    *block = top->block;
    *shared = top->shared;
    *(void **)stream = top->stream;
    return cudaSuccess;
}

/* ---- checks ------------------------------------------------------------------------------------
 */

static bool shape_valid(dim3 grid, dim3 block) {
    if (!grid.x || !grid.y || !grid.z || !block.x || !block.y || !block.z) return false;
    if (grid.x > INT32_MAX || grid.y > GRID_MAX_YZ || grid.z > GRID_MAX_YZ) return false;
    return block.x <= THREADS_PER_BLOCK && block.y <= THREADS_PER_BLOCK && block.z <= BLOCK_MAX_Z &&
           (uint64_t)block.x * block.y * block.z <= THREADS_PER_BLOCK;
}

/* CUDA 13 calls a shape that no device has an invalid value, except in cudaLaunchKernelExC. */
#ifdef CUDART_12
#define INVALID_SHAPE cudaErrorInvalidConfiguration
#else
#define INVALID_SHAPE cudaErrorInvalidValue
#endif

static cudaError_t check_resources(const Function *function, dim3 grid, dim3 block, size_t shared,
                                   bool cooperative) {
    int threads = (int)(block.x * block.y * block.z);
    int warps = (threads + WARP_LANES - 1) / WARP_LANES;
    if (shared > function->max_dynamic_shared ||
        shared + function->static_shared > (size_t)sim_device()->shared_per_block_optin)
        return cudaErrorInvalidValue;
    if (warps > function_warps_by_registers(function)) return cudaErrorLaunchOutOfResources;
    if (function->max_threads && (uint32_t)threads > function->max_threads)
        return cudaErrorInvalidValue;
    if (cooperative) {
        uint64_t resident = (uint64_t)sim_device()->multiprocessors *
                            (uint64_t)function_blocks_per_multiprocessor(function, threads, shared);
        if ((uint64_t)grid.x * grid.y * grid.z > resident)
            return cudaErrorCooperativeLaunchTooLarge;
    }
    return cudaSuccess;
}

/* ---- running
 * ------------------------------------------------------------------------------------- */

/* One kernel at a time, each over all cores. */
static pthread_mutex_t launch_lock = PTHREAD_MUTEX_INITIALIZER;

/* A program may launch several kernels before it waits: their counters belong together. */
static atomic_bool counters_are_old;

void launch_counters_renew(void) {
    atomic_store(&counters_are_old, true);
}

static cudaError_t error_of_status(ExecStatus status) {
    switch (status) {
    case EXEC_OK:
        return cudaSuccess;
    case EXEC_ILLEGAL_ADDRESS:
        return cudaErrorIllegalAddress;
    case EXEC_MISALIGNED:
        return cudaErrorMisalignedAddress;
    case EXEC_ASSERT:
        return cudaErrorAssert;
    case EXEC_TRAP:
        return cudaErrorLaunchFailure;
    case EXEC_BUDGET:
    case EXEC_DEADLOCK:
        return cudaErrorLaunchTimeout;
    case EXEC_UNSUPPORTED:
        return cudaErrorNotSupported;
    }
    return cudaErrorUnknown;
}

void launch_run(const KernelLaunch *kernel) {
    if (error_context_lost()) return;
    if (!handle_find(kernel->function, HANDLE_FUNCTION)) { // a graph may outlive its object
        error_raise_later(cudaErrorInvalidResourceHandle);
        return;
    }
    SimOptions options = sim_options();
    Launch launch = {
        .grid = {kernel->grid.x, kernel->grid.y, kernel->grid.z},
        .block = {kernel->block.x, kernel->block.y, kernel->block.z},
        .dynamic_shared = kernel->dynamic_shared,
        .params = kernel->params,
        .param_bytes = kernel->param_bytes,
        .cooperative = kernel->cooperative,
        .options = &options,
    };
    pthread_mutex_lock(&launch_lock);
    if (atomic_exchange(&counters_are_old, false)) counters_begin();
    memory_enter();
    memory_open();
    ExecStatus status = exec_launch(kernel->function->kernel, &launch);
    memory_close();
    memory_leave();
    pthread_mutex_unlock(&launch_lock);
    if (status != EXEC_OK) error_raise_later(error_of_status(status));
}

/* ---- launching
 * ------------------------------------------------------------------------------------ */

static bool pack_params(KernelLaunch *launch, void **arguments) {
    const ParamLayout *layout = ptx_kernel_params(launch->function->kernel);
    launch->param_bytes = layout->bytes;
    launch->params = calloc(1, layout->bytes ? layout->bytes : 1);
    if (!launch->params) return false;
    for (uint32_t i = 0; i < layout->count; i++) {
        if (!arguments || !arguments[i]) return false;
        memcpy(launch->params + layout->offset[i], arguments[i], layout->size[i]);
    }
    return true;
}

cudaError_t launch_prepare(KernelLaunch *launch, const void *handle, dim3 grid, dim3 block,
                           void **arguments, size_t shared, bool cooperative) {
    Function *function;
    *launch = (KernelLaunch){.handle = handle,
                             .grid = grid,
                             .block = block,
                             .dynamic_shared = (uint32_t)shared,
                             .cooperative = cooperative};
    cudaError_t error = function_resolve(handle, &function);
    if (!error && !shape_valid(grid, block)) error = INVALID_SHAPE;
    if (!error) error = check_resources(function, grid, block, shared, cooperative);
    if (error) return error;
    launch->function = function;
    if (!pack_params(launch, arguments)) {
        free(launch->params);
        launch->params = NULL;
        return cudaErrorInvalidValue;
    }
    return cudaSuccess;
}

static cudaError_t launch_kernel(const void *handle, dim3 grid, dim3 block, void **arguments,
                                 size_t shared, void *stream, bool cooperative) {
    RETURN_IF_LOST();
    Operation operation = {.kind = OPERATION_KERNEL};
    cudaError_t error =
        launch_prepare(&operation.kernel, handle, grid, block, arguments, shared, cooperative);
    if (!error) error = stream_submit(stream, &operation);
    return error_set(error);
}

SIM_EXPORT cudaError_t cudaLaunchKernel(const void *handle, dim3 grid, dim3 block, void **arguments,
                                        size_t shared, void *stream) {
    return launch_kernel(handle, grid, block, arguments, shared, stream, false);
}

SIM_EXPORT cudaError_t __cudaLaunchKernel(void *kernel, dim3 grid, dim3 block, void **arguments,
                                          size_t shared, void *stream) {
    return launch_kernel(kernel, grid, block, arguments, shared, stream, false);
}

SIM_EXPORT cudaError_t cudaLaunchCooperativeKernel(const void *handle, dim3 grid, dim3 block,
                                                   void **arguments, size_t shared, void *stream) {
    return launch_kernel(handle, grid, block, arguments, shared, stream, true);
}

SIM_ALIAS(cudaLaunchKernel_ptsz, cudaLaunchKernel);
SIM_ALIAS(__cudaLaunchKernel_ptsz, __cudaLaunchKernel);
SIM_ALIAS(cudaLaunchCooperativeKernel_ptsz, cudaLaunchCooperativeKernel);

/* Attributes that only speak about when and how fast are taken as heard. */
static cudaError_t read_attributes(const cudaLaunchConfig_t *config, const void *handle,
                                   bool *cooperative) {
    for (unsigned i = 0; config->attrs && i < config->numAttrs; i++) {
        const cudaLaunchAttribute *a = &config->attrs[i];
        if (a->id == cudaLaunchAttributeCooperative) *cooperative = a->val.cooperative != 0;
        if (a->id != cudaLaunchAttributeClusterDimension) continue;
        dim3 cluster = {a->val.clusterDim.x, a->val.clusterDim.y, a->val.clusterDim.z};
        if (!cluster.x || !cluster.y || !cluster.z || config->gridDim.x % cluster.x ||
            config->gridDim.y % cluster.y || config->gridDim.z % cluster.z)
            return cudaErrorInvalidClusterSize;
        if (cluster.x == 1 && cluster.y == 1 && cluster.z == 1) continue;
        if (!sim_device()->clusters) return cudaErrorInvalidClusterSize;
        Function *function;
        cudaError_t error = function_resolve(handle, &function);
        if (error) return error;
        report_unsupported(function->name, "launches of clusters of more than one block are not "
                                           "executed by the simulator yet");
        return cudaErrorNotSupported;
    }
    return cudaSuccess;
}

SIM_EXPORT cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *config, const void *handle,
                                           void **arguments) {
    RETURN_IF_LOST();
    bool cooperative = false;
    if (!config) return error_set(cudaErrorInvalidValue);
    if (!shape_valid(config->gridDim, config->blockDim))
        return error_set(cudaErrorInvalidConfiguration);
    cudaError_t error = read_attributes(config, handle, &cooperative);
    if (error) return error_set(error);
    return launch_kernel(handle, config->gridDim, config->blockDim, arguments,
                         config->dynamicSmemBytes, config->stream, cooperative);
}
SIM_ALIAS(cudaLaunchKernelExC_ptsz, cudaLaunchKernelExC);

/* ---- host functions
 * -------------------------------------------------------------------------------- */

SIM_EXPORT cudaError_t cudaLaunchHostFunc(void *stream, cudaHostFn_t function, void *data) {
    RETURN_IF_LOST();
    if (!function) return error_set(cudaErrorInvalidValue);
    Operation operation = {.kind = OPERATION_HOST, .host = {.fn = function, .userData = data}};
    return error_set(stream_submit(stream, &operation));
}
SIM_ALIAS(cudaLaunchHostFunc_ptsz, cudaLaunchHostFunc);

SIM_EXPORT cudaError_t cudaStreamAddCallback(void *stream, cudaStreamCallback_t callback,
                                             void *data, unsigned flags) {
    RETURN_IF_LOST();
    if (!callback || flags) return error_set(cudaErrorInvalidValue);
    Stream *found = stream_find(stream);
    if (!found) return error_set(cudaErrorInvalidResourceHandle);
    if (stream_is_capturing(found)) return error_set(capture_refuse(stream));
    callback(stream, error_synchronize(), data);
    return cudaSuccess;
}
SIM_ALIAS(cudaStreamAddCallback_ptsz, cudaStreamAddCallback);
