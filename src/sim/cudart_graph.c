/* cudart_graph.c - graphs: nodes, what each comes after, and running all in a fitting order.
 *
 * An executable graph is a sorted copy, so that the program may change or destroy the graph it was
 * made from. Each copied node remembers its original, by which updates of single nodes find it.
 */
#include "sim/cudart_graph.h"
#include <stdlib.h>
#include <string.h>

/* ---- nodes
 * --------------------------------------------------------------------------------------- */

bool node_list_set(Node ***list, size_t *count, Node *const *nodes, size_t node_count) {
    Node **copy = malloc((node_count ? node_count : 1) * sizeof *copy);
    if (!copy) return false;
    if (node_count) memcpy(copy, nodes, node_count * sizeof *copy);
    free(*list);
    *list = copy;
    *count = node_count;
    return true;
}

bool node_list_add(Node ***list, size_t *count, Node *node) {
    for (size_t i = 0; i < *count; i++)
        if ((*list)[i] == node) return true;
    Node **grown = realloc(*list, (*count + 1) * sizeof *grown);
    if (!grown) return false;
    grown[(*count)++] = node;
    *list = grown;
    return true;
}

static void node_free(Node *node) {
    handle_remove(node, HANDLE_NODE);
    operation_clear(&node->operation);
    free(node->needs);
    free(node);
}

Graph *graph_new(void) {
    Graph *graph = calloc(1, sizeof *graph);
    if (graph && !handle_add(graph, HANDLE_GRAPH, graph)) {
        free(graph);
        return NULL;
    }
    return graph;
}

void graph_free(Graph *graph) {
    if (!graph) return;
    handle_remove(graph, HANDLE_GRAPH);
    for (size_t i = 0; i < graph->count; i++)
        node_free(graph->nodes[i]);
    free(graph->nodes);
    free(graph);
}

Node *graph_append(Graph *graph, Operation *operation, Node *const *needs, size_t need_count) {
    Node *node = calloc(1, sizeof *node);
    if (graph->count == graph->capacity) {
        size_t capacity = graph->capacity ? 2 * graph->capacity : 16;
        Node **grown = realloc(graph->nodes, capacity * sizeof *grown);
        if (grown) {
            graph->nodes = grown;
            graph->capacity = capacity;
        }
    }
    if (!node || graph->count == graph->capacity ||
        !node_list_set(&node->needs, &node->need_count, needs, need_count) ||
        !handle_add(node, HANDLE_NODE, node)) {
        if (node) free(node->needs);
        free(node);
        operation_clear(operation);
        return NULL;
    }
    node->graph = graph;
    node->operation = *operation;
    graph->nodes[graph->count++] = node;
    return node;
}

/* ---- walks
 * ------------------------------------------------------------------------------------------ */

Graph *graph_clone(const Graph *graph) {
    Graph *clone = graph_new();
    for (size_t i = 0; clone && i < graph->count; i++) {
        Operation operation;
        Node *node = NULL;
        graph->nodes[i]->mark = (int)i;
        if (operation_clone(&operation, &graph->nodes[i]->operation))
            node = graph_append(clone, &operation, NULL, 0);
        if (!node) {
            graph_free(clone);
            return NULL;
        }
        node->original = graph->nodes[i];
        node->disabled = graph->nodes[i]->disabled;
    }
    for (size_t i = 0; clone && i < graph->count; i++) {
        const Node *from = graph->nodes[i];
        for (size_t n = 0; n < from->need_count; n++) {
            Node *needed = clone->nodes[from->needs[n]->mark];
            if (!node_list_add(&clone->nodes[i]->needs, &clone->nodes[i]->need_count, needed)) {
                graph_free(clone);
                return NULL;
            }
        }
    }
    return clone;
}

/* Repeatedly takes the first node all of whose needs are taken: keeps an order that is valid. */
bool graph_sort(Graph *graph) {
    for (size_t i = 0; i < graph->count; i++)
        graph->nodes[i]->mark = 0;
    for (size_t done = 0; done < graph->count; done++) {
        size_t pick = done;
        for (; pick < graph->count; pick++) {
            const Node *node = graph->nodes[pick];
            size_t n = 0;
            while (n < node->need_count && node->needs[n]->mark)
                n++;
            if (n == node->need_count) break;
        }
        if (pick == graph->count) return false;
        Node *node = graph->nodes[pick];
        memmove(graph->nodes + done + 1, graph->nodes + done, (pick - done) * sizeof node);
        graph->nodes[done] = node;
        node->mark = 1;
    }
    return true;
}

void graph_run(const Graph *graph) {
    for (size_t i = 0; i < graph->count; i++)
        if (!graph->nodes[i]->disabled) operation_run(&graph->nodes[i]->operation);
}

/* ---- graphs
 * ------------------------------------------------------------------------------------------ */

SIM_EXPORT cudaError_t cudaGraphCreate(void **graph, unsigned flags) {
    RETURN_IF_LOST();
    if (!graph || flags) return error_set(cudaErrorInvalidValue);
    *graph = graph_new();
    return *graph ? cudaSuccess : error_set(cudaErrorMemoryAllocation);
}

SIM_EXPORT cudaError_t cudaGraphDestroy(void *handle) {
    pthread_mutex_lock(&stream_lock);
    Graph *graph = handle_find(handle, HANDLE_GRAPH);
    graph_free(graph);
    pthread_mutex_unlock(&stream_lock);
    return graph ? cudaSuccess : error_set(cudaErrorInvalidValue);
}

SIM_EXPORT cudaError_t cudaGraphClone(void **clone, void *handle) {
    RETURN_IF_LOST();
    Graph *graph = handle_find(handle, HANDLE_GRAPH);
    if (!clone || !graph) return error_set(cudaErrorInvalidValue);
    pthread_mutex_lock(&stream_lock);
    *clone = graph_clone(graph);
    pthread_mutex_unlock(&stream_lock);
    return *clone ? cudaSuccess : error_set(cudaErrorMemoryAllocation);
}

/* Checks a program's list of nodes: all of this graph. */
static bool nodes_belong(const Graph *graph, void *const *nodes, size_t count) {
    for (size_t i = 0; i < count; i++) {
        Node *node = nodes ? handle_find(nodes[i], HANDLE_NODE) : NULL;
        if (!node || node->graph != graph) return false;
    }
    return true;
}

static cudaError_t graph_add(void **out, void *handle, void *const *needs, size_t count,
                             Operation *operation) {
    pthread_mutex_lock(&stream_lock);
    Graph *graph = handle_find(handle, HANDLE_GRAPH);
    cudaError_t error = cudaErrorInvalidValue;
    if (out && graph && nodes_belong(graph, needs, count)) {
        *out = graph_append(graph, operation, (Node *const *)needs, count);
        error = *out ? cudaSuccess : cudaErrorMemoryAllocation;
    } else {
        operation_clear(operation);
    }
    pthread_mutex_unlock(&stream_lock);
    return error_set(error);
}

static cudaError_t kernel_operation(Operation *operation, const cudaKernelNodeParams *params) {
    *operation = (Operation){.kind = OPERATION_EMPTY};
    if (!params || params->extra) return cudaErrorInvalidValue;
    operation->kind = OPERATION_KERNEL;
    cudaError_t error =
        launch_prepare(&operation->kernel, params->func, params->gridDim, params->blockDim,
                       params->kernelParams, params->sharedMemBytes, false);
    if (error) operation->kind = OPERATION_EMPTY;
    return error;
}

SIM_EXPORT cudaError_t cudaGraphAddKernelNode(void **node, void *graph, void *const *needs,
                                              size_t count, const cudaKernelNodeParams *params) {
    RETURN_IF_LOST();
    Operation operation;
    cudaError_t error = kernel_operation(&operation, params);
    return error ? error_set(error) : graph_add(node, graph, needs, count, &operation);
}

SIM_EXPORT cudaError_t cudaGraphAddMemcpyNode(void **node, void *graph, void *const *needs,
                                              size_t count, const cudaMemcpy3DParms *params) {
    RETURN_IF_LOST();
    Operation operation = {.kind = OPERATION_COPY};
    if (!copy_from_3d(params, &operation.copy)) return error_set(cudaErrorInvalidValue);
    return graph_add(node, graph, needs, count, &operation);
}

static Operation linear_copy(void *target, const void *source, size_t bytes, cudaMemcpyKind kind) {
    return (Operation){.kind = OPERATION_COPY,
                       .copy = {.target = (uint64_t)target,
                                .source = (uint64_t)source,
                                .width = bytes,
                                .height = 1,
                                .depth = 1,
                                .kind = kind}};
}

SIM_EXPORT cudaError_t cudaGraphAddMemcpyNode1D(void **node, void *graph, void *const *needs,
                                                size_t count, void *target, const void *source,
                                                size_t bytes, cudaMemcpyKind kind) {
    RETURN_IF_LOST();
    Operation operation = linear_copy(target, source, bytes, kind);
    if (!target || !source || (unsigned)kind > cudaMemcpyDefault)
        return error_set(cudaErrorInvalidValue);
    return graph_add(node, graph, needs, count, &operation);
}

SIM_EXPORT cudaError_t cudaGraphAddMemsetNode(void **node, void *graph, void *const *needs,
                                              size_t count, const cudaMemsetParams *params) {
    RETURN_IF_LOST();
    if (!params ||
        (params->elementSize != 1 && params->elementSize != 2 && params->elementSize != 4))
        return error_set(cudaErrorInvalidValue);
    Operation operation = {.kind = OPERATION_FILL,
                           .fill = {.target = (uint64_t)params->dst,
                                    .pitch = params->pitch,
                                    .width = params->width,
                                    .height = params->height,
                                    .depth = 1,
                                    .value = params->value,
                                    .element_bytes = params->elementSize}};
    return graph_add(node, graph, needs, count, &operation);
}

SIM_EXPORT cudaError_t cudaGraphAddHostNode(void **node, void *graph, void *const *needs,
                                            size_t count, const cudaHostNodeParams *params) {
    RETURN_IF_LOST();
    if (!params || !params->fn) return error_set(cudaErrorInvalidValue);
    Operation operation = {.kind = OPERATION_HOST, .host = *params};
    return graph_add(node, graph, needs, count, &operation);
}

SIM_EXPORT cudaError_t cudaGraphAddEmptyNode(void **node, void *graph, void *const *needs,
                                             size_t count) {
    RETURN_IF_LOST();
    Operation operation = {.kind = OPERATION_EMPTY};
    return graph_add(node, graph, needs, count, &operation);
}

SIM_EXPORT cudaError_t cudaGraphAddChildGraphNode(void **node, void *graph, void *const *needs,
                                                  size_t count, void *child_handle) {
    RETURN_IF_LOST();
    Graph *child = handle_find(child_handle, HANDLE_GRAPH);
    if (!child || child_handle == graph) return error_set(cudaErrorInvalidValue);
    pthread_mutex_lock(&stream_lock);
    Operation operation = {.kind = OPERATION_GRAPH, .child = graph_clone(child)};
    bool sorted = operation.child && graph_sort(operation.child);
    pthread_mutex_unlock(&stream_lock);
    if (!sorted) {
        operation_clear(&operation);
        return error_set(cudaErrorInvalidValue);
    }
    return graph_add(node, graph, needs, count, &operation);
}

static cudaError_t add_event_node(void **node, void *graph, void *const *needs, size_t count,
                                  void *handle, OperationKind kind) {
    RETURN_IF_LOST();
    Operation operation = {.kind = kind, .event = handle_find(handle, HANDLE_EVENT)};
    if (!operation.event) return error_set(cudaErrorInvalidValue);
    return graph_add(node, graph, needs, count, &operation);
}

SIM_EXPORT cudaError_t cudaGraphAddEventRecordNode(void **node, void *graph, void *const *needs,
                                                   size_t count, void *event) {
    return add_event_node(node, graph, needs, count, event, OPERATION_EVENT_RECORD);
}

SIM_EXPORT cudaError_t cudaGraphAddEventWaitNode(void **node, void *graph, void *const *needs,
                                                 size_t count, void *event) {
    return add_event_node(node, graph, needs, count, event, OPERATION_EVENT_WAIT);
}

static cudaError_t add_edges(void *handle, void *const *from, void *const *to, size_t count) {
    RETURN_IF_LOST();
    pthread_mutex_lock(&stream_lock);
    Graph *graph = handle_find(handle, HANDLE_GRAPH);
    bool valid = graph && nodes_belong(graph, from, count) && nodes_belong(graph, to, count);
    for (size_t i = 0; valid && i < count; i++) {
        Node *node = to[i];
        valid = node != from[i] && node_list_add(&node->needs, &node->need_count, from[i]);
    }
    pthread_mutex_unlock(&stream_lock);
    return valid ? cudaSuccess : error_set(cudaErrorInvalidValue);
}

#ifdef CUDART_12
SIM_EXPORT cudaError_t cudaGraphAddDependencies(void *graph, void *const *from, void *const *to,
                                                size_t count) {
    return add_edges(graph, from, to, count);
}

SIM_EXPORT cudaError_t cudaGraphAddDependencies_v2(void *graph, void *const *from, void *const *to,
                                                   const cudaGraphEdgeData *edges, size_t count) {
    (void)edges;
    return add_edges(graph, from, to, count);
}
#else
SIM_EXPORT cudaError_t cudaGraphAddDependencies(void *graph, void *const *from, void *const *to,
                                                const cudaGraphEdgeData *edges, size_t count) {
    (void)edges;
    return add_edges(graph, from, to, count);
}
#endif

SIM_EXPORT cudaError_t cudaGraphDestroyNode(void *handle) {
    RETURN_IF_LOST();
    pthread_mutex_lock(&stream_lock);
    Node *node = handle_find(handle, HANDLE_NODE);
    Graph *graph = node ? node->graph : NULL;
    for (size_t i = 0; node && i < graph->count; i++) {
        Node *other = graph->nodes[i];
        size_t kept = 0;
        for (size_t n = 0; n < other->need_count; n++)
            if (other->needs[n] != node) other->needs[kept++] = other->needs[n];
        other->need_count = kept;
    }
    for (size_t i = 0; node && i < graph->count; i++) {
        if (graph->nodes[i] == node) {
            memmove(graph->nodes + i, graph->nodes + i + 1, (--graph->count - i) * sizeof node);
            break;
        }
    }
    if (node) node_free(node);
    pthread_mutex_unlock(&stream_lock);
    return node ? cudaSuccess : error_set(cudaErrorInvalidValue);
}

/* ---- asking
 * -------------------------------------------------------------------------------------------- */

static cudaError_t list_nodes(void *handle, void **nodes, size_t *count, bool roots_only) {
    RETURN_IF_LOST();
    Graph *graph = handle_find(handle, HANDLE_GRAPH);
    if (!graph || !count) return error_set(cudaErrorInvalidValue);
    size_t found = 0;
    for (size_t i = 0; i < graph->count; i++) {
        if (roots_only && graph->nodes[i]->need_count) continue;
        if (nodes && found < *count) nodes[found] = graph->nodes[i];
        found++;
    }
    for (size_t i = found; nodes && i < *count; i++)
        nodes[i] = NULL;
    if (!nodes || found < *count) *count = found;
    return cudaSuccess;
}

SIM_EXPORT cudaError_t cudaGraphGetNodes(void *graph, void **nodes, size_t *count) {
    return list_nodes(graph, nodes, count, false);
}

SIM_EXPORT cudaError_t cudaGraphGetRootNodes(void *graph, void **nodes, size_t *count) {
    return list_nodes(graph, nodes, count, true);
}

SIM_EXPORT cudaError_t cudaGraphNodeGetType(void *handle, cudaGraphNodeType *type) {
    static const cudaGraphNodeType types[] = {
        [OPERATION_KERNEL] = cudaGraphNodeTypeKernel,
        [OPERATION_COPY] = cudaGraphNodeTypeMemcpy,
        [OPERATION_FILL] = cudaGraphNodeTypeMemset,
        [OPERATION_HOST] = cudaGraphNodeTypeHost,
        [OPERATION_GRAPH] = cudaGraphNodeTypeGraph,
        [OPERATION_EMPTY] = cudaGraphNodeTypeEmpty,
        [OPERATION_EVENT_WAIT] = cudaGraphNodeTypeWaitEvent,
        [OPERATION_EVENT_RECORD] = cudaGraphNodeTypeEventRecord,
    };
    RETURN_IF_LOST();
    Node *node = handle_find(handle, HANDLE_NODE);
    if (!node || !type) return error_set(cudaErrorInvalidValue);
    *type = types[node->operation.kind];
    return cudaSuccess;
}

/* ---- executing
 * ------------------------------------------------------------------------------------------- */

typedef struct {
    Graph *graph;
    unsigned long long flags;
} Exec;

static cudaError_t exec_new(void **out, void *handle, unsigned long long flags) {
    RETURN_IF_LOST();
    Graph *graph = handle_find(handle, HANDLE_GRAPH);
    Exec *exec = calloc(1, sizeof *exec);
    if (!out || !graph || !exec) {
        free(exec);
        return error_set(out && graph ? cudaErrorMemoryAllocation : cudaErrorInvalidValue);
    }
    pthread_mutex_lock(&stream_lock);
    exec->graph = graph_clone(graph);
    exec->flags = flags;
    bool sorted = exec->graph && graph_sort(exec->graph);
    if (!sorted || !handle_add(exec, HANDLE_EXEC, exec)) {
        graph_free(exec->graph);
        free(exec);
        exec = NULL;
    }
    pthread_mutex_unlock(&stream_lock);
    *out = exec;
    return exec ? cudaSuccess : error_set(cudaErrorInvalidValue);
}

SIM_EXPORT cudaError_t cudaGraphInstantiate(void **exec, void *graph, unsigned long long flags) {
    return exec_new(exec, graph, flags);
}

SIM_EXPORT cudaError_t cudaGraphInstantiateWithFlags(void **exec, void *graph,
                                                     unsigned long long flags) {
    return exec_new(exec, graph, flags);
}

SIM_EXPORT cudaError_t cudaGraphInstantiateWithParams(void **exec, void *graph,
                                                      cudaGraphInstantiateParams *params) {
    if (!params) return error_set(cudaErrorInvalidValue);
    params->errNode_out = NULL;
    cudaError_t error = exec_new(exec, graph, params->flags);
    params->result_out = error != cudaSuccess;
    return error;
}
SIM_ALIAS(cudaGraphInstantiateWithParams_ptsz, cudaGraphInstantiateWithParams);

SIM_EXPORT cudaError_t cudaGraphExecGetFlags(void *handle, unsigned long long *flags) {
    Exec *exec = handle_find(handle, HANDLE_EXEC);
    if (!exec || !flags) return error_set(cudaErrorInvalidValue);
    *flags = exec->flags;
    return cudaSuccess;
}

SIM_EXPORT cudaError_t cudaGraphExecDestroy(void *handle) {
    pthread_mutex_lock(&stream_lock);
    Exec *exec = handle_find(handle, HANDLE_EXEC);
    if (exec) {
        handle_remove(exec, HANDLE_EXEC);
        graph_free(exec->graph);
        free(exec);
    }
    pthread_mutex_unlock(&stream_lock);
    return exec ? cudaSuccess : error_set(cudaErrorInvalidValue);
}

/* A launch that is captured becomes a child graph. */
SIM_EXPORT cudaError_t cudaGraphLaunch(void *handle, void *stream_handle) {
    RETURN_IF_LOST();
    Exec *exec = handle_find(handle, HANDLE_EXEC);
    Stream *stream = stream_find(stream_handle);
    if (!exec || !stream)
        return error_set(exec ? cudaErrorInvalidResourceHandle : cudaErrorInvalidValue);
    if (!stream_is_capturing(stream)) {
        Operation begin = {.kind = OPERATION_EMPTY};
        cudaError_t error = stream_submit(stream_handle, &begin);
        if (!error) graph_run(exec->graph);
        return error_set(error);
    }
    Operation operation = {.kind = OPERATION_GRAPH};
    pthread_mutex_lock(&stream_lock);
    operation.child = graph_clone(exec->graph);
    pthread_mutex_unlock(&stream_lock);
    if (!operation.child) return error_set(cudaErrorMemoryAllocation);
    return error_set(stream_submit(stream_handle, &operation));
}
SIM_ALIAS(cudaGraphLaunch_ptsz, cudaGraphLaunch);

SIM_EXPORT cudaError_t cudaGraphUpload(void *handle, void *stream) {
    RETURN_IF_LOST();
    if (!handle_find(handle, HANDLE_EXEC) || !stream_find(stream))
        return error_set(cudaErrorInvalidValue);
    return cudaSuccess;
}
SIM_ALIAS(cudaGraphUpload_ptsz, cudaGraphUpload);

/* ---- changing what was instantiated
 * ------------------------------------------------------------------------ */

static Node *exec_node(const Exec *exec, const void *original) {
    for (size_t i = 0; exec && i < exec->graph->count; i++)
        if (exec->graph->nodes[i]->original == original) return exec->graph->nodes[i];
    return NULL;
}

/* Takes the operation. Its kind must stay. */
static cudaError_t node_replace(Node *node, Operation *operation) {
    if (!node || node->operation.kind != operation->kind) {
        operation_clear(operation);
        return cudaErrorInvalidValue;
    }
    operation_clear(&node->operation);
    node->operation = *operation;
    return cudaSuccess;
}

SIM_EXPORT cudaError_t cudaGraphExecKernelNodeSetParams(void *handle, void *node,
                                                        const cudaKernelNodeParams *params) {
    RETURN_IF_LOST();
    Operation operation;
    cudaError_t error = kernel_operation(&operation, params);
    if (!error) error = node_replace(exec_node(handle_find(handle, HANDLE_EXEC), node), &operation);
    return error_set(error);
}

SIM_EXPORT cudaError_t cudaGraphKernelNodeSetParams(void *node,
                                                    const cudaKernelNodeParams *params) {
    RETURN_IF_LOST();
    Operation operation;
    cudaError_t error = kernel_operation(&operation, params);
    if (!error) error = node_replace(handle_find(node, HANDLE_NODE), &operation);
    return error_set(error);
}

SIM_EXPORT cudaError_t cudaGraphExecMemcpyNodeSetParams1D(void *handle, void *node, void *target,
                                                          const void *source, size_t bytes,
                                                          cudaMemcpyKind kind) {
    RETURN_IF_LOST();
    Operation operation = linear_copy(target, source, bytes, kind);
    if ((unsigned)kind > cudaMemcpyDefault) return error_set(cudaErrorInvalidValue);
    return error_set(node_replace(exec_node(handle_find(handle, HANDLE_EXEC), node), &operation));
}

SIM_EXPORT cudaError_t cudaGraphNodeSetEnabled(void *handle, void *node, unsigned enabled) {
    RETURN_IF_LOST();
    Node *found = exec_node(handle_find(handle, HANDLE_EXEC), node);
    if (!found) return error_set(cudaErrorInvalidValue);
    found->disabled = !enabled;
    return cudaSuccess;
}

SIM_EXPORT cudaError_t cudaGraphNodeGetEnabled(void *handle, void *node, unsigned *enabled) {
    RETURN_IF_LOST();
    Node *found = exec_node(handle_find(handle, HANDLE_EXEC), node);
    if (!found || !enabled) return error_set(cudaErrorInvalidValue);
    *enabled = !found->disabled;
    return cudaSuccess;
}

typedef struct {
    int result; // 0: done, 1: not
    void *error_node, *error_from_node;
} UpdateResult;

/* The new graph must have the old one's shape: the same kinds in the same order. */
SIM_EXPORT cudaError_t cudaGraphExecUpdate(void *handle, void *graph_handle, UpdateResult *result) {
    RETURN_IF_LOST();
    Exec *exec = handle_find(handle, HANDLE_EXEC);
    Graph *graph = handle_find(graph_handle, HANDLE_GRAPH);
    if (!exec || !graph || !result) return error_set(cudaErrorInvalidValue);
    *result = (UpdateResult){0};
    pthread_mutex_lock(&stream_lock);
    Graph *fresh = graph_clone(graph);
    bool same = fresh && graph_sort(fresh) && fresh->count == exec->graph->count;
    for (size_t i = 0; same && i < fresh->count; i++) {
        Node *was = exec->graph->nodes[i], *now = fresh->nodes[i];
        same = was->operation.kind == now->operation.kind && was->need_count == now->need_count;
        if (same)
            now->original = was->original; // single nodes are still addressed by the first graph's
    }
    if (same) {
        Graph *old = exec->graph;
        exec->graph = fresh;
        fresh = old;
    }
    graph_free(fresh);
    pthread_mutex_unlock(&stream_lock);
    result->result = !same;
    return same ? cudaSuccess : error_set(cudaErrorGraphExecUpdateFailure);
}
