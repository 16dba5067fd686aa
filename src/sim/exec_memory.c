/* exec_memory.c - the careful side of memory access: who may touch what, what was never written,
 * and how many sectors it takes.
 */
#include "sim/exec_memory.h"
#include <stdio.h>
#include <string.h>

#define SECTOR_BYTES 32

static const char *space_name(uint8_t space) {
    return space == SPACE_SHARED  ? "shared"
           : space == SPACE_LOCAL ? "local"
           : space == SPACE_PARAM ? "param"
                                  : "global";
}

/* ---- bounds and alignment -------------------------------------------------------------------- */

static void describe_tensor(const Allocation *a, uint64_t address, bool named, SimReport *report) {
    if (!a) return;
    uint64_t base = a->base, bytes = a->bytes;
    if (named && a->named_bytes) {
        base = a->named_base;
        bytes = a->named_bytes;
    }
    if (*a->name)
        snprintf(report->tensor, sizeof report->tensor, "%s", a->name);
    else
        snprintf(report->tensor, sizeof report->tensor, "allocation %u", a->serial);
    report->offset_bytes = (int64_t)(address - base);
    report->tensor_bytes = bytes;
}

static void report_access(const Access *access, SimReportKind kind, int lane, const char *verb,
                          const char *what) {
    const Run *run = access->warp->worker->run;
    uint64_t address = access->address[lane], key = access->space;
    const Allocation *owner = NULL;
    if (access->space == SPACE_GLOBAL) {
        owner = memory_find(address);
        owner = owner ? owner : memory_nearest(address);
        key = owner ? 16u + owner->serial : 0;
    }
    if (exec_found_before(access->warp, kind, (uint32_t)lane, key)) return;
    SimReport report = {.is_write = access->is_write,
                        .address = access->address[lane],
                        .access_bytes = access->bytes};
    snprintf(report.space, sizeof report.space, "%s", space_name(access->space));
    if (access->space == SPACE_GLOBAL) {
        describe_tensor(owner, address, run->bounds, &report);
    } else {
        snprintf(report.tensor, sizeof report.tensor, "%s memory", space_name(access->space));
        report.offset_bytes = (int64_t)address;
        report.tensor_bytes = access->space == SPACE_SHARED  ? run->shared_bytes
                              : access->space == SPACE_LOCAL ? run->local_stride
                                                             : run->launch->param_bytes;
    }
    int64_t past = report.offset_bytes + access->bytes - (int64_t)report.tensor_bytes;
    if (kind == SIM_OUT_OF_BOUNDS && *report.tensor && report.offset_bytes < 0)
        snprintf(report.message, sizeof report.message,
                 "%s %u bytes, %lld bytes before the start of %s", verb, access->bytes,
                 (long long)-report.offset_bytes, report.tensor);
    else if (kind == SIM_OUT_OF_BOUNDS && *report.tensor)
        snprintf(report.message, sizeof report.message,
                 "%s %u bytes at byte %lld of %s, %lld bytes past its end (%llu bytes)", verb,
                 access->bytes, (long long)report.offset_bytes, report.tensor, (long long)past,
                 (unsigned long long)report.tensor_bytes);
    else if (kind == SIM_OUT_OF_BOUNDS)
        snprintf(report.message, sizeof report.message,
                 "%s %u bytes at address 0x%llx, which belongs to nobody", verb, access->bytes,
                 (unsigned long long)address);
    else
        snprintf(report.message, sizeof report.message, "%s %u bytes at byte %lld of %s, %s", verb,
                 access->bytes, (long long)report.offset_bytes, report.tensor, what);
    exec_find(access->warp, kind, (uint32_t)lane, key, &report);
}

static bool lane_in_bounds(const Access *access, int lane) {
    const Run *run = access->warp->worker->run;
    uint64_t address = access->address[lane], bytes = access->bytes;
    uint64_t limit = access->space == SPACE_SHARED  ? run->shared_bytes
                     : access->space == SPACE_LOCAL ? run->local_stride
                     : access->is_write             ? 0
                                                    : run->launch->param_bytes;
    if (access->space != SPACE_GLOBAL) return address < limit && bytes <= limit - address;
    const Allocation *a = memory_find(address);
    if (!a) return false;
    uint64_t base = a->base, size = a->bytes;
    if (run->bounds && a->named_bytes) {
        base = a->named_base;
        size = a->named_bytes;
    }
    return address >= base && address - base < size && bytes <= size - (address - base);
}

void access_check_lanes(Access *access) {
    uint32_t good = 0;
    const char *verb = access->is_write ? "writes" : "reads";
    for (uint32_t rest = access->mask; rest; rest &= rest - 1) {
        int lane = __builtin_ctz(rest);
        if (!lane_in_bounds(access, lane)) {
            report_access(access, SIM_OUT_OF_BOUNDS, lane, verb, "");
        } else if (access->address[lane] & (access->bytes - 1u)) {
            char what[64];
            snprintf(what, sizeof what, "which is not a multiple of %u", access->bytes);
            report_access(access, SIM_MISALIGNED, lane, verb, what);
        } else {
            good |= 1u << lane;
        }
    }
    access->mask = good;
    access->allocation = NULL;
    access->contiguous = access->uniform = access->bounded = false;
}

/* ---- initialised-ness ------------------------------------------------------------------------ */

/* The marks of a lane's bytes, one bit each, set where `set_means` says so. */
static uint64_t read_bits(const uint8_t *bits, uint64_t first, uint32_t count) {
    uint64_t value = 0;
    uint64_t byte = first / 8;
    uint32_t shift = first % 8, bytes = (shift + count + 7) / 8;
    memcpy(&value, bits + byte, bytes);
    return (value >> shift) & ((UINT64_C(1) << count) - 1);
}

/* Other threads may be marking neighbouring bytes of global memory. A byte of marks that is ours
 * alone is simply written. */
static void set_bits_shared(uint8_t *bits, uint64_t first, uint64_t count) {
    while (count) {
        uint32_t shift = first % 8, now = 8 - shift < count ? 8 - shift : (uint32_t)count;
        if (now == 8) {
            uint64_t whole = count / 8;
            memset(bits + first / 8, 0xff, whole);
            first += whole * 8;
            count -= whole * 8;
            continue;
        }
        uint8_t value = (uint8_t)(((1u << now) - 1) << shift);
        if ((__atomic_load_n(bits + first / 8, __ATOMIC_RELAXED) & value) != value)
            __atomic_fetch_or(bits + first / 8, value, __ATOMIC_RELAXED);
        first += now;
        count -= now;
    }
}

static void write_bits(uint8_t *bits, uint64_t first, uint64_t value, uint32_t count) {
    while (count) {
        uint32_t shift = first % 8, now = 8 - shift < count ? 8 - shift : count;
        uint8_t field = (uint8_t)(((1u << now) - 1) << shift);
        bits[first / 8] = (uint8_t)((bits[first / 8] & ~field) | ((value << shift) & field));
        value >>= now;
        first += now;
        count -= now;
    }
}

static bool check_global(Access *access, uint64_t missing[LANES]) {
    uint32_t bytes = access->bytes, mask = access->mask;
    const Allocation *a = access->allocation;
    if (a && !a->initialized) return true;
    memset(missing, 0, LANES * sizeof *missing);
    uint64_t any = 0, full = (UINT64_C(1) << bytes) - 1;
    for (uint32_t rest = mask; rest; rest &= rest - 1) {
        int lane = __builtin_ctz(rest);
        const Allocation *own = a ? a : memory_find(access->address[lane]);
        if (!own || !own->initialized) continue;
        missing[lane] =
            full & ~read_bits(own->initialized, access->address[lane] - own->base, bytes);
        any |= missing[lane];
    }
    return !any;
}

static uint8_t *own_marks(const Access *access, int lane, uint64_t *first) {
    Warp *w = access->warp;
    *first = access->address[lane];
    if (access->space == SPACE_SHARED) return w->block->shared_marks;
    *first += (uint64_t)lane * w->worker->run->local_stride;
    return w->local_marks;
}

bool access_check_initialized(Access *access, uint64_t missing[LANES]) {
    if (span_initialized(access)) return true;
    if (access->space == SPACE_GLOBAL) return check_global(access, missing);
    if (access->space == SPACE_PARAM) return true;
    uint32_t bytes = access->bytes, mask = access->mask;
    uint64_t first;
    memset(missing, 0, LANES * sizeof *missing);
    uint64_t any = 0;
    for (uint32_t rest = mask; rest; rest &= rest - 1) {
        int lane = __builtin_ctz(rest);
        const uint8_t *marks = own_marks(access, lane, &first);
        missing[lane] = read_bits(marks, first, bytes);
        any |= missing[lane];
    }
    return !any;
}

static void report_store(Access *access, const uint64_t *missing) {
    for (uint32_t rest = access->mask; rest; rest &= rest - 1) {
        int lane = __builtin_ctz(rest);
        if (missing[lane])
            report_access(access, SIM_UNINITIALIZED, lane, "writes",
                          "with a value computed from data that was never written");
    }
}

void access_mark(Access *access, const uint64_t *missing) {
    if (!missing && span_initialized(access)) return;
    uint32_t bytes = access->bytes, mask = access->mask;
    int begin = __builtin_ctz(mask), end = 31 - __builtin_clz(mask);
    if (access->space == SPACE_GLOBAL) {
        if (missing) report_store(access, missing);
        const Allocation *a = access->allocation;
        if (a && !a->initialized) return;
        bool solid = mask == (uint32_t)((((UINT64_C(1) << (end - begin + 1)) - 1)) << begin);
        if (a && access->contiguous && solid) {
            uint64_t first = access->address[begin] - a->base;
            uint64_t count = (uint64_t)(end - begin + 1) * bytes;
            set_bits_shared(a->initialized, first, count);
            return;
        }
        for (uint32_t rest = mask; rest; rest &= rest - 1) {
            int lane = __builtin_ctz(rest);
            const Allocation *own = a ? a : memory_find(access->address[lane]);
            if (own && own->initialized)
                set_bits_shared(own->initialized, access->address[lane] - own->base, bytes);
        }
        return;
    }
    for (uint32_t rest = mask; rest; rest &= rest - 1) {
        int lane = __builtin_ctz(rest);
        uint64_t first;
        uint8_t *marks = own_marks(access, lane, &first);
        write_bits(marks, first, missing ? missing[lane] : 0, bytes);
    }
}

void access_check_address(Warp *warp, const Inst *inst, uint8_t *regs, uint32_t mask) {
    const uint32_t *planes = shadow_planes(warp, regs, inst->a);
    uint32_t any = 0;
    for (int i = 0; i < (inst->flags & INST_WIDE_ADDRESS ? 8 : 4); i++)
        any |= planes[i];
    any &= mask;
    for (; any; any &= any - 1) {
        SimReport report = {0};
        snprintf(report.message, sizeof report.message,
                 "uses an address computed from data that was never written");
        snprintf(report.space, sizeof report.space, "%s", space_name(inst->space));
        exec_find(warp, SIM_UNINITIALIZED, (uint32_t)__builtin_ctz(any), 0, &report);
    }
}

/* ---- counters -------------------------------------------------------------------------------- */

/* Distinct values among those of the active lanes, by open addressing. */
#define DISTINCT_SLOTS 512
typedef struct {
    uint64_t keys[DISTINCT_SLOTS];
    uint32_t count;
} Distinct;

static bool distinct_add(Distinct *set, uint64_t key) {
    uint32_t at = (uint32_t)((key * UINT64_C(0x9e3779b97f4a7c15)) >> 55);
    for (; set->keys[at]; at = (at + 1) % DISTINCT_SLOTS)
        if (set->keys[at] == key + 1) return false;
    set->keys[at] = key + 1;
    set->count++;
    return true;
}

static uint32_t count_sectors(const Access *access) {
    uint32_t bytes = access->bytes, mask = access->mask;
    int begin = __builtin_ctz(mask), end = 31 - __builtin_clz(mask);
    uint64_t first = access->address[begin] / SECTOR_BYTES;
    bool solid = mask == (uint32_t)((((UINT64_C(1) << (end - begin + 1)) - 1)) << begin);
    if (access->uniform || (access->contiguous && solid))
        return (uint32_t)((access->address[end] + bytes - 1) / SECTOR_BYTES - first + 1);
    uint64_t previous = ~UINT64_C(0);
    bool rising = true;
    uint32_t count = 0;
    for (uint32_t rest = mask; rest; rest &= rest - 1) {
        uint64_t sector = access->address[__builtin_ctz(rest)] / SECTOR_BYTES;
        rising &= previous == ~UINT64_C(0) || sector >= previous;
        count += sector != previous;
        previous = sector;
    }
    if (rising) // each sector is met once; an aligned element lies in one
        return count;
    Distinct set;
    memset(&set, 0, sizeof set);
    for (uint32_t rest = mask; rest; rest &= rest - 1)
        distinct_add(&set, access->address[__builtin_ctz(rest)] / SECTOR_BYTES);
    return set.count;
}

/* Extra passes over the 32 banks of four bytes: distinct words in the fullest bank, minus one.
 * Wide elements go in two or four passes of their own, which are not conflicts. */
static uint32_t count_conflicts(const Access *access) {
    if (access->uniform || access->contiguous) return 0;
    if (access->bounded && access->bytes <= 4 && access->end - (access->low & ~UINT64_C(3)) <= 128)
        return 0; // 32 words in a row lie in 32 banks
    uint32_t passes = access->bytes <= 4 ? 1 : access->bytes / 4, conflicts = 0;
    for (uint32_t pass = 0; pass < passes; pass++) {
        uint32_t group = LANES / passes, filled[32] = {0}, most = 0;
        uint64_t words[32][32];
        for (uint32_t i = 0; i < group; i++) {
            uint32_t lane = pass * group + i;
            if (!lane_in(access->mask, (int)lane)) continue;
            for (uint32_t k = 0; k < (access->bytes + 3u) / 4; k++) {
                uint64_t word = access->address[lane] / 4 + k;
                uint32_t bank = word % 32, n = 0;
                while (n < filled[bank] && words[bank][n] != word)
                    n++;
                if (n == filled[bank] && n < 32) words[bank][filled[bank]++] = word;
                most = filled[bank] > most ? filled[bank] : most;
            }
        }
        conflicts += most > 1 ? most - 1 : 0;
    }
    return conflicts;
}

void access_count(Access *access) {
    Tally *tally = &access->warp->worker->tally;
    if (access->space == SPACE_GLOBAL && access->is_write) {
        tally->global_store_requests++;
        tally->global_store_sectors += count_sectors(access);
    } else if (access->space == SPACE_GLOBAL) {
        tally->global_load_requests++;
        tally->global_load_sectors += count_sectors(access);
    } else if (access->space == SPACE_SHARED) {
        if (access->is_write)
            tally->shared_store_requests++;
        else
            tally->shared_load_requests++;
        tally->shared_conflicts += count_conflicts(access);
    }
}
