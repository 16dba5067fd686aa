/* cudart_device.c - the one simulated device: choosing it, its properties, attributes and limits.
 *
 * cudaDeviceProp has over a hundred fields in an order of its own; what this file knows is written
 * once, in the attribute table, and the structure is filled from it.
 */
#include "sim/cuda_prop.h"
#include "sim/cudart.h"
#include <stdio.h>
#include <string.h>

#ifdef CUDART_12
enum { RUNTIME_VERSION = 12090 };
#else
enum { RUNTIME_VERSION = 13000 };
#endif

/* ---- attributes ------------------------------------------------------------------------------ */

static int attribute_value(int attribute) {
    const SimDevice *d = sim_device();
    switch (attribute) {
    case cudaDevAttrMaxThreadsPerBlock:
    case cudaDevAttrMaxBlockDimX:
    case cudaDevAttrMaxBlockDimY:
        return THREADS_PER_BLOCK;
    case cudaDevAttrMaxBlockDimZ:
        return 64;
    case cudaDevAttrMaxGridDimX:
        return INT32_MAX;
    case cudaDevAttrMaxGridDimY:
    case cudaDevAttrMaxGridDimZ:
        return 65535;
    case cudaDevAttrMaxSharedMemoryPerBlock:
        return SHARED_PER_BLOCK;
    case cudaDevAttrTotalConstantMemory:
        return CONSTANT_BYTES;
    case cudaDevAttrWarpSize:
        return WARP_LANES;
    case cudaDevAttrMaxPitch:
        return INT32_MAX;
    case cudaDevAttrMaxRegistersPerBlock:
    case cudaDevAttrMaxRegistersPerMultiprocessor:
        return REGISTERS_PER_MULTIPROCESSOR;
    case cudaDevAttrClockRate:
        return d->clock_khz;
    case cudaDevAttrTextureAlignment:
        return 512;
    case cudaDevAttrTexturePitchAlignment:
        return 32;
    case cudaDevAttrMultiProcessorCount:
        return d->multiprocessors;
    case cudaDevAttrMemoryClockRate:
        return d->memory_clock_khz;
    case cudaDevAttrGlobalMemoryBusWidth:
        return d->memory_bus_bits;
    case cudaDevAttrL2CacheSize:
        return d->l2_bytes;
    case cudaDevAttrMaxThreadsPerMultiProcessor:
        return d->threads_per_multiprocessor;
    case cudaDevAttrAsyncEngineCount:
        return d->async_engines;
    case cudaDevAttrComputeCapabilityMajor:
        return d->major;
    case cudaDevAttrComputeCapabilityMinor:
        return d->minor;
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor:
        return d->shared_per_multiprocessor;
    case cudaDevAttrSingleToDoublePrecisionPerfRatio:
        return d->float_to_double_ratio;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
        return d->shared_per_block_optin;
    case cudaDevAttrMaxBlocksPerMultiprocessor:
        return d->blocks_per_multiprocessor;
    case cudaDevAttrMaxPersistingL2CacheSize:
        return d->persisting_l2_bytes;
    case cudaDevAttrMaxAccessPolicyWindowSize:
        return 128 << 20;
    case cudaDevAttrReservedSharedMemoryPerBlock:
        return SHARED_RESERVED;
    case cudaDevAttrClusterLaunch:
        return d->clusters;
    case cudaDevAttrGpuOverlap:
    case cudaDevAttrCanMapHostMemory:
    case cudaDevAttrConcurrentKernels:
    case cudaDevAttrUnifiedAddressing:
    case cudaDevAttrStreamPrioritiesSupported:
    case cudaDevAttrGlobalL1CacheSupported:
    case cudaDevAttrLocalL1CacheSupported:
    case cudaDevAttrManagedMemory:
    case cudaDevAttrConcurrentManagedAccess:
    case cudaDevAttrCanUseHostPointerForRegisteredMem:
    case cudaDevAttrCooperativeLaunch:
    case cudaDevAttrHostRegisterSupported:
    case cudaDevAttrMemoryPoolsSupported:
        return 1;
    default: // textures, peers, interoperation: none of it
        return 0;
    }
}

SIM_EXPORT cudaError_t cudaDeviceGetAttribute(int *value, int attribute, int device) {
    if (!value || attribute <= 0 || attribute >= ATTRIBUTE_COUNT)
        return error_set(cudaErrorInvalidValue);
    if (device) return error_set(cudaErrorInvalidDevice);
    *value = attribute_value(attribute);
    return cudaSuccess;
}

/* ---- properties --------------------------------------------------------------------------------
 */

static void fill_properties(cudaDeviceProp *p) {
    *p = (cudaDeviceProp){
        .totalGlobalMem = memory_total(),
        .sharedMemPerBlock = SHARED_PER_BLOCK,
        .regsPerBlock = REGISTERS_PER_MULTIPROCESSOR,
        .warpSize = WARP_LANES,
        .memPitch = INT32_MAX,
        .maxThreadsPerBlock = THREADS_PER_BLOCK,
        .maxThreadsDim = {THREADS_PER_BLOCK, THREADS_PER_BLOCK, 64},
        .maxGridSize = {INT32_MAX, 65535, 65535},
        .totalConstMem = CONSTANT_BYTES,
        .major = attribute_value(cudaDevAttrComputeCapabilityMajor),
        .minor = attribute_value(cudaDevAttrComputeCapabilityMinor),
        .textureAlignment = 512,
        .texturePitchAlignment = 32,
        .multiProcessorCount = attribute_value(cudaDevAttrMultiProcessorCount),
        .canMapHostMemory = 1,
        .surfaceAlignment = 512,
        .concurrentKernels = 1,
        .asyncEngineCount = attribute_value(cudaDevAttrAsyncEngineCount),
        .unifiedAddressing = 1,
        .memoryBusWidth = attribute_value(cudaDevAttrGlobalMemoryBusWidth),
        .l2CacheSize = attribute_value(cudaDevAttrL2CacheSize),
        .persistingL2CacheMaxSize = attribute_value(cudaDevAttrMaxPersistingL2CacheSize),
        .maxThreadsPerMultiProcessor = attribute_value(cudaDevAttrMaxThreadsPerMultiProcessor),
        .streamPrioritiesSupported = 1,
        .globalL1CacheSupported = 1,
        .localL1CacheSupported = 1,
        .sharedMemPerMultiprocessor =
            (size_t)attribute_value(cudaDevAttrMaxSharedMemoryPerMultiprocessor),
        .regsPerMultiprocessor = REGISTERS_PER_MULTIPROCESSOR,
        .managedMemory = 1,
        .concurrentManagedAccess = 1,
        .canUseHostPointerForRegisteredMem = 1,
        .cooperativeLaunch = 1,
        .sharedMemPerBlockOptin = (size_t)attribute_value(cudaDevAttrMaxSharedMemoryPerBlockOptin),
        .maxBlocksPerMultiProcessor = attribute_value(cudaDevAttrMaxBlocksPerMultiprocessor),
        .accessPolicyMaxWindowSize = attribute_value(cudaDevAttrMaxAccessPolicyWindowSize),
        .reservedSharedMemPerBlock = SHARED_RESERVED,
        .hostRegisterSupported = 1,
        .memoryPoolsSupported = 1,
        .clusterLaunch = attribute_value(cudaDevAttrClusterLaunch),
    };
    snprintf(p->name, sizeof p->name, "simulated %s", sim_arch());
#ifdef CUDART_12
    p->clockRate = attribute_value(cudaDevAttrClockRate);
    p->memoryClockRate = attribute_value(cudaDevAttrMemoryClockRate);
    p->singleToDoublePrecisionPerfRatio =
        attribute_value(cudaDevAttrSingleToDoublePrecisionPerfRatio);
    p->deviceOverlap = 1;
#endif
}

#ifdef CUDART_12
#define GET_PROPERTIES cudaGetDeviceProperties_v2
#else
#define GET_PROPERTIES cudaGetDeviceProperties
#endif

SIM_EXPORT cudaError_t GET_PROPERTIES(cudaDeviceProp *properties, int device) {
    if (!properties) return error_set(cudaErrorInvalidValue);
    if (device) return error_set(cudaErrorInvalidDevice);
    fill_properties(properties);
    return cudaSuccess;
}

/* ---- choosing
 * ------------------------------------------------------------------------------------ */

SIM_EXPORT cudaError_t cudaGetDeviceCount(int *count) {
    if (!count) return error_set(cudaErrorInvalidValue);
    *count = 1;
    return cudaSuccess;
}

SIM_EXPORT cudaError_t cudaGetDevice(int *device) {
    if (!device) return error_set(cudaErrorInvalidValue);
    *device = 0;
    return cudaSuccess;
}

SIM_EXPORT cudaError_t cudaSetDevice(int device) {
    RETURN_IF_LOST();
    return device ? error_set(cudaErrorInvalidDevice) : cudaSuccess;
}

SIM_EXPORT cudaError_t cudaInitDevice(int device, unsigned device_flags, unsigned flags) {
    (void)device_flags, (void)flags;
    return cudaSetDevice(device);
}

SIM_EXPORT cudaError_t cudaChooseDevice(int *device, const cudaDeviceProp *properties) {
    if (!properties) return error_set(cudaErrorInvalidValue);
    return cudaGetDevice(device);
}

SIM_EXPORT cudaError_t cudaSetDeviceFlags(unsigned flags) {
    RETURN_IF_LOST();
    return flags & ~0xFFu ? error_set(cudaErrorInvalidValue) : cudaSuccess;
}

SIM_EXPORT cudaError_t cudaGetDeviceFlags(unsigned *flags) {
    if (!flags) return error_set(cudaErrorInvalidValue);
    *flags = 0x08; // cudaDeviceMapHost, which is always on
    return cudaSuccess;
}

SIM_EXPORT cudaError_t cudaDeviceReset(void) {
    return error_synchronize();
}

SIM_EXPORT cudaError_t cudaDeviceCanAccessPeer(int *can, int device, int peer) {
    if (!can) return error_set(cudaErrorInvalidValue);
    *can = 0;
    return device || peer ? error_set(cudaErrorInvalidDevice) : cudaSuccess;
}

SIM_EXPORT cudaError_t cudaDeviceGetPCIBusId(char *id, int capacity, int device) {
    if (!id || capacity < 13) return error_set(cudaErrorInvalidValue);
    if (device) return error_set(cudaErrorInvalidDevice);
    snprintf(id, (size_t)capacity, "0000:00:00.0");
    return cudaSuccess;
}

SIM_EXPORT cudaError_t cudaDeviceGetByPCIBusId(int *device, const char *id) {
    if (!device || !id) return error_set(cudaErrorInvalidValue);
    if (strcmp(id, "0000:00:00.0")) return error_set(cudaErrorInvalidDevice);
    *device = 0;
    return cudaSuccess;
}

SIM_EXPORT cudaError_t cudaRuntimeGetVersion(int *version) {
    if (!version) return error_set(cudaErrorInvalidValue);
    *version = RUNTIME_VERSION;
    return cudaSuccess;
}

SIM_EXPORT cudaError_t cudaDriverGetVersion(int *version) {
    return cudaRuntimeGetVersion(version);
}

/* ---- limits and preferences
 * ------------------------------------------------------------------------ */

SIM_EXPORT cudaError_t cudaDeviceGetLimit(size_t *value, cudaLimit limit) {
    static const size_t limits[LIMIT_COUNT] = {
        [cudaLimitStackSize] = 1024,           [cudaLimitPrintfFifoSize] = 8650752,
        [cudaLimitMallocHeapSize] = 8 << 20,   [cudaLimitDevRuntimePendingLaunchCount] = 2048,
        [cudaLimitMaxL2FetchGranularity] = 64,
    };
    RETURN_IF_LOST();
    if (!value) return error_set(cudaErrorInvalidValue);
    if ((unsigned)limit >= LIMIT_COUNT) return error_set(cudaErrorUnsupportedLimit);
    *value = limits[limit];
    return cudaSuccess;
}

/* Stack and heap grow as kernels need them, so there is nothing to set. */
SIM_EXPORT cudaError_t cudaDeviceSetLimit(cudaLimit limit, size_t value) {
    (void)value;
    RETURN_IF_LOST();
    return (unsigned)limit < LIMIT_COUNT ? cudaSuccess : error_set(cudaErrorUnsupportedLimit);
}

SIM_EXPORT cudaError_t cudaCtxResetPersistingL2Cache(void) {
    return error_sticky();
}

SIM_EXPORT cudaError_t cudaDeviceSetCacheConfig(int config) {
    (void)config;
    return error_sticky();
}

SIM_EXPORT cudaError_t cudaDeviceGetCacheConfig(int *config) {
    if (!config) return error_set(cudaErrorInvalidValue);
    *config = 0;
    return error_sticky();
}

SIM_EXPORT cudaError_t cudaDeviceSetSharedMemConfig(int config) {
    (void)config;
    return error_sticky();
}

SIM_EXPORT cudaError_t cudaDeviceGetSharedMemConfig(int *config) {
    if (!config) return error_set(cudaErrorInvalidValue);
    *config = 1; // banks of four bytes
    return error_sticky();
}

SIM_EXPORT cudaError_t cudaProfilerStart(void) {
    return cudaSuccess;
}
SIM_EXPORT cudaError_t cudaProfilerStop(void) {
    return cudaSuccess;
}
