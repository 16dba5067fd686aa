/* cudart_stream.c - streams and events: an operation runs at once or joins a captured graph.
 *
 * A captured stream remembers its tips, the nodes that its next operation comes after. Recording
 * an event notes them, and a stream that waits for such an event joins the capture: that is how
 * a graph gets its branches.
 */
#include "sim/cudart_graph.h"
#include <stdlib.h>
#include <string.h>
#include <time.h>

pthread_mutex_t stream_lock = PTHREAD_MUTEX_INITIALIZER;

#define STREAM_LEGACY     ((void *)1)
#define STREAM_PER_THREAD ((void *)2)

static Stream legacy_stream = {.id = 1}, per_thread_stream = {.id = 2};
static Stream *created_streams;
static unsigned long long last_id = 2;
static Capture *active_captures;

/* What the calling thread put up with, as cudaThreadExchangeStreamCaptureMode set it. */
static _Thread_local int thread_capture_mode = CAPTURE_GLOBAL;

/* ---- operations ---------------------------------------------------------------------------------
 */

void operation_clear(Operation *operation) {
    if (operation->kind == OPERATION_KERNEL) free(operation->kernel.params);
    if (operation->kind == OPERATION_GRAPH) graph_free(operation->child);
    operation->kind = OPERATION_EMPTY;
}

bool operation_clone(Operation *out, const Operation *in) {
    *out = *in;
    if (in->kind == OPERATION_KERNEL) {
        out->kernel.params = malloc(in->kernel.param_bytes ? in->kernel.param_bytes : 1);
        if (!out->kernel.params) return false;
        memcpy(out->kernel.params, in->kernel.params, in->kernel.param_bytes);
    }
    if (in->kind == OPERATION_GRAPH) out->child = graph_clone(in->child);
    return in->kind != OPERATION_GRAPH || out->child;
}

static uint64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

void event_mark(Event *event) {
    event->time_ns = now_ns();
    event->recorded = true;
}

void operation_run(const Operation *operation) {
    switch (operation->kind) {
    case OPERATION_KERNEL:
        launch_run(&operation->kernel);
        break;
    case OPERATION_COPY:
        copy_run(&operation->copy);
        break;
    case OPERATION_FILL:
        fill_run(&operation->fill);
        break;
    case OPERATION_HOST:
        if (!error_context_lost()) operation->host.fn(operation->host.userData);
        break;
    case OPERATION_GRAPH:
        graph_run(operation->child);
        break;
    case OPERATION_EVENT_RECORD:
        if (handle_find(operation->event, HANDLE_EVENT)) // a graph may outlive it
            event_mark(operation->event);
        break;
    case OPERATION_EVENT_WAIT: // what it waits for has run
    case OPERATION_EMPTY:
        break;
    }
}

/* ---- captures
 * -------------------------------------------------------------------------------------- */

Capture *capture_by_id(unsigned long long id) {
    for (Capture *c = active_captures; c; c = c->next)
        if (c->id == id) return c;
    return NULL;
}

void capture_register(Capture *capture) {
    capture->next = active_captures;
    active_captures = capture;
}

static Stream *next_stream(Stream *stream) {
    return !stream                        ? &per_thread_stream
           : stream == &per_thread_stream ? created_streams
                                          : stream->next;
}

static void stream_leave_capture(Stream *stream) {
    stream->capture = NULL;
    free(stream->tips);
    stream->tips = NULL;
    stream->tip_count = 0;
}

void capture_end(Capture *capture) {
    for (Stream *s = next_stream(NULL); s; s = next_stream(s))
        if (s->capture == capture) stream_leave_capture(s);
    for (Capture **link = &active_captures; *link; link = &(*link)->next) {
        if (*link == capture) {
            *link = capture->next;
            break;
        }
    }
    free(capture);
}

/* A call that no capture can hold spoils those it could disturb: any capture that watches all
 * threads, and the calling thread's own, unless either side said it does not mind. */
static cudaError_t refuse_unsafe_call(void) {
    cudaError_t error = cudaSuccess;
    for (Capture *c = active_captures; c; c = c->next) {
        bool own = pthread_equal(c->thread, pthread_self());
        bool minds = own ? c->mode != CAPTURE_RELAXED
                         : c->mode == CAPTURE_GLOBAL && thread_capture_mode == CAPTURE_GLOBAL;
        if (minds && thread_capture_mode != CAPTURE_RELAXED) {
            c->spoiled = true;
            error = cudaErrorStreamCaptureUnsupported;
        }
    }
    return error;
}

cudaError_t capture_refuse(void *handle) {
    pthread_mutex_lock(&stream_lock);
    cudaError_t error = cudaSuccess;
    Stream *stream = handle ? stream_of(handle) : NULL;
    if (stream && stream->capture) {
        stream->capture->spoiled = true;
        error = cudaErrorStreamCaptureUnsupported;
    } else if (!handle) {
        error = refuse_unsafe_call();
    }
    pthread_mutex_unlock(&stream_lock);
    return error;
}

/* The legacy stream waits for all blocking streams, so it cannot be used while one is captured. */
static cudaError_t refuse_implicit_dependency(void) {
    cudaError_t error = cudaSuccess;
    for (Capture *c = active_captures; c; c = c->next) {
        if (!(c->origin->flags & cudaStreamNonBlocking)) {
            c->spoiled = true;
            error = cudaErrorStreamCaptureImplicit;
        }
    }
    return error;
}

static cudaError_t capture_operation(Stream *stream, Operation *operation) {
    if (stream->capture->spoiled) {
        operation_clear(operation);
        return cudaErrorStreamCaptureInvalidated;
    }
    Node *node = graph_append(stream->capture->graph, operation, stream->tips, stream->tip_count);
    if (!node || !node_list_set(&stream->tips, &stream->tip_count, &node, 1))
        return cudaErrorMemoryAllocation;
    return cudaSuccess;
}

SIM_EXPORT cudaError_t cudaThreadExchangeStreamCaptureMode(int *mode) {
    RETURN_IF_LOST();
    if (!mode || *mode < CAPTURE_GLOBAL || *mode > CAPTURE_RELAXED)
        return error_set(cudaErrorInvalidValue);
    int previous = thread_capture_mode;
    thread_capture_mode = *mode;
    *mode = previous;
    return cudaSuccess;
}

/* ---- submitting
 * ------------------------------------------------------------------------------------- */

Stream *stream_of(void *handle) {
    if (!handle || handle == STREAM_LEGACY) return &legacy_stream;
    if (handle == STREAM_PER_THREAD) return &per_thread_stream;
    return handle_find(handle, HANDLE_STREAM);
}

Stream *stream_find(void *handle) {
    return stream_of(handle);
}

bool stream_is_capturing(const Stream *stream) {
    pthread_mutex_lock(&stream_lock);
    bool capturing = stream->capture != NULL;
    pthread_mutex_unlock(&stream_lock);
    return capturing;
}

cudaError_t stream_submit(void *handle, Operation *operation) {
    pthread_mutex_lock(&stream_lock);
    Stream *stream = stream_of(handle);
    cudaError_t error = stream ? cudaSuccess : cudaErrorInvalidResourceHandle;
    bool captured = stream && stream->capture;
    if (captured)
        error = capture_operation(stream, operation);
    else if (stream == &legacy_stream)
        error = refuse_implicit_dependency();
    pthread_mutex_unlock(&stream_lock);
    if (captured) return error;
    if (!error) operation_run(operation);
    operation_clear(operation);
    return error;
}

/* ---- streams
 * ---------------------------------------------------------------------------------------- */

static const int priority_least = 0, priority_greatest = -5;

SIM_EXPORT cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest) {
    RETURN_IF_LOST();
    if (least) *least = priority_least;
    if (greatest) *greatest = priority_greatest;
    return cudaSuccess;
}

SIM_EXPORT cudaError_t cudaStreamCreateWithPriority(void **out, unsigned flags, int priority) {
    RETURN_IF_LOST();
    if (!out || flags > cudaStreamNonBlocking) return error_set(cudaErrorInvalidValue);
    Stream *stream = calloc(1, sizeof *stream);
    if (!stream || !handle_add(stream, HANDLE_STREAM, stream)) {
        free(stream);
        return error_set(cudaErrorMemoryAllocation);
    }
    stream->flags = flags;
    stream->priority = priority > priority_least      ? priority_least
                       : priority < priority_greatest ? priority_greatest
                                                      : priority;
    pthread_mutex_lock(&stream_lock);
    stream->id = ++last_id;
    stream->next = created_streams;
    created_streams = stream;
    pthread_mutex_unlock(&stream_lock);
    *out = stream;
    return cudaSuccess;
}

SIM_EXPORT cudaError_t cudaStreamCreateWithFlags(void **stream, unsigned flags) {
    return cudaStreamCreateWithPriority(stream, flags, priority_least);
}

SIM_EXPORT cudaError_t cudaStreamCreate(void **stream) {
    return cudaStreamCreateWithFlags(stream, cudaStreamDefault);
}

SIM_EXPORT cudaError_t cudaStreamDestroy(void *handle) {
    RETURN_IF_LOST();
    pthread_mutex_lock(&stream_lock);
    Stream *stream = handle_find(handle, HANDLE_STREAM);
    if (stream) {
        handle_remove(handle, HANDLE_STREAM);
        if (stream->capture && stream->capture->origin == stream) {
            if (!stream->capture->borrowed_graph) graph_free(stream->capture->graph);
            capture_end(stream->capture);
        }
        stream_leave_capture(stream);
        for (Stream **link = &created_streams; *link; link = &(*link)->next) {
            if (*link == stream) {
                *link = stream->next;
                break;
            }
        }
        free(stream);
    }
    pthread_mutex_unlock(&stream_lock);
    return stream ? cudaSuccess : error_set(cudaErrorInvalidResourceHandle);
}

static cudaError_t wait_for(void *handle) {
    RETURN_IF_LOST();
    Stream *stream = stream_find(handle);
    if (!stream) return error_set(cudaErrorInvalidResourceHandle);
    if (stream_is_capturing(stream)) return error_set(capture_refuse(handle));
    return error_synchronize();
}

SIM_EXPORT cudaError_t cudaStreamSynchronize(void *stream) {
    return wait_for(stream);
}
SIM_ALIAS(cudaStreamSynchronize_ptsz, cudaStreamSynchronize);

SIM_EXPORT cudaError_t cudaStreamQuery(void *stream) {
    return wait_for(stream);
}
SIM_ALIAS(cudaStreamQuery_ptsz, cudaStreamQuery);

SIM_EXPORT cudaError_t cudaDeviceSynchronize(void) {
    RETURN_IF_LOST();
    cudaError_t refused = capture_refuse(NULL);
    return refused ? error_set(refused) : error_synchronize();
}

#ifdef CUDART_12
SIM_ALIAS(cudaThreadSynchronize, cudaDeviceSynchronize);
#endif

SIM_EXPORT cudaError_t cudaStreamGetPriority(void *handle, int *priority) {
    RETURN_IF_LOST();
    Stream *stream = stream_find(handle);
    if (!stream || !priority)
        return error_set(stream ? cudaErrorInvalidValue : cudaErrorInvalidResourceHandle);
    *priority = stream->priority;
    return cudaSuccess;
}
SIM_ALIAS(cudaStreamGetPriority_ptsz, cudaStreamGetPriority);

SIM_EXPORT cudaError_t cudaStreamGetFlags(void *handle, unsigned *flags) {
    RETURN_IF_LOST();
    Stream *stream = stream_find(handle);
    if (!stream || !flags)
        return error_set(stream ? cudaErrorInvalidValue : cudaErrorInvalidResourceHandle);
    *flags = stream->flags;
    return cudaSuccess;
}
SIM_ALIAS(cudaStreamGetFlags_ptsz, cudaStreamGetFlags);

SIM_EXPORT cudaError_t cudaStreamGetId(void *handle, unsigned long long *id) {
    RETURN_IF_LOST();
    Stream *stream = stream_find(handle);
    if (!stream || !id)
        return error_set(stream ? cudaErrorInvalidValue : cudaErrorInvalidResourceHandle);
    *id = stream->id;
    return cudaSuccess;
}
SIM_ALIAS(cudaStreamGetId_ptsz, cudaStreamGetId);

SIM_EXPORT cudaError_t cudaStreamGetDevice(void *handle, int *device) {
    RETURN_IF_LOST();
    if (!stream_find(handle) || !device)
        return error_set(device ? cudaErrorInvalidResourceHandle : cudaErrorInvalidValue);
    *device = 0;
    return cudaSuccess;
}
SIM_ALIAS(cudaStreamGetDevice_ptsz, cudaStreamGetDevice);

/* Attributes of streams speak about caches and waiting; none changes a result. */
SIM_EXPORT cudaError_t cudaStreamSetAttribute(void *handle, int attribute, const void *value) {
    (void)attribute;
    RETURN_IF_LOST();
    if (!stream_find(handle) || !value)
        return error_set(value ? cudaErrorInvalidResourceHandle : cudaErrorInvalidValue);
    return cudaSuccess;
}
SIM_ALIAS(cudaStreamSetAttribute_ptsz, cudaStreamSetAttribute);

SIM_EXPORT cudaError_t cudaStreamCopyAttributes(void *target, void *source) {
    RETURN_IF_LOST();
    if (!stream_find(target) || !stream_find(source))
        return error_set(cudaErrorInvalidResourceHandle);
    return cudaSuccess;
}
SIM_ALIAS(cudaStreamCopyAttributes_ptsz, cudaStreamCopyAttributes);

/* ---- events
 * ------------------------------------------------------------------------------------------ */

SIM_EXPORT cudaError_t cudaEventCreateWithFlags(void **out, unsigned flags) {
    RETURN_IF_LOST();
    unsigned known = cudaEventBlockingSync | cudaEventDisableTiming | cudaEventInterprocess;
    if (!out || flags & ~known ||
        (flags & cudaEventInterprocess && !(flags & cudaEventDisableTiming)))
        return error_set(cudaErrorInvalidValue);
    Event *event = calloc(1, sizeof *event);
    if (!event || !handle_add(event, HANDLE_EVENT, event)) {
        free(event);
        return error_set(cudaErrorMemoryAllocation);
    }
    event->flags = flags;
    *out = event;
    return cudaSuccess;
}

SIM_EXPORT cudaError_t cudaEventCreate(void **event) {
    return cudaEventCreateWithFlags(event, 0);
}

SIM_EXPORT cudaError_t cudaEventDestroy(void *handle) {
    RETURN_IF_LOST();
    Event *event = handle_find(handle, HANDLE_EVENT);
    if (!event) return error_set(cudaErrorInvalidResourceHandle);
    handle_remove(handle, HANDLE_EVENT);
    free(event->tips);
    free(event);
    return cudaSuccess;
}

SIM_EXPORT cudaError_t cudaEventRecordWithFlags(void *handle, void *stream_handle, unsigned flags) {
    RETURN_IF_LOST();
    if (flags > 1) return error_set(cudaErrorInvalidValue);
    pthread_mutex_lock(&stream_lock);
    Event *event = handle_find(handle, HANDLE_EVENT);
    Stream *stream = stream_of(stream_handle);
    cudaError_t error = event && stream ? cudaSuccess : cudaErrorInvalidResourceHandle;
    bool external = flags == 1;
    if (!error && stream->capture && external) {
        Operation operation = {.kind = OPERATION_EVENT_RECORD, .event = event};
        error = capture_operation(stream, &operation);
    } else if (!error && stream->capture) {
        if (stream->capture->spoiled)
            error = cudaErrorStreamCaptureInvalidated;
        else if (!node_list_set(&event->tips, &event->tip_count, stream->tips, stream->tip_count))
            error = cudaErrorMemoryAllocation;
        else
            event->capture_id = stream->capture->id;
    } else if (!error) {
        error = stream == &legacy_stream ? refuse_implicit_dependency() : cudaSuccess;
        if (!error) {
            event->capture_id = 0;
            event_mark(event);
        }
    }
    pthread_mutex_unlock(&stream_lock);
    return error_set(error);
}
SIM_ALIAS(cudaEventRecordWithFlags_ptsz, cudaEventRecordWithFlags);

SIM_EXPORT cudaError_t cudaEventRecord(void *event, void *stream) {
    return cudaEventRecordWithFlags(event, stream, 0);
}
SIM_ALIAS(cudaEventRecord_ptsz, cudaEventRecord);

static cudaError_t event_wait(void *handle) {
    RETURN_IF_LOST();
    pthread_mutex_lock(&stream_lock);
    Event *event = handle_find(handle, HANDLE_EVENT);
    cudaError_t error = event ? cudaSuccess : cudaErrorInvalidResourceHandle;
    if (event && event->capture_id) {
        Capture *capture = capture_by_id(event->capture_id);
        if (capture) capture->spoiled = true;
        error = capture ? cudaErrorCapturedEvent : cudaErrorInvalidValue;
    }
    pthread_mutex_unlock(&stream_lock);
    return error ? error_set(error) : error_synchronize();
}

SIM_EXPORT cudaError_t cudaEventSynchronize(void *event) {
    return event_wait(event);
}

SIM_EXPORT cudaError_t cudaEventQuery(void *event) {
    return event_wait(event);
}

SIM_EXPORT cudaError_t cudaEventElapsedTime(float *ms, void *start_handle, void *end_handle) {
    RETURN_IF_LOST();
    Event *start = handle_find(start_handle, HANDLE_EVENT);
    Event *end = handle_find(end_handle, HANDLE_EVENT);
    if (!ms) return error_set(cudaErrorInvalidValue);
    if (!start || !end || !start->recorded || !end->recorded ||
        (start->flags | end->flags) & cudaEventDisableTiming)
        return error_set(cudaErrorInvalidResourceHandle);
    *ms = (float)((double)(int64_t)(end->time_ns - start->time_ns) * 1e-6);
    return error_synchronize();
}
SIM_ALIAS(cudaEventElapsedTime_v2, cudaEventElapsedTime);

/* Waiting for an event of a capture joins it. Outside of captures what an event stands for has
 * run already. */
static cudaError_t stream_wait(Stream *stream, Event *event) {
    Capture *capture = event->capture_id ? capture_by_id(event->capture_id) : NULL;
    if (!stream->capture && !event->capture_id) return cudaSuccess;
    if (event->capture_id && !capture) return cudaErrorInvalidValue; // that one has ended
    if (!event->capture_id) {
        stream->capture->spoiled = true;
        return cudaErrorStreamCaptureIsolation;
    }
    if (capture->spoiled) return cudaErrorStreamCaptureInvalidated;
    if (stream == &legacy_stream) return cudaErrorStreamCaptureImplicit;
    if (stream->capture && stream->capture != capture) {
        stream->capture->spoiled = capture->spoiled = true;
        return cudaErrorStreamCaptureMerge;
    }
    stream->capture = capture;
    for (size_t i = 0; i < event->tip_count; i++)
        if (!node_list_add(&stream->tips, &stream->tip_count, event->tips[i]))
            return cudaErrorMemoryAllocation;
    return cudaSuccess;
}

SIM_EXPORT cudaError_t cudaStreamWaitEvent(void *stream_handle, void *event_handle,
                                           unsigned flags) {
    RETURN_IF_LOST();
    if (flags > 1) return error_set(cudaErrorInvalidValue);
    pthread_mutex_lock(&stream_lock);
    Stream *stream = stream_of(stream_handle);
    Event *event = handle_find(event_handle, HANDLE_EVENT);
    cudaError_t error = cudaErrorInvalidResourceHandle;
    bool external = flags == 1;
    if (stream && event && stream->capture && external) {
        Operation operation = {.kind = OPERATION_EVENT_WAIT, .event = event};
        error = capture_operation(stream, &operation);
    } else if (stream && event) {
        error = stream_wait(stream, event);
    }
    pthread_mutex_unlock(&stream_lock);
    return error_set(error);
}
SIM_ALIAS(cudaStreamWaitEvent_ptsz, cudaStreamWaitEvent);
