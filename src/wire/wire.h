/* wire.h - what separate programs share: frames, payloads, element types and the fill generator.
 *
 * Linked by cutegen, cutegen-runner, cutegen-oracle and the simulator, so it needs libc alone.
 * Everything that is read from a peer is bounds-checked: a peer may have run hostile code.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- element types ---------------------------------------------------------------------- */

typedef enum {
    DTYPE_F64, DTYPE_F32, DTYPE_F16, DTYPE_BF16, DTYPE_E4M3, DTYPE_E5M2,
    DTYPE_I64, DTYPE_I32, DTYPE_I16, DTYPE_I8, DTYPE_U8, DTYPE_BOOL,
    DTYPE_COUNT
} DType;

typedef struct {
    const char *name;       // as in task.yaml: "f32"
    const char *cuda_type;  // as in task.h: "float", "__half", "int64_t"
    const char *host_type;  // as in reference.h for integers: "int64_t"; floats are `real`
    int bytes;
    bool is_float;
    int mantissa_bits;      // stored; 23 for f32. 0 for integers
} DTypeInfo;

const DTypeInfo *dtype_info(DType dtype);
bool dtype_parse(const char *name, DType *dtype);
double dtype_load(DType dtype, const void *data, int64_t index);
/* Rounds to nearest even; out of range becomes inf (e4m3: NaN), integers saturate. */
void dtype_store(DType dtype, void *data, int64_t index, double value);

/* ---- fills ------------------------------------------------------------------------------ */

typedef enum { FILL_NORMAL, FILL_UNIFORM, FILL_INTEGERS, FILL_ZEROS, FILL_ONES, FILL_COUNT } FillKind;
typedef struct {
    FillKind kind;
    double low, high; // uniform: [low, high); integers: low..high inclusive
} Fill;

/* Element `i` depends on (seed, tensor, i) alone: Philox4x32-10 with key (seed, tensor) and
 * counter i (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011).
 * Normal is the centred sum of the block's eight 16-bit halves scaled to variance 1
 * (Irwin-Hall, |x| < 4.9): integer arithmetic and one multiplication, so CPU and GPU give the
 * same bits. Writes elements [begin, begin + count) to out[0..count). */
void fill_generate(Fill fill, DType dtype, uint64_t seed, uint32_t tensor, int64_t begin,
                   int64_t count, void *out);
void philox4x32_10(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]);

/* ---- payloads --------------------------------------------------------------------------- */

/* Little-endian; strings are u32 length + bytes. A writer grows on the heap. A reader never
 * reads past its end: it returns zeros and sets `failed`, looked at once at the end. */
typedef struct {
    uint8_t *data;
    size_t bytes, capacity;
} WireWriter;
typedef struct {
    const uint8_t *data;
    size_t bytes, at;
    bool failed;
} WireReader;

void put_u8(WireWriter *w, uint8_t value);
void put_u32(WireWriter *w, uint32_t value);
void put_u64(WireWriter *w, uint64_t value);
void put_i64(WireWriter *w, int64_t value);
void put_f64(WireWriter *w, double value);
void put_text(WireWriter *w, const char *text);              // NULL is sent as ""
void put_bytes(WireWriter *w, const void *data, size_t bytes); // with length
void wire_writer_free(WireWriter *w);

uint8_t get_u8(WireReader *r);
uint32_t get_u32(WireReader *r);
uint64_t get_u64(WireReader *r);
int64_t get_i64(WireReader *r);
double get_f64(WireReader *r);
/* Copies at most `capacity - 1` bytes and terminates; a longer one is cut, the reader moves on. */
void get_text(WireReader *r, char *out, size_t capacity);
const uint8_t *get_bytes(WireReader *r, size_t *bytes);      // points into the payload

/* ---- frames ----------------------------------------------------------------------------- */

#define WIRE_VERSION 1u
#define WIRE_MAX_PAYLOAD (64u << 20)

typedef struct {
    uint16_t type;       // a RunnerMessage or OracleMessage
    uint8_t *payload;    // owned; reused by the next receive into the same frame
    uint32_t bytes;
    uint32_t capacity;
} Frame;

typedef enum {
    WIRE_OK,
    WIRE_CLOSED,   // the peer is gone, at a frame's edge
    WIRE_TIMEOUT,  // nothing complete before the deadline
    WIRE_CORRUPT,  // bad magic, version, length, or it ended inside a frame
} WireStatus;

/* A frame is magic "CTG1", u16 version, u16 type, u32 payload bytes, payload. Writing to a dead
 * peer gives WIRE_CLOSED (callers ignore SIGPIPE). `seconds` < 0 waits for ever. */
WireStatus frame_send(int fd, uint16_t type, const void *payload, size_t bytes, double seconds);
WireStatus frame_receive(int fd, Frame *frame, double seconds);
void frame_free(Frame *frame);
static inline WireReader frame_reader(const Frame *frame) {
    return (WireReader){.data = frame->payload, .bytes = frame->bytes};
}

/* ---- the runner's messages --------------------------------------------------------------- */

/* The parent asks, the runner answers each request with its answer or with RUNNER_FAULT {text}:
 * the runner itself could not do it, which is never the kernel's doing. Fields in order. */
typedef enum {
    RUNNER_HELLO = 1,   // first, unasked: u8 simulated, text device name, text arch ("sm_90a"),
                        //   u32 cudart version (13000), u32 multiprocessors, u64 memory bytes,
                        //   text isolation ("no_new_privs, rlimits"): the layers that hold
    RUNNER_FAULT,       // text
    RUNNER_OK,          // empty
    RUNNER_TENSORS,     // ask: u32 count, each {text name, u8 is_output, u8 dtype, i64 elements}.
                        //   Frees what was there. answer: RUNNER_OK
    RUNNER_LOAD,        // ask: text object path. answer: RUNNER_LOADED {u8 ok, text why not}
    RUNNER_LOADED,
    RUNNER_FILL,        // ask: u64 seed, u32 count of inputs, each {u8 kind, f64 low, f64 high};
                        //   input k is filled as tensor k. answer: RUNNER_OK
    RUNNER_POISON,      // ask: u8 pattern, for every byte of outputs and of the next workspace.
                        //   answer: RUNNER_OK
    RUNNER_LAUNCH,      // ask: u32 count, i64 dims…, u64 budget in lane-instructions (0: none)
    RUNNER_LAUNCHED,    // answer: i64 cudaError_t, text its name, text its meaning,
                        //   u8 phase (LaunchPhase), u64 workspace bytes, f64 seconds,
                        //   u32 reports, each a SimReport as report_put writes it;
                        //   u32 kernels asked for, then of the last: u32 grid[3], block[3],
                        //   u64 dynamic shared bytes
    RUNNER_REDZONES,    // ask: empty. answer: RUNNER_REDZONES u32 count, each {u32 tensor,
                        //   i64 byte offset from the tensor's start, u64 bytes changed};
                        //   one past the last tensor is the workspace
    RUNNER_EXPORT,      // ask: u32 tensor. answer: RUNNER_EXPORTED
    RUNNER_EXPORTED,    // u8 how (0: the exchange file), u64 offset in it, u64 bytes
    RUNNER_COUNTERS,    // ask: empty. answer: RUNNER_COUNTERS u32 count, each {text kernel,
                        //   text counter, f64 value} of the last launch; none on a GPU
    RUNNER_QUIT,        // ask only
} RunnerMessage;

typedef enum {
    LAUNCH_RETURNED,    // the error came from launch() itself
    LAUNCH_SYNCHRONIZED,// … or from waiting for the stream
    LAUNCH_PENDING,     // launch() said cudaSuccess, but cudaGetLastError() held this
    LAUNCH_WORKSPACE,   // the workspace it asked for could not be had
} LaunchPhase;

/* What the simulator saw in one place of the kernel; equal places are counted, not repeated. */
typedef enum {
    SIM_OUT_OF_BOUNDS, SIM_MISALIGNED, SIM_UNINITIALIZED, SIM_BUDGET, SIM_BARRIER, SIM_TRAP,
    SIM_ASSERT, SIM_UNSUPPORTED, // SIM_UNSUPPORTED: ours, a harness fault
    SIM_REPORT_KIND_COUNT
} SimReportKind;

typedef struct {
    SimReportKind kind;
    uint8_t is_write;
    char space[16];         // "global", "shared", "local"
    char kernel[256];       // demangled if known
    char file[512];         // the user's file, found through inlined_at
    uint32_t line;
    char chain[1024];       // "kernel.cu:57 < copy.hpp:211 < …", innermost last
    char instruction[160];  // PTX text
    uint32_t thread[3], block[3];
    uint64_t address, access_bytes;
    char tensor[64];        // the tensor or allocation it meant, "" if unknown
    int64_t offset_bytes;   // from that tensor's start; beyond its end or negative when outside
    uint64_t tensor_bytes;
    uint64_t count;         // how often here
    char message[512];      // one sentence without the place
} SimReport;
void report_put(WireWriter *w, const SimReport *report);
void report_get(WireReader *r, SimReport *report);
const char *sim_report_kind_name(SimReportKind kind);

/* ---- the oracle's messages ---------------------------------------------------------------- */

#define WIRE_MAX_RANK 8

/* Same manner; ORACLE_FAULT {text} is the user's task at fault or ours, the text says which. */
typedef enum {
    ORACLE_HELLO = 64,  // first, unasked: text kind ("c" or "torch")
    ORACLE_FAULT,       // text
    ORACLE_OK,
    ORACLE_TASK,        // ask: text object path in double, text object path in float,
                        //   u32 tensors, each {text name, u8 is_output, u8 dtype}. answer: ORACLE_OK
    ORACLE_TRUTH,       // ask: u64 seed, u32 dims, i64 each; per tensor {u32 rank, i64 extents…};
                        //   per input {u8 kind, f64 low, f64 high}. answer: ORACLE_OK
    ORACLE_COMPARE,     // ask: u8 poison pattern; per output {f64 rtol, f64 atol}; per tensor
                        //   {u64 offset, u64 bytes} in the exchange file. answer: ORACLE_COMPARED
    ORACLE_COMPARED,    // u32 mutated inputs, each {u32 tensor, i64 first element}; per output a
                        //   Mismatch as mismatch_put writes it
    ORACLE_QUIT,
} OracleMessage;

/* How an output differs, in words that point at a cause. */
typedef enum {
    MISMATCH_NONE,
    MISMATCH_UNTOUCHED,       // still poison: never written
    MISMATCH_NONFINITE,       // NaN or inf where the reference has a number
    MISMATCH_CONSTANT_FACTOR, // got = factor * expected
    MISMATCH_CONSTANT_OFFSET, // got = expected + offset
    MISMATCH_TRANSPOSED,      // of the last two axes
    MISMATCH_SHIFTED,         // by `shift` elements
    MISMATCH_RAGGED_EDGE,     // only past the last full tile
    MISMATCH_BEYOND_2G,       // only at flat index or byte offset past 2^31
    MISMATCH_TILES, MISMATCH_ROWS, MISMATCH_COLUMNS,
    MISMATCH_ACCUMULATION,    // small everywhere: precision, not logic
    MISMATCH_SCATTERED,       // none of the above
    MISMATCH_SHAPE_COUNT
} MismatchShape;

typedef struct {
    uint64_t elements, wrong, untouched, nonfinite;
    int64_t first;             // flat index of the first wrong element, -1: none
    uint32_t rank;
    int64_t extents[WIRE_MAX_RANK];
    double got, expected;      // there
    double max_abs, max_rel;   // over all elements
    double allowed;            // atol + rtol * |expected| at the first wrong one
    double error, baseline_error; // relative Frobenius error against the double truth: of the
                               //   kernel, and of the same reference in float
    MismatchShape shape;
    char sentence[512];        // "rows 4096 and up are untouched"
} Mismatch;
void mismatch_put(WireWriter *w, const Mismatch *mismatch);
void mismatch_get(WireReader *r, Mismatch *mismatch);
const char *mismatch_shape_name(MismatchShape shape);
