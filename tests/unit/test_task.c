/* test_task.c - what a task says is understood; what is wrong with it is told with its place. */
#include "task/task.h"

#include <math.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "task/expr.h"
#include "task/tolerance.h"

/* The task that tests change one line of. */
static const char *const lines[] = {
    "schema: 1",
    "name: demo",
    "summary: rows of sums",
    "class: softmax",
    "dims: {rows: 4096, cols: 8192}",
    "sim: {rows: 64, cols: 1024}",
    "check: [{rows: 3, cols: 1}, {rows: 37, cols: 1009}]",
    "inputs: [{name: x, dtype: f32, shape: [rows, cols], fill: normal}]",
    "outputs: [{name: y, dtype: f32, shape: [rows, cols]}]",
    "reference: reference.c",
};

typedef struct {
    Arena *arena;
    char *directory, *path;
    Task task;
    Error err;
} World;

static int world_new(void **state) {
    World *w = calloc(1, sizeof(*w));
    assert_non_null(w);
    w->arena = arena_new();
    w->directory = directory_scratch(w->arena, "task", &w->err);
    assert_non_null(w->directory);
    w->path = path_join(w->arena, w->directory, "task.yaml");
    assert_true(
        file_write_atomic(path_join(w->arena, w->directory, "reference.c"), "//\n", 3, &w->err));
    *state = w;
    return 0;
}

static int world_free(void **state) {
    World *w = *state;
    Error ignored = {0};
    directory_remove(w->directory, &ignored);
    arena_free(w->arena);
    free(w);
    return 0;
}

static void write_task(World *w, const char *text, size_t bytes) {
    assert_true(file_write_atomic(w->path, text, bytes, &w->err));
}

/* The demo task with the line of `key` replaced (dropped when NULL), or added at the end. */
static char *demo_with(World *w, const char *key, const char *line) {
    Buf buf = {0};
    bool placed = false;
    for (size_t i = 0; i < COUNT_OF(lines); i++) {
        bool here = key && strncmp(lines[i], key, strlen(key)) == 0 && lines[i][strlen(key)] == ':';
        placed |= here;
        if (!here || line) buf_printf(&buf, "%s\n", here ? line : lines[i]);
    }
    if (key && !placed) buf_printf(&buf, "%s\n", line);
    return buf_take(w->arena, &buf);
}

static const Task *loaded(World *w, const char *key, const char *line) {
    char *text = demo_with(w, key, line);
    write_task(w, text, strlen(text));
    if (!task_load(w->arena, w->path, &w->task, &w->err)) fail_msg("%s", w->err.message);
    return &w->task;
}

/* The message that `text` is refused with, without the directory in front. */
static const char *refusal_of(World *w, const char *text, size_t bytes) {
    write_task(w, text, bytes);
    if (task_load(w->arena, w->path, &w->task, &w->err)) fail_msg("accepted: %s", text);
    assert_int_equal(w->err.kind, ERROR_INPUT);
    size_t prefix = strlen(w->directory) + 1;
    assert_int_equal(strncmp(w->err.message, w->directory, prefix - 1), 0);
    return w->err.message + prefix;
}

typedef struct {
    const char *key, *line, *message;
} Refusal;

static void expect_refusals(World *w, const Refusal *refusals, size_t count) {
    for (size_t i = 0; i < count; i++) {
        char *text = demo_with(w, refusals[i].key, refusals[i].line);
        assert_string_equal(refusal_of(w, text, strlen(text)), refusals[i].message);
    }
}
#define EXPECT_REFUSALS(w, list) expect_refusals(w, list, COUNT_OF(list))

/* ---- what is understood ---------------------------------------------------------------------- */

static void test_task_is_understood(void **state) {
    World *w = *state;
    const Task *t = loaded(w, NULL, NULL);
    assert_string_equal(t->name, "demo");
    assert_string_equal(t->path, w->path);
    assert_int_equal(t->class, CLASS_SOFTMAX);
    assert_int_equal(t->dim_count, 2);
    assert_string_equal(t->dim_names[1], "cols");
    assert_int_equal(t->timed.value[1], 8192);
    assert_int_equal(t->sim.value[1], 1024);
    assert_int_equal(t->check_count, 2);
    assert_int_equal(t->checks[1].value[0], 37);
    assert_int_equal(t->tensor_count, 2);
    assert_int_equal(t->input_count, 1);
    assert_string_equal(t->tensors[1].name, "y");
    assert_true(t->tensors[1].is_output);
    assert_string_equal(t->tensors[1].extent_text[0], "rows");
    assert_int_equal(t->tensors[0].fill.kind, FILL_NORMAL);
    assert_true(t->exact_precision);
    assert_true(t->parity_factor == 8);
    assert_false(t->static_dims);
    assert_null(t->baseline_path);
    assert_true(isnan(task_flops(t, &t->timed)));
    assert_true(task_bytes(t, &t->timed) == 2.0 * 4096 * 8192 * 4);
    assert_string_equal(dims_text(w->arena, t, &t->checks[1]), "rows=37 cols=1009");
    Json *json = json_owned(w->arena, dims_json(t, &t->checks[1]));
    assert_string_equal(json_line(w->arena, json), "{\"rows\":37,\"cols\":1009}");
}

static void test_directory_stands_for_its_task_yaml(void **state) {
    World *w = *state;
    loaded(w, NULL, NULL);
    Task task;
    assert_true(task_load(w->arena, w->directory, &task, &w->err));
    assert_string_equal(task.path, w->path);
    assert_string_equal(task.identity.hex, w->task.identity.hex);
}

static void test_optional_keys_are_understood(void **state) {
    World *w = *state;
    Error err = {0};
    assert_true(file_write_atomic(path_join(w->arena, w->directory, "base.cu"), "//\n", 3, &err));
    const char *text = "schema: 1\nname: all\nsummary: everything\nclass: fused\ndims: {n: 64}\n"
                       "check:\n  - {n: 5}\n  - {n: 9}\n  - {n: 7}\n"
                       "inputs:\n"
                       "  - {name: a, dtype: f16, shape: [n], fill: uniform(-1, 0.5)}\n"
                       "  - {name: i, dtype: i32, shape: [ceil_div(n,2)], fill: integers(-3,3)}\n"
                       "  - name: s\n    dtype: f32\n    shape: []\n    fill: ones\n"
                       "  - {name: d, dtype: f32, shape: [n]}\n"
                       "outputs:\n"
                       "  - {name: y, dtype: f32, shape: [2*n], tolerance: {rtol: 1e-3}}\n"
                       "  - {name: k, dtype: i64, shape: [n]}\n"
                       "reference: reference.c\nbaseline: base.cu\nflops: 3*n/2\nmin_bytes: 4*n\n"
                       "min_flops: n\ntolerance: {atol: 0.25}\nprecision: tolerance\n";
    write_task(w, text, strlen(text));
    if (!task_load(w->arena, w->path, &w->task, &w->err)) fail_msg("%s", w->err.message);
    const Task *t = &w->task;
    assert_int_equal(t->sim.value[0], 9); // the largest check
    assert_int_equal(t->input_count, 4);
    assert_true(t->tensors[0].fill.low == -1 && t->tensors[0].fill.high == 0.5);
    assert_true(t->tensors[1].fill.low == -3 && t->tensors[1].fill.high == 3);
    assert_int_equal(t->tensors[1].rank, 1);
    assert_string_equal(t->tensors[1].extent_text[0], "ceil_div(n,2)");
    assert_int_equal(t->tensors[2].rank, 0);
    assert_int_equal(t->tensors[3].fill.kind, FILL_NORMAL);
    assert_true(t->tensors[4].rtol == 1e-3 && t->tensors[4].atol == 0.25);
    assert_true(t->tensors[5].rtol == 0 && t->tensors[5].atol == 0); // whole numbers are exact
    assert_true(task_flops(t, &t->timed) == 96);
    assert_false(t->exact_precision);
    assert_non_null(t->baseline_path);
    int64_t extents[WIRE_MAX_RANK], elements;
    assert_true(tensor_extents(t, &t->tensors[1], &t->checks[0], extents, &elements, &w->err));
    assert_int_equal(elements, 3);
    assert_true(tensor_extents(t, &t->tensors[2], &t->checks[0], extents, &elements, &w->err));
    assert_int_equal(elements, 1);
}

static void test_tasks_that_ship_are_understood(void **state) {
    World *w = *state;
    const char **names;
    size_t count;
    const char *root = SOURCE_ROOT "/tasks";
    assert_true(task_list(w->arena, root, &names, &count, &w->err));
    assert_true(count >= 4);
    for (size_t i = 0; i < count; i++) {
        if (i > 0) assert_true(strcmp(names[i - 1], names[i]) < 0);
        if (!task_load(w->arena, path_join(w->arena, root, names[i]), &w->task, &w->err))
            fail_msg("%s", w->err.message);
        assert_string_equal(w->task.name, names[i]);
        double seconds = task_bytes(&w->task, &w->task.timed) / 4.8e12; // H200
        assert_true(fmax(seconds, task_flops(&w->task, &w->task.timed) / 67e12) >= 20e-6);
    }
    assert_false(task_list(w->arena, "/nonexistent", &names, &count, &w->err));
    assert_string_equal(w->err.message,
                        "cannot list tasks in /nonexistent: No such file or directory");
}

/* ---- what is refused ------------------------------------------------------------------------- */

static void test_missing_file_is_refused(void **state) {
    World *w = *state;
    assert_false(task_load(w->arena, "/nonexistent/task.yaml", &w->task, &w->err));
    assert_string_equal(w->err.message, "/nonexistent/task.yaml: no such task; give a directory "
                                        "with a task.yaml");
    assert_false(task_load(w->arena, w->directory, &w->task, &w->err));
    assert_string_equal(
        w->err.message,
        arena_printf(w->arena, "%s holds no task.yaml; see docs/task-format.md", w->directory));
}

static void test_malformed_yaml_is_refused_at_its_place(void **state) {
    World *w = *state;
    const struct {
        const char *text, *message;
    } cases[] = {
        {"schema: 1\ndims: {rows: 4\nx: [\n",
         "task.yaml:3:2: not valid YAML: missing comma in flow mapping"},
        {"a: b: c\n",
         "task.yaml:1:5: not valid YAML: invalid nested block mapping on the same line"},
        {"", "task.yaml:1:1: the file is empty"},
        {"# nothing\n", "task.yaml:1:1: the file is empty"},
        {"schema: 1\n---\nschema: 1\n", "task.yaml:2:1: one document is enough; this is a second"},
        {"schema: &a 1\n", "task.yaml:1:12: anchors, aliases and tags have no meaning here; write "
                           "it out"},
        {"schema: *a\n", "task.yaml:1:10: anchors, aliases and tags have no meaning here; write it "
                         "out"},
        {"name: !!str x\n", "task.yaml:1:13: anchors, aliases and tags have no meaning here; write "
                            "it out"},
        {"schema: 1\nname: a\nschema: 1\n",
         "task.yaml:3:1: key 'schema' is given twice, first in line 1"},
        {"[a]: 1\n", "task.yaml:1:1: a key must be a word"},
        {"[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]\n", "task.yaml:1:18: nested too deeply"},
        {"- 1\n", "task.yaml:1:1: a task must be given as keys and values: schema, name, summary, "
                  "class, dims, sim, check, inputs, outputs, reference, baseline, flops, "
                  "min_bytes, min_flops, tolerance, precision, parity_factor, static_dims"},
        {"name: \xff\n", "task.yaml:1:1: not a text file in UTF-8"},
        {"name: \"a\\0b\"\n", "task.yaml:1:8: a zero character cannot be part of a text"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        assert_string_equal(refusal_of(w, cases[i].text, strlen(cases[i].text)), cases[i].message);
    assert_string_equal(refusal_of(w, "a\0b", 3), "task.yaml:1:1: not a text file in UTF-8");
}

static void test_absurdly_large_file_is_refused(void **state) {
    World *w = *state;
    size_t bytes = 10u << 20;
    char *text = malloc(bytes);
    assert_non_null(text);
    memset(text, '#', bytes);
    const char *message = refusal_of(w, text, bytes);
    free(text);
    assert_true(strstr(message, "task.yaml") == message);
    assert_non_null(strstr(message, "262144"));
}

static void test_head_of_the_task_is_checked(void **state) {
    static const Refusal cases[] = {
        {"schema", NULL, "task.yaml:1:1: the task lacks the key 'schema'"},
        {"schema", "schema: 2", "task.yaml:1:9: unknown schema '2'; this version reads schema 1"},
        {"schema", "schema: {}", "task.yaml:1:9: schema must be a single value"},
        {"schema", "schema:", "task.yaml:1:1: schema has no value"},
        {"name", NULL, "task.yaml:1:1: the task lacks the key 'name'"},
        {"name", "name: a/b",
         "task.yaml:2:7: task name 'a/b' becomes part of file names: only letters, digits, _ - "
         "and ."},
        {"name", "name: .x", "task.yaml:2:7: task name '.x' must begin with a letter or a digit"},
        {"class", "class: gem", "task.yaml:4:8: unknown class 'gem'; did you mean gemm?"},
        {"class", "class: fourier",
         "task.yaml:4:8: unknown class 'fourier'; there are elementwise reduction norm softmax "
         "scan gemm conv pool attention loss fused"},
        {"inptus", "inptus: []", "task.yaml:11:1: unknown key 'inptus'; did you mean inputs?"},
        {"colour", "colour: red",
         "task.yaml:11:1: unknown key 'colour'; a task has schema, name, summary, class, dims, "
         "sim, check, inputs, outputs, reference, baseline, flops, min_bytes, min_flops, "
         "tolerance, precision, parity_factor, static_dims"},
        {"static_dims", "static_dims: maybe", "task.yaml:11:14: static_dims must be true or false"},
        {"static_dims", "static_dims: true",
         "task.yaml:7:8: static_dims fixes the sizes to dims; remove check"},
        {"precision", "precision: bits",
         "task.yaml:11:12: precision must be parity or tolerance, not 'bits'"},
        {"parity_factor", "parity_factor: 0.5",
         "task.yaml:11:16: parity_factor must be at least 1"},
        {"parity_factor", "parity_factor: eight",
         "task.yaml:11:16: parity_factor must be a number, not 'eight'"},
        {"reference", NULL, "task.yaml:1:1: the task lacks the key 'reference'"},
        {"reference", "reference: missing.c",
         "task.yaml:10:12: reference 'missing.c' is not a file beside the task"},
        {"baseline", "baseline: missing.cu",
         "task.yaml:11:11: baseline 'missing.cu' is not a file beside the task"},
        {"flops", "flops: 5*rosw", "task.yaml:11:10: unknown dimension 'rosw'; did you mean rows?"},
        {"flops", "flops: 0-rows", "task.yaml:11:8: flops is -4096 for the timed sizes"},
        {"min_bytes", "min_bytes: rows/(cols-8192)",
         "task.yaml:11:12: min_bytes is inf for the timed sizes"},
    };
    EXPECT_REFUSALS(*state, cases);
}

static void test_sizes_are_checked(void **state) {
    static const Refusal cases[] = {
        {"dims", NULL, "task.yaml:1:1: the task lacks the key 'dims'"},
        {"dims", "dims: [rows]",
         "task.yaml:5:7: dims must be given as names and sizes: {rows: 4096, cols: 8192}"},
        {"dims", "dims: {rows: 4096, cols: 8k}",
         "task.yaml:5:26: cols must be a whole number, not '8k'"},
        {"dims", "dims: {rows: 0, cols: 1}", "task.yaml:5:14: rows must be at least 1, not 0"},
        {"dims", "dims: {rows: -4, cols: 1}", "task.yaml:5:14: rows must be at least 1, not -4"},
        {"dims", "dims: {rows: 99999999999999999999, cols: 1}",
         "task.yaml:5:14: rows must be a whole number, not '99999999999999999999'"},
        {"dims", "dims: {rows: 1099511627777, cols: 1}",
         "task.yaml:5:14: rows is larger than 2^40"},
        {"dims", "dims: {rows: 1048576, cols: 2097152}",
         "task.yaml:8:39: input 'x' has more than 2^40 elements with rows=1048576 cols=2097152"},
        {"dims", "dims: {2x: 1}", "task.yaml:5:8: dimension '2x' begins with a digit"},
        {"dims", "dims: {while: 1}", "task.yaml:5:8: dimension 'while' is a keyword of C or C++"},
        {"dims", "dims: {__n: 1}", "task.yaml:5:8: dimension '__n' is reserved"},
        {"dims", "dims: {rows: 1, rows: 2}",
         "task.yaml:5:17: key 'rows' is given twice, first in line 5"},
        {"sim", "sim: {rows: 4}", "task.yaml:6:6: sim lacks dimension 'cols'"},
        {"sim", "sim: 4", "task.yaml:6:6: sim must give a size for each dimension: rows, cols"},
        {"check", "check: {rows: 1, cols: 1}",
         "task.yaml:7:8: check must be a list of sizes, one '- {…}' each"},
        {"check", "check: [{rows: 1, cols: 1}, {cols: 1}]",
         "task.yaml:7:29: this check lacks dimension 'rows'"},
        {"check", "check: [{rows: 1, cols: 1, col: 1}]",
         "task.yaml:7:28: unknown dimension 'col'; did you mean cols?"},
        {"check", "check: [{rows: 1, cols: 1, depth: 1}]",
         "task.yaml:7:28: unknown dimension 'depth'; dims has rows, cols"},
        {"check", "check: [{rows: 1, cols: 0}]", "task.yaml:7:25: cols must be at least 1, not 0"},
    };
    EXPECT_REFUSALS(*state, cases);
}

static void test_tensors_are_checked(void **state) {
    static const Refusal cases[] = {
        {"inputs", "inputs: [{name: x, dtype: fp32, shape: [rows]}]",
         "task.yaml:8:27: unknown dtype 'fp32' for input 'x'; did you mean f32?"},
        {"inputs", "inputs: [{name: x, dtype: half, shape: [rows]}]",
         "task.yaml:8:27: unknown dtype 'half' for input 'x'; did you mean f16?"},
        {"inputs", "inputs: [{name: x, dtype: quaternion, shape: [rows]}]",
         "task.yaml:8:27: unknown dtype 'quaternion' for input 'x'; there are f64 f32 f16 bf16 "
         "e4m3 e5m2 i64 i32 i16 i8 u8 bool"},
        {"inputs", "inputs: [{name: x, dtype: f32, shape: [rows, colz]}]",
         "task.yaml:8:46: unknown dimension 'colz'; did you mean cols?"},
        {"inputs", "inputs: [{name: x, dtype: f32, shape: [rows, depth]}]",
         "task.yaml:8:46: unknown dimension 'depth'; add it to dims"},
        {"inputs", "inputs: [{name: x, dtype: f32, shape: rows}]",
         "task.yaml:8:39: the shape of 'x' must be a list: [rows, cols], or [] for a scalar"},
        {"inputs", "inputs: [{name: x, dtype: f32}]",
         "task.yaml:8:10: an input lacks the key 'shape'"},
        {"inputs", "inputs: [{name: x, shape: [rows]}]",
         "task.yaml:8:10: an input lacks the key 'dtype'"},
        {"inputs", "inputs: [{dtype: f32, shape: [rows]}]",
         "task.yaml:8:10: an input lacks the key 'name'"},
        {"inputs", "inputs: [x]",
         "task.yaml:8:10: an input must be given as keys and values: name, dtype, shape, fill"},
        {"inputs", "inputs: x", "task.yaml:8:9: inputs must be a list, one '- {name: …}' each"},
        {"inputs", "inputs: [{name: x, dtype: f32, shape: [1,1,1,1,1,1,1,1,1]}]",
         "task.yaml:8:56: 'x' has more than 8 axes"},
        {"inputs", "inputs: [{name: x, dtype: f32, shape: [rows-3, cols]}]",
         "task.yaml:8:39: extent rows-3 of input 'x' is 0 with rows=3 cols=1; it must be at least "
         "1"},
        {"inputs", "inputs: [{name: x, dtype: f32, shape: [cols-3]}]",
         "task.yaml:8:39: extent cols-3 of input 'x' is -2 with rows=3 cols=1; it must be at least "
         "1"},
        {"inputs", "inputs: [{name: x, dtype: f32, shape: [rows/(cols-1)+1]}]",
         "task.yaml:8:39: extent rows/(cols-1)+1 of input 'x' divides by zero with rows=3 cols=1"},
        {"inputs", "inputs: [{name: x, dtype: f32, shape: [rows*rows*rows*rows*rows*rows]}]",
         "task.yaml:8:39: extent rows*rows*rows*rows*rows*rows of input 'x' does not fit in 64 "
         "bits with rows=4096 cols=8192"},
        {"inputs", "inputs: [{name: x, dtype: f32, shape: [0.5*rows]}]",
         "task.yaml:8:40: an extent must be a whole number"},
        {"inputs", "inputs: [{name: x, dtype: f32, shape: [rows], fil: ones}]",
         "task.yaml:8:47: unknown key 'fil'; did you mean fill?"},
        {"inputs", "inputs: [{name: x, dtype: f32, shape: [rows], tolerance: {}}]",
         "task.yaml:8:47: unknown key 'tolerance'; an input has name, dtype, shape, fill"},
        {"inputs", "inputs: [{name: int, dtype: f32, shape: [rows]}]",
         "task.yaml:8:17: input 'int' is a keyword of C or C++"},
        {"inputs", "inputs: [{name: stream, dtype: f32, shape: [rows]}]",
         "task.yaml:8:17: input 'stream' is taken by the generated headers"},
        {"inputs", "inputs: [{name: workspace, dtype: f32, shape: [rows]}]",
         "task.yaml:8:17: input 'workspace' is taken by the generated headers"},
        {"inputs", "inputs: [{name: dims, dtype: f32, shape: [rows]}]",
         "task.yaml:8:17: input 'dims' is taken by the generated headers"},
        {"inputs", "inputs: [{name: a-b, dtype: f32, shape: [rows]}]",
         "task.yaml:8:17: input 'a-b' is not a C identifier: only letters, digits and _"},
        {"inputs", "inputs: [{name: x, dtype: f32, shape: []}, {name: x, dtype: f32, shape: []}]",
         "task.yaml:8:51: the name 'x' is given twice, first in line 8"},
        {"outputs", "outputs: [{name: x, dtype: f32, shape: [rows]}]",
         "task.yaml:9:18: the name 'x' is given twice, first in line 8"},
        {"outputs", "outputs: [{name: y, dtype: f32, shape: [rows], fill: ones}]",
         "task.yaml:9:48: unknown key 'fill'; an output has name, dtype, shape, tolerance"},
        {"outputs", NULL, "task.yaml:1:1: the task lacks the key 'outputs'"},
        {"outputs", "outputs: []", "task.yaml:9:10: a task needs an output"},
    };
    EXPECT_REFUSALS(*state, cases);
}

static void test_too_many_of_anything_is_refused(void **state) {
    World *w = *state;
    Buf dims = {0}, inputs = {0}, checks = {0};
    buf_puts(&dims, "dims: {");
    for (int i = 0; i < 33; i++)
        buf_printf(&dims, "d%d: 1,", i);
    buf_puts(&dims, "}");
    buf_puts(&inputs, "inputs:");
    for (int i = 0; i < 65; i++)
        buf_printf(&inputs, "\n  - {name: x%d, dtype: f32, shape: []}", i);
    buf_puts(&checks, "check:");
    for (int i = 0; i < 65; i++)
        buf_puts(&checks, "\n  - {rows: 1, cols: 1}");
    const Refusal cases[] = {
        {"dims", dims.data, "task.yaml:5:222: more than 32 dimensions"},
        {"inputs", inputs.data, "task.yaml:73:5: more than 64 inputs and outputs"},
        {"check", checks.data, "task.yaml:72:5: more than 64 check entries"},
    };
    EXPECT_REFUSALS(w, cases);
    buf_free(&dims);
    buf_free(&inputs);
    buf_free(&checks);
}

static void test_fills_are_checked(void **state) {
#define INPUT(dtype, fill) "inputs: [{name: x, dtype: " dtype ", shape: [rows], fill: " fill "}]"
    static const Refusal cases[] = {
        {"inputs", INPUT("f32", "nromal"),
         "task.yaml:8:53: unknown fill 'nromal'; did you mean normal?"},
        {"inputs", INPUT("f32", "gauss"),
         "task.yaml:8:53: unknown fill 'gauss'; there are normal, uniform(a,b), integers(a,b), "
         "zeros, ones"},
        {"inputs", INPUT("f32", "uniform"), "task.yaml:8:53: write fill as uniform(a,b)"},
        {"inputs", INPUT("f32", "uniform(1)"), "task.yaml:8:53: write fill as uniform(a,b)"},
        {"inputs", INPUT("f32", "uniform(0,1"), "task.yaml:8:53: write fill as uniform(a,b)"},
        {"inputs", INPUT("f32", "\"uniform(0,1)x\""), "task.yaml:8:54: write fill as uniform(a,b)"},
        {"inputs", INPUT("f32", "uniform(a,b)"),
         "task.yaml:8:53: write fill as uniform(a,b) with two numbers"},
        {"inputs", INPUT("f32", "uniform(1,1)"), "task.yaml:8:53: fill uniform(a,b) needs a < b"},
        {"inputs", INPUT("f32", "integers(2,1)"),
         "task.yaml:8:53: fill integers(a,b) needs a <= b"},
        {"inputs", INPUT("f32", "integers(0,1.5)"),
         "task.yaml:8:53: fill integers(a,b) needs whole numbers"},
        {"inputs", INPUT("f32", "normal(0,1)"), "task.yaml:8:53: fill normal takes no numbers"},
        {"inputs", INPUT("i8", "integers(0,200)"),
         "task.yaml:8:52: fill integers(a,b) of 'x' must stay within -128..127, which i8 holds "
         "exactly"},
        {"inputs", INPUT("bf16", "integers(0,1000)"),
         "task.yaml:8:54: fill integers(a,b) of 'x' must stay within -256..256, which bf16 holds "
         "exactly"},
        {"inputs", INPUT("i32", "normal"),
         "task.yaml:8:53: fill normal is for floating point; 'x' is i32: use integers(a,b)"},
        {"inputs", "inputs: [{name: x, dtype: i32, shape: [rows]}]",
         "task.yaml:8:10: input 'x' is i32 and needs a fill: integers(a,b), zeros or ones"},
    };
    EXPECT_REFUSALS(*state, cases);
}

static void test_tolerances_are_checked(void **state) {
    static const Refusal cases[] = {
        {"tolerance", "tolerance: 1e-4",
         "task.yaml:11:12: tolerance must be given as keys and values: rtol, atol"},
        {"tolerance", "tolerance: {rtol: small}",
         "task.yaml:11:19: rtol must be a number, not 'small'"},
        {"tolerance", "tolerance: {atol: -1}", "task.yaml:11:19: atol must not be negative"},
        {"tolerance", "tolerance: {atol: nan}",
         "task.yaml:11:19: atol must be a number, not 'nan'"},
        {"tolerance", "tolerance: {rtol: 1}",
         "task.yaml:11:19: an rtol of 1 or more accepts an output of zeros"},
        {"tolerance", "tolerance: {rtol: 0, atol: 0}",
         "task.yaml:11:12: output 'y' cannot be exact; give an rtol or an atol"},
        {"tolerance", "tolerance: {rtoll: 0}",
         "task.yaml:11:13: unknown key 'rtoll'; did you mean rtol?"},
    };
    EXPECT_REFUSALS(*state, cases);
}

static void test_parity_factor_without_parity_is_refused(void **state) {
    World *w = *state;
    char *text = demo_with(w, "precision", "precision: tolerance\nparity_factor: 4");
    assert_string_equal(refusal_of(w, text, strlen(text)),
                        "task.yaml:12:16: parity_factor has no meaning with precision: tolerance");
}

/* ---- expressions ----------------------------------------------------------------------------- */

static const char *const dim_names[] = {"n", "k"};
static const ExprNames names = {dim_names, 2};
static const Dims sizes = {{10, 3}};

static const Expr *parsed(World *w, const char *text) {
    const Expr *e;
    if (!expr_parse(w->arena, text, &names, "t", 1, 1, &e, &w->err)) fail_msg("%s", w->err.message);
    return e;
}

static void test_expressions_follow_arithmetic(void **state) {
    static const struct {
        const char *text;
        int64_t whole;
        double real;
    } cases[] = {
        {"7", 7, 7},
        {"n", 10, 10},
        {"2+3*4", 14, 14},
        {"(2+3)*4", 20, 20},
        {"n-k-1", 6, 6},
        {"n/k", 3, 10 / 3.0},
        {"-n/k", -3, -10 / 3.0},
        {"n/k*k", 9, 10},
        {"-2*-n", 20, 20},
        {"min(n, k)", 3, 3},
        {"max(n,k)", 10, 10},
        {"ceil_div(n,k)", 4, 4},
        {"ceil_div(9,k)", 3, 3},
        {"(n+2*k-1)/2+1", 8, 8.5},
        {" n * k ", 30, 30},
        {"ceil_div(-n,k)", -3, -3},
    };
    World *w = *state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const Expr *e = parsed(w, cases[i].text);
        int64_t value;
        assert_null(expr_integer(e, &sizes, &value));
        assert_int_equal(value, cases[i].whole);
        assert_true(fabs(expr_real(e, &sizes) - cases[i].real) < 1e-12);
    }
    assert_true(expr_real(parsed(w, "2.5e3*n"), &sizes) == 25000);
}

static void test_expressions_that_cannot_be_computed_say_why(void **state) {
    World *w = *state;
    int64_t value;
    const char *largest = "9223372036854775807";
    assert_string_equal(expr_integer(parsed(w, "1/(n-10)"), &sizes, &value), "divides by zero");
    assert_string_equal(expr_integer(parsed(w, "1.5*n"), &sizes, &value), "is not a whole number");
    const char *overflowing[] = {"%s+1", "-%s-2", "%s*2", "(-%s-1)/-1", "ceil_div(-%s-1,-1)"};
    for (size_t i = 0; i < COUNT_OF(overflowing); i++) {
        Buf text = {0};
        const char *mark = strstr(overflowing[i], "%s");
        buf_append(&text, overflowing[i], (size_t)(mark - overflowing[i]));
        buf_printf(&text, "%s%s", largest, mark + 2);
        assert_string_equal(expr_integer(parsed(w, text.data), &sizes, &value),
                            "does not fit in 64 bits");
        buf_free(&text);
    }
}

static void test_malformed_expressions_are_refused_at_their_place(void **state) {
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"", "t:1:5: a number or a dimension is missing here"},
        {"n+", "t:1:7: a number or a dimension is missing here"},
        {"n*(k", "t:1:9: expected ')' before the end of the expression"},
        {"n k", "t:1:7: the expression should end before 'k'"},
        {"n)", "t:1:6: the expression should end before ')'"},
        {"*n", "t:1:5: expected a number or a dimension, found '*'"},
        {"max(n)", "t:1:10: expected ',', found ')'"},
        {"pow(n,2)", "t:1:5: unknown function 'pow'; there are min, max, ceil_div"},
        {"2n", "t:1:5: this is not a number"},
        {"0x10", "t:1:5: this is not a number"},
        {"1e999", "t:1:5: this is not a number"},
        {"99999999999999999999", "t:1:5: this number does not fit in 64 bits"},
        {"n+\xc3\xa4", "t:1:7: expected a number or a dimension"},
        {"n\xc3\xa4", "t:1:6: the expression should end here"},
    };
    World *w = *state;
    const Expr *e;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        assert_false(expr_parse(w->arena, cases[i].text, &names, "t", 1, 5, &e, &w->err));
        assert_string_equal(w->err.message, cases[i].message);
    }
    char deep[401];
    memset(deep, '(', 400);
    deep[400] = 0;
    assert_false(expr_parse(w->arena, deep, &names, "t", 1, 1, &e, &w->err));
    assert_string_equal(w->err.message, "t:1:65: nested too deeply");
    char wide[601];
    memset(wide, '1', 600);
    wide[600] = 0;
    assert_false(expr_parse(w->arena, wide, &names, "t", 1, 1, &e, &w->err));
    assert_string_equal(w->err.message, "t:1:1: this expression is too long");
}

/* ---- tolerance ------------------------------------------------------------------------------- */

static void test_tolerance_follows_type_and_length(void **state) {
    (void)state;
    double rtol, atol, longer;
    tolerance_default(DTYPE_F32, 1, &rtol, &atol);
    assert_true(rtol == 1e-4 && atol == 1e-5);
    tolerance_default(DTYPE_F32, 4096, &rtol, &atol);
    assert_true(rtol == 1e-4 && fabs(atol - 8 * 4096 / 16777216.0) < 1e-9);
    tolerance_default(DTYPE_F32, 4 * 4096, &rtol,
                      &longer); // as runs of 4096: twice, not four times
    assert_true(fabs(longer / atol - 2) < 1e-9);
    tolerance_default(DTYPE_F16, 1, &rtol, &atol);
    assert_true(rtol == ldexp(1, -10));
    tolerance_default(DTYPE_BF16, 1, &rtol, &atol);
    assert_true(rtol == ldexp(1, -7));
    tolerance_default(DTYPE_I32, 4096, &rtol, &atol);
    assert_true(rtol == 0 && atol == 0);
}

static void test_accumulation_length_is_what_is_summed_over(void **state) {
    World *w = *state;
    assert_true(task_load(w->arena, SOURCE_ROOT "/tasks/sgemm", &w->task, &w->err));
    assert_true(accumulation_length(&w->task) == 2048);
    assert_true(task_load(w->arena, SOURCE_ROOT "/tasks/vector_add", &w->task, &w->err));
    assert_true(accumulation_length(&w->task) == 1);
    const char *text = // h and w look summed over too; the flops say what is
        "schema: 1\nname: conv\nsummary: convolution\nclass: conv\n"
        "dims: {n: 2, c: 16, h: 40, w: 40, o: 8, f: 3}\n"
        "inputs:\n  - {name: x, dtype: f32, shape: [n, c, h, w]}\n"
        "  - {name: k, dtype: f32, shape: [o, c, f, f]}\n"
        "outputs:\n  - {name: y, dtype: f32, shape: [n, o, h-f+1, w-f+1]}\n"
        "reference: reference.c\nflops: 2*n*o*(h-f+1)*(w-f+1)*c*f*f\n";
    write_task(w, text, strlen(text));
    if (!task_load(w->arena, w->path, &w->task, &w->err)) fail_msg("%s", w->err.message);
    assert_true(accumulation_length(&w->task) == 16 * 9);
}

/* ---- identity -------------------------------------------------------------------------------- */

static void test_identity_follows_what_decides_the_verdict(void **state) {
    static const struct {
        const char *key, *line;
    } changes[] = {
        {"name", "name: other"},
        {"class", "class: norm"},
        {"dims", "dims: {rows: 4096, cols: 8191}"},
        {"sim", "sim: {rows: 63, cols: 1024}"},
        {"check", "check: [{rows: 3, cols: 1}]"},
        {"inputs", "inputs: [{name: z, dtype: f32, shape: [rows, cols], fill: normal}]"},
        {"inputs", "inputs: [{name: x, dtype: f16, shape: [rows, cols], fill: normal}]"},
        {"inputs", "inputs: [{name: x, dtype: f32, shape: [cols, rows], fill: normal}]"},
        {"inputs", "inputs: [{name: x, dtype: f32, shape: [rows, cols], fill: ones}]"},
        {"tolerance", "tolerance: {rtol: 1e-3}"},
        {"precision", "precision: tolerance"},
        {"parity_factor", "parity_factor: 4"},
        {"flops", "flops: 5*rows*cols"},
    };
    World *w = *state;
    Hash seen[COUNT_OF(changes) + 2];
    seen[0] = loaded(w, NULL, NULL)->identity;
    for (size_t i = 0; i < COUNT_OF(changes); i++)
        seen[i + 1] = loaded(w, changes[i].key, changes[i].line)->identity;
    assert_true(
        file_write_atomic(path_join(w->arena, w->directory, "reference.c"), "/**/", 4, &w->err));
    seen[COUNT_OF(changes) + 1] = loaded(w, NULL, NULL)->identity;
    for (size_t i = 0; i < COUNT_OF(seen); i++)
        for (size_t k = 0; k < i; k++)
            assert_string_not_equal(seen[i].hex, seen[k].hex);
}

static void test_identity_ignores_what_is_for_people(void **state) {
    World *w = *state;
    Hash first = loaded(w, NULL, NULL)->identity;
    assert_string_equal(loaded(w, "summary", "summary: said otherwise")->identity.hex, first.hex);
    assert_string_equal(loaded(w, "class", "class: softmax   # a comment")->identity.hex,
                        first.hex);
}

/* ---- generated text -------------------------------------------------------------------------- */

static void test_kernel_header_declares_launch(void **state) {
    World *w = *state;
    const Task *t = loaded(w, "summary", "summary: \"two\\nlines \\\\\"");
    assert_string_equal(
        task_kernel_header(w->arena, t),
        "// task.h - generated by cutegen for the task demo: two lines /\n"
        "#pragma once\n#include <cuda_runtime.h>\n#include <stddef.h>\n#include <stdint.h>\n\n"
        "struct Dims {\n    int64_t rows; // 4096 when timed\n"
        "    int64_t cols; // 8192 when timed\n};\n\n"
        "// Every tensor is contiguous, row-major and 256-byte aligned. All work goes onto "
        "`stream`;\n// nothing is allocated or waited for.\n"
        "extern \"C\" cudaError_t launch(const float *x, // [rows, cols]\n"
        "                              float *y, // [rows, cols], output\n"
        "                              Dims dims, void *workspace, cudaStream_t stream);\n\n"
        "// Optional: bytes of `workspace` that launch() needs; 0 unless defined.\n"
        "extern \"C\" __attribute__((weak, visibility(\"hidden\"))) size_t workspace_bytes(Dims "
        "dims);\n");
}

static void test_kernel_header_includes_the_types_it_names(void **state) {
    World *w = *state;
    loaded(w, "inputs",
           "inputs: [{name: a, dtype: bf16, shape: []}, {name: b, dtype: e4m3, shape: []}, "
           "{name: c, dtype: e5m2, shape: []}, {name: d, dtype: bf16, shape: []}]");
    const char *text = task_kernel_header(w->arena, &w->task);
    assert_non_null(strstr(text, "#include <stdint.h>\n#include <cuda_bf16.h>\n"
                                 "#include <cuda_fp8.h>\n\n"));
    assert_non_null(strstr(text, "launch(const __nv_bfloat16 *a, // []\n"));
}

static void test_static_dims_are_constants(void **state) {
    World *w = *state;
    const char *text = "schema: 1\nname: fixed\nsummary: s\nclass: gemm\ndims: {n: 64}\n"
                       "outputs: [{name: y, dtype: f32, shape: [n]}]\nreference: reference.c\n"
                       "static_dims: true\n";
    write_task(w, text, strlen(text));
    if (!task_load(w->arena, w->path, &w->task, &w->err)) fail_msg("%s", w->err.message);
    assert_non_null(
        strstr(task_kernel_header(w->arena, &w->task), "    static constexpr int64_t n = 64;\n"));
    assert_non_null(strstr(task_kernel_footer(w->arena, &w->task), "return ::Dims{};"));
    assert_int_equal(w->task.sim.value[0], 64);
}

static void test_reference_header_compiles_in_both_precisions(void **state) {
    World *w = *state;
    loaded(w, "inputs",
           "inputs: [{name: in, dtype: f16, shape: []}, {name: I, dtype: i32, shape: [rows], fill: "
           "zeros}, {name: out, dtype: bool, shape: [], fill: ones}]");
    const char *header = task_reference_header(w->arena, &w->task);
    assert_non_null(strstr(header, "    const real *in; // []\n    const int32_t *I; // [rows]\n"
                                   "    const uint8_t *out; // []\n"));
    const char *source = "#include \"reference.h\"\n"
                         "void reference(const Inputs *in, Outputs *out, const Dims *dims,\n"
                         "               int64_t begin, int64_t end) {\n"
                         "    for (int64_t r = begin; r < end; r++)\n"
                         "        out->y[r * dims->cols] = exp(in->in[0]) + in->I[r];\n"
                         "    _Static_assert(sizeof(exp(in->in[0])) == sizeof(real), \"\");\n}\n";
    const char *reals[] = {"-DCUTEGEN_REAL=double", "-DCUTEGEN_REAL=float"};
    assert_true(file_write_atomic(path_join(w->arena, w->directory, "reference.h"), header,
                                  strlen(header), &w->err));
    assert_true(file_write_atomic(path_join(w->arena, w->directory, "reference.c"), source,
                                  strlen(source), &w->err));
    for (int i = 0; i < 2; i++) {
        const char *const argv[] = {"cc",     "-std=c17",      "-Wall",       "-Wextra", "-Werror",
                                    reals[i], "-fsyntax-only", "reference.c", NULL};
        ProcessOptions options = {.argv = argv, .cwd = w->directory, .timeout_s = 60};
        ProcessResult result;
        assert_true(process_run(w->arena, &options, &result, &w->err));
        if (result.exit_code != 0) fail_msg("%s", result.err);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, world_new, world_free)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_task_is_understood),
        TEST(test_directory_stands_for_its_task_yaml),
        TEST(test_optional_keys_are_understood),
        TEST(test_tasks_that_ship_are_understood),
        TEST(test_missing_file_is_refused),
        TEST(test_malformed_yaml_is_refused_at_its_place),
        TEST(test_absurdly_large_file_is_refused),
        TEST(test_head_of_the_task_is_checked),
        TEST(test_sizes_are_checked),
        TEST(test_tensors_are_checked),
        TEST(test_too_many_of_anything_is_refused),
        TEST(test_fills_are_checked),
        TEST(test_tolerances_are_checked),
        TEST(test_parity_factor_without_parity_is_refused),
        TEST(test_expressions_follow_arithmetic),
        TEST(test_expressions_that_cannot_be_computed_say_why),
        TEST(test_malformed_expressions_are_refused_at_their_place),
        TEST(test_tolerance_follows_type_and_length),
        TEST(test_accumulation_length_is_what_is_summed_over),
        TEST(test_identity_follows_what_decides_the_verdict),
        TEST(test_identity_ignores_what_is_for_people),
        TEST(test_kernel_header_declares_launch),
        TEST(test_kernel_header_includes_the_types_it_names),
        TEST(test_static_dims_are_constants),
        TEST(test_reference_header_compiles_in_both_precisions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
