/* cmd_tasks.c - cutegen tasks: what comes with cutegen.
 */
#include "cli/cli.h"
#include <string.h>

static Json *task_json(Arena *arena, const Task *task) {
    Json *inputs = json_array(), *outputs = json_array(), *checks = json_array();
    for (int i = 0; i < task->tensor_count; i++) {
        const Tensor *tensor = &task->tensors[i];
        Json *shape = json_array();
        for (int axis = 0; axis < tensor->rank; axis++) {
            json_array_append_new(shape, json_string(tensor->extent_text[axis]));
        }
        Json *one = json_pack("{s:s, s:s, s:o}", "name", tensor->name, "dtype",
                              dtype_info(tensor->dtype)->name, "shape", shape);
        json_array_append_new(tensor->is_output ? outputs : inputs, one);
    }
    for (int i = 0; i < task->check_count; i++) {
        json_array_append_new(checks, dims_json(task, &task->checks[i]));
    }
    Json *json = json_object();
    json_object_set_new(json, "name", json_string(task->name));
    json_object_set_new(json, "summary", json_string(task->summary ? task->summary : ""));
    json_object_set_new(json, "class", json_string(class_name(task->class)));
    json_object_set_new(json, "path", json_string(path_join(arena, task->directory, "task.yaml")));
    json_object_set_new(json, "dims", dims_json(task, &task->timed));
    json_object_set_new(json, "sim", dims_json(task, &task->sim));
    json_object_set_new(json, "check", checks);
    json_object_set_new(json, "inputs", inputs);
    json_object_set_new(json, "outputs", outputs);
    return json;
}

bool command_tasks(Arena *arena, const Options *options, Cancel *cancel, int *exit_code,
                   Error *err) {
    (void)cancel;
    Installation installation;
    const char **names;
    size_t count;
    if (!installation_find(arena, &installation, err)) return false;
    const char *root = path_join(arena, installation.root, "tasks");
    if (!task_list(arena, root, &names, &count, err)) return false;

    Task *tasks = arena_array_of(arena, Task, count + 1);
    int name_width = 0, class_width = 0;
    for (size_t i = 0; i < count; i++) {
        if (!task_load(arena, path_join(arena, root, names[i]), &tasks[i], err)) return false;
        int name = (int)strlen(tasks[i].name), class = (int)strlen(class_name(tasks[i].class));
        if (name > name_width) name_width = name;
        if (class > class_width) class_width = class;
    }
    Json *list = json_array();
    for (size_t i = 0; i < count; i++) {
        if (options->json) {
            json_array_append_new(list, task_json(arena, &tasks[i]));
        } else {
            printf("%-*s  %-*s  %s\n", name_width, tasks[i].name, class_width,
                   class_name(tasks[i].class), tasks[i].summary ? tasks[i].summary : "");
        }
    }
    if (options->json) {
        print_json(json_pack("{s:i, s:o}", "schema", 1, "tasks", list));
    } else {
        json_decref(list);
    }
    *exit_code = EXIT_PASS;
    return true;
}
