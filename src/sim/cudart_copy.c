/* cudart_copy.c - copies and fills.
 *
 * Device memory is host memory, so a copy is a memmove; what has to be got right is who may copy
 * where, and that the marks of initialised bytes go along. A copy is checked when it is asked for
 * and, since a graph may replay it later, looked at again when it runs.
 */
#include "sim/cudart.h"
#include <string.h>

/* ---- checks --------------------------------------------------------------------------------- */

/* Bytes from the first to the last that a pitched region touches; 0 if it overflows. */
static uint64_t extent_bytes(size_t width, size_t height, size_t depth, size_t pitch,
                             size_t slice) {
    uint64_t rows, slices, total;
    if (__builtin_mul_overflow(pitch, height - 1, &rows) ||
        __builtin_mul_overflow(slice, depth - 1, &slices) ||
        __builtin_add_overflow(rows, slices, &total) ||
        __builtin_add_overflow(total, width, &total))
        return 0;
    return total;
}

typedef enum { SIDE_DEVICE, SIDE_HOST, SIDE_ANY } Side;

/* An address that a copy may touch for `bytes`: inside one allocation, or, where the host's own
 * memory is meant, anywhere that is mapped and that the simulator does not keep to itself. */
static bool side_valid(uint64_t address, uint64_t bytes, Side side) {
    bool valid;
    if (!address || !bytes) return false;
    memory_enter();
    const Allocation *a = memory_find(address);
    if (a)
        valid = bytes <= a->bytes - (address - a->base);
    else
        valid =
            side != SIDE_DEVICE && !memory_is_reserved(address) && memory_is_mapped(address, bytes);
    memory_leave();
    return valid;
}

static bool copy_valid(const Copy *copy) {
    static const Side sides[][2] = {
        // target, source
        [cudaMemcpyHostToHost] = {SIDE_HOST, SIDE_HOST},
        [cudaMemcpyHostToDevice] = {SIDE_DEVICE, SIDE_HOST},
        [cudaMemcpyDeviceToHost] = {SIDE_HOST, SIDE_DEVICE},
        [cudaMemcpyDeviceToDevice] = {SIDE_DEVICE, SIDE_DEVICE},
        [cudaMemcpyDefault] = {SIDE_ANY, SIDE_ANY},
    };
    return side_valid(copy->target,
                      extent_bytes(copy->width, copy->height, copy->depth, copy->target_pitch,
                                   copy->target_slice),
                      sides[copy->kind][0]) &&
           side_valid(copy->source,
                      extent_bytes(copy->width, copy->height, copy->depth, copy->source_pitch,
                                   copy->source_slice),
                      sides[copy->kind][1]);
}

static bool fill_valid(const Fill2D *fill) {
    size_t width;
    return !__builtin_mul_overflow(fill->width, fill->element_bytes, &width) &&
           side_valid(fill->target,
                      extent_bytes(width, fill->height, fill->depth, fill->pitch, fill->slice),
                      SIDE_DEVICE);
}

/* ---- running -------------------------------------------------------------------------------- */

void copy_run(const Copy *copy) {
    if (error_context_lost()) return;
    memory_enter();
    if (!copy_valid(copy)) {
        memory_leave();
        error_raise_later(cudaErrorIllegalAddress);
        return;
    }
    memory_open();
    for (size_t z = 0; z < copy->depth; z++) {
        for (size_t y = 0; y < copy->height; y++) {
            uint64_t target = copy->target + z * copy->target_slice + y * copy->target_pitch;
            uint64_t source = copy->source + z * copy->source_slice + y * copy->source_pitch;
            memmove((void *)target, (const void *)source, copy->width);
            memory_copy_marks(target, source, copy->width);
        }
    }
    memory_close();
    memory_leave();
}

static void fill_row(uint8_t *row, const Fill2D *fill) {
    if (fill->element_bytes == 1) {
        memset(row, (int)(fill->value & 0xFF), fill->width);
        return;
    }
    for (size_t x = 0; x < fill->width; x++) // little-endian: the low bytes of value
        memcpy(row + x * fill->element_bytes, &fill->value, fill->element_bytes);
}

void fill_run(const Fill2D *fill) {
    if (error_context_lost()) return;
    memory_enter();
    if (!fill_valid(fill)) {
        memory_leave();
        error_raise_later(cudaErrorIllegalAddress);
        return;
    }
    memory_open();
    for (size_t z = 0; z < fill->depth; z++) {
        for (size_t y = 0; y < fill->height; y++) {
            uint64_t target = fill->target + z * fill->slice + y * fill->pitch;
            fill_row((uint8_t *)target, fill);
            memory_mark(target, fill->width * fill->element_bytes, true);
        }
    }
    memory_close();
    memory_leave();
}

/* ---- submitting -------------------------------------------------------------------------------
 */

typedef enum { RETURNS_AT_ONCE, RETURNS_WHEN_DONE } Waiting;

cudaError_t copy_submit(const Copy *copy, void *stream) {
    if ((unsigned)copy->kind > cudaMemcpyDefault) return cudaErrorInvalidMemcpyDirection;
    if (!copy->width || !copy->height || !copy->depth) return cudaSuccess;
    if ((copy->height > 1 || copy->depth > 1) &&
        (copy->target_pitch < copy->width || copy->source_pitch < copy->width))
        return cudaErrorInvalidPitchValue;
    if (!copy_valid(copy)) return cudaErrorInvalidValue;
    Operation operation = {.kind = OPERATION_COPY, .copy = *copy};
    return stream_submit(stream, &operation);
}

cudaError_t fill_submit(const Fill2D *fill, void *stream) {
    if (!fill->width || !fill->height || !fill->depth) return cudaSuccess;
    if (fill->element_bytes != 1 && fill->element_bytes != 2 && fill->element_bytes != 4)
        return cudaErrorInvalidValue;
    if (!fill_valid(fill)) return cudaErrorInvalidValue;
    Operation operation = {.kind = OPERATION_FILL, .fill = *fill};
    return stream_submit(stream, &operation);
}

static cudaError_t copy_call(Copy copy, void *stream, Waiting waiting) {
    RETURN_IF_LOST();
    cudaError_t error = copy_submit(&copy, stream);
    if (!error && waiting == RETURNS_WHEN_DONE) return error_synchronize();
    return error_set(error);
}

static cudaError_t fill_call(Fill2D fill, void *stream) {
    RETURN_IF_LOST();
    return error_set(fill_submit(&fill, stream));
}

static Copy linear(void *target, const void *source, size_t bytes, cudaMemcpyKind kind) {
    return (Copy){.target = (uint64_t)target,
                  .source = (uint64_t)source,
                  .width = bytes,
                  .height = 1,
                  .depth = 1,
                  .kind = kind};
}

static Copy pitched(void *target, size_t target_pitch, const void *source, size_t source_pitch,
                    size_t width, size_t height, cudaMemcpyKind kind) {
    return (Copy){.target = (uint64_t)target,
                  .source = (uint64_t)source,
                  .target_pitch = target_pitch,
                  .source_pitch = source_pitch,
                  .width = width,
                  .height = height,
                  .depth = 1,
                  .kind = kind};
}

/* ---- cudaMemcpy… -------------------------------------------------------------------------------
 */

SIM_EXPORT cudaError_t cudaMemcpy(void *target, const void *source, size_t bytes,
                                  cudaMemcpyKind kind) {
    return copy_call(linear(target, source, bytes, kind), NULL, RETURNS_WHEN_DONE);
}
SIM_ALIAS(cudaMemcpy_ptds, cudaMemcpy);

SIM_EXPORT cudaError_t cudaMemcpyAsync(void *target, const void *source, size_t bytes,
                                       cudaMemcpyKind kind, void *stream) {
    return copy_call(linear(target, source, bytes, kind), stream, RETURNS_AT_ONCE);
}
SIM_ALIAS(cudaMemcpyAsync_ptsz, cudaMemcpyAsync);

SIM_EXPORT cudaError_t cudaMemcpy2D(void *target, size_t target_pitch, const void *source,
                                    size_t source_pitch, size_t width, size_t height,
                                    cudaMemcpyKind kind) {
    return copy_call(pitched(target, target_pitch, source, source_pitch, width, height, kind), NULL,
                     RETURNS_WHEN_DONE);
}
SIM_ALIAS(cudaMemcpy2D_ptds, cudaMemcpy2D);

SIM_EXPORT cudaError_t cudaMemcpy2DAsync(void *target, size_t target_pitch, const void *source,
                                         size_t source_pitch, size_t width, size_t height,
                                         cudaMemcpyKind kind, void *stream) {
    return copy_call(pitched(target, target_pitch, source, source_pitch, width, height, kind),
                     stream, RETURNS_AT_ONCE);
}
SIM_ALIAS(cudaMemcpy2DAsync_ptsz, cudaMemcpy2DAsync);

bool copy_from_3d(const cudaMemcpy3DParms *p, Copy *copy) {
    if (!p || p->srcArray || p->dstArray) return false;
    *copy = (Copy){
        .target = (uint64_t)p->dstPtr.ptr + p->dstPos.x + p->dstPos.y * p->dstPtr.pitch +
                  p->dstPos.z * p->dstPtr.pitch * p->dstPtr.ysize,
        .source = (uint64_t)p->srcPtr.ptr + p->srcPos.x + p->srcPos.y * p->srcPtr.pitch +
                  p->srcPos.z * p->srcPtr.pitch * p->srcPtr.ysize,
        .target_pitch = p->dstPtr.pitch,
        .source_pitch = p->srcPtr.pitch,
        .target_slice = p->dstPtr.pitch * p->dstPtr.ysize,
        .source_slice = p->srcPtr.pitch * p->srcPtr.ysize,
        .width = p->extent.width,
        .height = p->extent.height,
        .depth = p->extent.depth,
        .kind = p->kind,
    };
    return true;
}

SIM_EXPORT cudaError_t cudaMemcpy3D(const cudaMemcpy3DParms *params) {
    Copy copy;
    if (!copy_from_3d(params, &copy)) return error_set(cudaErrorInvalidValue);
    return copy_call(copy, NULL, RETURNS_WHEN_DONE);
}
SIM_ALIAS(cudaMemcpy3D_ptds, cudaMemcpy3D);

SIM_EXPORT cudaError_t cudaMemcpy3DAsync(const cudaMemcpy3DParms *params, void *stream) {
    Copy copy;
    if (!copy_from_3d(params, &copy)) return error_set(cudaErrorInvalidValue);
    return copy_call(copy, stream, RETURNS_AT_ONCE);
}
SIM_ALIAS(cudaMemcpy3DAsync_ptsz, cudaMemcpy3DAsync);

SIM_EXPORT cudaError_t cudaMemcpyPeer(void *target, int target_device, const void *source,
                                      int source_device, size_t bytes) {
    if (target_device || source_device) return error_set(cudaErrorInvalidDevice);
    return cudaMemcpy(target, source, bytes, cudaMemcpyDeviceToDevice);
}

SIM_EXPORT cudaError_t cudaMemcpyPeerAsync(void *target, int target_device, const void *source,
                                           int source_device, size_t bytes, void *stream) {
    if (target_device || source_device) return error_set(cudaErrorInvalidDevice);
    return cudaMemcpyAsync(target, source, bytes, cudaMemcpyDeviceToDevice, stream);
}

/* ---- variables
 * ----------------------------------------------------------------------------------- */

static cudaError_t symbol_range(const void *symbol, size_t bytes, size_t offset,
                                uint64_t *address) {
    uint64_t base, size;
    cudaError_t error = variable_resolve(symbol, &base, &size);
    if (error) return error;
    if (offset > size || bytes > size - offset) return cudaErrorInvalidValue;
    *address = base + offset;
    return cudaSuccess;
}

static cudaError_t to_symbol(const void *symbol, const void *source, size_t bytes, size_t offset,
                             cudaMemcpyKind kind, void *stream, Waiting waiting) {
    uint64_t address;
    RETURN_IF_LOST();
    if (kind != cudaMemcpyHostToDevice && kind != cudaMemcpyDeviceToDevice &&
        kind != cudaMemcpyDefault)
        return error_set(cudaErrorInvalidMemcpyDirection);
    cudaError_t error = symbol_range(symbol, bytes, offset, &address);
    if (error) return error_set(error);
    return copy_call(linear((void *)address, source, bytes, kind), stream, waiting);
}

static cudaError_t from_symbol(void *target, const void *symbol, size_t bytes, size_t offset,
                               cudaMemcpyKind kind, void *stream, Waiting waiting) {
    uint64_t address;
    RETURN_IF_LOST();
    if (kind != cudaMemcpyDeviceToHost && kind != cudaMemcpyDeviceToDevice &&
        kind != cudaMemcpyDefault)
        return error_set(cudaErrorInvalidMemcpyDirection);
    cudaError_t error = symbol_range(symbol, bytes, offset, &address);
    if (error) return error_set(error);
    return copy_call(linear(target, (const void *)address, bytes, kind), stream, waiting);
}

SIM_EXPORT cudaError_t cudaMemcpyToSymbol(const void *symbol, const void *source, size_t bytes,
                                          size_t offset, cudaMemcpyKind kind) {
    return to_symbol(symbol, source, bytes, offset, kind, NULL, RETURNS_WHEN_DONE);
}
SIM_ALIAS(cudaMemcpyToSymbol_ptds, cudaMemcpyToSymbol);

SIM_EXPORT cudaError_t cudaMemcpyToSymbolAsync(const void *symbol, const void *source, size_t bytes,
                                               size_t offset, cudaMemcpyKind kind, void *stream) {
    return to_symbol(symbol, source, bytes, offset, kind, stream, RETURNS_AT_ONCE);
}
SIM_ALIAS(cudaMemcpyToSymbolAsync_ptsz, cudaMemcpyToSymbolAsync);

SIM_EXPORT cudaError_t cudaMemcpyFromSymbol(void *target, const void *symbol, size_t bytes,
                                            size_t offset, cudaMemcpyKind kind) {
    return from_symbol(target, symbol, bytes, offset, kind, NULL, RETURNS_WHEN_DONE);
}
SIM_ALIAS(cudaMemcpyFromSymbol_ptds, cudaMemcpyFromSymbol);

SIM_EXPORT cudaError_t cudaMemcpyFromSymbolAsync(void *target, const void *symbol, size_t bytes,
                                                 size_t offset, cudaMemcpyKind kind, void *stream) {
    return from_symbol(target, symbol, bytes, offset, kind, stream, RETURNS_AT_ONCE);
}
SIM_ALIAS(cudaMemcpyFromSymbolAsync_ptsz, cudaMemcpyFromSymbolAsync);

/* ---- cudaMemset…
 * ----------------------------------------------------------------------------------- */

static Fill2D bytes_fill(void *target, size_t pitch, size_t slice, int value, size_t width,
                         size_t height, size_t depth) {
    return (Fill2D){.target = (uint64_t)target,
                    .pitch = pitch,
                    .slice = slice,
                    .width = width,
                    .height = height,
                    .depth = depth,
                    .value = (uint8_t)value,
                    .element_bytes = 1};
}

SIM_EXPORT cudaError_t cudaMemset(void *target, int value, size_t bytes) {
    return fill_call(bytes_fill(target, 0, 0, value, bytes, 1, 1), NULL);
}
SIM_ALIAS(cudaMemset_ptds, cudaMemset);

SIM_EXPORT cudaError_t cudaMemsetAsync(void *target, int value, size_t bytes, void *stream) {
    return fill_call(bytes_fill(target, 0, 0, value, bytes, 1, 1), stream);
}
SIM_ALIAS(cudaMemsetAsync_ptsz, cudaMemsetAsync);

SIM_EXPORT cudaError_t cudaMemset2D(void *target, size_t pitch, int value, size_t width,
                                    size_t height) {
    return fill_call(bytes_fill(target, pitch, 0, value, width, height, 1), NULL);
}
SIM_ALIAS(cudaMemset2D_ptds, cudaMemset2D);

SIM_EXPORT cudaError_t cudaMemset2DAsync(void *target, size_t pitch, int value, size_t width,
                                         size_t height, void *stream) {
    return fill_call(bytes_fill(target, pitch, 0, value, width, height, 1), stream);
}
SIM_ALIAS(cudaMemset2DAsync_ptsz, cudaMemset2DAsync);

SIM_EXPORT cudaError_t cudaMemset3D(cudaPitchedPtr target, int value, cudaExtent extent) {
    return fill_call(bytes_fill(target.ptr, target.pitch, target.pitch * target.ysize, value,
                                extent.width, extent.height, extent.depth),
                     NULL);
}
SIM_ALIAS(cudaMemset3D_ptds, cudaMemset3D);

SIM_EXPORT cudaError_t cudaMemset3DAsync(cudaPitchedPtr target, int value, cudaExtent extent,
                                         void *stream) {
    return fill_call(bytes_fill(target.ptr, target.pitch, target.pitch * target.ysize, value,
                                extent.width, extent.height, extent.depth),
                     stream);
}
SIM_ALIAS(cudaMemset3DAsync_ptsz, cudaMemset3DAsync);
