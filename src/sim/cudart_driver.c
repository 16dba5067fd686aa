/* cudart_driver.c - the driver functions that programs look up through the runtime.
 *
 * A program that was not linked against libcuda asks the runtime for single driver functions by
 * name. Those that say something about the device or the context are answered here; any other
 * name is one that this driver does not have.
 */
#include "sim/cudart.h"
#include <stdio.h>
#include <string.h>

/* Driver error codes have the numbers of the runtime's where both exist. */
typedef cudaError_t CUresult;

cudaError_t cudaDriverGetVersion(int *version);
cudaError_t cudaDeviceGetAttribute(int *value, int attribute, int device);
cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total);
cudaError_t cudaDeviceSynchronize(void);
const char *cudaGetErrorName(cudaError_t error);
const char *cudaGetErrorString(cudaError_t error);

static const char context; // its address stands for the one context there is

static CUresult driver_init(unsigned flags) {
    return flags ? cudaErrorInvalidValue : cudaSuccess;
}

static CUresult driver_device_get(int *device, int ordinal) {
    if (!device) return cudaErrorInvalidValue;
    if (ordinal) return cudaErrorInvalidDevice;
    *device = 0;
    return cudaSuccess;
}

static CUresult driver_device_count(int *count) {
    if (!count) return cudaErrorInvalidValue;
    *count = 1;
    return cudaSuccess;
}

static CUresult driver_device_name(char *name, int capacity, int device) {
    if (!name || capacity <= 0) return cudaErrorInvalidValue;
    if (device) return cudaErrorInvalidDevice;
    snprintf(name, (size_t)capacity, "simulated %s", sim_arch());
    return cudaSuccess;
}

static CUresult driver_device_memory(size_t *bytes, int device) {
    if (!bytes) return cudaErrorInvalidValue;
    if (device) return cudaErrorInvalidDevice;
    *bytes = memory_total();
    return cudaSuccess;
}

static CUresult driver_context_current(const void **current) {
    if (!current) return cudaErrorInvalidValue;
    *current = &context;
    return cudaSuccess;
}

static CUresult driver_context_device(int *device) {
    return driver_device_get(device, 0);
}

static CUresult driver_error_name(CUresult error, const char **name) {
    if (!name) return cudaErrorInvalidValue;
    *name = cudaGetErrorName(error);
    return cudaSuccess;
}

static CUresult driver_error_string(CUresult error, const char **text) {
    if (!text) return cudaErrorInvalidValue;
    *text = cudaGetErrorString(error);
    return cudaSuccess;
}

static const struct {
    const char *name;
    void *function;
} entry_points[] = {
    {"cuInit", (void *)driver_init},
    {"cuDriverGetVersion", (void *)cudaDriverGetVersion},
    {"cuDeviceGet", (void *)driver_device_get},
    {"cuDeviceGetCount", (void *)driver_device_count},
    {"cuDeviceGetName", (void *)driver_device_name},
    {"cuDeviceTotalMem", (void *)driver_device_memory},
    {"cuDeviceGetAttribute", (void *)cudaDeviceGetAttribute},
    {"cuCtxGetCurrent", (void *)driver_context_current},
    {"cuCtxGetDevice", (void *)driver_context_device},
    {"cuCtxSynchronize", (void *)cudaDeviceSynchronize},
    {"cuMemGetInfo", (void *)cudaMemGetInfo},
    {"cuGetErrorName", (void *)driver_error_name},
    {"cuGetErrorString", (void *)driver_error_string},
};

SIM_EXPORT cudaError_t cudaGetDriverEntryPoint(const char *symbol, void **function,
                                               unsigned long long flags,
                                               cudaDriverEntryPointQueryResult *result) {
    if (!symbol || !function || flags > 2) return error_set(cudaErrorInvalidValue);
    *function = NULL;
    for (size_t i = 0; i < sizeof entry_points / sizeof *entry_points && !*function; i++)
        if (!strcmp(entry_points[i].name, symbol)) *function = entry_points[i].function;
    if (result)
        *result = *function ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
    return cudaSuccess; // a missing one is no error
}
SIM_ALIAS(cudaGetDriverEntryPoint_ptsz, cudaGetDriverEntryPoint);

SIM_EXPORT cudaError_t cudaGetDriverEntryPointByVersion(const char *symbol, void **function,
                                                        unsigned version, unsigned long long flags,
                                                        cudaDriverEntryPointQueryResult *result) {
    (void)version;
    return cudaGetDriverEntryPoint(symbol, function, flags, result);
}
SIM_ALIAS(cudaGetDriverEntryPointByVersion_ptsz, cudaGetDriverEntryPointByVersion);
