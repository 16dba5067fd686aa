/* cudart_function.c - what is asked about kernels: attributes and occupancy.
 *
 * A multiprocessor holds as many blocks as its threads, block slots, registers and shared memory
 * allow. Registers are handed to warps in granules, out of four equal files, one per scheduler;
 * shared memory to blocks in granules, with one kilobyte more per block for the system.
 */
#include "sim/cudart.h"
#include <limits.h>

static size_t round_up(size_t value, size_t step) {
    return (value + step - 1) / step * step;
}

int function_warps_by_registers(const Function *function) {
    int per_warp =
        (int)round_up((size_t)function->figures.registers * WARP_LANES, REGISTER_GRANULE);
    if (!per_warp) return INT_MAX;
    return REGISTERS_PER_MULTIPROCESSOR / WARP_SCHEDULERS / per_warp * WARP_SCHEDULERS;
}

int function_max_threads(const Function *function) {
    int threads = THREADS_PER_BLOCK;
    int warps = function_warps_by_registers(function);
    if (warps < threads / WARP_LANES) threads = warps * WARP_LANES;
    if (function->max_threads && (int)function->max_threads < threads)
        threads = (int)function->max_threads;
    return threads;
}

static int smaller(int a, int b) {
    return a < b ? a : b;
}

int function_blocks_per_multiprocessor(const Function *function, int threads, size_t shared) {
    const SimDevice *device = sim_device();
    if (threads <= 0 || threads > THREADS_PER_BLOCK ||
        shared > (size_t)device->shared_per_block_optin)
        return 0;
    int warps = (threads + WARP_LANES - 1) / WARP_LANES;
    int blocks = device->blocks_per_multiprocessor;
    blocks = smaller(blocks, device->threads_per_multiprocessor / WARP_LANES / warps);
    blocks = smaller(blocks, function_warps_by_registers(function) / warps);
    size_t per_block = round_up(function->static_shared + shared + SHARED_RESERVED, SHARED_GRANULE);
    return smaller(blocks, (int)((size_t)device->shared_per_multiprocessor / per_block));
}

/* ---- attributes ----------------------------------------------------------------------------- */

SIM_EXPORT cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *attributes, const void *handle) {
    RETURN_IF_LOST();
    Function *function;
    if (!attributes) return error_set(cudaErrorInvalidValue);
    cudaError_t error = function_resolve(handle, &function);
    if (error) return error_set(error);
    int arch = sim_device()->major * 10 + sim_device()->minor;
    *attributes = (cudaFuncAttributes){
        .sharedSizeBytes = function->static_shared,
        .localSizeBytes = function->local_bytes,
        .maxThreadsPerBlock = function_max_threads(function),
        .numRegs = (int)function->figures.registers,
        .ptxVersion = arch,
        .binaryVersion = arch,
        .maxDynamicSharedSizeBytes = (int)function->max_dynamic_shared,
        .preferredShmemCarveout = function->carveout,
    };
    return cudaSuccess;
}

SIM_EXPORT cudaError_t cudaFuncSetAttribute(const void *handle, cudaFuncAttribute attribute,
                                            int value) {
    RETURN_IF_LOST();
    Function *function;
    cudaError_t error = function_resolve(handle, &function);
    if (error) return error_set(error);
    switch (attribute) {
    case cudaFuncAttributeMaxDynamicSharedMemorySize:
        if (value < 0 ||
            (int64_t)value + function->static_shared > sim_device()->shared_per_block_optin)
            return error_set(cudaErrorInvalidValue);
        function->max_dynamic_shared = (uint32_t)value;
        return cudaSuccess;
    case cudaFuncAttributePreferredSharedMemoryCarveout:
        if (value < -1 || value > 100) return error_set(cudaErrorInvalidValue);
        function->carveout = value;
        return cudaSuccess;
    case cudaFuncAttributeNonPortableClusterSizeAllowed:
    case cudaFuncAttributeClusterSchedulingPolicyPreference:
        return sim_device()->clusters ? cudaSuccess : error_set(cudaErrorNotSupported);
    default:
        return error_set(cudaErrorInvalidValue);
    }
}

SIM_EXPORT cudaError_t cudaKernelSetAttributeForDevice(const void *handle,
                                                       cudaFuncAttribute attribute, int value,
                                                       int device) {
    if (device != 0) return error_set(cudaErrorInvalidDevice);
    return cudaFuncSetAttribute(handle, attribute, value);
}

SIM_EXPORT cudaError_t cudaFuncSetCacheConfig(const void *handle, int config) {
    RETURN_IF_LOST();
    Function *function;
    (void)config;
    return error_set(function_resolve(handle, &function));
}

SIM_EXPORT cudaError_t cudaFuncSetSharedMemConfig(const void *handle, int config) {
    return cudaFuncSetCacheConfig(handle, config);
}

SIM_EXPORT cudaError_t cudaFuncGetParamInfo(const void *handle, size_t index, size_t *offset,
                                            size_t *bytes) {
    RETURN_IF_LOST();
    Function *function;
    cudaError_t error = function_resolve(handle, &function);
    if (error) return error_set(error);
    const ParamLayout *layout = ptx_kernel_params(function->kernel);
    if (!offset || index >= layout->count) return error_set(cudaErrorInvalidValue);
    *offset = layout->offset[index];
    if (bytes) *bytes = layout->size[index];
    return cudaSuccess;
}

/* ---- occupancy --------------------------------------------------------------------------------
 */

SIM_EXPORT cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
    int *blocks, const void *handle, int threads, size_t shared, unsigned flags) {
    RETURN_IF_LOST();
    Function *function;
    if (!blocks || threads <= 0 || flags > cudaOccupancyDisableCachingOverride)
        return error_set(cudaErrorInvalidValue);
    cudaError_t error = function_resolve(handle, &function);
    if (error) return error_set(error);
    *blocks = shared > function->max_dynamic_shared
                  ? 0
                  : function_blocks_per_multiprocessor(function, threads, shared);
    return cudaSuccess;
}

SIM_EXPORT cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks,
                                                                     const void *handle,
                                                                     int threads, size_t shared) {
    return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, handle, threads, shared,
                                                                  cudaOccupancyDefault);
}

SIM_EXPORT cudaError_t cudaOccupancyAvailableDynamicSMemPerBlock(size_t *shared, const void *handle,
                                                                 int blocks, int threads) {
    RETURN_IF_LOST();
    Function *function;
    if (!shared || blocks <= 0 || threads <= 0) return error_set(cudaErrorInvalidValue);
    cudaError_t error = function_resolve(handle, &function);
    if (error) return error_set(error);
    if (blocks > function_blocks_per_multiprocessor(function, threads, 0))
        return error_set(cudaErrorInvalidValue);
    const SimDevice *device = sim_device();
    size_t share = (size_t)device->shared_per_multiprocessor / (size_t)blocks;
    size_t room = share / SHARED_GRANULE * SHARED_GRANULE;
    if (room > (size_t)device->shared_per_block_optin)
        room = (size_t)device->shared_per_block_optin;
    room = room > function->static_shared ? room - function->static_shared : 0;
    *shared = room < function->max_dynamic_shared ? room : function->max_dynamic_shared;
    return cudaSuccess;
}

static bool config_has_cluster(const cudaLaunchConfig_t *config) {
    for (unsigned i = 0; config->attrs && i < config->numAttrs; i++) {
        const cudaLaunchAttribute *a = &config->attrs[i];
        if (a->id == cudaLaunchAttributeClusterDimension &&
            (a->val.clusterDim.x > 1 || a->val.clusterDim.y > 1 || a->val.clusterDim.z > 1))
            return true;
    }
    return false;
}

SIM_EXPORT cudaError_t cudaOccupancyMaxActiveClusters(int *clusters, const void *handle,
                                                      const cudaLaunchConfig_t *config) {
    RETURN_IF_LOST();
    Function *function;
    if (!clusters || !config) return error_set(cudaErrorInvalidValue);
    cudaError_t error = function_resolve(handle, &function);
    if (error) return error_set(error);
    if (!sim_device()->clusters || config_has_cluster(config))
        return error_set(cudaErrorNotSupported);
    int threads = (int)(config->blockDim.x * config->blockDim.y * config->blockDim.z);
    *clusters = sim_device()->multiprocessors *
                function_blocks_per_multiprocessor(function, threads, config->dynamicSmemBytes);
    return cudaSuccess;
}

/* Eight blocks are what every device with clusters guarantees. */
SIM_EXPORT cudaError_t cudaOccupancyMaxPotentialClusterSize(int *size, const void *handle,
                                                            const cudaLaunchConfig_t *config) {
    RETURN_IF_LOST();
    Function *function;
    if (!size || !config) return error_set(cudaErrorInvalidValue);
    cudaError_t error = function_resolve(handle, &function);
    if (error) return error_set(error);
    if (!sim_device()->clusters) return error_set(cudaErrorNotSupported);
    *size = 8;
    return cudaSuccess;
}
