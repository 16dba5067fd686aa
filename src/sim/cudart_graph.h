/* cudart_graph.h - inside the runtime API: streams, captures and graphs, which refer to each other.
 *
 * A graph is a list of nodes in an order that respects what each needs, as far as it was built by
 * capture; a program that adds edges itself may break it, so a graph is sorted before it runs.
 * All of this is guarded by one lock, stream_lock, which is not held while operations run.
 */
#pragma once
#include "sim/cudart.h"
#include <pthread.h>

extern pthread_mutex_t stream_lock;

typedef struct Node {
    Graph *graph;
    Operation operation;
    struct Node **needs; // nodes that come before it
    size_t need_count;
    struct Node *original; // in a clone: the node it was made from
    bool disabled;
    int mark; // scratch of walks over the graph
} Node;

struct Graph {
    Node **nodes;
    size_t count, capacity;
};

typedef struct Capture {
    struct Capture *next;
    Graph *graph;
    Stream *origin;
    int mode; // cudaStreamCaptureMode
    unsigned long long id;
    pthread_t thread;
    bool spoiled;
    bool borrowed_graph; // cudaStreamBeginCaptureToGraph: the graph is the program's
} Capture;

struct Stream {
    struct Stream *next;
    unsigned flags;
    int priority;
    unsigned long long id;
    Capture *capture; // NULL: operations run
    Node **tips;      // the nodes that the next one needs
    size_t tip_count;
};

struct Event {
    unsigned flags;
    bool recorded;
    uint64_t time_ns;
    unsigned long long capture_id; // last recorded in this capture, 0: in none
    Node **tips;
    size_t tip_count;
};

enum { CAPTURE_GLOBAL, CAPTURE_THREAD_LOCAL, CAPTURE_RELAXED };

/* All with stream_lock held, unless they say otherwise. */
Graph *graph_new(void);
void graph_free(Graph *graph);
Graph *graph_clone(const Graph *graph);
/* Takes the operation's possessions in any case; NULL: out of memory. */
Node *graph_append(Graph *graph, Operation *operation, Node *const *needs, size_t need_count);
bool node_list_set(Node ***list, size_t *count, Node *const *nodes, size_t node_count);
bool node_list_add(Node ***list, size_t *count, Node *node);
/* Runs a graph's operations; the graph is not changed, the lock not needed. */
void graph_run(const Graph *graph);
bool graph_sort(Graph *graph); // false: it has a cycle

Stream *stream_of(void *handle);
void capture_register(Capture *capture);
void capture_end(Capture *capture); // its streams go back to running; the graph is left alone
Capture *capture_by_id(unsigned long long id);
