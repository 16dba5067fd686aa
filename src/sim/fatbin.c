/* fatbin.c - finds PTX and machine code in what nvcc put into an object.
 *
 * An object hands over a wrapper that points to a container: a header, then entries, each a header
 * and a payload. One entry holds the kernels for one architecture, as PTX text or as an ELF image.
 * A container is data of an unknown program: every length in it is checked against the container's
 * own size, and that against the loaded segment it lies in.
 *
 *     wrapper                container             entry
 *     u32 0x466243b1         u32 0xBA55ED50        u16 kind (1 PTX, 2 ELF)
 *     u32 version            u16 version           u16 version
 *     ptr container          u16 header bytes      u32 header bytes
 *     ptr unused             u64 bytes after it    u64 payload bytes
 *                                                  u32 payload bytes before padding
 *                                                  … u32 arch at 28 (90 for sm_90a), u64 flags at
 * 40
 */
#include "sim/host.h"
#include <link.h>
#include <stdio.h>
#include <string.h>

#define WRAPPER_MAGIC      0x466243b1u
#define CONTAINER_MAGIC    0xBA55ED50u
#define CONTAINER_HEADER   16u
#define ENTRY_HEADER_MIN   64u
#define FLAG_ARCH_SPECIFIC 0x100000ull // compute_90a rather than compute_90
#define FLAG_COMPRESSED    0xA000ull   // 0x2000: LZ4, 0x8000: zstd

enum { ENTRY_PTX = 1, ENTRY_ELF = 2 };

typedef struct {
    uint16_t kind;
    uint32_t arch;
    uint64_t flags;
    const uint8_t *payload;
    uint64_t bytes;
} Entry;

typedef struct {
    const uint8_t *at;
    uint64_t left;
} Container;

static uint16_t read_u16(const uint8_t *at) {
    uint16_t value;
    memcpy(&value, at, sizeof value);
    return value;
}

static uint32_t read_u32(const uint8_t *at) {
    uint32_t value;
    memcpy(&value, at, sizeof value);
    return value;
}

static uint64_t read_u64(const uint8_t *at) {
    uint64_t value;
    memcpy(&value, at, sizeof value);
    return value;
}

/* ---- walking --------------------------------------------------------------------------------- */

static bool container_open(Container *container, const void *image, size_t available,
                           char message[512]) {
    const uint8_t *header = image;
    if (!image || available < CONTAINER_HEADER || read_u32(header) != CONTAINER_MAGIC) {
        snprintf(message, 512, "not a fat binary: its container has no magic number");
        return false;
    }
    uint16_t header_bytes = read_u16(header + 6);
    uint64_t bytes = read_u64(header + 8);
    if (header_bytes < CONTAINER_HEADER || header_bytes > available ||
        bytes > available - header_bytes) {
        snprintf(message, 512, "damaged fat binary: its header says more bytes than there are");
        return false;
    }
    *container = (Container){.at = header + header_bytes, .left = bytes};
    return true;
}

/* False at the end, or where the rest makes no sense. */
static bool container_next(Container *container, Entry *entry) {
    if (container->left < ENTRY_HEADER_MIN) return false;
    const uint8_t *header = container->at;
    uint64_t header_bytes = read_u32(header + 4), padded = read_u64(header + 8);
    uint32_t exact = read_u32(header + 16);
    if (header_bytes < ENTRY_HEADER_MIN || header_bytes > container->left ||
        padded > container->left - header_bytes)
        return false;
    *entry = (Entry){.kind = read_u16(header),
                     .arch = read_u32(header + 28),
                     .flags = read_u64(header + 40),
                     .payload = header + header_bytes,
                     .bytes = exact && exact <= padded ? exact : padded};
    container->at += header_bytes + padded;
    container->left -= header_bytes + padded;
    return true;
}

/* How well code for `entry` suits the device; 0 when it does not run there. Code for an
 * architecture's own features runs on that one alone. */
static uint32_t suitability(const Entry *entry) {
    const SimDevice *device = sim_device();
    uint32_t arch = (uint32_t)(device->major * 10 + device->minor);
    bool specific = entry->flags & FLAG_ARCH_SPECIFIC;
    if (specific && (entry->arch != arch || !device->arch_specific)) return 0;
    if (entry->kind == ENTRY_ELF && (entry->arch / 10 != arch / 10 || entry->arch > arch)) return 0;
    return entry->arch > arch ? 0 : 2 * entry->arch + specific;
}

static bool container_best(const void *image, size_t available, int kind, Entry *best,
                           char message[512]) {
    Container container;
    Entry entry;
    uint32_t best_score = 0, others = 0;
    if (!container_open(&container, image, available, message)) return false;
    while (container_next(&container, &entry)) {
        if (entry.kind != kind) continue;
        uint32_t score = suitability(&entry);
        if (score > best_score) {
            best_score = score;
            *best = entry;
        } else if (!score) {
            others = entry.arch;
        }
    }
    if (best_score) return true;
    if (others)
        snprintf(message, 512, "its PTX is for compute_%u, which %s does not run: build it for %s",
                 others, sim_arch(), sim_arch());
    else
        snprintf(message, 512, "built without PTX: add code=[compute_XX,sm_XX] to -gencode");
    return false;
}

/* ---- public ------------------------------------------------------------------------------------
 */

bool fatbin_is_container(const void *image) {
    return image && read_u32(image) == CONTAINER_MAGIC;
}

bool fatbin_container_ptx(const void *container, size_t available, const char **text, size_t *bytes,
                          char message[512]) {
    Entry entry;
    if (!container_best(container, available, ENTRY_PTX, &entry, message)) return false;
    if (entry.flags & FLAG_COMPRESSED) {
        snprintf(message, 512, "its PTX is compressed: add --no-compress to nvcc's flags");
        return false;
    }
    *text = (const char *)entry.payload;
    *bytes = strnlen(*text, entry.bytes);
    return true;
}

bool fatbin_container_cubin(const void *container, size_t available, const uint8_t **cubin,
                            size_t *bytes) {
    char message[512];
    Entry entry;
    if (!container_best(container, available, ENTRY_ELF, &entry, message) ||
        entry.flags & FLAG_COMPRESSED)
        return false;
    *cubin = entry.payload;
    *bytes = entry.bytes;
    return true;
}

/* Bytes that can be read from `address` on: to the end of the loaded segment it lies in. Memory
 * that no object was loaded into is taken to be as long as its contents say. */
typedef struct {
    uint64_t address, bytes;
} Extent;

static int find_segment(struct dl_phdr_info *info, size_t size, void *context) {
    (void)size;
    Extent *extent = context;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        uint64_t begin = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
        uint64_t end = begin + info->dlpi_phdr[i].p_memsz;
        if (info->dlpi_phdr[i].p_type == PT_LOAD && extent->address >= begin &&
            extent->address < end) {
            extent->bytes = end - extent->address;
            return 1;
        }
    }
    return 0;
}

static uint64_t readable_bytes(const void *pointer) {
    Extent extent = {.address = (uint64_t)pointer, .bytes = UINT64_MAX - (uint64_t)pointer};
    if (!pointer) return 0;
    dl_iterate_phdr(find_segment, &extent);
    return extent.bytes;
}

static bool unwrap(const void *wrapper, const void **container, char message[512]) {
    const uint8_t *at = wrapper;
    if (readable_bytes(wrapper) < 24 || read_u32(at) != WRAPPER_MAGIC) {
        snprintf(message, 512, "not a fat binary: its wrapper has no magic number");
        return false;
    }
    memcpy(container, at + 8, sizeof *container);
    return true;
}

bool fatbin_find_ptx(const void *wrapper, const char **text, size_t *bytes, char message[512]) {
    const void *container;
    return unwrap(wrapper, &container, message) &&
           fatbin_container_ptx(container, readable_bytes(container), text, bytes, message);
}

bool fatbin_find_cubin(const void *wrapper, const uint8_t **cubin, size_t *bytes) {
    const void *container;
    char message[512];
    return unwrap(wrapper, &container, message) &&
           fatbin_container_cubin(container, readable_bytes(container), cubin, bytes);
}
