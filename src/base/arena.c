/* arena.c - memory that goes away all at once.
 *
 * A run, a request or a test owns an arena; what is allocated from it needs no owner of its own.
 * Small allocations are cut from blocks, large ones get a block to themselves, and things that
 * are not memory (a JSON reference, a descriptor) are tied to it by arena_defer.
 */
#include "base/base.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(at, bytes)   ((void)(at), (void)(bytes))
#define ASAN_UNPOISON_MEMORY_REGION(at, bytes) ((void)(at), (void)(bytes))
#endif

enum { BLOCK_BYTES = 16 * 1024, ALIGNMENT = 16 };

typedef struct Block Block;
struct Block {
    Block *next;
    size_t used, capacity;
    _Alignas(ALIGNMENT) unsigned char data[];
};

typedef struct Cleanup Cleanup;
struct Cleanup {
    Cleanup *next;
    void (*run)(void *);
    void *what;
};

struct Arena {
    Block *blocks;     // the first is the one being cut
    Cleanup *cleanups; // newest first, which is the order they run in
};

static _Noreturn void out_of_memory(void) {
    static const char text[] = "cutegen: out of memory\n";
    fwrite(text, 1, sizeof text - 1, stderr); // the one message printed here: nobody above can
    abort();
}

Arena *arena_new(void) {
    Arena *arena = calloc(1, sizeof *arena);
    if (!arena) {
        out_of_memory();
    }
    return arena;
}

void arena_free(Arena *arena) {
    if (!arena) {
        return;
    }
    // A cleanup may itself allocate or defer; take them one at a time.
    while (arena->cleanups) {
        Cleanup *cleanup = arena->cleanups;
        arena->cleanups = cleanup->next;
        cleanup->run(cleanup->what);
    }
    for (Block *block = arena->blocks, *next; block; block = next) {
        next = block->next;
        ASAN_UNPOISON_MEMORY_REGION(block->data, block->capacity);
        free(block);
    }
    free(arena);
}

static Block *block_new(size_t capacity) {
    if (capacity > SIZE_MAX - sizeof(Block)) {
        out_of_memory();
    }
    Block *block = calloc(1, sizeof(Block) + capacity);
    if (!block) {
        out_of_memory();
    }
    block->capacity = capacity;
    ASAN_POISON_MEMORY_REGION(block->data, capacity);
    return block;
}

void *arena_alloc(Arena *arena, size_t bytes) {
    if (bytes > SIZE_MAX / 2) {
        out_of_memory();
    }
    size_t rounded = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    if (rounded == 0) {
        rounded = ALIGNMENT; // distinct addresses even for empty things
    }
    Block *block = arena->blocks;
    if (!block || block->capacity - block->used < rounded) {
        if (rounded > BLOCK_BYTES / 4) {
            // A block of its own, behind the current one, whose rest stays usable.
            block = block_new(rounded);
            if (arena->blocks) {
                block->next = arena->blocks->next;
                arena->blocks->next = block;
            } else {
                arena->blocks = block;
            }
        } else {
            block = block_new(BLOCK_BYTES);
            block->next = arena->blocks;
            arena->blocks = block;
        }
    }
    void *result = block->data + block->used;
    block->used += rounded;
    ASAN_UNPOISON_MEMORY_REGION(result, bytes);
    return result;
}

void *arena_copy(Arena *arena, const void *data, size_t bytes) {
    void *copy = arena_alloc(arena, bytes);
    if (bytes > 0) {
        memcpy(copy, data, bytes);
    }
    return copy;
}

char *arena_string_n(Arena *arena, const char *text, size_t bytes) {
    char *copy = arena_alloc(arena, bytes + 1);
    if (bytes > 0) {
        memcpy(copy, text, bytes);
    }
    return copy;
}

char *arena_string(Arena *arena, const char *text) {
    return text ? arena_string_n(arena, text, strlen(text)) : NULL;
}

char *arena_vprintf(Arena *arena, const char *fmt, va_list args) {
    va_list again;
    va_copy(again, args);
    int length = vsnprintf(NULL, 0, fmt, again);
    va_end(again);
    if (length < 0) {
        return arena_string(arena, "");
    }
    char *text = arena_alloc(arena, (size_t)length + 1);
    vsnprintf(text, (size_t)length + 1, fmt, args);
    return text;
}

char *arena_printf(Arena *arena, const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    char *text = arena_vprintf(arena, fmt, args);
    va_end(args);
    return text;
}

void arena_defer(Arena *arena, void (*run)(void *), void *what) {
    Cleanup *cleanup = arena_new_of(arena, Cleanup);
    *cleanup = (Cleanup){.next = arena->cleanups, .run = run, .what = what};
    arena->cleanups = cleanup;
}
