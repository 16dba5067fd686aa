/* constructs.c - the CuTe constructs that a kernel's machine code really goes through.
 *
 * A kernel may include CuTe, build a few layouts, and then move its data with plain pointers.
 * Words in the source would not show it; the line table does: for each instruction that moves
 * data or multiplies, it names the chain of functions that was inlined around it. A kernel uses
 * cute::copy when such instructions came out of cute::copy, and SM90_TMA_LOAD when they came out
 * of that operation. Tensors, tiled copies and swizzles leave no instruction of their own but the
 * arithmetic of addresses, so for these any instruction that came out of them will do.
 */
#include "build/constructs.h"

#include "build/figures.h"
#include "build/ptx_lines.h"
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define FATBIN_MAGIC   0xBA55ED50u
#define FATBIN_PTX     1
#define MAX_CHAIN      64
#define MAX_CONSTRUCTS 64
#define MAX_ENTRIES    64

/* ---- PTX in the object --------------------------------------------------------------------- */

typedef struct {
    uint32_t magic;
    uint16_t version, header_bytes;
    uint64_t bytes; // of all entries
} FatbinHeader;

typedef struct {
    uint16_t kind, version;
    uint32_t header_bytes;
    uint64_t bytes; // of the payload that follows the header
} FatbinEntry;

/* The next PTX image at or after *at, which is moved behind it. */
static bool next_ptx(const uint8_t *data, size_t bytes, size_t *at, size_t *end_of_fatbin,
                     const char **text, size_t *text_bytes) {
    while (*at + sizeof(FatbinEntry) <= bytes) {
        if (*at >= *end_of_fatbin) {
            FatbinHeader header;
            if (*at + sizeof header > bytes) return false;
            memcpy(&header, data + *at, sizeof header);
            bool found = header.magic == FATBIN_MAGIC && header.version == 1 &&
                         header.header_bytes == sizeof header &&
                         header.bytes <= bytes - *at - sizeof header;
            *at += found ? sizeof header : 8;
            if (found) *end_of_fatbin = *at + header.bytes;
            continue;
        }
        FatbinEntry entry;
        memcpy(&entry, data + *at, sizeof entry);
        if (entry.header_bytes < sizeof entry || entry.header_bytes > *end_of_fatbin - *at ||
            entry.bytes > *end_of_fatbin - *at - entry.header_bytes) {
            *at = *end_of_fatbin;
            continue;
        }
        *text = (const char *)data + *at + entry.header_bytes;
        *text_bytes = strnlen(*text, entry.bytes);
        *at += entry.header_bytes + entry.bytes;
        if (entry.kind == FATBIN_PTX) return true;
    }
    return false;
}

/* ---- names around the instructions that matter ---------------------------------------------- */

/* Instructions that move data between memories or multiply matrices. */
static bool moves_or_multiplies(const char *line, const char *end) {
    static const char *const kPrefixes[] = {
        "ld.global", "ld.shared", "st.global",       "st.shared", "ld.v", "cp.async", "cp.reduce",
        "ldmatrix",  "stmatrix",  "wgmma.mma_async", "mma.sync",  "red.", "atom.",    "ld.relaxed",
    };
    if (line < end && *line == '@') { // a predicate
        while (line < end && !isspace((unsigned char)*line))
            line++;
        while (line < end && isspace((unsigned char)*line))
            line++;
    }
    for (size_t i = 0; i < COUNT_OF(kPrefixes); i++) {
        size_t length = strlen(kPrefixes[i]);
        if ((size_t)(end - line) > length && memcmp(line, kPrefixes[i], length) == 0) return true;
    }
    return false;
}

static void mark_chain(const PtxLines *lines, int index, bool *seen, bool *used) {
    for (int step = 0; index >= 0 && step < MAX_CHAIN && !seen[index]; step++) {
        seen[index] = true;
        int function = lines->locs[index].function;
        if (function >= 0 && function < lines->string_count) used[function] = true;
        index = lines->locs[index].parent;
    }
}

/* A function in the line table, or a kernel; mangled. */
typedef struct {
    const char *text;
    bool moves; // instructions that move data or multiply came out of it
} Name;

typedef struct {
    Name *items;
    int count, capacity;
} NameList;

static void add_name(Arena *arena, NameList *names, const char *text, bool moves) {
    if (names->count == names->capacity) {
        int capacity = names->capacity ? 2 * names->capacity : 64;
        Name *items = arena_array_of(arena, Name, (size_t)capacity);
        if (names->count) memcpy(items, names->items, sizeof *items * (size_t)names->count);
        names->items = items;
        names->capacity = capacity;
    }
    names->items[names->count++] = (Name){text, moves};
}

static void collect_names(Arena *arena, const char *text, size_t bytes, NameList *names) {
    PtxLines lines = ptx_lines_read(arena, text, bytes);
    bool *seen = arena_array_of(arena, bool, (size_t)lines.loc_count + 1);
    bool *used = arena_array_of(arena, bool, (size_t)lines.string_count + 1);
    const char *end = text + bytes;
    int loc = -1, entries = 0;
    for (const char *line = text; line < end;) {
        const char *newline = memchr(line, '\n', (size_t)(end - line));
        const char *stop = newline ? newline : end;
        while (line < stop && isspace((unsigned char)*line))
            line++;
        size_t offset = (size_t)(line - text);
        while (loc + 1 < lines.loc_count && lines.locs[loc + 1].offset <= offset)
            loc++;
        static const char kEntry[] = ".entry ";
        const char *entry = memmem(line, (size_t)(stop - line), kEntry, strlen(kEntry));
        if (entry && entries++ < MAX_ENTRIES) {
            entry += strlen(kEntry);
            size_t length = 0;
            while (entry + length < stop && entry[length] != '(' && entry[length] != ' ')
                length++;
            add_name(arena, names, arena_string_n(arena, entry, length), false);
        } else if (moves_or_multiplies(line, stop)) {
            mark_chain(&lines, loc, seen, used);
        }
        line = stop + 1;
    }
    for (int i = 0; i < lines.string_count; i++)
        if (lines.strings[i]) add_name(arena, names, lines.strings[i], used[i]);
}

/* ---- what they say ------------------------------------------------------------------------- */

typedef struct {
    Arena *arena;
    const char **items;
    int count;
} Found;

static void add_construct(Found *found, const char *name, size_t bytes) {
    for (int i = 0; i < found->count; i++)
        if (strlen(found->items[i]) == bytes && memcmp(found->items[i], name, bytes) == 0) return;
    if (found->count < MAX_CONSTRUCTS)
        found->items[found->count++] = arena_string_n(found->arena, name, bytes);
}

/* "13UniversalCopy" in a mangled name: the length is part of the pattern, so that no longer or
 * shorter identifier matches. */
static const struct {
    const char *pattern, *construct;
    bool moves; // asks for instructions that move data or multiply
} kIdentifiers[] = {
    {"4cute4copy", "copy", true},
    {"4cute7copy_if", "copy", true},
    {"4cute4gemm", "gemm", true},
    {"13UniversalCopy", "UniversalCopy", true},
    {"12UniversalFMA", "UniversalFMA", true},
    {"4cute6Tensor", "tensor", false},
    {"9TiledCopy", "tiled_copy", false},
    {"8TiledMMA", "tiled_mma", false},
};

/* The identifier at `at`, which a mangled name precedes with its length; 0 if none begins there.
 * Digits before may belong to an identifier that ends with them, so shorter numbers are tried. */
static size_t identifier_length(const char *name, const char *at) {
    const char *digits = at;
    while (digits > name && isdigit((unsigned char)digits[-1]))
        digits--;
    for (; digits < at; digits++) {
        size_t bytes = (size_t)strtoul(digits, NULL, 10), word = 0;
        while (word < bytes && (isalnum((unsigned char)at[word]) || at[word] == '_'))
            word++;
        if (bytes > 0 && word == bytes) return bytes;
    }
    return 0;
}

/* CuTe's operations are named after the architecture that brought them: SM80_CP_ASYNC_CACHEALWAYS,
 * SM90_TMA_LOAD, SM80_16x8x16_F32F16F16F32_TN; SM90_64x128x16_F32F16F16_SS is an alias of
 * SM90::GMMA::MMA_64x128x16_F32F16F16_SS. */
static void find_operations(Found *found, const char *name) {
    for (const char *at = name; *at; at++) {
        bool gmma = strncmp(at, "MMA_", 4) == 0 && isdigit((unsigned char)at[4]);
        if (!gmma && (strncmp(at, "SM", 2) != 0 || !isdigit((unsigned char)at[2]))) continue;
        size_t bytes = identifier_length(name, at);
        // SM90_TMA_LOAD_OP and SM90_TMA_LOAD_2D are how SM90_TMA_LOAD is made.
        char *text = arena_string_n(found->arena, at, bytes);
        bool inner =
            text_ends_with(text, "_OP") || (strstr(text, "_TMA_") && text_ends_with(text, "D") &&
                                            bytes > 1 && isdigit((unsigned char)text[bytes - 2]));
        if (!bytes || inner || !strchr(text, '_')) continue;
        if (gmma) text = arena_printf(found->arena, "SM90_%s", text + strlen("MMA_"));
        add_construct(found, text, strlen(text));
    }
}

/* Swizzle<0, 4, 3> is how CuTe writes "none". */
static void find_swizzle(Found *found, const char *name) {
    static const char kSwizzle[] = "7SwizzleILi";
    for (const char *at = name; (at = strstr(at, kSwizzle)); at++)
        if (at[strlen(kSwizzle)] != '0') add_construct(found, "swizzle", strlen("swizzle"));
}

static int compare_texts(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

void constructs_find(Arena *arena, const void *object, size_t bytes, BuildResult *result) {
    Arena *scratch = arena_new();
    NameList names = {0};
    const char *text;
    size_t at = 0, end_of_fatbin = 0, text_bytes;
    while (next_ptx(object, bytes, &at, &end_of_fatbin, &text, &text_bytes))
        collect_names(scratch, text, text_bytes, &names);
    Found found = {.arena = arena};
    found.items = arena_array_of(arena, const char *, MAX_CONSTRUCTS);
    for (int i = 0; i < names.count; i++) {
        for (size_t k = 0; k < COUNT_OF(kIdentifiers); k++)
            if ((names.items[i].moves || !kIdentifiers[k].moves) &&
                strstr(names.items[i].text, kIdentifiers[k].pattern))
                add_construct(&found, kIdentifiers[k].construct, strlen(kIdentifiers[k].construct));
        if (names.items[i].moves) find_operations(&found, names.items[i].text);
        find_swizzle(&found, names.items[i].text);
    }
    qsort(found.items, (size_t)found.count, sizeof *found.items, compare_texts);
    result->constructs = found.items;
    result->construct_count = found.count;
    arena_free(scratch);
}
