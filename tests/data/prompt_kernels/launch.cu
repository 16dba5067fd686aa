// Calls each kernel that the prompts show; appended to their fences by tests/e2e/prompts.sh.
static unsigned tiles(int64_t extent, int64_t tile) {
    return unsigned((extent + tile - 1) / tile);
}

extern "C" cudaError_t launch(const float *x, const float *w, const float *s, const __half *a,
                              const __half *b, float *doubled, float *sums, float *squares,
                              float *means, float *product, Dims d, void *, cudaStream_t stream) {
    auto half = [](const __half *p) { return reinterpret_cast<cute::half_t const *>(p); };
    scale_kernel<<<dim3(tiles(d.n, 64), tiles(d.m, 32)), 128, 0, stream>>>(x, doubled, int(d.m),
                                                                           int(d.n));
    column_sum_kernel<<<1, 128, 0, stream>>>(s, sums, int(d.rows));
    // Compiled but never reached: the simulator does not execute tensor-core instructions yet.
    if (d.k > 1000) tensor_core_kernel<<<1, 128, 0, stream>>>(half(a), half(b), sums, int(d.k));
    square_kernel<<<tiles(d.m * d.n, 2048), 256, 0, stream>>>(x, squares, d.m * d.n);
    row_mean_kernel<<<unsigned(d.m), 256, 0, stream>>>(x, means, d.n);
    small_sgemm_kernel<<<dim3(tiles(d.q, 64), tiles(d.m, 64)), 256, 0, stream>>>(
        x, w, product, int(d.m), int(d.q), int(d.n));
    return cudaGetLastError();
}
