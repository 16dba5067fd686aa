/* nvcc.h - runs nvcc's own steps, with its host and device passes beside each other. */
#pragma once
#include "build/build.h"

/* One command of a dry run. */
typedef struct {
    const char **argv; // NULL-terminated; argv[0] as nvcc wrote it
    int argc;
} Step;

/* nvcc's steps by the part they play. */
typedef struct {
    Step preprocess_host, cudafe;                      // the host pass
    Step preprocess_device, cicc, ptxas, fatbinary;    // the device pass
    Step compile, link;
    const char **env;                // NULL-terminated: what nvcc sets for its children
    const char *path;                // the PATH among them
    const char *module_id;           // the file both passes read the module's name from
    const char *host_ii, *device_ii; // preprocessed sources
    const char *stub;                // appears when the device front end has accepted the source
    const char *ptx;
} Plan;

/* Recognises the steps in what `nvcc --dryrun` printed. False when anything is not as expected:
 * then plain nvcc has to do it. `why` says what was not. */
bool plan_parse(Arena *arena, const char *dryrun, Plan *plan, const char **why);

typedef enum {
    COMPILE_OK,
    COMPILE_FAILED,     // `log` says why
    COMPILE_CRASHED,    // a compiler died of this source; `log` names it
    COMPILE_TIMEOUT,
} CompileStatus;

typedef struct {
    const Toolchain *toolchain;
    const char *scratch;        // holds kernel.cu and task.h; everything is written here
    double cpu_s;               // what any one compiler may compute
    double deadline;            // clock_seconds(): when all must have ended
    Cancel *cancel;
    bool plain;                 // do not take the steps apart
} CompileJob;

typedef struct {
    CompileStatus status;
    char *log;                  // everything the compilers said, in a fixed order
    const char *object;         // in scratch, as are the preprocessed sources, *.ii
    bool beside;                // the passes ran beside each other
    double seconds;
} CompileOutcome;

/* The flags of every build, the arch's included, without inputs and outputs. */
const char **nvcc_flags(Arena *arena, const Toolchain *toolchain);

/* False on failures that are not the kernel's: a compiler that is missing or was killed, a full
 * disk, an interrupt. */
bool nvcc_compile(Arena *arena, const CompileJob *job, CompileOutcome *outcome, Error *err);
