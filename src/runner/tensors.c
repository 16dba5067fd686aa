/* tensors.c - device memory with red zones around it: allocation, fill, poison, export.
 *
 * Every tensor and the workspace has an allocation of its own,
 *
 *     | red zone 4 KiB | data, 256-byte aligned | red zone 4 KiB and up to alignment |
 *
 * and the simulator is told the data's exact range, so that there one byte beyond it is an error
 * at once. On a GPU a stray write is seen when the red zone is looked at after the launch.
 */
#include "runner/runner.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define MAX_TENSOR_BYTES (1ull << 43) // keeps the sums below from overflowing

static uint64_t round_up(uint64_t value, uint64_t to) {
    return (value + to - 1) / to * to;
}

/* No two neighbours alike, and no common value: a stray memset or float is seen. */
static uint8_t red_byte(uint64_t i) {
    return (uint8_t)(0xA7 ^ i * 0x6D);
}

static void mark(const Runner *runner, const Guarded *memory, bool initialized) {
    if (runner->cudart.sim_set_initialized && memory->bytes)
        runner->cudart.sim_set_initialized(memory->data, memory->bytes, initialized);
}

static bool write_red_zones(const Runner *runner, const Guarded *memory, Fault *why) {
    uint8_t zone[RED_ZONE_BYTES + ALIGNMENT];
    for (size_t i = 0; i < sizeof zone; i++)
        zone[i] = red_byte(i);
    uint8_t *after = memory->data + memory->bytes;
    const Cudart *cudart = &runner->cudart;
    return cuda_ok(cudart, cudart->Memcpy(memory->base, zone, RED_ZONE_BYTES, COPY_TO_DEVICE),
                   "writing a red zone", why) &&
           cuda_ok(cudart,
                   cudart->Memcpy(after, zone, (size_t)(memory->base + memory->total - after),
                                  COPY_TO_DEVICE),
                   "writing a red zone", why);
}

bool guarded_allocate(const Runner *runner, const char *name, uint64_t bytes, Guarded *memory,
                      bool *out_of_memory, Fault *why) {
    const Cudart *cudart = &runner->cudart;
    *memory = (Guarded){.bytes = bytes,
                        .total = RED_ZONE_BYTES + round_up(bytes, ALIGNMENT) + RED_ZONE_BYTES};
    snprintf(memory->name, sizeof memory->name, "%s", name);
    void *base = NULL;
    CudaError error = cudart->Malloc(&base, memory->total);
    if (out_of_memory) *out_of_memory = error == CUDA_ERROR_MEMORY_ALLOCATION;
    if (error != CUDA_SUCCESS) {
        cudart->GetLastError();
        return fault(why, "no device memory for the %llu bytes of %s: %s",
                     (unsigned long long)bytes, name, cudart->GetErrorString(error));
    }
    memory->base = base;
    memory->data = memory->base + RED_ZONE_BYTES;
    if ((uintptr_t)memory->data % ALIGNMENT)
        return fault(why, "cudaMalloc gave memory that is not aligned to %d bytes", ALIGNMENT);
    if (!write_red_zones(runner, memory, why)) return false;
    if (cudart->sim_name) cudart->sim_name(memory->data, memory->bytes, memory->name);
    return true;
}

bool guarded_free(const Runner *runner, Guarded *memory, Fault *why) {
    if (!memory->base) return true;
    if (runner->cudart.sim_name) runner->cudart.sim_name(memory->data, memory->bytes, NULL);
    CudaError error = runner->cudart.Free(memory->base);
    *memory = (Guarded){0};
    return cuda_ok(&runner->cudart, error, "cudaFree", why);
}

bool guarded_poison(const Runner *runner, const Guarded *memory, Fault *why) {
    if (!memory->bytes) return true;
    CudaError error = runner->cudart.Memset(memory->data, runner->poison, memory->bytes);
    mark(runner, memory, false);
    return cuda_ok(&runner->cudart, error, "writing poison", why);
}

bool tensors_allocate(Runner *runner, WireReader *ask, Fault *why) {
    for (uint32_t i = 0; i < runner->count; i++)
        if (!guarded_free(runner, &runner->tensors[i].memory, why)) return false;
    if (!guarded_free(runner, &runner->workspace, why)) return false;
    runner->count = 0;

    uint32_t count = get_u32(ask);
    if (ask->failed) return fault(why, "a damaged request for tensors");
    if (count > MAX_TENSORS) return fault(why, "%u tensors are more than %d", count, MAX_TENSORS);
    uint64_t offset = 0;
    for (uint32_t i = 0; i < count; i++) {
        DeviceTensor *tensor = &runner->tensors[i];
        char name[sizeof tensor->memory.name];
        get_text(ask, name, sizeof name);
        tensor->is_output = get_u8(ask);
        uint8_t dtype = get_u8(ask);
        tensor->elements = get_i64(ask);
        if (ask->failed || dtype >= DTYPE_COUNT || tensor->elements < 0 ||
            (uint64_t)tensor->elements > MAX_TENSOR_BYTES / 8)
            return fault(why, "a damaged request for tensors");
        tensor->dtype = dtype;
        uint64_t bytes = (uint64_t)tensor->elements * (uint64_t)dtype_info(dtype)->bytes;
        tensor->exchange_offset = offset;
        offset += round_up(bytes, 4096);
        if (!guarded_allocate(runner, name, bytes, &tensor->memory, NULL, why)) return false;
        runner->count = i + 1;
    }
    return true;
}

bool tensors_fill(Runner *runner, WireReader *ask, Fault *why) {
    uint64_t seed = get_u64(ask);
    uint32_t count = get_u32(ask);
    if (ask->failed) return fault(why, "a damaged request for a fill");
    if (count > runner->count)
        return fault(why, "a fill for %u inputs of %u tensors", count, runner->count);
    for (uint32_t i = 0; i < count; i++) {
        const DeviceTensor *tensor = &runner->tensors[i];
        Fill fill = {.kind = get_u8(ask)};
        fill.low = get_f64(ask);
        fill.high = get_f64(ask);
        if (ask->failed || fill.kind >= FILL_COUNT || tensor->is_output)
            return fault(why, "a damaged request for a fill");
        int64_t bytes_each = dtype_info(tensor->dtype)->bytes;
        int64_t chunk = STAGING_BYTES / bytes_each;
        for (int64_t at = 0; at < tensor->elements; at += chunk) {
            int64_t elements = tensor->elements - at < chunk ? tensor->elements - at : chunk;
            fill_generate(fill, tensor->dtype, seed, i, at, elements, runner->staging);
            if (!cuda_ok(&runner->cudart,
                         runner->cudart.Memcpy(tensor->memory.data + at * bytes_each,
                                               runner->staging, (size_t)(elements * bytes_each),
                                               COPY_TO_DEVICE),
                         "copying an input to the device", why))
                return false;
        }
        mark(runner, &tensor->memory, true);
    }
    return true;
}

bool tensors_poison(Runner *runner, WireReader *ask, Fault *why) {
    runner->poison = get_u8(ask);
    if (ask->failed) return fault(why, "a damaged request for poison");
    for (uint32_t i = 0; i < runner->count; i++)
        if (runner->tensors[i].is_output &&
            !guarded_poison(runner, &runner->tensors[i].memory, why))
            return false;
    return true;
}

/* Adds what differs in one zone; `first_offset` is counted from the tensor's start. */
static bool check_zone(const Runner *runner, const Guarded *memory, const uint8_t *zone,
                       size_t bytes, int64_t *first_offset, uint64_t *changed, Fault *why) {
    uint8_t seen[RED_ZONE_BYTES + ALIGNMENT];
    if (!cuda_ok(&runner->cudart, runner->cudart.Memcpy(seen, zone, bytes, COPY_TO_HOST),
                 "reading a red zone", why))
        return false;
    for (size_t i = 0; i < bytes; i++) {
        if (seen[i] == red_byte(i)) continue;
        if ((*changed)++ == 0) *first_offset = zone + i - memory->data;
    }
    return true;
}

bool tensors_red_zones(Runner *runner, WireWriter *answer, Fault *why) {
    WireWriter found = {0};
    uint32_t count = 0;
    bool ok = true;
    for (uint32_t i = 0; ok && i <= runner->count; i++) {
        const Guarded *memory =
            i == runner->count ? &runner->workspace : &runner->tensors[i].memory;
        if (!memory->base) continue;
        const uint8_t *after = memory->data + memory->bytes;
        int64_t offset = 0;
        uint64_t changed = 0;
        ok = check_zone(runner, memory, memory->base, RED_ZONE_BYTES, &offset, &changed, why) &&
             check_zone(runner, memory, after, (size_t)(memory->base + memory->total - after),
                        &offset, &changed, why);
        if (!ok || !changed) continue;
        count++;
        put_u32(&found, i);
        put_i64(&found, offset);
        put_u64(&found, changed);
        ok = write_red_zones(runner, memory, why);
    }
    put_u32(answer, count);
    for (size_t i = 0; i < found.bytes; i++)
        put_u8(answer, found.data[i]);
    wire_writer_free(&found);
    return ok;
}

static bool write_all(int fd, const uint8_t *data, size_t bytes, uint64_t offset, Fault *why) {
    while (bytes) {
        ssize_t written = pwrite(fd, data, bytes, (off_t)offset);
        if (written < 0 && errno == EINTR) continue;
        if (written <= 0)
            return fault(why, "writing %zu bytes to the exchange file: %s", bytes,
                         strerror(written ? errno : ENOSPC));
        data += written;
        bytes -= (size_t)written;
        offset += (uint64_t)written;
    }
    return true;
}

bool tensors_export(Runner *runner, WireReader *ask, WireWriter *answer, Fault *why) {
    uint32_t index = get_u32(ask);
    if (ask->failed || index >= runner->count)
        return fault(why, "an export of tensor %u of %u", index, runner->count);
    const DeviceTensor *tensor = &runner->tensors[index];
    for (uint64_t at = 0; at < tensor->memory.bytes; at += STAGING_BYTES) {
        size_t bytes = tensor->memory.bytes - at < STAGING_BYTES
                           ? (size_t)(tensor->memory.bytes - at)
                           : STAGING_BYTES;
        if (!cuda_ok(&runner->cudart,
                     runner->cudart.Memcpy(runner->staging, tensor->memory.data + at, bytes,
                                           COPY_TO_HOST),
                     "copying a tensor from the device", why) ||
            !write_all(runner->exchange, runner->staging, bytes, tensor->exchange_offset + at, why))
            return false;
    }
    put_u8(answer, 0);
    put_u64(answer, tensor->exchange_offset);
    put_u64(answer, tensor->memory.bytes);
    return true;
}
