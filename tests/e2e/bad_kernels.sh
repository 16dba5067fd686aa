# Kernels that cannot be: each gets its verdict, exit code 1, and JSON that follows the schema.
. "$1/tests/support/e2e.sh"

# kernel NAME < BODY of the file after its includes
kernel() {
    {
        printf '#include "task.h"\n#include <cute/tensor.hpp>\n'
        cat
    } >"$1.cu"
}
launch_head='extern "C" cudaError_t launch(const float* x, float* y, Dims dims, void* workspace, cudaStream_t stream) {'

judged() { # NAME VERDICT TEXT: check's sentence and JSON
    expect 1 "$cutegen" check relu "$1.cu" --quick --json
    out_follows check
    json_is verdict.verdict "$2"
    err_says "$3"
}

kernel no_launch <<EOT
__global__ void relu(const float* x, float* y) {}
EOT
judged no_launch compile_error "launch"

printf '\0\1\2\3 not C++' >binary.cu
judged binary compile_error "kernel.cu"
: >empty.cu
judged empty compile_error "launch"

head -c 10000000 /dev/zero >huge.cu
expect 2 "$cutegen" check relu huge.cu
err_says "huge.cu"

kernel endless <<EOT
__global__ void relu(const float* x, float* y, int64_t n) {
    int64_t i = threadIdx.x;
    while (i < n) y[i] = x[i];
}
$launch_head
    relu<<<1, 32, 0, stream>>>(x, y, dims.n);
    return cudaGetLastError();
}
EOT
judged endless hang "kernel.cu:5"

kernel endless_constructor <<EOT
static int never = [] { for (volatile int i = 0;; i++) {} return 0; }();
$launch_head
    return never ? cudaSuccess : cudaErrorUnknown;
}
EOT
judged endless_constructor hang "a static constructor did not end"

kernel crashing_constructor <<EOT
static int never = [] { *(volatile int*)8 = 1; return 0; }();
$launch_head
    return never ? cudaSuccess : cudaErrorUnknown;
}
EOT
judged crashing_constructor launch_error "a static constructor was killed by SIGSEGV"

kernel shared_static <<EOT
__global__ void relu(const float* x, float* y, int64_t n) {
    __shared__ float all[64 * 1024];
    all[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    y[threadIdx.x] = all[n - threadIdx.x];
}
$launch_head
    relu<<<1, 32, 0, stream>>>(x, y, dims.n);
    return cudaGetLastError();
}
EOT
judged shared_static compile_error "shared"

kernel shared_dynamic <<EOT
__global__ void relu(const float* x, float* y, int64_t n) {
    extern __shared__ float all[];
    all[threadIdx.x] = x[0];
    y[0] = all[threadIdx.x];
}
$launch_head
    relu<<<1, 32, 300 * 1024, stream>>>(x, y, dims.n);
    return cudaGetLastError();
}
EOT
judged shared_dynamic launch_error "shared memory"

kernel registers <<EOT
__global__ void relu(const float* x, float* y, int64_t n) {
    float kept[120];
    CUTE_UNROLL
    for (int i = 0; i < 120; i++) kept[i] = x[(i * 7 + threadIdx.x) % n];
    __syncthreads();
    CUTE_UNROLL
    for (int i = 0; i < 120; i++) y[(i * 5 + threadIdx.x) % n] = kept[i] * kept[119 - i];
}
$launch_head
    relu<<<1, 1024, 0, stream>>>(x, y, dims.n);
    return cudaGetLastError();
}
EOT
judged registers launch_error "registers"

kernel grid <<EOT
__global__ void relu(const float* x, float* y, int64_t n) { y[0] = x[0]; }
$launch_head
    relu<<<unsigned(dims.n / 1048576), 32, 0, stream>>>(x, y, dims.n);
    return cudaGetLastError();
}
EOT
judged grid launch_error "grid"

kernel ignoring_errors <<EOT
__global__ void relu(const float* x, float* y, int64_t n) { y[0] = x[0]; }
$launch_head
    relu<<<0, 32, 0, stream>>>(x, y, dims.n);
    cudaGetLastError();
    return cudaSuccess;
}
EOT
judged ignoring_errors launch_error "grid"

finish
