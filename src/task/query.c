/* query.c - answers questions about a loaded task: sizes, work, and how its dims read.
 */
#include "task/task.h"

#include "task/expr.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_ELEMENTS (INT64_C(1) << 40)

/* "rows=37 cols=1009" into a fixed buffer; cut where it does not fit. */
static void write_dims(const Task *task, const Dims *dims, char *out, size_t capacity) {
    size_t used = 0;
    out[0] = 0;
    for (int i = 0; i < task->dim_count && used < capacity; i++)
        used += (size_t)snprintf(out + used, capacity - used, "%s%s=%lld", i > 0 ? " " : "",
                                 task->dim_names[i], (long long)dims->value[i]);
}

bool tensor_extents(const Task *task, const Tensor *tensor, const Dims *dims,
                    int64_t extents[WIRE_MAX_RANK], int64_t *elements, Error *err) {
    char sizes[1024];
    const char *what = tensor->is_output ? "output" : "input";
    *elements = 1;
    for (int axis = 0; axis < tensor->rank; axis++) {
        const char *problem = expr_integer(tensor->extents[axis], dims, &extents[axis]);
        if (!problem && extents[axis] >= 1 &&
            !__builtin_mul_overflow(*elements, extents[axis], elements) &&
            *elements <= MAX_ELEMENTS)
            continue;
        write_dims(task, dims, sizes, sizeof(sizes));
        if (problem)
            return error_input(err, "extent %s of %s '%s' %s with %s", tensor->extent_text[axis],
                               what, tensor->name, problem, sizes);
        if (extents[axis] < 1)
            return error_input(err, "extent %s of %s '%s' is %lld with %s; it must be at least 1",
                               tensor->extent_text[axis], what, tensor->name,
                               (long long)extents[axis], sizes);
        return error_input(err, "%s '%s' has more than 2^40 elements with %s", what, tensor->name,
                           sizes);
    }
    return true;
}

double task_flops(const Task *task, const Dims *dims) {
    return task->flops ? expr_real(task->flops, dims) : NAN;
}

double task_bytes(const Task *task, const Dims *dims) {
    double bytes = 0;
    for (int t = 0; t < task->tensor_count; t++) {
        double tensor = dtype_info(task->tensors[t].dtype)->bytes;
        int64_t extents[WIRE_MAX_RANK], elements;
        Error ignored = {0};
        if (!tensor_extents(task, &task->tensors[t], dims, extents, &elements, &ignored))
            return NAN;
        bytes += tensor * (double)elements;
    }
    return bytes;
}

char *dims_text(Arena *arena, const Task *task, const Dims *dims) {
    Buf buf = {0};
    for (int i = 0; i < task->dim_count; i++)
        buf_printf(&buf, "%s%s=%lld", i > 0 ? " " : "", task->dim_names[i],
                   (long long)dims->value[i]);
    return buf_take(arena, &buf);
}

Json *dims_json(const Task *task, const Dims *dims) {
    Json *object = json_object();
    for (int i = 0; i < task->dim_count; i++)
        json_object_set_new(object, task->dim_names[i], json_integer(dims->value[i]));
    return object;
}

static int by_name(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

bool task_list(Arena *arena, const char *root, const char ***names, size_t *count, Error *err) {
    DIR *directory = opendir(root);
    if (!directory) return error_input(err, "cannot list tasks in %s: %s", root, strerror(errno));
    size_t capacity = 0;
    *names = NULL;
    *count = 0;
    for (struct dirent *entry; (entry = readdir(directory)) != NULL;) {
        if (entry->d_name[0] == '.') continue;
        const char *file = path_join(arena, path_join(arena, root, entry->d_name), "task.yaml");
        if (!path_exists(file)) continue;
        if (*count == capacity) {
            capacity = capacity ? 2 * capacity : 32;
            const char **grown = arena_array_of(arena, const char *, capacity);
            if (*count > 0) memcpy(grown, *names, *count * sizeof(*grown));
            *names = grown;
        }
        (*names)[(*count)++] = arena_string(arena, entry->d_name);
    }
    closedir(directory);
    if (*count > 1) qsort(*names, *count, sizeof(**names), by_name);
    return true;
}
