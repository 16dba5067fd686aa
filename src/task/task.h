/* task.h - a task: what an operator computes, on which shapes, and how exact it must be.
 *
 * Read from task.yaml + reference.c (docs/task-format.md). A Task is plain data; nothing here
 * builds or runs anything.
 */
#pragma once
#include "base/base.h"
#include "wire/wire.h"

#define TASK_MAX_DIMS 32
#define TASK_MAX_TENSORS 64
#define TASK_MAX_CHECKS 64

typedef enum {
    CLASS_ELEMENTWISE, CLASS_REDUCTION, CLASS_NORM, CLASS_SOFTMAX, CLASS_SCAN, CLASS_GEMM,
    CLASS_CONV, CLASS_POOL, CLASS_ATTENTION, CLASS_LOSS, CLASS_FUSED, CLASS_COUNT
} WorkloadClass;
const char *class_name(WorkloadClass class);

typedef struct { int64_t value[TASK_MAX_DIMS]; } Dims; // in the order of Task.dim_names

typedef struct Expr Expr; // an arithmetic expression over dims: "5*rows*cols", "(h+2*p-k)/s+1"

typedef struct {
    const char *name;
    DType dtype;
    bool is_output;
    int rank;
    const Expr *extents[WIRE_MAX_RANK];
    const char *extent_text[WIRE_MAX_RANK]; // as the user wrote them, for comments and reports
    Fill fill;                              // inputs only
    double rtol, atol;                      // outputs only; resolved, never 0/0
} Tensor;

typedef struct {
    const char *path;          // of task.yaml, as the user gave it
    const char *directory;     // absolute
    const char *name, *summary;
    WorkloadClass class;
    int dim_count;
    const char *dim_names[TASK_MAX_DIMS];
    Dims timed, sim;           // sim: what the simulator judges at the end and costs
    int check_count;
    Dims checks[TASK_MAX_CHECKS];
    bool static_dims;
    int tensor_count, input_count;         // inputs first, then outputs, each in YAML order
    Tensor tensors[TASK_MAX_TENSORS];
    const char *reference_path; // absolute
    const char *baseline_path;  // absolute, or NULL
    const Expr *flops;          // or NULL
    const Expr *min_bytes, *min_flops; // what no algorithm avoids, or NULL
    bool exact_precision;       // precision: parity (the default)
    double parity_factor;       // 8 unless the task says otherwise
    Hash identity;              // of everything above and the reference's text
} Task;

/* `path`: a task.yaml, or a directory that holds one. Errors name file:line:column. */
bool task_load(Arena *arena, const char *path, Task *task, Error *err);

/* Extents of `tensor` under `dims`; false when one is negative or the tensor exceeds 2^40
 * elements (err names tensor and dims). rank may be 0: one element. */
bool tensor_extents(const Task *task, const Tensor *tensor, const Dims *dims,
                    int64_t extents[WIRE_MAX_RANK], int64_t *elements, Error *err);
double task_flops(const Task *task, const Dims *dims);  // NAN when the task does not say
double task_bytes(const Task *task, const Dims *dims);  // every tensor once
char *dims_text(Arena *arena, const Task *task, const Dims *dims); // "rows=37 cols=1009"
Json *dims_json(const Task *task, const Dims *dims);    // new reference

/* The text of the generated task.h that kernels include, and of the harness appended to a
 * kernel (the entry cutegen_entry_v1): docs/kernel-contract.md. */
#define CONTRACT_VERSION 1
#define CONTRACT_FOOTER_FILE "cutegen_footer.h" // what diagnostics call the appended harness
char *task_kernel_header(Arena *arena, const Task *task);
char *task_kernel_footer(Arena *arena, const Task *task);
/* The text of reference.h that reference.c includes: `real`, Inputs, Outputs, Dims. */
char *task_reference_header(Arena *arena, const Task *task);
/* The bare prototype of launch(), as prompts show it. */
char *task_launch_signature(Arena *arena, const Task *task);

/* Native tasks below `root` (tasks/): directories in name order. */
bool task_list(Arena *arena, const char *root, const char ***names, size_t *count, Error *err);
