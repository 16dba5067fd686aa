/* parallel.c - spreads loops over the cores, and the guarded memory they work on.
 *
 * Threads live for one loop: starting them costs some ten microseconds each, a reference runs for
 * milliseconds. Blocks are handed out one at a time, so rows of unequal cost even out. Whoever
 * needs sums keeps one per block and adds them in order, so that results do not depend on the
 * number of cores.
 */
#include "oracle/oracle.h"

#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#define MAX_THREADS 256

typedef struct {
    int64_t blocks;
    atomic_int_least64_t next;
    void (*body)(void *context, int64_t block);
    void *context;
} Loop;

static void *work(void *argument) {
    Loop *loop = argument;
    for (;;) {
        int64_t block = atomic_fetch_add(&loop->next, 1);
        if (block >= loop->blocks) return NULL;
        loop->body(loop->context, block);
    }
}

int parallel_cores(void) {
    cpu_set_t set;
    int cores = sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set)
                                                             : (int)sysconf(_SC_NPROCESSORS_ONLN);
    return cores < 1 ? 1 : cores > MAX_THREADS ? MAX_THREADS : cores;
}

void parallel_blocks(int64_t blocks, void (*body)(void *context, int64_t block), void *context) {
    Loop loop = {.blocks = blocks, .body = body, .context = context};
    pthread_t threads[MAX_THREADS];
    int wanted = parallel_cores() - 1, started = 0;
    if (wanted > blocks - 1) wanted = (int)(blocks - 1);
    while (started < wanted && pthread_create(&threads[started], NULL, work, &loop) == 0)
        started++;
    work(&loop); // this thread works too, alone if need be
    for (int i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
}

static size_t mapped_bytes(size_t bytes, size_t page) {
    return (bytes + page - 1) / page * page + page;
}

void *guarded_new(size_t bytes) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE), mapped = mapped_bytes(bytes, page);
    if (mapped < bytes) return NULL;
    uint8_t *start = mmap(NULL, mapped, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (start == MAP_FAILED) return NULL;
    if (mprotect(start + mapped - page, page, PROT_NONE) != 0) {
        munmap(start, mapped);
        return NULL;
    }
    return start + mapped - page - bytes;
}

void guarded_free(void *data, size_t bytes) {
    if (!data) return;
    size_t page = (size_t)sysconf(_SC_PAGESIZE), mapped = mapped_bytes(bytes, page);
    munmap((uint8_t *)data + bytes + page - mapped, mapped);
}

bool fault(Fault *why, const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    vsnprintf(why->text, sizeof(why->text), fmt, args);
    va_end(args);
    return false;
}
