// cub.cu - sort, scan and reduction by CUB and thrust, compared with the host's results.
#include <algorithm>
#include <cstdio>
#include <cub/cub.cuh>
#include <thrust/device_vector.h>
#include <thrust/host_vector.h>
#include <thrust/reduce.h>
#include <thrust/sort.h>
#include <vector>

// Runs a CUB algorithm the usual way: once for the size of its workspace, once in earnest.
template <class Algorithm>
static void run(const char *name, Algorithm algorithm) {
    void *workspace = nullptr;
    size_t bytes = 0;
    algorithm(workspace, bytes);
    cudaMalloc(&workspace, bytes);
    printf("%s: %s\n", name, cudaGetErrorName(algorithm(workspace, bytes)));
    cudaFree(workspace);
}

int main() {
    const int n = 5000;
    std::vector<unsigned> keys(n), got(n);
    for (int i = 0; i < n; i++)
        keys[i] = (i * 2654435761u) >> 7;
    std::vector<unsigned> sorted = keys, sums(n);
    std::sort(sorted.begin(), sorted.end());
    unsigned total = 0;
    for (int i = 0; i < n; i++)
        sums[i] = total += keys[i];

    unsigned *in, *out;
    cudaMalloc(&in, n * sizeof *in);
    cudaMalloc(&out, n * sizeof *out);
    cudaMemcpy(in, keys.data(), n * sizeof *in, cudaMemcpyHostToDevice);
    run("sort", [&](void *workspace, size_t &bytes) {
        return cub::DeviceRadixSort::SortKeys(workspace, bytes, in, out, n);
    });
    cudaMemcpy(got.data(), out, n * sizeof *out, cudaMemcpyDeviceToHost);
    printf("sorted %d\n", got == sorted);
    run("scan", [&](void *workspace, size_t &bytes) {
        return cub::DeviceScan::InclusiveSum(workspace, bytes, in, out, n);
    });
    cudaMemcpy(got.data(), out, n * sizeof *out, cudaMemcpyDeviceToHost);
    printf("summed %d\n", got == sums);

    thrust::device_vector<unsigned> vector(keys.begin(), keys.end());
    printf("reduced %d\n", thrust::reduce(vector.begin(), vector.end(), 0u) == total);
    thrust::sort(vector.begin(), vector.end());
    thrust::host_vector<unsigned> back = vector;
    printf("sorted %d\n", std::equal(sorted.begin(), sorted.end(), back.begin()));
    printf("end: %s\n", cudaGetErrorName(cudaDeviceSynchronize()));
}
