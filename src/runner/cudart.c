/* cudart.c - finds a CUDA runtime at run time and looks its functions up by name.
 *
 * The runner is built without CUDA: the same program drives NVIDIA's runtime and the simulator's
 * look-alike. The library is loaded globally before the kernel, so that the kernel's own
 * dependency on libcudart is met by it (the loader compares the soname).
 */
#include "runner/runner.h"
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

enum { ATTRIBUTE_MULTIPROCESSORS = 16, ATTRIBUTE_MAJOR = 75, ATTRIBUTE_MINOR = 76 };

bool cuda_ok(const Cudart *cudart, CudaError error, const char *what, Fault *why) {
    if (error == CUDA_SUCCESS) return true;
    return fault(why, "%s: %s (%s)", what, cudart->GetErrorString(error),
                 cudart->GetErrorName(error));
}

static bool open_library(Cudart *cudart, const DeviceChoice *choice, Fault *why) {
    static const char *const names[] = {"libcudart.so.13", "/usr/local/cuda/lib64/libcudart.so.13",
                                        "libcudart.so.12", "/usr/local/cuda/lib64/libcudart.so.12"};
    if (choice->library) {
        cudart->library = dlopen(choice->library, RTLD_NOW | RTLD_GLOBAL);
        return cudart->library || fault(why, "cannot load the CUDA runtime: %s", dlerror());
    }
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if ((cudart->library = dlopen(names[i], RTLD_NOW | RTLD_GLOBAL))) return true;
    return fault(why, "no libcudart.so.13 or .12 found: install the CUDA runtime, or add its "
                      "directory to LD_LIBRARY_PATH");
}

bool cudart_open(Cudart *cudart, const DeviceChoice *choice, Fault *why) {
    if (!open_library(cudart, choice, why)) return false;
    const struct {
        const char *name;
        void *slot;
        bool simulator_only;
    } functions[] = {
        {"cudaSetDevice", &cudart->SetDevice, false},
        {"cudaMalloc", &cudart->Malloc, false},
        {"cudaFree", &cudart->Free, false},
        {"cudaMemcpy", &cudart->Memcpy, false},
        {"cudaMemset", &cudart->Memset, false},
        {"cudaStreamCreate", &cudart->StreamCreate, false},
        {"cudaStreamSynchronize", &cudart->StreamSynchronize, false},
        {"cudaDeviceSynchronize", &cudart->DeviceSynchronize, false},
        {"cudaGetLastError", &cudart->GetLastError, false},
        {"cudaGetErrorName", &cudart->GetErrorName, false},
        {"cudaGetErrorString", &cudart->GetErrorString, false},
        {"cudaRuntimeGetVersion", &cudart->RuntimeGetVersion, false},
        {"cudaDeviceGetAttribute", &cudart->DeviceGetAttribute, false},
        {"cudaMemGetInfo", &cudart->MemGetInfo, false},
        {"cudaGetDeviceProperties", &cudart->GetDeviceProperties, false},
        {"sim_configure", &cudart->sim_configure, true},
        {"sim_name", &cudart->sim_name, true},
        {"sim_set_initialized", &cudart->sim_set_initialized, true},
        {"sim_hide_memory", &cudart->sim_hide_memory, true},
        {"sim_take_reports", &cudart->sim_take_reports, true},
        {"sim_take_counters", &cudart->sim_take_counters, true},
        {"sim_arch", &cudart->sim_arch, true},
    };
    cudart->simulated = dlsym(cudart->library, "sim_configure") != NULL;
    if (cudart->simulated != choice->simulated)
        return fault(why, "the libcudart that was found is %s",
                     cudart->simulated ? "the simulator's, where a GPU's was asked for"
                                       : "not the simulator's");
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        void *symbol = dlsym(cudart->library, functions[i].name);
        if (!symbol && (cudart->simulated || !functions[i].simulator_only))
            return fault(why, "libcudart has no %s", functions[i].name);
        memcpy(functions[i].slot, &symbol, sizeof symbol);
    }
    int version = 0;
    return cuda_ok(cudart, cudart->SetDevice(choice->index), "cudaSetDevice", why) &&
           cuda_ok(cudart, cudart->Free(NULL), "creating a CUDA context", why) &&
           cuda_ok(cudart, cudart->RuntimeGetVersion(&version), "cudaRuntimeGetVersion", why);
}

void cudart_greet(const Cudart *cudart, int index, WireWriter *hello) {
    // struct cudaDeviceProp differs between versions, but begins with char name[256] in each.
    char properties[16384] = "";
    if (cudart->GetDeviceProperties(properties, index) != CUDA_SUCCESS) properties[0] = 0;
    properties[255] = 0;
    int version = 0, multiprocessors = 0, major = 0, minor = 0;
    size_t free_bytes = 0, total_bytes = 0;
    cudart->RuntimeGetVersion(&version);
    cudart->DeviceGetAttribute(&multiprocessors, ATTRIBUTE_MULTIPROCESSORS, index);
    cudart->DeviceGetAttribute(&major, ATTRIBUTE_MAJOR, index);
    cudart->DeviceGetAttribute(&minor, ATTRIBUTE_MINOR, index);
    cudart->MemGetInfo(&free_bytes, &total_bytes);
    cudart->GetLastError(); // none of the above is worth failing for
    char arch[16];
    if (cudart->simulated)
        snprintf(arch, sizeof arch, "%s", cudart->sim_arch());
    else // sm_90's extended instruction set is what kernels are built for
        snprintf(arch, sizeof arch, "sm_%d%d%s", major, minor, major == 9 ? "a" : "");

    put_u8(hello, cudart->simulated);
    put_text(hello, properties);
    put_text(hello, arch);
    put_u32(hello, (uint32_t)version);
    put_u32(hello, (uint32_t)multiprocessors);
    put_u64(hello, total_bytes);
    put_text(hello, lockdown_layers());
}
