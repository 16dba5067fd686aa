/* report.c - what the simulator found out: findings and counters of kernels.
 *
 * A kernel with one wrong index meets it in thousands of threads. Findings of the same kind at the
 * same place about the same tensor are one report with a count. Blocks run on several cores in any
 * order; so that the same run gives the same reports, the thread named is the first in launch
 * order, not in time, and reports are handed out sorted by place.
 */
#include "sim/host.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define REPORT_LIMIT 4096 // places; findings elsewhere are dropped
#define BUCKETS      8192 // a power of two above REPORT_LIMIT

static struct {
    pthread_mutex_t lock;
    SimReport **reports; // grows; REPORT_LIMIT at most
    size_t count, capacity;
    uint16_t buckets[BUCKETS]; // index + 1 into reports, 0: free
    SimCounter *counters;
    size_t counter_count, counter_capacity;
} store = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- findings ------------------------------------------------------------------------------ */

static uint64_t hash_bytes(uint64_t hash, const void *data, size_t bytes) {
    const uint8_t *at = data;
    for (size_t i = 0; i < bytes; i++)
        hash = (hash ^ at[i]) * 0x100000001b3ull;
    return hash;
}

static uint64_t hash_place(const SimReport *r) {
    uint64_t hash = hash_bytes(0xcbf29ce484222325ull, &r->kind, sizeof r->kind);
    hash = hash_bytes(hash, &r->line, sizeof r->line);
    hash = hash_bytes(hash, r->kernel, strnlen(r->kernel, sizeof r->kernel));
    hash = hash_bytes(hash, r->chain, strnlen(r->chain, sizeof r->chain));
    return hash_bytes(hash, r->tensor, strnlen(r->tensor, sizeof r->tensor));
}

static int compare_place(const SimReport *a, const SimReport *b) {
    int order = strncmp(a->kernel, b->kernel, sizeof a->kernel);
    if (!order) order = strncmp(a->file, b->file, sizeof a->file);
    if (!order) order = a->line < b->line ? -1 : a->line > b->line;
    if (!order) order = strncmp(a->chain, b->chain, sizeof a->chain);
    if (!order) order = a->kind < b->kind ? -1 : a->kind > b->kind;
    if (!order) order = a->is_write < b->is_write ? -1 : a->is_write > b->is_write;
    if (!order) order = strncmp(a->space, b->space, sizeof a->space);
    if (!order) order = strncmp(a->tensor, b->tensor, sizeof a->tensor);
    return order;
}

static int compare_triple(const uint32_t a[3], const uint32_t b[3]) {
    for (int i = 2; i >= 0; i--)
        if (a[i] != b[i]) return a[i] < b[i] ? -1 : 1;
    return 0;
}

static bool earlier_thread(const SimReport *a, const SimReport *b) {
    int order = compare_triple(a->block, b->block);
    return (order ? order : compare_triple(a->thread, b->thread)) < 0;
}

void report_add(const SimReport *report) {
    pthread_mutex_lock(&store.lock);
    size_t bucket = hash_place(report) % BUCKETS;
    for (; store.buckets[bucket]; bucket = (bucket + 1) % BUCKETS) {
        SimReport *seen = store.reports[store.buckets[bucket] - 1];
        if (compare_place(seen, report) == 0) {
            uint64_t count = seen->count + (report->count ? report->count : 1);
            if (earlier_thread(report, seen)) *seen = *report;
            seen->count = count;
            pthread_mutex_unlock(&store.lock);
            return;
        }
    }
    if (store.count == store.capacity && store.count < REPORT_LIMIT) {
        size_t capacity = store.capacity ? 2 * store.capacity : 16;
        SimReport **grown = realloc(store.reports, capacity * sizeof *grown);
        if (grown) {
            store.reports = grown;
            store.capacity = capacity;
        }
    }
    SimReport *copy = store.count < store.capacity ? malloc(sizeof *copy) : NULL;
    if (copy) {
        *copy = *report;
        copy->count = report->count ? report->count : 1;
        store.reports[store.count++] = copy;
        store.buckets[bucket] = (uint16_t)store.count;
    }
    pthread_mutex_unlock(&store.lock);
}

static int compare_reports(const void *a, const void *b) {
    return compare_place(*(SimReport *const *)a, *(SimReport *const *)b);
}

/* Asking with no room tells how many there are and takes none away. */
size_t sim_take_reports(SimReport *reports, size_t capacity) {
    pthread_mutex_lock(&store.lock);
    size_t count = store.count;
    if (count && capacity && reports) {
        qsort(store.reports, count, sizeof *store.reports, compare_reports);
        for (size_t i = 0; i < count; i++) {
            if (i < capacity) reports[i] = *store.reports[i];
            free(store.reports[i]);
        }
        store.count = 0;
        memset(store.buckets, 0, sizeof store.buckets);
    }
    pthread_mutex_unlock(&store.lock);
    return count;
}

/* ---- counters ------------------------------------------------------------------------------ */

void counters_begin(void) {
    pthread_mutex_lock(&store.lock);
    store.counter_count = 0;
    pthread_mutex_unlock(&store.lock);
}

static void text_copy(char *out, size_t capacity, const char *text) {
    size_t length = strnlen(text, capacity - 1);
    memcpy(out, text, length);
    out[length] = 0;
}

void counter_add(const char *kernel, const char *counter, double value) {
    SimCounter wanted = {.value = value};
    text_copy(wanted.kernel, sizeof wanted.kernel, kernel);
    text_copy(wanted.counter, sizeof wanted.counter, counter);
    pthread_mutex_lock(&store.lock);
    for (size_t i = 0; i < store.counter_count; i++) {
        SimCounter *c = &store.counters[i];
        if (!strcmp(c->counter, wanted.counter) && !strcmp(c->kernel, wanted.kernel)) {
            c->value += value;
            pthread_mutex_unlock(&store.lock);
            return;
        }
    }
    if (store.counter_count == store.counter_capacity) {
        size_t capacity = store.counter_capacity ? 2 * store.counter_capacity : 64;
        SimCounter *grown = realloc(store.counters, capacity * sizeof *grown);
        if (grown) {
            store.counters = grown;
            store.counter_capacity = capacity;
        }
    }
    if (store.counter_count < store.counter_capacity)
        store.counters[store.counter_count++] = wanted;
    pthread_mutex_unlock(&store.lock);
}

static int compare_counters(const void *a, const void *b) {
    const SimCounter *x = a, *y = b;
    int order = strcmp(x->kernel, y->kernel);
    return order ? order : strcmp(x->counter, y->counter);
}

size_t sim_take_counters(SimCounter *counters, size_t capacity) {
    pthread_mutex_lock(&store.lock);
    size_t count = store.counter_count;
    if (count && capacity && counters) {
        qsort(store.counters, count, sizeof *store.counters, compare_counters);
        memcpy(counters, store.counters, (count < capacity ? count : capacity) * sizeof *counters);
        store.counter_count = 0;
    }
    pthread_mutex_unlock(&store.lock);
    return count;
}
