/* lanes_int.c - integer rows, 32 lanes at a time. */
#define ROWS_INT
#include "sim/exec_lanes.h"

#include "sim/instructions.def"
