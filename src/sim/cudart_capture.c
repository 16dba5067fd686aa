/* cudart_capture.c - the calls that begin, end and ask about the capture of a stream.
 *
 * What a captured stream is asked to do is recorded in a graph instead of done (cudart_stream.c).
 */
#include "sim/cudart_graph.h"
#include <stdlib.h>

static unsigned long long last_capture_id;

static cudaError_t capture_begin(void *handle, Graph *borrowed, void *const *needs, size_t count,
                                 int mode) {
    Stream *stream = stream_of(handle);
    if (!stream) return cudaErrorInvalidResourceHandle;
    if (mode < CAPTURE_GLOBAL || mode > CAPTURE_RELAXED) return cudaErrorInvalidValue;
    if (stream->id == 1) // the legacy stream
        return cudaErrorStreamCaptureUnsupported;
    if (stream->capture) return cudaErrorIllegalState;
    Capture *capture = calloc(1, sizeof *capture);
    Graph *graph = borrowed ? borrowed : graph_new();
    if (!capture || !graph ||
        !node_list_set(&stream->tips, &stream->tip_count, (Node *const *)needs, count)) {
        free(capture);
        if (!borrowed) graph_free(graph);
        return cudaErrorMemoryAllocation;
    }
    *capture = (Capture){.graph = graph,
                         .origin = stream,
                         .mode = mode,
                         .id = ++last_capture_id,
                         .thread = pthread_self(),
                         .borrowed_graph = borrowed != NULL};
    capture_register(capture);
    stream->capture = capture;
    return cudaSuccess;
}

SIM_EXPORT cudaError_t cudaStreamBeginCapture(void *stream, int mode) {
    RETURN_IF_LOST();
    pthread_mutex_lock(&stream_lock);
    cudaError_t error = capture_begin(stream, NULL, NULL, 0, mode);
    pthread_mutex_unlock(&stream_lock);
    return error_set(error);
}
SIM_ALIAS(cudaStreamBeginCapture_ptsz, cudaStreamBeginCapture);

SIM_EXPORT cudaError_t cudaStreamBeginCaptureToGraph(void *stream, void *graph_handle,
                                                     void *const *needs,
                                                     const cudaGraphEdgeData *edges, size_t count,
                                                     int mode) {
    (void)edges;
    RETURN_IF_LOST();
    pthread_mutex_lock(&stream_lock);
    Graph *graph = handle_find(graph_handle, HANDLE_GRAPH);
    cudaError_t error = graph ? cudaSuccess : cudaErrorInvalidValue;
    for (size_t i = 0; !error && i < count; i++)
        if (!needs || !handle_find(needs[i], HANDLE_NODE)) error = cudaErrorInvalidValue;
    if (!error) error = capture_begin(stream, graph, needs, count, mode);
    pthread_mutex_unlock(&stream_lock);
    return error_set(error);
}
SIM_ALIAS(cudaStreamBeginCaptureToGraph_ptsz, cudaStreamBeginCaptureToGraph);

static void mark_needed(Node *node) {
    if (node->mark) return;
    node->mark = 1;
    for (size_t i = 0; i < node->need_count; i++)
        mark_needed(node->needs[i]);
}

/* All that was captured must lead to the origin's tips: a branch was forgotten otherwise. */
static bool capture_is_joined(const Capture *capture) {
    const Graph *graph = capture->graph;
    for (size_t i = 0; i < graph->count; i++)
        graph->nodes[i]->mark = 0;
    for (size_t i = 0; i < capture->origin->tip_count; i++)
        mark_needed(capture->origin->tips[i]);
    bool joined = true;
    for (size_t i = 0; i < graph->count; i++)
        joined = joined && graph->nodes[i]->mark;
    return joined || capture->borrowed_graph;
}

SIM_EXPORT cudaError_t cudaStreamEndCapture(void *handle, void **out) {
    RETURN_IF_LOST();
    if (!out) return error_set(cudaErrorInvalidValue);
    *out = NULL;
    pthread_mutex_lock(&stream_lock);
    Stream *stream = stream_of(handle);
    Capture *capture = stream ? stream->capture : NULL;
    cudaError_t error = cudaSuccess;
    if (!stream)
        error = cudaErrorInvalidResourceHandle;
    else if (!capture)
        error = cudaErrorIllegalState;
    else if (capture->origin != stream)
        error = cudaErrorStreamCaptureUnmatched;
    else if (capture->mode != CAPTURE_RELAXED && !pthread_equal(capture->thread, pthread_self()))
        error = cudaErrorStreamCaptureWrongThread;
    if (!error) {
        Graph *graph = capture->graph;
        if (capture->spoiled)
            error = cudaErrorStreamCaptureInvalidated;
        else if (!capture_is_joined(capture))
            error = cudaErrorStreamCaptureUnjoined;
        if (!error)
            *out = graph;
        else if (!capture->borrowed_graph)
            graph_free(graph);
        capture_end(capture);
    }
    pthread_mutex_unlock(&stream_lock);
    return error_set(error);
}
SIM_ALIAS(cudaStreamEndCapture_ptsz, cudaStreamEndCapture);

/* ---- asking --------------------------------------------------------------------------------- */

static cudaError_t capture_info(void *handle, cudaStreamCaptureStatus *status,
                                unsigned long long *id, void **graph, void *const **tips,
                                size_t *tip_count) {
    RETURN_IF_LOST();
    if (!status) return error_set(cudaErrorInvalidValue);
    pthread_mutex_lock(&stream_lock);
    Stream *stream = stream_of(handle);
    if (stream) {
        const Capture *c = stream->capture;
        *status = !c           ? cudaStreamCaptureStatusNone
                  : c->spoiled ? cudaStreamCaptureStatusInvalidated
                               : cudaStreamCaptureStatusActive;
        if (c && id) *id = c->id;
        if (c && graph) *graph = c->graph;
        if (c && tips) *tips = (void *const *)stream->tips;
        if (c && tip_count) *tip_count = stream->tip_count;
    }
    pthread_mutex_unlock(&stream_lock);
    return stream ? cudaSuccess : error_set(cudaErrorInvalidResourceHandle);
}

SIM_EXPORT cudaError_t cudaStreamIsCapturing(void *stream, cudaStreamCaptureStatus *status) {
    return capture_info(stream, status, NULL, NULL, NULL, NULL);
}
SIM_ALIAS(cudaStreamIsCapturing_ptsz, cudaStreamIsCapturing);

#ifdef CUDART_12
SIM_EXPORT cudaError_t cudaStreamGetCaptureInfo_v2(void *stream, cudaStreamCaptureStatus *status,
                                                   unsigned long long *id, void **graph,
                                                   void *const **tips, size_t *tip_count) {
    return capture_info(stream, status, id, graph, tips, tip_count);
}
SIM_ALIAS(cudaStreamGetCaptureInfo_v2_ptsz, cudaStreamGetCaptureInfo_v2);

SIM_EXPORT cudaError_t cudaStreamGetCaptureInfo_v3(void *stream, cudaStreamCaptureStatus *status,
                                                   unsigned long long *id, void **graph,
                                                   void *const **tips,
                                                   const cudaGraphEdgeData **edges,
                                                   size_t *tip_count) {
    if (edges) *edges = NULL;
    return capture_info(stream, status, id, graph, tips, tip_count);
}
SIM_ALIAS(cudaStreamGetCaptureInfo_v3_ptsz, cudaStreamGetCaptureInfo_v3);
#else
SIM_EXPORT cudaError_t cudaStreamGetCaptureInfo(void *stream, cudaStreamCaptureStatus *status,
                                                unsigned long long *id, void **graph,
                                                void *const **tips, const cudaGraphEdgeData **edges,
                                                size_t *tip_count) {
    if (edges) *edges = NULL;
    return capture_info(stream, status, id, graph, tips, tip_count);
}
SIM_ALIAS(cudaStreamGetCaptureInfo_ptsz, cudaStreamGetCaptureInfo);
#endif
