/* sim.h - a libcudart look-alike that executes PTX on the CPU.
 *
 * The library is loaded in place of NVIDIA's runtime; programs call the CUDA runtime API. These
 * extra symbols, absent on a GPU, are looked up with dlsym by the runner.
 */
#pragma once
#include "wire/wire.h"
#include <stddef.h>
#include <stdint.h>

#define SIM_EXPORT __attribute__((visibility("default")))

typedef struct {
    int check_bounds;          // on by default
    int check_initialized;     // on by default
    uint64_t budget;           // lane-instructions per launch; 0: none
    int threads;               // 0: one per core
} SimOptions;

SIM_EXPORT void sim_configure(const SimOptions *options);
/* Names the bytes [data, data + bytes) inside an allocation: kernels may touch these alone of
 * it, reports call them by `name`, offsets count from `data`. A null name forgets it. */
SIM_EXPORT void sim_name(void *data, size_t bytes, const char *name);
/* While hidden, kernels and the API alone reach device memory, as on a GPU: host code that touches
 * it dies by SIGSEGV. Not hidden to begin with. */
SIM_EXPORT void sim_hide_memory(int hidden);
/* Marks bytes as never written (poison) or as written. */
SIM_EXPORT void sim_set_initialized(void *data, size_t bytes, int initialized);
/* Reports since the last call; returns how many exist, writes at most `capacity`. */
SIM_EXPORT size_t sim_take_reports(SimReport *reports, size_t capacity);
typedef struct {
    char kernel[256], counter[96];
    double value;
} SimCounter;
SIM_EXPORT size_t sim_take_counters(SimCounter *counters, size_t capacity);
/* "sm_90a" unless $CUTEGEN_SIM_ARCH says otherwise. */
SIM_EXPORT const char *sim_arch(void);
