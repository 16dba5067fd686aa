/* cudart_memory.c - allocations as the runtime API names them, and what is known of a pointer.
 *
 * Device, page-locked and managed memory come from memory.c. A stream-ordered allocation is made
 * when it is asked for: work in a stream runs at once, so its order is kept.
 */
#include "sim/cudart.h"
#include <stdlib.h>
#include <string.h>

enum { PITCH_GRANULE = 512 };

static cudaError_t allocate(void **pointer, size_t bytes, MemoryKind kind) {
    RETURN_IF_LOST();
    if (!pointer) return error_set(cudaErrorInvalidValue);
    cudaError_t refused = capture_refuse(NULL);
    if (refused) return error_set(refused);
    *pointer = NULL;
    if (!bytes) return cudaSuccess;
    *pointer = memory_allocate_kind(bytes, NULL, kind);
    return *pointer ? cudaSuccess : error_set(cudaErrorMemoryAllocation);
}

static cudaError_t release(void *pointer) {
    cudaError_t lost = error_synchronize();
    if (lost) return lost;
    if (!pointer) return cudaSuccess;
    return memory_free(pointer) ? cudaSuccess : error_set(cudaErrorInvalidValue);
}

SIM_EXPORT cudaError_t cudaMalloc(void **pointer, size_t bytes) {
    return allocate(pointer, bytes, MEMORY_DEVICE);
}

SIM_EXPORT cudaError_t cudaMallocManaged(void **pointer, size_t bytes, unsigned flags) {
    if (flags != cudaMemAttachGlobal && flags != cudaMemAttachHost)
        return error_set(cudaErrorInvalidValue);
    if (!bytes) return error_set(cudaErrorInvalidValue);
    return allocate(pointer, bytes, MEMORY_MANAGED);
}

SIM_EXPORT cudaError_t cudaMallocHost(void **pointer, size_t bytes) {
    return allocate(pointer, bytes, MEMORY_HOST);
}

SIM_EXPORT cudaError_t cudaHostAlloc(void **pointer, size_t bytes, unsigned flags) {
    if (flags & ~7u) // portable, mapped, write-combined
        return error_set(cudaErrorInvalidValue);
    return allocate(pointer, bytes, MEMORY_HOST);
}

SIM_EXPORT cudaError_t cudaFree(void *pointer) {
    cudaError_t refused = pointer ? capture_refuse(NULL) : cudaSuccess;
    return refused ? error_set(refused) : release(pointer);
}

SIM_EXPORT cudaError_t cudaFreeHost(void *pointer) {
    return cudaFree(pointer);
}

SIM_EXPORT cudaError_t cudaMallocPitch(void **pointer, size_t *pitch, size_t width, size_t height) {
    size_t bytes;
    if (!pitch || width > SIZE_MAX - PITCH_GRANULE) return error_set(cudaErrorInvalidValue);
    *pitch = (width + PITCH_GRANULE - 1) / PITCH_GRANULE * PITCH_GRANULE;
    if (__builtin_mul_overflow(*pitch, height, &bytes)) return error_set(cudaErrorMemoryAllocation);
    return allocate(pointer, bytes, MEMORY_DEVICE);
}

SIM_EXPORT cudaError_t cudaMalloc3D(cudaPitchedPtr *pitched, cudaExtent extent) {
    size_t rows;
    if (!pitched) return error_set(cudaErrorInvalidValue);
    if (__builtin_mul_overflow(extent.height, extent.depth, &rows))
        return error_set(cudaErrorMemoryAllocation);
    *pitched = (cudaPitchedPtr){.xsize = extent.width, .ysize = extent.height};
    return cudaMallocPitch(&pitched->ptr, &pitched->pitch, extent.width, rows);
}

SIM_EXPORT cudaError_t cudaMallocAsync(void **pointer, size_t bytes, void *stream) {
    Stream *found = stream_find(stream);
    if (!found) return error_set(cudaErrorInvalidResourceHandle);
    if (stream_is_capturing(found)) return error_set(capture_refuse(stream));
    return allocate(pointer, bytes, MEMORY_DEVICE);
}
SIM_ALIAS(cudaMallocAsync_ptsz, cudaMallocAsync);

SIM_EXPORT cudaError_t cudaFreeAsync(void *pointer, void *stream) {
    RETURN_IF_LOST();
    Stream *found = stream_find(stream);
    if (!found) return error_set(cudaErrorInvalidResourceHandle);
    if (stream_is_capturing(found)) return error_set(capture_refuse(stream));
    if (!pointer) return error_set(cudaErrorInvalidValue);
    return memory_free(pointer) ? cudaSuccess : error_set(cudaErrorInvalidValue);
}
SIM_ALIAS(cudaFreeAsync_ptsz, cudaFreeAsync);

SIM_EXPORT cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total) {
    RETURN_IF_LOST();
    if (!free_bytes || !total) return error_set(cudaErrorInvalidValue);
    *total = memory_total();
    *free_bytes = *total - memory_used();
    return cudaSuccess;
}

/* ---- page-locked host memory
 * --------------------------------------------------------------------- */

SIM_EXPORT cudaError_t cudaHostRegister(void *host, size_t bytes, unsigned flags) {
    RETURN_IF_LOST();
    if (!host || !bytes || flags & ~15u) return error_set(cudaErrorInvalidValue);
    if (!memory_is_mapped((uint64_t)host, bytes)) return error_set(cudaErrorInvalidValue);
    return memory_register(host, bytes) ? cudaSuccess
                                        : error_set(cudaErrorHostMemoryAlreadyRegistered);
}

SIM_EXPORT cudaError_t cudaHostUnregister(void *host) {
    RETURN_IF_LOST();
    if (!host) return error_set(cudaErrorInvalidValue);
    return memory_unregister(host) ? cudaSuccess : error_set(cudaErrorHostMemoryNotRegistered);
}

/* True, with its kind, if a kernel may use the pointer. */
static bool pointer_kind(const void *pointer, MemoryKind *kind, uint64_t *base) {
    memory_enter();
    const Allocation *a = memory_find((uint64_t)pointer);
    if (a) {
        *kind = memory_kind(a);
        *base = a->base;
    }
    memory_leave();
    return a != NULL;
}

SIM_EXPORT cudaError_t cudaHostGetDevicePointer(void **device, void *host, unsigned flags) {
    RETURN_IF_LOST();
    MemoryKind kind;
    uint64_t base;
    if (!device || !host || flags || !pointer_kind(host, &kind, &base) || kind == MEMORY_DEVICE)
        return error_set(cudaErrorInvalidValue);
    *device = host;
    return cudaSuccess;
}

SIM_EXPORT cudaError_t cudaHostGetFlags(unsigned *flags, void *host) {
    RETURN_IF_LOST();
    MemoryKind kind;
    uint64_t base;
    if (!flags || !pointer_kind(host, &kind, &base) || kind != MEMORY_HOST)
        return error_set(cudaErrorInvalidValue);
    *flags = 3; // portable and mapped, as everything is under unified addressing
    return cudaSuccess;
}

static void pointer_attributes(const void *pointer, cudaPointerAttributes *out) {
    static const cudaMemoryType types[] = {
        [MEMORY_DEVICE] = cudaMemoryTypeDevice,
        [MEMORY_HOST] = cudaMemoryTypeHost,
        [MEMORY_MANAGED] = cudaMemoryTypeManaged,
        [MEMORY_REGISTERED] = cudaMemoryTypeHost,
    };
    MemoryKind kind;
    uint64_t base;
    *out = (cudaPointerAttributes){.type = cudaMemoryTypeUnregistered, .device = -2};
    if (!pointer_kind(pointer, &kind, &base)) {
        out->hostPointer = (void *)pointer;
        return;
    }
    out->type = types[kind];
    out->device = 0;
    out->devicePointer = (void *)pointer;
    out->hostPointer = kind == MEMORY_DEVICE ? NULL : (void *)pointer;
}

/* CUDA 12's structure ends before `reserved`. */
#ifdef CUDART_12
#define POINTER_ATTRIBUTES_BYTES offsetof(cudaPointerAttributes, reserved)
#else
#define POINTER_ATTRIBUTES_BYTES sizeof(cudaPointerAttributes)
#endif

SIM_EXPORT cudaError_t cudaPointerGetAttributes(cudaPointerAttributes *attributes,
                                                const void *pointer) {
    RETURN_IF_LOST();
    cudaPointerAttributes full;
    if (!attributes) return error_set(cudaErrorInvalidValue);
    pointer_attributes(pointer, &full);
    memcpy(attributes, &full, POINTER_ATTRIBUTES_BYTES);
    return cudaSuccess;
}

/* ---- memory pools: one, without settings that matter here
 * ------------------------------------------- */

static const char default_pool; // its address is the handle

SIM_EXPORT cudaError_t cudaDeviceGetDefaultMemPool(void **pool, int device) {
    RETURN_IF_LOST();
    if (!pool) return error_set(cudaErrorInvalidValue);
    if (device) return error_set(cudaErrorInvalidDevice);
    *pool = (void *)&default_pool;
    return cudaSuccess;
}

SIM_EXPORT cudaError_t cudaDeviceGetMemPool(void **pool, int device) {
    return cudaDeviceGetDefaultMemPool(pool, device);
}

SIM_EXPORT cudaError_t cudaDeviceSetMemPool(int device, void *pool) {
    RETURN_IF_LOST();
    if (device) return error_set(cudaErrorInvalidDevice);
    return pool == &default_pool ? cudaSuccess : error_set(cudaErrorInvalidValue);
}

SIM_EXPORT cudaError_t cudaMallocFromPoolAsync(void **pointer, size_t bytes, void *pool,
                                               void *stream) {
    if (pool != &default_pool) return error_set(cudaErrorInvalidValue);
    return cudaMallocAsync(pointer, bytes, stream);
}
SIM_ALIAS(cudaMallocFromPoolAsync_ptsz, cudaMallocFromPoolAsync);

SIM_EXPORT cudaError_t cudaMemPoolTrimTo(void *pool, size_t keep) {
    (void)keep;
    RETURN_IF_LOST();
    return pool == &default_pool ? cudaSuccess : error_set(cudaErrorInvalidValue);
}

enum {
    POOL_REUSE_FIRST = 1,
    POOL_REUSE_LAST = 3,
    POOL_RELEASE_THRESHOLD = 4,
    POOL_RESERVED = 5,
    POOL_USED_HIGH = 8
};

SIM_EXPORT cudaError_t cudaMemPoolSetAttribute(void *pool, int attribute, void *value) {
    RETURN_IF_LOST();
    if (pool != &default_pool || !value || attribute < POOL_REUSE_FIRST ||
        attribute > POOL_USED_HIGH)
        return error_set(cudaErrorInvalidValue);
    return cudaSuccess;
}

SIM_EXPORT cudaError_t cudaMemPoolGetAttribute(void *pool, int attribute, void *value) {
    RETURN_IF_LOST();
    if (pool != &default_pool || !value || attribute < POOL_REUSE_FIRST ||
        attribute > POOL_USED_HIGH)
        return error_set(cudaErrorInvalidValue);
    if (attribute <= POOL_REUSE_LAST)
        *(int *)value = 1;
    else
        *(uint64_t *)value = attribute >= POOL_RESERVED ? memory_used() : 0;
    return cudaSuccess;
}

/* ---- hints about managed memory
 * -------------------------------------------------------------------- */

static cudaError_t managed_hint(const void *pointer, size_t bytes) {
    RETURN_IF_LOST();
    MemoryKind kind;
    uint64_t base;
    if (!bytes || !pointer_kind(pointer, &kind, &base) || kind == MEMORY_DEVICE)
        return error_set(cudaErrorInvalidValue);
    return cudaSuccess;
}

typedef struct {
    int type, id;
} cudaMemLocation;

#ifdef CUDART_12
SIM_EXPORT cudaError_t cudaMemPrefetchAsync(const void *pointer, size_t bytes, int device,
                                            void *stream) {
    (void)device, (void)stream;
    return managed_hint(pointer, bytes);
}
SIM_ALIAS(cudaMemPrefetchAsync_ptsz, cudaMemPrefetchAsync);

SIM_EXPORT cudaError_t cudaMemPrefetchAsync_v2(const void *pointer, size_t bytes,
                                               cudaMemLocation location, unsigned flags,
                                               void *stream) {
    (void)location, (void)flags, (void)stream;
    return managed_hint(pointer, bytes);
}
SIM_ALIAS(cudaMemPrefetchAsync_v2_ptsz, cudaMemPrefetchAsync_v2);

SIM_EXPORT cudaError_t cudaMemAdvise(const void *pointer, size_t bytes, int advice, int device) {
    (void)advice, (void)device;
    return managed_hint(pointer, bytes);
}

SIM_EXPORT cudaError_t cudaMemAdvise_v2(const void *pointer, size_t bytes, int advice,
                                        cudaMemLocation location) {
    (void)advice, (void)location;
    return managed_hint(pointer, bytes);
}
#else
SIM_EXPORT cudaError_t cudaMemPrefetchAsync(const void *pointer, size_t bytes,
                                            cudaMemLocation location, unsigned flags,
                                            void *stream) {
    (void)location, (void)flags, (void)stream;
    return managed_hint(pointer, bytes);
}
SIM_ALIAS(cudaMemPrefetchAsync_ptsz, cudaMemPrefetchAsync);

SIM_EXPORT cudaError_t cudaMemAdvise(const void *pointer, size_t bytes, int advice,
                                     cudaMemLocation location) {
    (void)advice, (void)location;
    return managed_hint(pointer, bytes);
}
#endif

SIM_EXPORT cudaError_t cudaStreamAttachMemAsync(void *stream, void *pointer, size_t bytes,
                                                unsigned flags) {
    (void)bytes, (void)flags;
    if (!stream_find(stream)) return error_set(cudaErrorInvalidResourceHandle);
    return managed_hint(pointer, 1);
}
SIM_ALIAS(cudaStreamAttachMemAsync_ptsz, cudaStreamAttachMemAsync);
