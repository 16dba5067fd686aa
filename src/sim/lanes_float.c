/* lanes_float.c - floating-point rows, 32 lanes at a time. */
#define ROWS_FLOAT
#include "sim/exec_lanes.h"

#include "sim/instructions.def"
