/* load.c - reads task.yaml into a Task, and refuses whatever could not be judged.
 *
 * Each section has a function; each reports the first thing wrong with it at its place in the
 * file. Whatever would fail later (a shape that is negative for one of the check sizes, a name
 * that does not compile) is found here, where the user's line is still known.
 */
#include "task/task.h"

#include "task/expr.h"
#include "task/names.h"
#include "task/tolerance.h"
#include "task/yaml.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MAX_FILE_BYTES      (256 << 10)
#define MAX_REFERENCE_BYTES (1 << 20)
#define MAX_DIM             (INT64_C(1) << 40)

typedef struct {
    Arena *arena;
    const char *where; // the path, as messages begin
    const YamlNode *root;
    Task *task;
    const YamlNode *tensor_nodes[TASK_MAX_TENSORS];
    Error *err;
} Loader;

static const char *const class_names[CLASS_COUNT] = {
    [CLASS_ELEMENTWISE] = "elementwise",
    [CLASS_REDUCTION] = "reduction",
    [CLASS_NORM] = "norm",
    [CLASS_SOFTMAX] = "softmax",
    [CLASS_SCAN] = "scan",
    [CLASS_GEMM] = "gemm",
    [CLASS_CONV] = "conv",
    [CLASS_POOL] = "pool",
    [CLASS_ATTENTION] = "attention",
    [CLASS_LOSS] = "loss",
    [CLASS_FUSED] = "fused",
};

const char *class_name(WorkloadClass class) {
    return (unsigned)class < CLASS_COUNT ? class_names[class] : "unknown";
}

static bool fail(const Loader *l, const YamlNode *at, const char *fmt, ...) PRINTF_LIKE(3, 4);
static bool fail(const Loader *l, const YamlNode *at, const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    char *message = arena_vprintf(l->arena, fmt, args);
    va_end(args);
    return error_input(l->err, "%s:%d:%d: %s", l->where, at->line, at->column, message);
}

/* ---- nodes as values -------------------------------------------------------------------- */

static char *joined(Arena *arena, const char *const *words, size_t count, const char *between) {
    Buf buf = {0};
    for (size_t i = 0; i < count; i++)
        buf_printf(&buf, "%s%s", i > 0 ? between : "", words[i]);
    return buf_take(arena, &buf);
}

/* Refuses keys that `mapping` should not have. `what` names the mapping: "an input". */
static bool check_mapping(const Loader *l, const YamlNode *mapping, const char *what,
                          const char *const *known, size_t count) {
    if (mapping->kind != YAML_MAPPING)
        return fail(l, mapping, "%s must be given as keys and values: %s", what,
                    joined(l->arena, known, count, ", "));
    for (size_t i = 0; i < mapping->count; i++) {
        const YamlNode *key = mapping->keys[i];
        bool found = false;
        for (size_t k = 0; k < count; k++)
            found |= strcmp(known[k], key->text) == 0;
        if (found) continue;
        const char *nearest = text_nearest(key->text, known, count);
        if (nearest) return fail(l, key, "unknown key '%s'; did you mean %s?", key->text, nearest);
        return fail(l, key, "unknown key '%s'; %s has %s", key->text, what,
                    joined(l->arena, known, count, ", "));
    }
    return true;
}

/* A value that must be there and must be text. */
static bool need_text(const Loader *l, const YamlNode *mapping, const char *what, const char *key,
                      const YamlNode **node) {
    *node = yaml_get(mapping, key);
    if (!*node) return fail(l, mapping, "%s lacks the key '%s'", what, key);
    if ((*node)->kind != YAML_SCALAR) return fail(l, *node, "%s must be a single value", key);
    if ((*node)->text[0] == 0) return fail(l, *node, "%s has no value", key);
    return true;
}

static bool read_bool(const Loader *l, const char *key, bool *value) {
    const YamlNode *node = yaml_get(l->root, key);
    if (!node) return true;
    *value = strcmp(node->text, "true") == 0;
    if (node->kind == YAML_SCALAR && (*value || strcmp(node->text, "false") == 0)) return true;
    return fail(l, node, "%s must be true or false", key);
}

static bool parse_real(const char *text, double *value) {
    char *end;
    *value = strtod(text, &end);
    return end != text && *end == 0 && isfinite(*value) && !strpbrk(text, "xXpP");
}

static bool read_real(const Loader *l, const YamlNode *node, const char *what, double *value) {
    if (node->kind == YAML_SCALAR && parse_real(node->text, value)) return true;
    return fail(l, node, "%s must be a number, not '%s'", what, node->text);
}

static bool parse_integer(const char *text, int64_t *value) {
    size_t sign = text[0] == '-';
    if (text[sign] == 0 || strspn(text + sign, "0123456789") != strlen(text + sign)) return false;
    errno = 0;
    *value = strtoll(text, NULL, 10);
    return errno == 0;
}

/* ---- sizes ------------------------------------------------------------------------------ */

static bool read_size(const Loader *l, const YamlNode *key, const YamlNode *node, int64_t *value) {
    if (node->kind != YAML_SCALAR || !parse_integer(node->text, value))
        return fail(l, node, "%s must be a whole number, not '%s'", key->text, node->text);
    if (*value < 1) return fail(l, node, "%s must be at least 1, not %s", key->text, node->text);
    if (*value > MAX_DIM) return fail(l, node, "%s is larger than 2^40", key->text);
    return true;
}

static bool read_dims(Loader *l) {
    const YamlNode *node = yaml_get(l->root, "dims");
    if (!node) return fail(l, l->root, "the task lacks the key 'dims'");
    if (node->kind != YAML_MAPPING)
        return fail(l, node, "dims must be given as names and sizes: {rows: 4096, cols: 8192}");
    if (node->count > TASK_MAX_DIMS)
        return fail(l, node->keys[TASK_MAX_DIMS], "more than %d dimensions", TASK_MAX_DIMS);
    for (size_t i = 0; i < node->count; i++) {
        const char *problem = identifier_problem(node->keys[i]->text);
        if (problem)
            return fail(l, node->keys[i], "dimension '%s' %s", node->keys[i]->text, problem);
        if (!read_size(l, node->keys[i], node->values[i], &l->task->timed.value[i])) return false;
        l->task->dim_names[i] = node->keys[i]->text;
    }
    l->task->dim_count = (int)node->count;
    return true;
}

/* One entry of check, or sim: every dimension once. */
static bool read_shape_entry(const Loader *l, const YamlNode *node, const char *what, Dims *dims) {
    const Task *task = l->task;
    if (node->kind != YAML_MAPPING)
        return fail(l, node, "%s must give a size for each dimension: %s", what,
                    joined(l->arena, task->dim_names, (size_t)task->dim_count, ", "));
    bool seen[TASK_MAX_DIMS] = {0};
    for (size_t i = 0; i < node->count; i++) {
        const YamlNode *key = node->keys[i];
        int d = 0;
        while (d < task->dim_count && strcmp(task->dim_names[d], key->text) != 0)
            d++;
        if (d == task->dim_count) {
            const char *nearest = text_nearest(key->text, task->dim_names, (size_t)d);
            return nearest ? fail(l, key, "unknown dimension '%s'; did you mean %s?", key->text,
                                  nearest)
                           : fail(l, key, "unknown dimension '%s'; dims has %s", key->text,
                                  joined(l->arena, task->dim_names, (size_t)d, ", "));
        }
        if (!read_size(l, key, node->values[i], &dims->value[d])) return false;
        seen[d] = true;
    }
    for (int d = 0; d < task->dim_count; d++)
        if (!seen[d]) return fail(l, node, "%s lacks dimension '%s'", what, task->dim_names[d]);
    return true;
}

static bool read_checks(Loader *l) {
    Task *task = l->task;
    const YamlNode *check = yaml_get(l->root, "check"), *sim = yaml_get(l->root, "sim");
    if (task->static_dims && (check || sim))
        return fail(l, check ? check : sim, "static_dims fixes the sizes to dims; remove %s",
                    check ? "check" : "sim");
    if (check) {
        if (check->kind != YAML_SEQUENCE)
            return fail(l, check, "check must be a list of sizes, one '- {…}' each");
        if (check->count > TASK_MAX_CHECKS)
            return fail(l, check->values[TASK_MAX_CHECKS], "more than %d check entries",
                        TASK_MAX_CHECKS);
        for (size_t i = 0; i < check->count; i++)
            if (!read_shape_entry(l, check->values[i], "this check", &task->checks[i]))
                return false;
        task->check_count = (int)check->count;
    }
    return !sim || read_shape_entry(l, sim, "sim", &task->sim);
}

/* Without `sim`, the simulator judges the check that moves the most bytes. */
static void default_sim(Task *task) {
    task->sim = task->check_count > 0 ? task->checks[0] : task->timed;
    for (int i = 1; i < task->check_count; i++)
        if (task_bytes(task, &task->checks[i]) > task_bytes(task, &task->sim))
            task->sim = task->checks[i];
}

/* ---- tensors ---------------------------------------------------------------------------- */

static bool read_dtype(const Loader *l, const YamlNode *node, const char *what, const char *name,
                       DType *dtype) {
    if (dtype_parse(node->text, dtype)) return true;
    const char *names[DTYPE_COUNT];
    for (int i = 0; i < DTYPE_COUNT; i++)
        names[i] = dtype_info((DType)i)->name;
    const char *meant = dtype_synonym(node->text);
    if (!meant) meant = text_nearest(node->text, names, DTYPE_COUNT);
    if (meant)
        return fail(l, node, "unknown dtype '%s' for %s '%s'; did you mean %s?", node->text, what,
                    name, meant);
    return fail(l, node, "unknown dtype '%s' for %s '%s'; there are %s", node->text, what, name,
                joined(l->arena, names, DTYPE_COUNT, " "));
}

static bool read_expr(const Loader *l, const YamlNode *node, const char *what, const Expr **expr) {
    if (node->kind != YAML_SCALAR || node->text[0] == 0)
        return fail(l, node, "%s must be an expression over the dimensions", what);
    ExprNames names = {l->task->dim_names, l->task->dim_count};
    return expr_parse(l->arena, node->text, &names, l->where, node->line, node->column, expr,
                      l->err);
}

static bool read_shape(const Loader *l, const YamlNode *node, Tensor *tensor) {
    if (node->kind != YAML_SEQUENCE)
        return fail(l, node, "the shape of '%s' must be a list: [rows, cols], or [] for a scalar",
                    tensor->name);
    if (node->count > WIRE_MAX_RANK)
        return fail(l, node->values[WIRE_MAX_RANK], "'%s' has more than %d axes", tensor->name,
                    WIRE_MAX_RANK);
    tensor->rank = (int)node->count;
    for (int i = 0; i < tensor->rank; i++) {
        if (!read_expr(l, node->values[i], "an extent", &tensor->extents[i])) return false;
        if (expr_has_fraction(tensor->extents[i]))
            return fail(l, node->values[i], "an extent must be a whole number");
        tensor->extent_text[i] = node->values[i]->text;
    }
    return true;
}

static const struct {
    const char *name;
    int arguments;
} fills[FILL_COUNT] = {
    [FILL_NORMAL] = {"normal", 0},     [FILL_UNIFORM] = {"uniform", 2},
    [FILL_INTEGERS] = {"integers", 2}, [FILL_ZEROS] = {"zeros", 0},
    [FILL_ONES] = {"ones", 0},
};

/* The largest whole number that every smaller one of `dtype` is exact up to. */
static double largest_integer(DType dtype, double *lowest) {
    const DTypeInfo *info = dtype_info(dtype);
    double largest;
    switch (dtype) {
    case DTYPE_BOOL:
        largest = 1;
        break;
    case DTYPE_U8:
        largest = 255;
        break;
    case DTYPE_I64:
        largest = ldexp(1, 53);
        break; // bounds are doubles
    default:
        largest =
            info->is_float ? ldexp(1, info->mantissa_bits + 1) : ldexp(1, 8 * info->bytes - 1) - 1;
    }
    bool has_negative = dtype != DTYPE_BOOL && dtype != DTYPE_U8;
    *lowest = has_negative ? -largest - !info->is_float : 0;
    return largest;
}

static bool check_fill(const Loader *l, const YamlNode *node, const Tensor *tensor) {
    const Fill *fill = &tensor->fill;
    const DTypeInfo *info = dtype_info(tensor->dtype);
    const char *name = fills[fill->kind].name;
    if (!info->is_float && (fill->kind == FILL_NORMAL || fill->kind == FILL_UNIFORM))
        return fail(l, node, "fill %s is for floating point; '%s' is %s: use integers(a,b)", name,
                    tensor->name, info->name);
    if (fill->kind == FILL_UNIFORM && !(fill->low < fill->high))
        return fail(l, node, "fill uniform(a,b) needs a < b");
    if (fill->kind == FILL_INTEGERS) {
        if (!(fill->low <= fill->high)) return fail(l, node, "fill integers(a,b) needs a <= b");
        if (fill->low != floor(fill->low) || fill->high != floor(fill->high))
            return fail(l, node, "fill integers(a,b) needs whole numbers");
        double lowest, largest = largest_integer(tensor->dtype, &lowest);
        if (fill->low < lowest || fill->high > largest)
            return fail(l, node,
                        "fill integers(a,b) of '%s' must stay within %.0f..%.0f, which %s"
                        " holds exactly",
                        tensor->name, lowest, largest, info->name);
    }
    return true;
}

static bool read_fill(const Loader *l, const YamlNode *node, Tensor *tensor) {
    const char *text = node->text, *open = strchr(text, '(');
    char *word = arena_string_n(l->arena, text, open ? (size_t)(open - text) : strlen(text));
    for (size_t n = strlen(word); n > 0 && word[n - 1] == ' ';)
        word[--n] = 0;
    const char *names[FILL_COUNT];
    int kind = FILL_COUNT;
    for (int i = 0; i < FILL_COUNT; i++) {
        names[i] = fills[i].name;
        if (strcmp(word, names[i]) == 0) kind = i;
    }
    if (node->kind != YAML_SCALAR || kind == FILL_COUNT) {
        const char *nearest = text_nearest(word, names, FILL_COUNT);
        if (node->kind == YAML_SCALAR && nearest)
            return fail(l, node, "unknown fill '%s'; did you mean %s?", word, nearest);
        return fail(l, node,
                    "unknown fill '%s'; there are normal, uniform(a,b), integers(a,b), "
                    "zeros, ones",
                    text);
    }
    tensor->fill.kind = (FillKind)kind;
    if (!fills[kind].arguments) {
        if (open) return fail(l, node, "fill %s takes no numbers", word);
        return check_fill(l, node, tensor);
    }
    char *low = open ? arena_string(l->arena, open + 1) : NULL;
    char *comma = low ? strchr(low, ',') : NULL, *close = comma ? strchr(comma, ')') : NULL;
    if (!close || close[1] != 0) return fail(l, node, "write fill as %s(a,b)", word);
    *comma = *close = 0;
    for (char *end = comma; end > low && end[-1] == ' ';)
        *--end = 0;
    for (char *end = close; end > comma + 1 && end[-1] == ' ';)
        *--end = 0;
    if (!parse_real(low, &tensor->fill.low) || !parse_real(comma + 1, &tensor->fill.high))
        return fail(l, node, "write fill as %s(a,b) with two numbers", word);
    return check_fill(l, node, tensor);
}

/* `tolerance` of the task or of one output. What it does not say stays as it is. */
static bool read_tolerance(const Loader *l, const YamlNode *node, double *rtol, double *atol) {
    static const char *const keys[] = {"rtol", "atol"};
    if (!check_mapping(l, node, "tolerance", keys, COUNT_OF(keys))) return false;
    double *values[] = {rtol, atol};
    for (size_t i = 0; i < COUNT_OF(keys); i++) {
        const YamlNode *value = yaml_get(node, keys[i]);
        if (!value) continue;
        if (!read_real(l, value, keys[i], values[i])) return false;
        if (*values[i] < 0) return fail(l, value, "%s must not be negative", keys[i]);
    }
    const YamlNode *relative = yaml_get(node, "rtol");
    if (relative && *rtol >= 1)
        return fail(l, relative, "an rtol of 1 or more accepts an output of zeros");
    return true;
}

static bool read_tensor(Loader *l, const YamlNode *node, bool is_output) {
    static const char *const input_keys[] = {"name", "dtype", "shape", "fill"};
    static const char *const output_keys[] = {"name", "dtype", "shape", "tolerance"};
    Task *task = l->task;
    const char *what = is_output ? "output" : "input";
    const char *article = is_output ? "an output" : "an input";
    if (!check_mapping(l, node, article, is_output ? output_keys : input_keys, 4)) return false;
    if (task->tensor_count == TASK_MAX_TENSORS)
        return fail(l, node, "more than %d inputs and outputs", TASK_MAX_TENSORS);

    Tensor *tensor = &task->tensors[task->tensor_count];
    const YamlNode *name, *dtype;
    if (!need_text(l, node, article, "name", &name)) return false;
    tensor->name = name->text;
    tensor->is_output = is_output;
    const char *problem = identifier_problem(name->text);
    if (problem) return fail(l, name, "%s '%s' %s", what, name->text, problem);
    for (int i = 0; i < task->tensor_count; i++)
        if (strcmp(task->tensors[i].name, name->text) == 0)
            return fail(l, name, "the name '%s' is given twice, first in line %d", name->text,
                        yaml_get(l->tensor_nodes[i], "name")->line);

    const YamlNode *shape = yaml_get(node, "shape"), *fill = yaml_get(node, "fill");
    if (!need_text(l, node, article, "dtype", &dtype) ||
        !read_dtype(l, dtype, what, tensor->name, &tensor->dtype))
        return false;
    if (!shape) return fail(l, node, "%s lacks the key 'shape'", article);
    if (!read_shape(l, shape, tensor)) return false;
    if (fill) {
        if (!read_fill(l, fill, tensor)) return false;
    } else if (!is_output && !dtype_info(tensor->dtype)->is_float) {
        return fail(l, node, "input '%s' is %s and needs a fill: integers(a,b), zeros or ones",
                    tensor->name, dtype_info(tensor->dtype)->name);
    }
    l->tensor_nodes[task->tensor_count++] = node;
    task->input_count += !is_output;
    return true;
}

static bool read_tensors(Loader *l) {
    static const char *const lists[] = {"inputs", "outputs"};
    for (int i = 0; i < 2; i++) {
        const YamlNode *list = yaml_get(l->root, lists[i]);
        if (!list && i == 0) continue; // a task may make its output of nothing
        if (!list) return fail(l, l->root, "the task lacks the key 'outputs'");
        if (list->kind != YAML_SEQUENCE)
            return fail(l, list, "%s must be a list, one '- {name: …}' each", lists[i]);
        if (i == 1 && list->count == 0) return fail(l, list, "a task needs an output");
        for (size_t k = 0; k < list->count; k++)
            if (!read_tensor(l, list->values[k], i == 1)) return false;
    }
    return true;
}

static bool read_tolerances(Loader *l) {
    Task *task = l->task;
    const YamlNode *common = yaml_get(l->root, "tolerance");
    double length = accumulation_length(task);
    for (int i = task->input_count; i < task->tensor_count; i++) {
        Tensor *tensor = &task->tensors[i];
        const YamlNode *own = yaml_get(l->tensor_nodes[i], "tolerance");
        bool is_float = dtype_info(tensor->dtype)->is_float;
        tolerance_default(tensor->dtype, length, &tensor->rtol, &tensor->atol);
        if (common && is_float && !read_tolerance(l, common, &tensor->rtol, &tensor->atol))
            return false;
        if (own && !read_tolerance(l, own, &tensor->rtol, &tensor->atol)) return false;
        if (is_float && tensor->rtol == 0 && tensor->atol == 0)
            return fail(l, own ? own : common,
                        "output '%s' cannot be exact; give an rtol or an atol", tensor->name);
    }
    return true;
}

/* Evaluates every shape for every size that will be judged. */
static bool check_extents(const Loader *l) {
    const Task *task = l->task;
    for (int s = -2; s < task->check_count; s++) {
        const Dims *dims = s == -2 ? &task->timed : s == -1 ? &task->sim : &task->checks[s];
        for (int t = 0; t < task->tensor_count; t++) {
            int64_t extents[WIRE_MAX_RANK], elements;
            Error why = {0};
            if (!tensor_extents(task, &task->tensors[t], dims, extents, &elements, &why))
                return fail(l, yaml_get(l->tensor_nodes[t], "shape"), "%s", why.message);
        }
    }
    return true;
}

/* ---- the rest --------------------------------------------------------------------------- */

static bool read_header(Loader *l) {
    Task *task = l->task;
    const YamlNode *node;
    if (!need_text(l, l->root, "the task", "schema", &node)) return false;
    if (strcmp(node->text, "1") != 0)
        return fail(l, node, "unknown schema '%s'; this version reads schema 1", node->text);
    if (!need_text(l, l->root, "the task", "name", &node)) return false;
    const char *problem = task_name_problem(node->text);
    if (problem) return fail(l, node, "task name '%s' %s", node->text, problem);
    task->name = node->text;
    if (!need_text(l, l->root, "the task", "summary", &node)) return false;
    task->summary = node->text;
    if (!need_text(l, l->root, "the task", "class", &node)) return false;
    for (int i = 0; i < CLASS_COUNT; i++) {
        if (strcmp(class_names[i], node->text) != 0) continue;
        task->class = (WorkloadClass)i;
        return read_bool(l, "static_dims", &task->static_dims);
    }
    const char *nearest = text_nearest(node->text, class_names, CLASS_COUNT);
    return nearest ? fail(l, node, "unknown class '%s'; did you mean %s?", node->text, nearest)
                   : fail(l, node, "unknown class '%s'; there are %s", node->text,
                          joined(l->arena, class_names, CLASS_COUNT, " "));
}

static bool read_precision(Loader *l) {
    static const char *const words[] = {"parity", "tolerance"};
    Task *task = l->task;
    task->exact_precision = true;
    task->parity_factor = 8;
    const YamlNode *node = yaml_get(l->root, "precision"),
                   *factor = yaml_get(l->root, "parity_factor");
    if (node) {
        task->exact_precision = strcmp(node->text, words[0]) == 0;
        if (!task->exact_precision && strcmp(node->text, words[1]) != 0)
            return fail(l, node, "precision must be parity or tolerance, not '%s'", node->text);
    }
    if (!factor) return true;
    if (!read_real(l, factor, "parity_factor", &task->parity_factor)) return false;
    if (task->parity_factor < 1) return fail(l, factor, "parity_factor must be at least 1");
    if (!task->exact_precision)
        return fail(l, factor, "parity_factor has no meaning with precision: tolerance");
    return true;
}

static bool read_work(Loader *l) {
    Task *task = l->task;
    const struct {
        const char *key;
        const Expr **expr;
    } work[] = {
        {"flops", &task->flops}, {"min_bytes", &task->min_bytes}, {"min_flops", &task->min_flops}};
    for (size_t i = 0; i < COUNT_OF(work); i++) {
        const YamlNode *node = yaml_get(l->root, work[i].key);
        if (!node) continue;
        if (!read_expr(l, node, work[i].key, work[i].expr)) return false;
        double value = expr_real(*work[i].expr, &task->timed);
        if (!isfinite(value) || value < 0)
            return fail(l, node, "%s is %g for the timed sizes", work[i].key, value);
    }
    return true;
}

/* Adds the text of a file that the task names to its identity. */
static bool read_source(Loader *l, const char *key, bool required, const char **path,
                        Hasher *hasher) {
    const YamlNode *node = yaml_get(l->root, key);
    if (!node && !required) return true;
    if (!need_text(l, l->root, "the task", key, &node)) return false;
    *path = path_join(l->arena, l->task->directory, node->text);
    if (!path_exists(*path) || path_is_directory(*path))
        return fail(l, node, "%s '%s' is not a file beside the task", key, node->text);
    char *text;
    size_t bytes;
    Error why = {0};
    if (!file_read(l->arena, *path, MAX_REFERENCE_BYTES, &text, &bytes, &why))
        return fail(l, node, "%s", why.message);
    hasher_add_text(hasher, key);
    hasher_add_text(hasher, hash_bytes(text, bytes).hex);
    return true;
}

static void hash_dims(Hasher *hasher, const Task *task, const char *what, const Dims *dims) {
    hasher_add_text(hasher, what);
    hasher_add(hasher, dims->value, sizeof(dims->value[0]) * (size_t)task->dim_count);
}

/* Everything that decides a verdict. Not the path, nor the summary, which is for people. */
static void hash_task(Hasher *hasher, const Loader *l) {
    const Task *task = l->task;
    char numbers[160];
    snprintf(numbers, sizeof(numbers), "contract %d static %d exact %d parity %a", CONTRACT_VERSION,
             task->static_dims, task->exact_precision, task->parity_factor);
    hasher_add_text(hasher, numbers);
    hasher_add_text(hasher, task->name);
    hasher_add_text(hasher, class_name(task->class));
    for (int i = 0; i < task->dim_count; i++)
        hasher_add_text(hasher, task->dim_names[i]);
    hash_dims(hasher, task, "timed", &task->timed);
    hash_dims(hasher, task, "sim", &task->sim);
    for (int i = 0; i < task->check_count; i++)
        hash_dims(hasher, task, "check", &task->checks[i]);
    for (int i = 0; i < task->tensor_count; i++) {
        const Tensor *t = &task->tensors[i];
        hasher_add_text(hasher, t->name);
        snprintf(numbers, sizeof(numbers), "%d %s %d %a %a %a %a", t->is_output,
                 dtype_info(t->dtype)->name, t->fill.kind, t->fill.low, t->fill.high, t->rtol,
                 t->atol);
        hasher_add_text(hasher, numbers);
        for (int axis = 0; axis < t->rank; axis++)
            hasher_add_text(hasher, t->extent_text[axis]);
    }
    static const char *const work[] = {"flops", "min_bytes", "min_flops"};
    for (size_t i = 0; i < COUNT_OF(work); i++) {
        const YamlNode *node = yaml_get(l->root, work[i]);
        hasher_add_text(hasher, node ? node->text : "");
    }
}

static bool read_task(Loader *l) {
    static const char *const keys[] = {
        "schema",    "name",      "summary",   "class",     "dims",          "sim",
        "check",     "inputs",    "outputs",   "reference", "baseline",      "flops",
        "min_bytes", "min_flops", "tolerance", "precision", "parity_factor", "static_dims",
    };
    Task *task = l->task;
    if (!check_mapping(l, l->root, "a task", keys, COUNT_OF(keys)) || !read_header(l) ||
        !read_dims(l) || !read_checks(l) || !read_tensors(l))
        return false;
    if (!yaml_get(l->root, "sim")) default_sim(task);
    if (!check_extents(l) || !read_work(l) || !read_tolerances(l) || !read_precision(l))
        return false;

    Hasher *hasher = hasher_new();
    hash_task(hasher, l);
    bool ok = read_source(l, "reference", true, &task->reference_path, hasher) &&
              read_source(l, "baseline", false, &task->baseline_path, hasher);
    task->identity = hasher_finish(hasher);
    return ok;
}

bool task_load(Arena *arena, const char *path, Task *task, Error *err) {
    *task = (Task){0};
    if (path_is_directory(path)) {
        const char *file = path_join(arena, path, "task.yaml");
        if (!path_exists(file))
            return error_input(err, "%s holds no task.yaml; see docs/task-format.md", path);
        path = file;
    }
    char *text;
    size_t bytes;
    if (!path_exists(path))
        return error_input(err, "%s: no such task; give a directory with a task.yaml", path);
    if (!file_read(arena, path, MAX_FILE_BYTES, &text, &bytes, err)) return false;
    task->path = arena_string(arena, path);
    task->directory = path_absolute(arena, path_directory(arena, path));
    YamlNode *root;
    if (!yaml_parse(arena, path, text, bytes, &root, err)) return false;
    Loader loader = {.arena = arena, .where = task->path, .root = root, .task = task, .err = err};
    return read_task(&loader);
}
