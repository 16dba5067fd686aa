/* sim.c - the simulator's options and the device it pretends to be.
 *
 * Options are set once by the runner and read at each launch. The device is chosen by
 * $CUTEGEN_SIM_ARCH; its limits decide which launches are refused and what occupancy calls
 * answer, so they are those of a real card: A100 (SXM, 80 GB), A10, L40S, H200.
 */
#include "sim/host.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static const SimDevice devices[] = {
    {.arch = "sm_90a",
     .major = 9,
     .minor = 0,
     .arch_specific = true,
     .multiprocessors = 132,
     .threads_per_multiprocessor = 2048,
     .blocks_per_multiprocessor = 32,
     .shared_per_multiprocessor = 228 << 10,
     .shared_per_block_optin = 227 << 10,
     .l2_bytes = 60 << 20,
     .persisting_l2_bytes = 39321600,
     .clock_khz = 1980000,
     .memory_clock_khz = 3201000,
     .memory_bus_bits = 6016,
     .async_engines = 3,
     .float_to_double_ratio = 2,
     .clusters = true},
    {.arch = "sm_80",
     .major = 8,
     .minor = 0,
     .multiprocessors = 108,
     .threads_per_multiprocessor = 2048,
     .blocks_per_multiprocessor = 32,
     .shared_per_multiprocessor = 164 << 10,
     .shared_per_block_optin = 163 << 10,
     .l2_bytes = 40 << 20,
     .persisting_l2_bytes = 30 << 20,
     .clock_khz = 1410000,
     .memory_clock_khz = 1593000,
     .memory_bus_bits = 5120,
     .async_engines = 3,
     .float_to_double_ratio = 2},
    {.arch = "sm_86",
     .major = 8,
     .minor = 6,
     .multiprocessors = 72,
     .threads_per_multiprocessor = 1536,
     .blocks_per_multiprocessor = 16,
     .shared_per_multiprocessor = 100 << 10,
     .shared_per_block_optin = 99 << 10,
     .l2_bytes = 6 << 20,
     .persisting_l2_bytes = 4 << 20,
     .clock_khz = 1695000,
     .memory_clock_khz = 6251000,
     .memory_bus_bits = 384,
     .async_engines = 2,
     .float_to_double_ratio = 32},
    {.arch = "sm_89",
     .major = 8,
     .minor = 9,
     .multiprocessors = 142,
     .threads_per_multiprocessor = 1536,
     .blocks_per_multiprocessor = 24,
     .shared_per_multiprocessor = 100 << 10,
     .shared_per_block_optin = 99 << 10,
     .l2_bytes = 96 << 20,
     .persisting_l2_bytes = 60 << 20,
     .clock_khz = 2520000,
     .memory_clock_khz = 9001000,
     .memory_bus_bits = 384,
     .async_engines = 2,
     .float_to_double_ratio = 64},
};

const SimDevice *sim_device(void) {
    const char *arch = getenv("CUTEGEN_SIM_ARCH");
    for (size_t i = 0; arch && i < sizeof devices / sizeof *devices; i++)
        if (!strcmp(devices[i].arch, arch)) return &devices[i];
    return &devices[0];
}

const char *sim_arch(void) {
    return sim_device()->arch;
}

static struct {
    pthread_mutex_t lock;
    SimOptions options;
} settings = {.lock = PTHREAD_MUTEX_INITIALIZER,
              .options = {.check_bounds = 1, .check_initialized = 1}};

void sim_configure(const SimOptions *options) {
    if (!options) return;
    pthread_mutex_lock(&settings.lock);
    settings.options = *options;
    pthread_mutex_unlock(&settings.lock);
}

SimOptions sim_options(void) {
    pthread_mutex_lock(&settings.lock);
    SimOptions options = settings.options;
    pthread_mutex_unlock(&settings.lock);
    return options;
}
