/* memory.c - the simulated device's memory: who owns an address, and was it ever written.
 *
 * Device pointers are host pointers. Allocations are cut one after another from large reserved
 * regions, with unmapped gaps between them, and addresses are not handed out twice: a pointer that
 * is kept after cudaFree, or that runs off its buffer, belongs to nobody. Each allocation has one
 * bit per byte that says whether the byte was written.
 *
 * A host program that follows a device pointer works here and crashes on a GPU. So while
 * sim_hide_memory() says so, device allocations have no access rights except between memory_open
 * and memory_close.
 *
 * Kernels look addresses up while other threads may allocate, so the sorted table of allocations
 * is never changed: a writer publishes a new one. What readers may still hold (old tables, freed
 * allocations) is kept until nobody is between memory_enter and memory_leave.
 */
#include "sim/host.h"
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sysinfo.h>

#define PAGE_BYTES   4096ull
#define REGION_BYTES (256ull << 30)
#define GAP_MIN      (64ull << 10)
#define GAP_MAX      (64ull << 20)
#define POISON_LIMIT (64ull << 20) // larger allocations are left to the bits alone
#define POISON_BYTE  0xFF          // NaN in every float format, -1 in every integer

/* A stretch of addresses; the cursor only moves up. */
typedef struct Region {
    uint64_t begin, end, cursor;
    size_t live;
    struct Region *next;
} Region;

typedef struct Block {
    Allocation allocation; // first: a Block is found through it
    MemoryKind kind;
    Region *region; // NULL for registered host memory
    uint64_t mapped_bytes;
    struct Block *next_retired;
} Block;

typedef struct Table {
    struct Table *next_retired;
    size_t count;
    Block *blocks[]; // by base
} Table;

static struct {
    pthread_mutex_t lock; // held by whoever changes anything below
    _Atomic(Table *) table;
    atomic_uint readers;
    Table *retired_tables;
    Block *retired_blocks;
    Region *regions; // the first one is cut from
    uint32_t serial;
    uint64_t used;
    bool hidden;
    unsigned open; // how many are between memory_open and memory_close
} memory = {.lock = PTHREAD_MUTEX_INITIALIZER};

static uint64_t round_up(uint64_t value, uint64_t step) {
    return (value + step - 1) / step * step;
}

uint64_t memory_total(void) {
    struct sysinfo info;
    uint64_t limit = 16ull << 30;
    if (sysinfo(&info) == 0) {
        uint64_t share = (uint64_t)info.totalram * info.mem_unit / 10 * 6;
        if (share < limit) limit = share / PAGE_BYTES * PAGE_BYTES;
    }
    return limit;
}

uint64_t memory_used(void) {
    pthread_mutex_lock(&memory.lock);
    uint64_t used = memory.used;
    pthread_mutex_unlock(&memory.lock);
    return used;
}

/* ---- regions ------------------------------------------------------------------------------- */

static void region_release_if_unused(Region *region) {
    if (region->live || region == memory.regions) return;
    for (Region **link = &memory.regions; *link; link = &(*link)->next) {
        if (*link == region) {
            *link = region->next;
            munmap((void *)region->begin, region->end - region->begin);
            free(region);
            return;
        }
    }
}

/* Makes a region with room for `need` bytes the first one. Address space may be limited
 * (RLIMIT_AS), so a smaller one is tried before giving up. */
static bool region_open(uint64_t need) {
    uint64_t bytes = need > REGION_BYTES ? need : REGION_BYTES;
    void *begin = MAP_FAILED;
    for (;;) {
        begin = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (begin != MAP_FAILED || bytes == need) break;
        bytes = bytes / 2 > need ? bytes / 2 : need;
    }
    if (begin == MAP_FAILED) return false;
    Region *region = calloc(1, sizeof *region);
    if (!region) {
        munmap(begin, bytes);
        return false;
    }
    Region *previous = memory.regions;
    *region = (Region){.begin = (uint64_t)begin,
                       .end = (uint64_t)begin + bytes,
                       .cursor = (uint64_t)begin,
                       .next = previous};
    memory.regions = region;
    if (previous) region_release_if_unused(previous);
    return true;
}

bool memory_is_reserved(uint64_t address) {
    bool inside = false;
    pthread_mutex_lock(&memory.lock);
    for (Region *r = memory.regions; r && !inside; r = r->next)
        inside = address >= r->begin && address < r->end;
    pthread_mutex_unlock(&memory.lock);
    return inside;
}

/* ---- the table ----------------------------------------------------------------------------- */

/* Number of blocks whose base is at or below `address`. */
static size_t table_upper(const Table *table, uint64_t address) {
    size_t low = 0, high = table ? table->count : 0;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (table->blocks[middle]->allocation.base <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static Block *block_at(uint64_t address) {
    const Table *table = atomic_load(&memory.table);
    size_t upper = table_upper(table, address);
    if (!upper) return NULL;
    Block *block = table->blocks[upper - 1];
    return address - block->allocation.base < block->allocation.bytes ? block : NULL;
}

Allocation *memory_find(uint64_t address) {
    Block *block = block_at(address);
    return block ? &block->allocation : NULL;
}

static uint64_t distance(const Block *block, uint64_t address) {
    uint64_t base = block->allocation.base, end = base + block->allocation.bytes;
    return address < base ? base - address : address < end ? 0 : address - end + 1;
}

Allocation *memory_nearest(uint64_t address) {
    const Table *table = atomic_load(&memory.table);
    size_t upper = table_upper(table, address);
    Block *below = upper ? table->blocks[upper - 1] : NULL;
    Block *above = table && upper < table->count ? table->blocks[upper] : NULL;
    if (below && above)
        return distance(below, address) <= distance(above, address) ? &below->allocation
                                                                    : &above->allocation;
    return below ? &below->allocation : above ? &above->allocation : NULL;
}

MemoryKind memory_kind(const Allocation *allocation) {
    return ((const Block *)allocation)->kind;
}

static void table_publish(Table *fresh) {
    Table *old = atomic_exchange(&memory.table, fresh);
    if (old) {
        old->next_retired = memory.retired_tables;
        memory.retired_tables = old;
    }
}

static Table *table_new(size_t count) {
    Table *table = malloc(sizeof *table + count * sizeof table->blocks[0]);
    if (table) *table = (Table){.count = count};
    return table;
}

static bool table_insert(Block *block) {
    const Table *old = atomic_load(&memory.table);
    size_t count = old ? old->count : 0, at = table_upper(old, block->allocation.base);
    Table *fresh = table_new(count + 1);
    if (!fresh) return false;
    if (old) {
        memcpy(fresh->blocks, old->blocks, at * sizeof fresh->blocks[0]);
        memcpy(fresh->blocks + at + 1, old->blocks + at, (count - at) * sizeof fresh->blocks[0]);
    }
    fresh->blocks[at] = block;
    table_publish(fresh);
    return true;
}

static bool table_remove(uint64_t base) {
    const Table *old = atomic_load(&memory.table);
    size_t at = table_upper(old, base) - 1;
    Table *fresh = table_new(old->count - 1);
    if (!fresh) return false;
    memcpy(fresh->blocks, old->blocks, at * sizeof fresh->blocks[0]);
    memcpy(fresh->blocks + at, old->blocks + at + 1,
           (old->count - at - 1) * sizeof fresh->blocks[0]);
    table_publish(fresh);
    return true;
}

/* ---- readers and what they hold back --------------------------------------------------------- */

static void block_destroy(Block *block) {
    if (block->region) {
        void *pages = (void *)block->allocation.base;
        madvise(pages, block->mapped_bytes, MADV_DONTNEED);
        mprotect(pages, block->mapped_bytes, PROT_NONE);
        block->region->live--;
        region_release_if_unused(block->region);
    }
    free(block->allocation.initialized);
    free(block);
}

/* With the lock held. Whoever enters after the check sees the new table only. */
static void reclaim(void) {
    if (atomic_load(&memory.readers)) return;
    while (memory.retired_tables) {
        Table *table = memory.retired_tables;
        memory.retired_tables = table->next_retired;
        free(table);
    }
    while (memory.retired_blocks) {
        Block *block = memory.retired_blocks;
        memory.retired_blocks = block->next_retired;
        block_destroy(block);
    }
}

void memory_enter(void) {
    atomic_fetch_add(&memory.readers, 1);
}

void memory_leave(void) {
    if (atomic_fetch_sub(&memory.readers, 1) != 1) return;
    pthread_mutex_lock(&memory.lock);
    reclaim();
    pthread_mutex_unlock(&memory.lock);
}

/* ---- hiding from the host ---------------------------------------------------------------------- */

static void protect(const Block *block, int rights) {
    if (block->region && block->kind == MEMORY_DEVICE &&
        mprotect((void *)block->allocation.base, block->mapped_bytes, rights) != 0) {
        fprintf(stderr, "cannot change the rights of simulated memory: %s\n", strerror(errno));
        abort(); // going on would blame the kernel
    }
}

/* With the lock held. */
static void protect_all(int rights) {
    const Table *table = atomic_load(&memory.table);
    for (size_t i = 0; table && i < table->count; i++)
        protect(table->blocks[i], rights);
}

void memory_open(void) {
    pthread_mutex_lock(&memory.lock);
    if (memory.open++ == 0 && memory.hidden) protect_all(PROT_READ | PROT_WRITE);
    pthread_mutex_unlock(&memory.lock);
}

void memory_close(void) {
    pthread_mutex_lock(&memory.lock);
    if (--memory.open == 0 && memory.hidden) protect_all(PROT_NONE);
    pthread_mutex_unlock(&memory.lock);
}

void sim_hide_memory(int hidden) {
    pthread_mutex_lock(&memory.lock);
    if (memory.hidden != (hidden != 0) && !memory.open)
        protect_all(hidden ? PROT_NONE : PROT_READ | PROT_WRITE);
    memory.hidden = hidden != 0;
    pthread_mutex_unlock(&memory.lock);
}

/* ---- allocating ------------------------------------------------------------------------------ */

static bool block_map(Block *block, uint64_t bytes) {
    uint64_t pages = round_up(bytes, PAGE_BYTES);
    uint64_t gap = pages < GAP_MIN ? GAP_MIN : pages > GAP_MAX ? GAP_MAX : pages;
    uint64_t need = pages + 2 * gap;
    Region *region = memory.regions;
    if ((!region || region->end - region->cursor < need) && !region_open(need)) return false;
    region = memory.regions;
    uint64_t base = region->cursor + gap;
    if (mprotect((void *)base, pages, PROT_READ | PROT_WRITE) != 0) return false;
    region->cursor = base + pages;
    region->live++;
    block->region = region;
    block->mapped_bytes = pages;
    block->allocation.base = base;
    block->allocation.bytes = bytes;
    return true;
}

static void name_set(Allocation *allocation, const char *name) {
    snprintf(allocation->name, sizeof allocation->name, "%s", name ? name : "");
}

void *memory_allocate_kind(size_t bytes, const char *name, MemoryKind kind) {
    uint64_t total = memory_total();
    if (bytes == 0 || bytes > total) return NULL;
    Block *block = calloc(1, sizeof *block);
    if (!block) return NULL;
    bool tracked = kind == MEMORY_DEVICE && sim_options().check_initialized;
    block->kind = kind;
    name_set(&block->allocation, name);
    if (tracked) {
        block->allocation.initialized = calloc(1, (bytes + 7) / 8 + sizeof(uint64_t));
        if (!block->allocation.initialized) {
            free(block);
            return NULL;
        }
    }
    pthread_mutex_lock(&memory.lock);
    reclaim();
    bool counted = kind != MEMORY_HOST;
    bool fits = !counted || round_up(bytes, PAGE_BYTES) <= total - memory.used;
    bool mapped = fits && block_map(block, bytes);
    if (mapped) {
        block->allocation.serial = ++memory.serial;
        if (kind == MEMORY_DEVICE && bytes <= POISON_LIMIT)
            memset((void *)block->allocation.base, POISON_BYTE, bytes);
        if (table_insert(block)) {
            memory.used += counted ? block->mapped_bytes : 0;
            if (memory.hidden && !memory.open) protect(block, PROT_NONE);
            pthread_mutex_unlock(&memory.lock);
            return (void *)block->allocation.base;
        }
    }
    block_destroy(block);
    pthread_mutex_unlock(&memory.lock);
    return NULL;
}

void *memory_allocate(size_t bytes, const char *name) {
    return memory_allocate_kind(bytes, name, MEMORY_DEVICE);
}

static bool block_free(void *pointer, bool registered) {
    pthread_mutex_lock(&memory.lock);
    Block *block = block_at((uint64_t)pointer);
    bool ours = block && block->allocation.base == (uint64_t)pointer &&
                (block->kind == MEMORY_REGISTERED) == registered && table_remove((uint64_t)pointer);
    if (ours) {
        if (block->kind == MEMORY_DEVICE || block->kind == MEMORY_MANAGED)
            memory.used -= block->mapped_bytes;
        block->next_retired = memory.retired_blocks;
        memory.retired_blocks = block;
        reclaim();
    }
    pthread_mutex_unlock(&memory.lock);
    return ours;
}

bool memory_free(void *pointer) {
    return block_free(pointer, false);
}

bool memory_is_mapped(uint64_t address, uint64_t bytes) {
    unsigned char resident[1024];
    uint64_t end = address + bytes;
    if (!address || end < address) return false;
    for (uint64_t page = address / PAGE_BYTES * PAGE_BYTES; page < end;) {
        uint64_t step = sizeof resident * PAGE_BYTES;
        if (step > end - page) step = end - page;
        if (mincore((void *)page, step, resident) != 0 && errno == ENOMEM) return false;
        page += step;
    }
    return true;
}

bool memory_register(void *host, size_t bytes) {
    uint64_t base = (uint64_t)host;
    if (!bytes || !memory_is_mapped(base, bytes)) return false;
    Block *block = calloc(1, sizeof *block);
    if (!block) return false;
    block->kind = MEMORY_REGISTERED;
    block->allocation.base = base;
    block->allocation.bytes = bytes;
    pthread_mutex_lock(&memory.lock);
    const Table *table = atomic_load(&memory.table);
    size_t upper = table_upper(table, base + bytes - 1);
    const Block *below = upper ? table->blocks[upper - 1] : NULL;
    bool free_range = !below || below->allocation.base + below->allocation.bytes <= base;
    block->allocation.serial = ++memory.serial;
    bool done = free_range && table_insert(block);
    if (!done) free(block);
    pthread_mutex_unlock(&memory.lock);
    return done;
}

bool memory_unregister(void *host) {
    return block_free(host, true);
}

void memory_untrack(uint64_t address) {
    memory_enter();
    Block *block = block_at(address);
    if (block) {
        protect(block, PROT_READ | PROT_WRITE);
        block->kind = MEMORY_MANAGED;
        memory_mark(block->allocation.base, block->allocation.bytes, true);
    }
    memory_leave();
}

/* ---- marks ----------------------------------------------------------------------------------- */

static void mark_bits(uint8_t *byte, uint8_t bits, bool set) {
    if (set)
        __atomic_fetch_or(byte, bits, __ATOMIC_RELAXED);
    else
        __atomic_fetch_and(byte, (uint8_t)~bits, __ATOMIC_RELAXED);
}

/* Bits [begin, end); neighbours in the same byte may be changed by other threads meanwhile. */
static void mark_range(uint8_t *bits, uint64_t begin, uint64_t end, bool set) {
    if (begin >= end) return;
    uint64_t first = begin / 8, last = (end - 1) / 8;
    uint8_t head = (uint8_t)(0xFF << begin % 8), tail = (uint8_t)(0xFF >> (7 - (end - 1) % 8));
    if (first == last) {
        mark_bits(bits + first, head & tail, set);
        return;
    }
    mark_bits(bits + first, head, set);
    memset(bits + first + 1, set ? 0xFF : 0, last - first - 1);
    mark_bits(bits + last, tail, set);
}

void memory_mark(uint64_t address, uint64_t bytes, bool initialized) {
    memory_enter();
    Allocation *a = memory_find(address);
    if (a && a->initialized) {
        uint64_t begin = address - a->base, room = a->bytes - begin;
        mark_range(a->initialized, begin, begin + (bytes < room ? bytes : room), initialized);
    }
    memory_leave();
}

static bool bit(const uint8_t *bits, uint64_t at) {
    return bits[at / 8] >> at % 8 & 1;
}

void memory_copy_marks(uint64_t target, uint64_t source, uint64_t bytes) {
    memory_enter();
    Allocation *to = memory_find(target), *from = memory_find(source);
    if (!to || !to->initialized) {
        memory_leave();
        return;
    }
    if (!from || !from->initialized) {
        memory_leave();
        memory_mark(target, bytes, true);
        return;
    }
    uint64_t out = target - to->base, in = source - from->base;
    uint64_t count = bytes;
    if (count > to->bytes - out) count = to->bytes - out;
    if (count > from->bytes - in) count = from->bytes - in;
    uint64_t done = 0;
    for (; done < count && (out + done) % 8; done++)
        mark_range(to->initialized, out + done, out + done + 1, bit(from->initialized, in + done));
    uint8_t *target_byte = to->initialized + (out + done) / 8;
    const uint8_t *source_byte = from->initialized + (in + done) / 8;
    uint64_t whole = (count - done) / 8, shift = (in + done) % 8;
    if (!shift) {
        memmove(target_byte, source_byte, whole);
    } else { // the array has room behind it, so reading one byte further is harmless
        for (uint64_t i = 0; i < whole; i++)
            target_byte[i] =
                (uint8_t)(source_byte[i] >> shift | (unsigned)source_byte[i + 1] << (8 - shift));
    }
    for (done += whole * 8; done < count; done++)
        mark_range(to->initialized, out + done, out + done + 1, bit(from->initialized, in + done));
    memory_leave();
}

/* ---- what the runner calls ---------------------------------------------------------------------
 */

void sim_name(void *data, size_t bytes, const char *name) {
    pthread_mutex_lock(&memory.lock);
    Block *block = block_at((uint64_t)data);
    if (block) {
        Allocation *a = &block->allocation;
        uint64_t room = a->bytes - ((uint64_t)data - a->base);
        name_set(a, name);
        a->named_base = name ? (uint64_t)data : 0;
        a->named_bytes = name ? (bytes < room ? bytes : room) : 0;
    }
    pthread_mutex_unlock(&memory.lock);
}

void sim_set_initialized(void *data, size_t bytes, int initialized) {
    memory_mark((uint64_t)data, bytes, initialized != 0);
}
