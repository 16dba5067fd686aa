// host_api.cu - what a program sees of the CUDA runtime, one line per fact.
//
// Built with a shared cudart it runs on a GPU and on the simulator. host_api.expected is what an
// H200 printed (driver 580, CUDA 13.0); the simulator has to print the same. The argument picks a
// part: "api" goes through the host interface, the others end in a lost context.
#include <cassert>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <cuda_runtime.h>
#include <vector>

static void say(const char *what, cudaError_t error) {
    printf("%s: %s\n", what, cudaGetErrorName(error));
}
#define SAY(call) say(#call, (call))

__constant__ float scale[4] = {1, 2, 3, 4};
__device__ int counter = 5;
__device__ int table[100];
__managed__ int managed_value = 7;

__global__ void add(const float *a, const float *b, float *c, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        c[i] = a[i] + b[i] * scale[i % 4];
}
__global__ void bump(int *x, int by) { atomicAdd(x, by); }
__global__ void twice_plus(int *x, int by) { *x = *x * 2 + by; }
__global__ void count_symbol() { atomicAdd(&counter, (int)blockDim.x); }
__global__ void use_managed(int *out) { *out = managed_value * 3; }
__global__ void static_shared(int *out) {
    __shared__ int s[2048];
    s[threadIdx.x] = threadIdx.x;
    __syncthreads();
    out[threadIdx.x] = s[blockDim.x - 1 - threadIdx.x];
}
extern __shared__ int dynamic[];
__global__ void dynamic_shared(int *out, int words) {
    for (int i = threadIdx.x; i < words; i += blockDim.x)
        dynamic[i] = i;
    __syncthreads();
    if (threadIdx.x == 0)
        *out = dynamic[words - 1];
}
__global__ void __launch_bounds__(128) bounded(int *x) { x[threadIdx.x] = 1; }
__global__ void hungry(float *x) { // keeps over 64 registers alive
    float r[96];
#pragma unroll
    for (int i = 0; i < 96; i++)
        r[i] = x[i * 1024 + threadIdx.x];
    __syncthreads();
#pragma unroll
    for (int i = 0; i < 96; i++)
        x[i * 1024 + threadIdx.x] = r[95 - i] * r[(i * 7) % 96];
}
struct Big {
    char a;
    double b[3];
    short c;
};
__global__ void by_value(Big big, uint8_t small, int *out) {
    *out = big.a + (int)big.b[2] + big.c + small;
}

__global__ void illegal(int *p) { *p = 1; }
__global__ void misaligned(char *p) { *(int *)(p + 1) = 1; }
__global__ void asserts(int x) { assert(x == 1); }
__global__ void traps() { asm("trap;"); }

static int read_int(const int *device) {
    int value = -1;
    cudaMemcpy(&value, device, sizeof value, cudaMemcpyDeviceToHost);
    return value;
}

static void device() {
    int value;
    const int attributes[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 15, 16, 19, 31, 36, 37, 38, 39, 40, 41,
                              75, 76, 78, 79, 80, 81, 82, 83, 87, 89, 91, 95, 97, 99, 106, 108, 109,
                              111, 115, 120};
    for (int a : attributes) {
        cudaDeviceGetAttribute(&value, (cudaDeviceAttr)a, 0);
        printf("attribute %d: %d\n", a, value);
    }
    cudaDeviceProp p;
    SAY(cudaGetDeviceProperties(&p, 0));
    printf("%d.%d, %d, %d, %zu, %zu, %d, %d\n", p.major, p.minor, p.multiProcessorCount, p.warpSize,
           p.sharedMemPerBlock, p.sharedMemPerBlockOptin, p.regsPerBlock,
           p.maxBlocksPerMultiProcessor);
    SAY(cudaGetDeviceProperties(&p, 9));
    SAY(cudaDeviceGetAttribute(&value, cudaDevAttrWarpSize, 1));
    SAY(cudaSetDevice(1));
    SAY(cudaGetLastError());
    SAY(cudaSetDevice(0));
    printf("%s | %s\n", cudaGetErrorString(cudaErrorIllegalAddress),
           cudaGetErrorString((cudaError_t)12345));
    int least, greatest;
    SAY(cudaDeviceGetStreamPriorityRange(&least, &greatest));
    printf("%d %d\n", least, greatest);
}

static void memory() {
    char *d, *h = (char *)malloc(4096), *pinned, *managed;
    void *p = (void *)1;
    SAY(cudaMalloc(&d, 1000));
    printf("aligned %d\n", (int)((uintptr_t)d % 256));
    SAY(cudaMalloc(&p, 0));
    printf("null %d\n", p == nullptr);
    SAY(cudaMalloc(&p, 1ull << 40));
    SAY(cudaPeekAtLastError());
    SAY(cudaGetLastError());
    SAY(cudaGetLastError());
    SAY(cudaMalloc((void **)nullptr, 4));
    SAY(cudaMemset(d, 0x5A, 1000));
    SAY(cudaMemcpy(h, d, 1000, cudaMemcpyDeviceToHost));
    printf("%x\n", h[999]);
    SAY(cudaMemcpy(d, h, 1000, cudaMemcpyHostToDevice));
    SAY(cudaMemcpy(d, h, 1000, cudaMemcpyDefault));
    SAY(cudaMemcpy(d, h, 10, (cudaMemcpyKind)9));
    SAY(cudaMemcpy(h, h + 100, 10, cudaMemcpyHostToHost));
    SAY(cudaMemcpy(h, h + 100, 10, cudaMemcpyHostToDevice));
    SAY(cudaMemcpy(h, d, 10, cudaMemcpyHostToDevice));
    SAY(cudaMemcpy(d, d + 500, 10, cudaMemcpyHostToDevice));
    SAY(cudaMemcpy(h, h + 100, 10, cudaMemcpyDeviceToDevice));
    SAY(cudaMemcpy(d, h, 4000000, cudaMemcpyHostToDevice));
    SAY(cudaMemset(h, 0, 10));
    SAY(cudaMemcpy(nullptr, h, 10, cudaMemcpyHostToDevice));
    SAY(cudaMemcpy(d, h, 0, cudaMemcpyHostToDevice));
    SAY(cudaMemset(nullptr, 0, 10));
    SAY(cudaFree(nullptr));
    SAY(cudaFree(d + 256));
    SAY(cudaGetLastError());
    SAY(cudaMallocHost(&pinned, 4096));
    SAY(cudaMallocManaged(&managed, 4096));
    pinned[5] = 6;
    managed[5] = 7;
    SAY(cudaMemcpy(d, pinned, 100, cudaMemcpyHostToDevice));
    cudaPointerAttributes a;
    for (void *q : {(void *)d, (void *)(d + 17), (void *)pinned, (void *)managed, (void *)h}) {
        SAY(cudaPointerGetAttributes(&a, q));
        printf("type %d device %d\n", a.type, a.type ? a.device : 0);
    }
    SAY(cudaHostRegister(h, 4096, cudaHostRegisterDefault));
    SAY(cudaHostRegister(h, 4096, cudaHostRegisterDefault));
    SAY(cudaPointerGetAttributes(&a, h));
    printf("type %d\n", a.type);
    SAY(cudaHostGetDevicePointer(&p, pinned, 0));
    printf("same %d\n", p == pinned);
    SAY(cudaHostUnregister(h));
    SAY(cudaHostUnregister(h));
    SAY(cudaFreeHost(pinned));
    SAY(cudaFree(managed));
    SAY(cudaFree(d));
    size_t pitch;
    SAY(cudaMallocPitch(&d, &pitch, 100, 10));
    printf("pitch %zu\n", pitch);
    SAY(cudaMemset2D(d, pitch, 1, 100, 10));
    SAY(cudaMemcpy2D(h, 100, d, pitch, 100, 10, cudaMemcpyDeviceToHost));
    SAY(cudaMemcpy2D(h, 50, d, pitch, 100, 10, cudaMemcpyDeviceToHost));
    printf("%d %d\n", h[0], h[999]);
    SAY(cudaFree(d));
    SAY(cudaMallocAsync(&p, 100, 0));
    SAY(cudaFreeAsync(p, 0));
    cudaGetLastError();
    free(h);
}

static void launches() {
    int *x;
    float *f;
    cudaMalloc(&x, 8192);
    cudaMalloc(&f, 96 * 4096);
    cudaMemset(x, 0, 8192);
    cudaMemset(f, 0, 96 * 4096);
    bump<<<1, 32>>>(x, 3);
    SAY(cudaGetLastError());
    SAY(cudaDeviceSynchronize());
    printf("%d\n", read_int(x));
    bump<<<0, 32>>>(x, 3);
    SAY(cudaPeekAtLastError());
    SAY(cudaGetLastError());
    bump<<<dim3(1, 65536), 32>>>(x, 3);
    SAY(cudaGetLastError());
    bump<<<1, 0>>>(x, 3);
    SAY(cudaGetLastError());
    bump<<<1, 1025>>>(x, 3);
    SAY(cudaGetLastError());
    bump<<<1, dim3(1, 1, 65)>>>(x, 3);
    SAY(cudaGetLastError());
    bump<<<1, dim3(64, 64)>>>(x, 3);
    SAY(cudaGetLastError());
    bounded<<<1, 128>>>(x);
    SAY(cudaGetLastError());
    bounded<<<1, 256>>>(x);
    SAY(cudaGetLastError());
    hungry<<<1, 256>>>(f);
    SAY(cudaGetLastError());
    hungry<<<1, 1024>>>(f);
    SAY(cudaGetLastError());
    SAY(cudaDeviceSynchronize());
    dynamic_shared<<<1, 64, 48 << 10>>>(x, 12 << 10);
    SAY(cudaGetLastError());
    printf("%d\n", read_int(x));
    dynamic_shared<<<1, 64, (48 << 10) + 1>>>(x, 12 << 10);
    SAY(cudaGetLastError());
    SAY(cudaFuncSetAttribute(dynamic_shared, cudaFuncAttributeMaxDynamicSharedMemorySize, 227 << 10));
    SAY(cudaFuncSetAttribute(dynamic_shared, cudaFuncAttributeMaxDynamicSharedMemorySize,
                             (227 << 10) + 1));
    SAY(cudaGetLastError());
    SAY(cudaFuncSetAttribute(static_shared, cudaFuncAttributeMaxDynamicSharedMemorySize,
                             (227 << 10) - 8192));
    SAY(cudaFuncSetAttribute(static_shared, cudaFuncAttributeMaxDynamicSharedMemorySize,
                             (227 << 10) - 8191));
    SAY(cudaFuncSetAttribute(static_shared, cudaFuncAttributeMaxDynamicSharedMemorySize, -1));
    SAY(cudaFuncSetAttribute(static_shared, cudaFuncAttributePreferredSharedMemoryCarveout, 101));
    cudaGetLastError();
    dynamic_shared<<<1, 64, 227 << 10>>>(x, 50000);
    SAY(cudaGetLastError());
    printf("%d\n", read_int(x));
    dynamic_shared<<<1, 64, (227 << 10) + 4>>>(x, 50000);
    SAY(cudaGetLastError());
    SAY(cudaFuncSetAttribute((const void *)&x, cudaFuncAttributeMaxDynamicSharedMemorySize, 1));
    int three = 3;
    void *bump_args[] = {&x, &three};
    SAY(cudaLaunchKernel((const void *)bump, dim3(0), dim3(1), bump_args, 0, 0));
    SAY(cudaLaunchKernel((const void *)bump, dim3(1), dim3(1025), bump_args, 0, 0));
    SAY(cudaLaunchKernel((const void *)bump, dim3(1), dim3(1), bump_args, 50000, 0));
    SAY(cudaLaunchKernel((const void *)bump, dim3(1), dim3(1), bump_args, 0, (cudaStream_t)2));
    SAY(cudaLaunchCooperativeKernel((const void *)bump, dim3(0), dim3(1), bump_args, 0, 0));
    cudaLaunchConfig_t empty = {};
    SAY(cudaLaunchKernelExC(&empty, (const void *)bump, bump_args));
    cudaGetLastError();
    Big big = {1, {2, 3, 4}, 5};
    by_value<<<1, 1>>>(big, 200, x);
    SAY(cudaGetLastError());
    printf("%d\n", read_int(x));
    int by = 4;
    void *args[] = {&x, &by};
    SAY(cudaLaunchKernel((const void *)twice_plus, dim3(1), dim3(1), args, 0, 0));
    printf("%d\n", read_int(x));
    SAY(cudaLaunchKernel((const void *)&by, dim3(1), dim3(1), args, 0, 0));
    SAY(cudaGetLastError());
    cudaLaunchConfig_t config = {};
    config.gridDim = config.blockDim = dim3(1);
    cudaLaunchAttribute attribute[2] = {};
    attribute[0].id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attribute[0].val.programmaticStreamSerializationAllowed = 1;
    attribute[1].id = cudaLaunchAttributeClusterDimension;
    attribute[1].val.clusterDim = {1, 1, 1};
    config.attrs = attribute;
    config.numAttrs = 2;
    SAY(cudaLaunchKernelExC(&config, (const void *)twice_plus, args));
    printf("%d\n", read_int(x));
    attribute[1].val.clusterDim = {2, 1, 1};
    SAY(cudaLaunchKernelExC(&config, (const void *)twice_plus, args));
    cudaGetLastError();
    SAY(cudaLaunchCooperativeKernel((const void *)twice_plus, dim3(8), dim3(1), args, 0, 0));
    SAY(cudaLaunchCooperativeKernel((const void *)twice_plus, dim3(32 * 132), dim3(1), args, 0, 0));
    SAY(cudaLaunchCooperativeKernel((const void *)twice_plus, dim3(32 * 132 + 1), dim3(1), args, 0, 0));
    SAY(cudaGetLastError());
    cudaFree(x);
    cudaFree(f);
}

static void functions() {
    cudaFuncAttributes a;
    int none;
    SAY(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&none, (const void *)hungry, 0, 0));
    SAY(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&none, (const void *)hungry, 2000, 0));
    const void *kernels[] = {(const void *)static_shared, (const void *)bounded,
                             (const void *)hungry, (const void *)dynamic_shared};
    for (const void *k : kernels) {
        SAY(cudaFuncGetAttributes(&a, k));
        printf("shared %zu local %zu threads %d registers %d binary %d dynamic %d carveout %d\n",
               a.sharedSizeBytes, a.localSizeBytes, a.maxThreadsPerBlock, a.numRegs,
               a.binaryVersion, a.maxDynamicSharedSizeBytes, a.preferredShmemCarveout);
        for (int threads : {32, 100, 128, 256, 640, 1024}) {
            for (int shared : {0, 1000, 20000, 49152, 100000}) {
                int blocks = -1;
                cudaError_t e =
                    cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, k, threads, shared);
                printf(" %d", e ? -(int)e : blocks);
            }
            size_t room = 0;
            cudaError_t e = cudaOccupancyAvailableDynamicSMemPerBlock(&room, k, 2, threads);
            printf(" | %d %zu\n", (int)e, room);
        }
    }
    int grid, block;
    SAY(cudaOccupancyMaxPotentialBlockSize(&grid, &block, hungry, 0, 0));
    printf("%d x %d\n", grid, block);
    SAY(cudaFuncGetAttributes(&a, (const void *)&grid));
    SAY(cudaGetLastError());
    const char *name;
    SAY(cudaFuncGetName(&name, (const void *)hungry));
    printf("%s\n", name);
}

static void symbols() {
    int values[3] = {10, 20, 30}, back[3] = {};
    void *address;
    size_t size;
    float more[2] = {30, 40};
    SAY(cudaMemcpyToSymbol(table, values, sizeof values, 97 * 4));
    SAY(cudaMemcpyToSymbol(table, values, sizeof values, 98 * 4));
    SAY(cudaGetLastError());
    SAY(cudaMemcpyFromSymbol(back, table, sizeof back, 97 * 4));
    printf("%d %d %d\n", back[0], back[1], back[2]);
    SAY(cudaGetSymbolSize(&size, table));
    printf("%zu\n", size);
    SAY(cudaGetSymbolAddress(&address, table));
    SAY(cudaMemcpy(back, (char *)address + 98 * 4, 4, cudaMemcpyDeviceToHost));
    printf("%d\n", back[0]);
    SAY(cudaGetSymbolAddress(&address, values));
    SAY(cudaGetLastError());
    count_symbol<<<2, 32>>>();
    SAY(cudaMemcpyFromSymbol(back, counter, 4));
    printf("%d\n", back[0]);
    SAY(cudaMemcpyToSymbol(scale, more, sizeof more, 8));
    float a[8], *da, *dc, c[8];
    for (int i = 0; i < 8; i++)
        a[i] = (float)i;
    cudaMalloc(&da, sizeof a);
    cudaMalloc(&dc, sizeof a);
    cudaMemcpy(da, a, sizeof a, cudaMemcpyHostToDevice);
    add<<<1, 32>>>(da, da, dc, 8);
    cudaMemcpy(c, dc, sizeof c, cudaMemcpyDeviceToHost);
    for (float v : c)
        printf("%g ", v);
    printf("\n");
    managed_value = 9;
    use_managed<<<1, 1>>>((int *)dc);
    SAY(cudaDeviceSynchronize());
    printf("%d\n", read_int((int *)dc));
    cudaFree(da);
    cudaFree(dc);
}

static void host_function(void *data) { *(int *)data += 100; }

static void streams() {
    cudaStream_t s, t;
    cudaEvent_t e, f, untimed;
    int *x, n = 1, *pinned;
    unsigned flags;
    float ms = -1;
    cudaMalloc(&x, 4);
    cudaMallocHost(&pinned, 4);
    SAY(cudaStreamCreate(&s));
    SAY(cudaStreamCreateWithFlags(&t, cudaStreamNonBlocking));
    SAY(cudaStreamGetFlags(t, &flags));
    printf("%u\n", flags);
    SAY(cudaStreamCreateWithFlags(&t, 77));
    SAY(cudaEventCreate(&e));
    SAY(cudaEventCreate(&f));
    SAY(cudaEventElapsedTime(&ms, e, f));
    SAY(cudaGetLastError());
    SAY(cudaEventQuery(e));
    SAY(cudaEventRecord(e, s));
    *pinned = 5;
    SAY(cudaMemcpyAsync(x, pinned, 4, cudaMemcpyHostToDevice, s));
    for (int i = 0; i < 3; i++)
        twice_plus<<<1, 1, 0, s>>>(x, i);
    SAY(cudaEventRecord(f, s));
    SAY(cudaStreamWaitEvent(t, f, 0));
    SAY(cudaMemcpyAsync(pinned, x, 4, cudaMemcpyDeviceToHost, t));
    SAY(cudaLaunchHostFunc(t, host_function, &n));
    SAY(cudaStreamSynchronize(t));
    SAY(cudaStreamQuery(s));
    printf("%d %d\n", *pinned, n);
    SAY(cudaEventSynchronize(f));
    SAY(cudaEventElapsedTime(&ms, e, f));
    printf("%d\n", ms >= 0);
    SAY(cudaEventCreateWithFlags(&untimed, cudaEventDisableTiming));
    SAY(cudaEventRecord(untimed));
    SAY(cudaEventElapsedTime(&ms, e, untimed));
    SAY(cudaStreamDestroy(s));
    SAY(cudaStreamDestroy(t));
    SAY(cudaEventDestroy(e));
    cudaGetLastError();
    cudaFree(x);
    cudaFreeHost(pinned);
}

static void graphs() {
    cudaStream_t s, t;
    cudaEvent_t fork, join;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    cudaStreamCaptureStatus status;
    int *x;
    void *p;
    cudaMalloc(&x, 8);
    cudaMemset(x, 0, 8);
    cudaStreamCreate(&s);
    cudaStreamCreate(&t);
    cudaEventCreate(&fork);
    cudaEventCreate(&join);
    SAY(cudaStreamBeginCapture(0, cudaStreamCaptureModeGlobal));
    SAY(cudaStreamEndCapture(s, &graph));
    SAY(cudaStreamBeginCapture(s, cudaStreamCaptureModeThreadLocal));
    twice_plus<<<1, 1, 0, s>>>(x, 1);
    SAY(cudaEventRecord(fork, s));
    SAY(cudaStreamWaitEvent(t, fork));
    SAY(cudaStreamIsCapturing(t, &status));
    printf("capturing %d\n", status);
    bump<<<1, 1, 0, t>>>(x + 1, 1);
    SAY(cudaEventRecord(join, t));
    twice_plus<<<1, 1, 0, s>>>(x, 2);
    SAY(cudaStreamWaitEvent(s, join));
    SAY(cudaMemsetAsync(x + 1, 0, 1, s));
    SAY(cudaStreamEndCapture(s, &graph));
    size_t nodes = 0;
    SAY(cudaGraphGetNodes(graph, nullptr, &nodes));
    printf("nodes %zu\n", nodes);
    SAY(cudaGraphGetRootNodes(graph, nullptr, &nodes));
    printf("roots %zu\n", nodes);
    printf("before %d\n", read_int(x));
    SAY(cudaGraphInstantiate(&exec, graph, 0));
    SAY(cudaGraphDestroy(graph));
    for (int i = 0; i < 3; i++)
        SAY(cudaGraphLaunch(exec, s));
    SAY(cudaStreamSynchronize(s));
    printf("after %d %d\n", read_int(x), read_int(x + 1));
    SAY(cudaGraphExecDestroy(exec));

    SAY(cudaStreamBeginCapture(s, cudaStreamCaptureModeRelaxed));
    SAY(cudaEventRecord(fork, s));
    SAY(cudaEventQuery(fork));
    SAY(cudaGetLastError());
    SAY(cudaStreamWaitEvent(s, fork));
    SAY(cudaStreamEndCapture(s, &graph));
    SAY(cudaEventQuery(fork));
    SAY(cudaStreamWaitEvent(s, fork));
    SAY(cudaEventRecord(fork, s));
    SAY(cudaEventSynchronize(fork));
    SAY(cudaStreamBeginCapture(s, cudaStreamCaptureModeRelaxed));
    SAY(cudaStreamWaitEvent(s, fork));
    SAY(cudaStreamEndCapture(s, &graph));
    SAY(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
    SAY(cudaMemcpy(&status, x, 4, cudaMemcpyDeviceToHost));
    SAY(cudaStreamEndCapture(s, &graph));
    SAY(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
    SAY(cudaDeviceSynchronize());
    SAY(cudaStreamEndCapture(s, &graph));
    SAY(cudaStreamBeginCapture(s, cudaStreamCaptureModeRelaxed));
    SAY(cudaMalloc(&p, 100));
    SAY(cudaFree(p));
    SAY(cudaStreamQuery(s));
    SAY(cudaStreamEndCapture(s, &graph));
    SAY(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
    SAY(cudaMalloc(&p, 100));
    SAY(cudaStreamEndCapture(s, &graph));
    SAY(cudaStreamBeginCapture(s, cudaStreamCaptureModeThreadLocal));
    SAY(cudaStreamSynchronize(s));
    SAY(cudaStreamEndCapture(s, &graph));
    SAY(cudaStreamBeginCapture(s, cudaStreamCaptureModeRelaxed));
    bump<<<1, 1>>>(x, 1);
    SAY(cudaGetLastError());
    SAY(cudaStreamEndCapture(s, &graph));
    SAY(cudaStreamBeginCapture(s, cudaStreamCaptureModeRelaxed));
    cudaEventRecord(fork, s);
    cudaStreamWaitEvent(t, fork);
    bump<<<1, 1, 0, t>>>(x, 1);
    SAY(cudaStreamEndCapture(s, &graph));
    cudaGetLastError();

    cudaGraphNode_t first, second;
    int by = 10;
    void *args[] = {&x, &by};
    cudaKernelNodeParams params = {(void *)twice_plus, dim3(1), dim3(1), 0, args, nullptr};
    cudaMemsetParams zero = {x, 0, 1, 4, 1, 1};
    SAY(cudaGraphCreate(&graph, 0));
    SAY(cudaGraphAddKernelNode(&second, graph, nullptr, 0, &params));
    SAY(cudaGraphAddMemsetNode(&first, graph, nullptr, 0, &zero));
    SAY(cudaGraphAddDependencies(graph, &first, &second, nullptr, 1));
    SAY(cudaGraphInstantiate(&exec, graph, 0));
    SAY(cudaGraphLaunch(exec, 0));
    printf("%d\n", read_int(x));
    by = 20;
    SAY(cudaGraphExecKernelNodeSetParams(exec, second, &params));
    SAY(cudaGraphLaunch(exec, 0));
    printf("%d\n", read_int(x));
    cudaFree(x);
}

static const char library_ptx[] = ".version 8.0\n.target sm_80\n.address_size 64\n"
                                  ".visible .global .align 4 .u32 answer = 42;\n"
                                  ".visible .entry store(.param .u64 p)\n{\n"
                                  ".reg .b64 %rd<3>;\n.reg .b32 %r<2>;\n"
                                  "ld.param.u64 %rd1, [p];\ncvta.to.global.u64 %rd2, %rd1;\n"
                                  "mov.u32 %r1, 77;\nst.global.u32 [%rd2], %r1;\nret;\n}\n";

static void libraries() {
    cudaLibrary_t library;
    cudaKernel_t kernel;
    int *x;
    void *address;
    size_t bytes;
    unsigned count = 0;
    cudaMalloc(&x, 4);
    SAY(cudaLibraryLoadData(&library, library_ptx, nullptr, nullptr, 0, nullptr, nullptr, 0));
    SAY(cudaLibraryGetKernel(&kernel, library, "nothing"));
    SAY(cudaGetLastError());
    SAY(cudaLibraryGetKernel(&kernel, library, "store"));
    SAY(cudaLibraryGetKernelCount(&count, library));
    printf("%u\n", count);
    void *args[] = {&x};
    SAY(cudaLaunchKernel((const void *)kernel, dim3(1), dim3(1), args, 0, 0));
    printf("%d\n", read_int(x));
    SAY(cudaLibraryGetGlobal(&address, &bytes, library, "answer"));
    printf("%zu %d\n", bytes, read_int((int *)address));
    SAY(cudaLibraryUnload(library));
    void *function = nullptr;
    cudaDriverEntryPointQueryResult result;
    SAY(cudaGetDriverEntryPointByVersion("cuDeviceGetCount", &function, 12000,
                                         cudaEnableDefault, &result));
    printf("%d %d\n", function != nullptr, result);
    SAY(cudaGetDriverEntryPointByVersion("cuNoSuchThing", &function, 12000, cudaEnableDefault,
                                         &result));
    printf("%d %d\n", function != nullptr, result);
    SAY(cudaGetDriverEntryPointByVersion("cuNoSuchThing", &function, 12000, cudaEnableDefault,
                                         nullptr));
    cudaGetLastError();
    cudaFree(x);
}

static void lost(const char *how) {
    int *x;
    cudaMalloc(&x, 64);
    if (!strcmp(how, "illegal"))
        illegal<<<1, 1>>>((int *)16);
    if (!strcmp(how, "misaligned"))
        misaligned<<<1, 1>>>((char *)x);
    if (!strcmp(how, "assert"))
        asserts<<<1, 1>>>(2);
    if (!strcmp(how, "trap"))
        traps<<<1, 1>>>();
    SAY(cudaDeviceSynchronize());
    SAY(cudaPeekAtLastError());
    SAY(cudaGetLastError());
    SAY(cudaGetLastError());
    SAY(cudaMalloc(&x, 4));
    SAY(cudaMemset(x, 0, 4));
    bump<<<1, 1>>>(x, 1);
    SAY(cudaGetLastError());
    cudaStream_t s;
    SAY(cudaStreamCreate(&s));
    SAY(cudaFree(x));
    int count;
    SAY(cudaGetDeviceCount(&count));
}

int main(int argc, char **argv) {
    const char *part = argc > 1 ? argv[1] : "api";
    if (strcmp(part, "api")) {
        lost(part);
        return 0;
    }
    device();
    memory();
    launches();
    functions();
    symbols();
    streams();
    graphs();
    libraries();
    SAY(cudaDeviceSynchronize());
    return 0;
}
