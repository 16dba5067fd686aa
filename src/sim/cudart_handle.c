/* cudart_handle.c - which pointers are ours.
 *
 * The runtime API hands out pointers and takes them back: streams, events, kernels by their host
 * stub. A program may pass anything. One hash table of (pointer, kind) tells what is behind it.
 */
#include "sim/cudart.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    const void *key;
    void *object; // NULL with a key: removed
    HandleKind kind;
} Slot;

static struct {
    pthread_mutex_t lock;
    Slot *slots;
    size_t capacity, used; // capacity is a power of two; used counts removed ones too
} handles = {.lock = PTHREAD_MUTEX_INITIALIZER};

static size_t slot_index(const void *key, HandleKind kind) {
    return (((uint64_t)key >> 4) ^ (uint64_t)kind << 40) * 0x9E3779B97F4A7C15ull >> 20;
}

/* The slot of the key, or the free one where it would go. */
static Slot *slot_find(Slot *slots, size_t capacity, const void *key, HandleKind kind) {
    size_t at = slot_index(key, kind);
    for (;; at++) {
        Slot *slot = &slots[at & (capacity - 1)];
        if (!slot->key || (slot->key == key && slot->kind == kind)) return slot;
    }
}

static bool grow(void) {
    size_t capacity = handles.capacity ? handles.capacity : 64, live = 0;
    for (size_t i = 0; i < handles.capacity; i++)
        live += handles.slots[i].object != NULL;
    while (live * 2 >= capacity)
        capacity *= 2;
    Slot *slots = calloc(capacity, sizeof *slots);
    if (!slots) return false;
    for (size_t i = 0; i < handles.capacity; i++) {
        Slot *slot = &handles.slots[i];
        if (slot->object) *slot_find(slots, capacity, slot->key, slot->kind) = *slot;
    }
    free(handles.slots);
    handles.slots = slots;
    handles.capacity = capacity;
    handles.used = live;
    return true;
}

bool handle_add(const void *key, HandleKind kind, void *object) {
    bool added = false;
    pthread_mutex_lock(&handles.lock);
    if (key && (handles.used * 4 < handles.capacity * 3 || grow())) {
        Slot *slot = slot_find(handles.slots, handles.capacity, key, kind);
        if (!slot->object) {
            handles.used += !slot->key;
            *slot = (Slot){.key = key, .object = object, .kind = kind};
            added = true;
        }
    }
    pthread_mutex_unlock(&handles.lock);
    return added;
}

void *handle_find(const void *key, HandleKind kind) {
    void *object = NULL;
    pthread_mutex_lock(&handles.lock);
    if (key && handles.capacity)
        object = slot_find(handles.slots, handles.capacity, key, kind)->object;
    pthread_mutex_unlock(&handles.lock);
    return object;
}

void handle_remove(const void *key, HandleKind kind) {
    pthread_mutex_lock(&handles.lock);
    if (key && handles.capacity)
        slot_find(handles.slots, handles.capacity, key, kind)->object = NULL;
    pthread_mutex_unlock(&handles.lock);
}
