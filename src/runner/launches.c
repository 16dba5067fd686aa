/* launches.c - listens in on what launch() asks of the CUDA runtime.
 *
 * "invalid configuration argument" repairs nothing; grid, block and shared memory do. The runner
 * exports the calls through which every launch goes, so that the kernel's object finds ours first;
 * each notes its arguments and hands them on unchanged. kernel<<<…>>> is two calls: it pushes the
 * configuration, and the stub that nvcc made of the kernel pops and launches it. The state is
 * global because the calls have no other way to reach it.
 */
#include "runner/runner.h"
#include <dlfcn.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

typedef struct {
    unsigned x, y, z;
} Dim3;

// struct cudaLaunchConfig_st as far as we read it; the same in CUDA 12 and 13.
typedef struct {
    Dim3 grid, block;
    size_t dynamic_shared_bytes;
} LaunchConfigHead;

static Launches seen;
static bool pushed; // the launch was noted when its configuration was
static void *cudart_library;

void launches_begin(const Cudart *cudart) {
    cudart_library = cudart->library;
    memset(&seen, 0, sizeof seen);
    pushed = false;
}

Launches launches_seen(void) {
    return seen;
}

static void note(Dim3 grid, Dim3 block, size_t dynamic_shared_bytes) {
    seen.count++;
    memcpy(seen.grid, &grid, sizeof seen.grid);
    memcpy(seen.block, &block, sizeof seen.block);
    seen.dynamic_shared_bytes = dynamic_shared_bytes;
}

static void *next(const char *name) {
    return dlsym(cudart_library, name);
}

EXPORT unsigned __cudaPushCallConfiguration(Dim3 grid, Dim3 block, size_t dynamic_shared_bytes,
                                            void *stream) {
    unsigned (*push)(Dim3, Dim3, size_t, void *) = next("__cudaPushCallConfiguration");
    note(grid, block, dynamic_shared_bytes);
    pushed = true;
    return push(grid, block, dynamic_shared_bytes, stream);
}

/* The stub's own call, or one that the user wrote. */
static CudaError launch_kernel(const char *name, const void *function, Dim3 grid, Dim3 block,
                               void **arguments, size_t dynamic_shared_bytes, void *stream) {
    CudaError (*launch)(const void *, Dim3, Dim3, void **, size_t, void *) = next(name);
    if (!pushed) note(grid, block, dynamic_shared_bytes);
    pushed = false;
    return launch(function, grid, block, arguments, dynamic_shared_bytes, stream);
}

EXPORT CudaError cudaLaunchKernel(const void *function, Dim3 grid, Dim3 block, void **arguments,
                                  size_t dynamic_shared_bytes, void *stream) {
    return launch_kernel("cudaLaunchKernel", function, grid, block, arguments, dynamic_shared_bytes,
                         stream);
}

EXPORT CudaError __cudaLaunchKernel(const void *function, Dim3 grid, Dim3 block, void **arguments,
                                    size_t dynamic_shared_bytes, void *stream) {
    return launch_kernel("__cudaLaunchKernel", function, grid, block, arguments,
                         dynamic_shared_bytes, stream);
}

EXPORT CudaError cudaLaunchKernelExC(const LaunchConfigHead *config, const void *function,
                                     void **arguments) {
    CudaError (*launch)(const void *, const void *, void **) = next("cudaLaunchKernelExC");
    if (config) note(config->grid, config->block, config->dynamic_shared_bytes);
    return launch(config, function, arguments);
}

EXPORT CudaError cudaLaunchCooperativeKernel(const void *function, Dim3 grid, Dim3 block,
                                             void **arguments, size_t dynamic_shared_bytes,
                                             void *stream) {
    CudaError (*launch)(const void *, Dim3, Dim3, void **, size_t, void *) =
        next("cudaLaunchCooperativeKernel");
    note(grid, block, dynamic_shared_bytes);
    return launch(function, grid, block, arguments, dynamic_shared_bytes, stream);
}
