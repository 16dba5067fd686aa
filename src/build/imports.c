/* imports.c - reads the dynamic symbols of a shared object, as an untrusted file.
 *
 * Before an object is given to a runner, the names it imports are compared with a list: what CuTe
 * kernels need of the CUDA runtime, libc, libm and libstdc++, and nothing else. This catches the
 * honest mistakes (cuBLAS, threads, files); the sandbox around the runner is the boundary.
 *
 * The reader follows what the loader follows: program headers, the dynamic segment, its symbol
 * and string tables. Section headers, which tools like nm read, are not used, because the loader
 * does not use them either: a file could say one thing there and do another.
 */
#include "build/imports.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

#define MAX_SYMBOLS 200000

typedef struct {
    const uint8_t *data;
    size_t bytes;
    const Elf64_Phdr *segments;
    int segment_count;
    const char *why;
} Elf;

static bool bad(Elf *elf, const char *why) {
    if (!elf->why) elf->why = why;
    return false;
}

/* Copies a structure out: nothing in the file need be aligned. */
static bool read_at(const Elf *elf, uint64_t offset, void *out, size_t bytes) {
    if (offset > elf->bytes || bytes > elf->bytes - offset) return false;
    memcpy(out, elf->data + offset, bytes);
    return true;
}

/* Where the loader would find `bytes` at virtual address `address`, in the file. */
static bool file_offset(const Elf *elf, uint64_t address, uint64_t bytes, uint64_t *offset) {
    for (int i = 0; i < elf->segment_count; i++) {
        const Elf64_Phdr *segment = &elf->segments[i];
        if (segment->p_type != PT_LOAD || address < segment->p_vaddr) continue;
        uint64_t inside = address - segment->p_vaddr;
        if (inside > segment->p_filesz || bytes > segment->p_filesz - inside) continue;
        *offset = segment->p_offset + inside;
        return *offset >= inside && *offset <= elf->bytes && bytes <= elf->bytes - *offset;
    }
    return false;
}

static bool read_header(Arena *arena, Elf *elf) {
    Elf64_Ehdr header;
    if (!read_at(elf, 0, &header, sizeof header) || memcmp(header.e_ident, ELFMAG, SELFMAG) != 0)
        return bad(elf, "not an ELF file");
    if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB ||
        header.e_machine != EM_X86_64 || header.e_type != ET_DYN)
        return bad(elf, "not a shared object for x86-64");
    if (header.e_phentsize != sizeof(Elf64_Phdr) || header.e_phnum == 0)
        return bad(elf, "no program headers");
    size_t bytes = sizeof(Elf64_Phdr) * header.e_phnum;
    Elf64_Phdr *segments = arena_alloc(arena, bytes);
    if (!read_at(elf, header.e_phoff, segments, bytes))
        return bad(elf, "program headers lie outside the file");
    elf->segments = segments;
    elf->segment_count = header.e_phnum;
    return true;
}

/* What the dynamic segment says, by tag; needed libraries separately. */
typedef struct {
    uint64_t strings, string_bytes, symbols, hash, gnu_hash, run_path;
    uint64_t relocations[2], relocation_bytes[2]; // data's and, in the PLT, functions'
    bool has_run_path;
    uint64_t needed[64];
    int needed_count;
} Dynamic;

static bool read_dynamic(Elf *elf, Dynamic *dynamic) {
    const Elf64_Phdr *segment = NULL;
    for (int i = 0; i < elf->segment_count; i++) {
        if (elf->segments[i].p_type != PT_DYNAMIC) continue;
        if (segment) return bad(elf, "two dynamic segments");
        segment = &elf->segments[i];
    }
    if (!segment) return bad(elf, "no dynamic segment");
    // The loader reads it from memory, up to DT_NULL, wherever the header says it ends.
    for (uint64_t address = segment->p_vaddr;; address += sizeof(Elf64_Dyn)) {
        Elf64_Dyn entry;
        uint64_t offset;
        if (!file_offset(elf, address, sizeof entry, &offset) ||
            !read_at(elf, offset, &entry, sizeof entry))
            return bad(elf, "the dynamic segment does not end");
        if (entry.d_tag == DT_NULL) return true;
        switch (entry.d_tag) {
        case DT_STRTAB:
            dynamic->strings = entry.d_un.d_ptr;
            break;
        case DT_STRSZ:
            dynamic->string_bytes = entry.d_un.d_val;
            break;
        case DT_SYMTAB:
            dynamic->symbols = entry.d_un.d_ptr;
            break;
        case DT_HASH:
            dynamic->hash = entry.d_un.d_ptr;
            break;
        case DT_GNU_HASH:
            dynamic->gnu_hash = entry.d_un.d_ptr;
            break;
        case DT_RPATH:
        case DT_RUNPATH:
            dynamic->run_path = entry.d_un.d_val;
            dynamic->has_run_path = true;
            break;
        case DT_RELA:
            dynamic->relocations[0] = entry.d_un.d_ptr;
            break;
        case DT_RELASZ:
            dynamic->relocation_bytes[0] = entry.d_un.d_val;
            break;
        case DT_JMPREL:
            dynamic->relocations[1] = entry.d_un.d_ptr;
            break;
        case DT_PLTRELSZ:
            dynamic->relocation_bytes[1] = entry.d_un.d_val;
            break;
        case DT_REL:
            return bad(elf, "relocations of an unusual kind");
        case DT_SYMENT:
            if (entry.d_un.d_val != sizeof(Elf64_Sym)) return bad(elf, "odd symbol size");
            break;
        case DT_NEEDED:
            if (dynamic->needed_count == (int)COUNT_OF(dynamic->needed))
                return bad(elf, "needs very many libraries");
            dynamic->needed[dynamic->needed_count++] = entry.d_un.d_val;
            break;
        case DT_AUDIT:
        case DT_DEPAUDIT:
        case DT_FILTER:
        case DT_AUXILIARY:
            return bad(elf, "asks the loader for an audit or filter library");
        default:
            break;
        }
    }
}

static bool read_string(Elf *elf, const Dynamic *dynamic, uint64_t at, const char **text) {
    uint64_t offset;
    if (at >= dynamic->string_bytes ||
        !file_offset(elf, dynamic->strings, dynamic->string_bytes, &offset))
        return bad(elf, "a name lies outside the string table");
    const char *start = (const char *)elf->data + offset + at;
    if (!memchr(start, '\0', dynamic->string_bytes - at)) return bad(elf, "a name does not end");
    *text = start;
    return true;
}

/* The number of symbols is nowhere said. Those that are defined can be found through the hash
 * table, those that are undefined matter only when a relocation asks for them; so the larger of
 * what the two say is enough. In a GNU hash table, undefined symbols come first and the last
 * chain ends the table; it says nothing when nothing is defined. */
static bool count_relocated(Elf *elf, const Dynamic *dynamic, uint32_t *count) {
    for (int table = 0; table < 2; table++) {
        uint64_t bytes = dynamic->relocation_bytes[table], offset;
        if (bytes == 0) continue;
        if (!file_offset(elf, dynamic->relocations[table], bytes, &offset))
            return bad(elf, "relocations lie outside the file");
        for (uint64_t at = 0; at + sizeof(Elf64_Rela) <= bytes; at += sizeof(Elf64_Rela)) {
            Elf64_Rela relocation;
            if (!read_at(elf, offset + at, &relocation, sizeof relocation))
                return bad(elf, "relocations lie outside the file");
            uint32_t symbol = (uint32_t)ELF64_R_SYM(relocation.r_info);
            if (symbol >= MAX_SYMBOLS) return bad(elf, "very many symbols");
            if (symbol >= *count) *count = symbol + 1;
        }
    }
    return true;
}

static bool count_hashed(Elf *elf, const Dynamic *dynamic, uint32_t *count) {
    uint64_t offset;
    uint32_t head[4];
    if (dynamic->hash) {
        if (!file_offset(elf, dynamic->hash, 8, &offset) || !read_at(elf, offset, head, 8))
            return bad(elf, "hash table outside the file");
        *count = head[1];
        return true;
    }
    if (!dynamic->gnu_hash || !file_offset(elf, dynamic->gnu_hash, sizeof head, &offset) ||
        !read_at(elf, offset, head, sizeof head))
        return bad(elf, "no symbol hash table");
    uint32_t buckets = head[0], first = head[1], bloom_words = head[2], last = 0;
    uint64_t at = dynamic->gnu_hash + sizeof head + (uint64_t)bloom_words * 8;
    if (buckets > MAX_SYMBOLS || bloom_words > MAX_SYMBOLS)
        return bad(elf, "very large hash table");
    for (uint32_t i = 0; i < buckets; i++, at += 4) {
        uint32_t symbol;
        if (!file_offset(elf, at, 4, &offset) || !read_at(elf, offset, &symbol, 4))
            return bad(elf, "hash table outside the file");
        if (symbol > last) last = symbol;
    }
    *count = first;
    if (last < first) return true; // defines nothing
    for (uint32_t symbol = last;; symbol++) {
        uint32_t chain;
        uint64_t address = at + (uint64_t)(symbol - first) * 4;
        if (symbol > MAX_SYMBOLS || !file_offset(elf, address, 4, &offset) ||
            !read_at(elf, offset, &chain, 4))
            return bad(elf, "hash table outside the file");
        *count = symbol + 1;
        if (chain & 1) return true;
    }
}

static int compare_names(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static bool read_symbols(Arena *arena, Elf *elf, const Dynamic *dynamic, DynamicImports *imports) {
    uint32_t count = 0;
    if (!count_hashed(elf, dynamic, &count) || !count_relocated(elf, dynamic, &count)) return false;
    if (count > MAX_SYMBOLS) return bad(elf, "very many symbols");
    imports->undefined = arena_array_of(arena, const char *, (size_t)count + 1);
    for (uint32_t i = 1; i < count; i++) {
        Elf64_Sym symbol;
        uint64_t offset;
        const char *name;
        uint64_t address = dynamic->symbols + (uint64_t)i * sizeof symbol;
        if (!file_offset(elf, address, sizeof symbol, &offset) ||
            !read_at(elf, offset, &symbol, sizeof symbol))
            return bad(elf, "symbols lie outside the file");
        if (!read_string(elf, dynamic, symbol.st_name, &name)) return false;
        if (symbol.st_shndx == SHN_UNDEF)
            imports->undefined[imports->undefined_count++] = arena_string(arena, name);
        else if (strcmp(name, "launch") == 0)
            imports->defines_launch = true;
    }
    qsort(imports->undefined, (size_t)imports->undefined_count, sizeof(char *), compare_names);
    return true;
}

bool imports_read(Arena *arena, const void *object, size_t bytes, DynamicImports *imports,
                  const char **why) {
    *imports = (DynamicImports){0};
    Elf elf = {.data = object, .bytes = bytes};
    Dynamic dynamic = {0};
    bool good = read_header(arena, &elf) && read_dynamic(&elf, &dynamic) &&
                read_symbols(arena, &elf, &dynamic, imports);
    imports->needed = arena_array_of(arena, const char *, (size_t)dynamic.needed_count + 1);
    for (int i = 0; good && i < dynamic.needed_count; i++) {
        const char *name;
        good = read_string(&elf, &dynamic, dynamic.needed[i], &name);
        if (good) imports->needed[imports->needed_count++] = arena_string(arena, name);
    }
    if (good && dynamic.has_run_path) {
        const char *path;
        good = read_string(&elf, &dynamic, dynamic.run_path, &path);
        if (good) imports->run_path = arena_string(arena, path);
    }
    *why = elf.why;
    return good;
}

/* ---- the list ----------------------------------------------------------------------------- */

#define IMPORT(name) #name,
static const char *const kAllowed[] = {
#include "build/imports.def"
};
#undef IMPORT

bool import_allowed(const char *symbol) {
    for (size_t i = 0; i < COUNT_OF(kAllowed); i++)
        if (strcmp(kAllowed[i], symbol) == 0) return true;
    return false;
}

bool library_allowed(const char *needed) {
    static const char *const kLibraries[] = {
        "libstdc++.so.6",       "libm.so.6",       "libgcc_s.so.1",  "libc.so.6",
        "ld-linux-x86-64.so.2", "libcudart.so.12", "libcudart.so.13"};
    for (size_t i = 0; i < COUNT_OF(kLibraries); i++)
        if (strcmp(kLibraries[i], needed) == 0) return true;
    return false;
}
