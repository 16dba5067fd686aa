/* lanes_convert.c - conversion rows, 32 lanes at a time. */
#define ROWS_CVT
#include "sim/exec_lanes.h"

#include "sim/instructions.def"
