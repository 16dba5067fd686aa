/* sim_ptx.h - runs PTX text on the simulator's engine, for tests. */
#pragma once
#include "sim/engine.h"

/* A kernel's text from its body: target, registers enough for any test, one parameter `p`. */
char *ptx_around(const char *body);

typedef struct {
    ExecStatus status;
    char message[512];      // why it could not be loaded or decoded
    SimReport reports[16];
    size_t report_count;
} PtxRun;

typedef struct {
    uint32_t grid[3], block[3]; // zeros: 1
    uint32_t dynamic_shared;
    SimOptions options;
    bool cooperative;
    const void *params;     // NULL: none
    uint32_t param_bytes;
} PtxLaunch;

/* Loads `text`, launches its kernel `name`, takes the reports. */
PtxRun ptx_run(const char *text, const char *name, const PtxLaunch *launch);
/* Device memory that counts as initialised and holds `data` (zeros when NULL). */
void *device_copy(const void *data, size_t bytes, const char *name);
