/* lanes_table.c - the handlers of one instruction set, in the order of the rows. */
#include "sim/exec_lanes.h"
#undef LANE1
#undef LANE2
#undef LANE3
#undef ROUND1
#undef ROUND2
#undef ROUND3
#undef COMPARE
#undef SETREG
#undef CARRY2
#undef CARRY3
#define ROWS_ALL

#define NAMED(id)                                   void RUN(id)(Warp *, const Inst *, uint8_t *, uint32_t);
#define LANE1(id, pattern, D, A, expr)              NAMED(id)
#define LANE2(id, pattern, D, A, B, expr)           NAMED(id)
#define LANE3(id, pattern, D, A, B, C, expr)        NAMED(id)
#define ROUND1(id, pattern, D, A, mode, expr)       NAMED(id)
#define ROUND2(id, pattern, D, A, B, mode, expr)    NAMED(id)
#define ROUND3(id, pattern, D, A, B, C, mode, expr) NAMED(id)
#define COMPARE(id, pattern, A, expr)               NAMED(id)
#define SETREG(id, pattern, D, A, expr)             NAMED(id)
#define CARRY2(id, pattern, T, uses, makes, expr)   NAMED(id)
#define CARRY3(id, pattern, T, uses, makes, expr)   NAMED(id)
#define OTHER(id, pattern, family, arg, control)    NAMED(id)
#include "sim/instructions.def"

#undef NAMED
#define NAMED(id)                                   RUN(id),
#define LANE1(id, pattern, D, A, expr)              NAMED(id)
#define LANE2(id, pattern, D, A, B, expr)           NAMED(id)
#define LANE3(id, pattern, D, A, B, C, expr)        NAMED(id)
#define ROUND1(id, pattern, D, A, mode, expr)       NAMED(id)
#define ROUND2(id, pattern, D, A, B, mode, expr)    NAMED(id)
#define ROUND3(id, pattern, D, A, B, C, mode, expr) NAMED(id)
#define COMPARE(id, pattern, A, expr)               NAMED(id)
#define SETREG(id, pattern, D, A, expr)             NAMED(id)
#define CARRY2(id, pattern, T, uses, makes, expr)   NAMED(id)
#define CARRY3(id, pattern, T, uses, makes, expr)   NAMED(id)
#define OTHER(id, pattern, family, arg, control)    NAMED(id)
extern const RunFn JOIN_NAMES(sim_handlers_, SIM_ISA)[];
const RunFn JOIN_NAMES(sim_handlers_, SIM_ISA)[] = {
#include "sim/instructions.def"
};
