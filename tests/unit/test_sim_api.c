/* test_sim_api.c - the simulator's library survives what no correct program does.
 *
 * A kernel's object may call the runtime API with anything. The library is loaded as the runner
 * loads it, and called with pointers, handles and sizes that make no sense.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "sim/cuda_abi.h"
#include "sim/sim.h"
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

static void *library;

static void *function(const char *name) {
    void *address = dlsym(library, name);
    if (!address) fail_msg("the library lacks %s", name);
    return address;
}

/* Calls `name` with up to eight arguments of one machine word each. */
#define CALL(name, ...)                                                                            \
    (((cudaError_t(*)(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t,        \
                      uint64_t))function(name))(WORDS(__VA_ARGS__, 0, 0, 0, 0, 0, 0, 0, 0)))
#define WORDS(a, b, c, d, e, f, g, h, ...)                                                         \
    (uint64_t)(a), (uint64_t)(b), (uint64_t)(c), (uint64_t)(d), (uint64_t)(e), (uint64_t)(f),      \
        (uint64_t)(g), (uint64_t)(h)

static void test_handles_that_were_never_given_out_are_refused(void **state) {
    (void)state;
    static const char *const kCalls[] = {
        // the handle comes first
        "cudaStreamDestroy",
        "cudaStreamSynchronize",
        "cudaStreamQuery",
        "cudaEventDestroy",
        "cudaEventSynchronize",
        "cudaEventQuery",
        "cudaGraphDestroy",
        "cudaGraphExecDestroy",
        "cudaGraphDestroyNode",
        "cudaLibraryUnload",
        "cudaFree",
        "cudaFreeHost",
        "cudaHostUnregister",
        "cudaGraphLaunch",
        "cudaEventRecord",
        "cudaStreamWaitEvent",
        "cudaFuncSetAttribute",
        "cudaFuncGetParamInfo",
        "cudaStreamEndCapture",
        "cudaMemPoolTrimTo",
        "cudaGraphNodeGetType",
        "cudaGraphGetNodes",
        "cudaGraphExecGetFlags",
        "cudaStreamGetFlags",
    };
    static const char *const kResultFirst[] = {
        "cudaFuncGetAttributes", "cudaGetSymbolAddress", "cudaGetSymbolSize", "cudaGraphClone",
        "cudaGraphInstantiate",  "cudaGetKernel",        "cudaFuncGetName",
    };
    uint64_t out[64];
    const uint64_t nonsense[] = {1ull << 63, 3, 0x1234567890ull, (uint64_t)out, (uint64_t)kCalls};
    for (size_t i = 0; i < sizeof nonsense / sizeof *nonsense; i++) {
        for (size_t call = 0; call < sizeof kCalls / sizeof *kCalls; call++)
            if (!CALL(kCalls[call], nonsense[i], out, out))
                fail_msg("%s took %#lx", kCalls[call], (long)nonsense[i]);
        for (size_t call = 0; call < sizeof kResultFirst / sizeof *kResultFirst; call++)
            if (!CALL(kResultFirst[call], out, nonsense[i], 0))
                fail_msg("%s took %#lx", kResultFirst[call], (long)nonsense[i]);
    }
    CALL("cudaGetLastError", 0);
}

static void test_null_results_are_refused(void **state) {
    (void)state;
    static const char *const kCalls[] = {
        "cudaMalloc",
        "cudaMallocHost",
        "cudaMallocPitch",
        "cudaStreamCreate",
        "cudaEventCreate",
        "cudaGraphCreate",
        "cudaGetDevice",
        "cudaGetDeviceCount",
        "cudaDeviceGetAttribute",
        "cudaGetDeviceProperties",
        "cudaRuntimeGetVersion",
        "cudaMemGetInfo",
        "cudaFuncGetAttributes",
        "cudaPointerGetAttributes",
        "cudaEventElapsedTime",
        "cudaStreamIsCapturing",
        "cudaStreamEndCapture",
        "cudaLaunchKernelExC",
        "cudaLaunchHostFunc",
        "cudaOccupancyMaxActiveBlocksPerMultiprocessor",
        "cudaGetDriverEntryPoint",
        "cudaLibraryLoadData",
        "cudaLibraryLoadFromFile",
        "cudaMemcpy3D",
    };
    for (size_t call = 0; call < sizeof kCalls / sizeof *kCalls; call++)
        if (!CALL(kCalls[call], 0, 0, 0)) fail_msg("%s took null", kCalls[call]);
    CALL("cudaGetLastError", 0);
}

static void test_sizes_that_overflow_are_refused(void **state) {
    (void)state;
    char host[64];
    uint64_t device = 0, pitch;
    const uint64_t huge[] = {UINT64_MAX, UINT64_MAX - 255, 1ull << 63, 1ull << 40};
    assert_int_equal(CALL("cudaMalloc", &device, 64), cudaSuccess);
    for (size_t i = 0; i < sizeof huge / sizeof *huge; i++) {
        uint64_t other, n = huge[i];
        assert_int_equal(CALL("cudaMalloc", &other, n), cudaErrorMemoryAllocation);
        assert_int_not_equal(CALL("cudaMallocPitch", &other, &pitch, n, 1), cudaSuccess);
        assert_int_not_equal(CALL("cudaMallocPitch", &other, &pitch, 16, n), cudaSuccess);
        assert_int_equal(CALL("cudaMemset", device, 0, n), cudaErrorInvalidValue);
        assert_int_equal(CALL("cudaMemset", device + 32, 0, 33), cudaErrorInvalidValue);
        assert_int_equal(CALL("cudaMemcpy", device, host, n, cudaMemcpyHostToDevice),
                         cudaErrorInvalidValue);
        assert_int_equal(CALL("cudaMemcpy", host, device, n, cudaMemcpyDeviceToHost),
                         cudaErrorInvalidValue);
        assert_int_not_equal(CALL("cudaMemcpy2D", device, 8, host, 8, 8, n, cudaMemcpyHostToDevice),
                             cudaSuccess);
        assert_int_not_equal(CALL("cudaMemcpy2D", device, n, host, n, 8, 3, cudaMemcpyHostToDevice),
                             cudaSuccess);
        assert_int_not_equal(CALL("cudaMemset2D", device, n, 0, 8, 3), cudaSuccess);
        assert_int_not_equal(CALL("cudaHostRegister", host, n, 0), cudaSuccess);
    }
    assert_int_equal(CALL("cudaFree", device), cudaSuccess);
    assert_int_equal(CALL("cudaMemset", device, 0, 64), cudaErrorInvalidValue);
    assert_int_equal(CALL("cudaMemcpy", host, device, 64, cudaMemcpyDefault),
                     cudaErrorInvalidValue);
    CALL("cudaGetLastError", 0);
}

static void test_registration_of_nonsense_fails_at_the_launch(void **state) {
    (void)state;
    static const uint64_t not_a_wrapper[16];
    static char stub, name[] = "kernel", variable;
    void **(*registers)(const void *) = function("__cudaRegisterFatBinary");
    void **handle = registers(not_a_wrapper);
    CALL("__cudaRegisterFunction", handle, &stub, &stub, name, -1);
    CALL("__cudaRegisterVar", handle, &variable, &variable, name);
    CALL("__cudaRegisterFunction", &stub, &stub, &stub, name, -1); // no such handle
    CALL("__cudaRegisterFatBinaryEnd", handle);
    uint64_t kernel, bytes;
    assert_int_equal(CALL("__cudaGetKernel", &kernel, &stub), cudaSuccess);
    cudaFuncAttributes attributes;
    SimReport *reports = calloc(4, sizeof *reports);
    size_t (*take)(SimReport *, size_t) = function("sim_take_reports");
    take(reports, 4);
    assert_int_equal(CALL("cudaFuncGetAttributes", &attributes, kernel),
                     cudaErrorNoKernelImageForDevice);
    assert_int_equal(take(reports, 4), 1);
    assert_int_equal(reports[0].kind, SIM_UNSUPPORTED);
    assert_string_equal(reports[0].kernel, "kernel");
    assert_string_equal(reports[0].message, "not a fat binary: its wrapper has no magic number");
    assert_int_not_equal(CALL("cudaGetSymbolSize", &bytes, &variable), cudaSuccess);
    CALL("__cudaUnregisterFatBinary", handle);
    CALL("__cudaUnregisterFatBinary", handle);
    assert_int_not_equal(CALL("__cudaGetKernel", &kernel, &stub), cudaSuccess);
    CALL("cudaGetLastError", 0);
    free(reports);
}

static void test_texts_that_are_no_ptx_are_refused(void **state) {
    (void)state;
    static const char *const kTexts[] = {
        "",
        "nonsense",
        "\177ELF\2\1\1",
        ".version",
        ".version 8.0\n.target sm_80\n.entry k(",
        "\x50\xed\x55\xba\1\0\x10\0\xff\xff\xff\xff\xff\xff\xff\xff",
    };
    uint64_t loaded, kernel;
    for (size_t i = 0; i < sizeof kTexts / sizeof *kTexts; i++) {
        char *copy = calloc(1, 64);
        memcpy(copy, kTexts[i], i + 1 < sizeof kTexts / sizeof *kTexts ? strlen(kTexts[i]) : 16);
        cudaError_t error = CALL("cudaLibraryLoadData", &loaded, copy);
        if (!error) {
            assert_int_not_equal(CALL("cudaLibraryGetKernel", &kernel, loaded, "k"), cudaSuccess);
            CALL("cudaLibraryUnload", loaded);
        }
        free(copy);
    }
    assert_int_equal(CALL("cudaLibraryLoadFromFile", &loaded, "/nonexistent"),
                     cudaErrorFileNotFound);
    CALL("cudaGetLastError", 0);
}

static void test_call_that_is_not_simulated_is_reported_as_our_limit(void **state) {
    (void)state;
    SimReport *reports = calloc(4, sizeof *reports);
    size_t (*take)(SimReport *, size_t) = function("sim_take_reports");
    take(reports, 4);
    assert_int_equal(CALL("cudaCreateTextureObject", 1, 2, 3), cudaErrorNotSupported);
    assert_int_equal(take(reports, 4), 1);
    assert_int_equal(reports[0].kind, SIM_UNSUPPORTED);
    assert_string_equal(reports[0].message, "cudaCreateTextureObject is not simulated");
    CALL("cudaGetLastError", 0);
    free(reports);
}

static void test_error_codes_and_names_that_do_not_exist_have_a_text(void **state) {
    (void)state;
    const char *(*name)(int) = function("cudaGetErrorName");
    const char *(*text)(int) = function("cudaGetErrorString");
    for (int code = -5; code < 1100; code++) {
        assert_non_null(name(code));
        assert_true(text(code)[0] != 0);
    }
    assert_string_equal(name(54321), "unrecognized error code");
}

static int load(void **state) {
    (void)state;
    library = dlopen(BUILD_ROOT "/lib/cutegen/sim/libcudart.so.13", RTLD_NOW | RTLD_LOCAL);
    if (!library) print_error("%s\n", dlerror());
    return library ? 0 : -1;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_handles_that_were_never_given_out_are_refused),
        cmocka_unit_test(test_null_results_are_refused),
        cmocka_unit_test(test_sizes_that_overflow_are_refused),
        cmocka_unit_test(test_registration_of_nonsense_fails_at_the_launch),
        cmocka_unit_test(test_texts_that_are_no_ptx_are_refused),
        cmocka_unit_test(test_call_that_is_not_simulated_is_reported_as_our_limit),
        cmocka_unit_test(test_error_codes_and_names_that_do_not_exist_have_a_text),
    };
    return cmocka_run_group_tests(tests, load, NULL);
}
