/* cubin.c - reads what ptxas decided from the machine code that lies beside the PTX.
 *
 * The simulator does not run machine code, but a launch is refused, or occupancy limited, by the
 * registers that ptxas gave the kernel. A cubin is an ELF image; its section .nv.info lists
 * attributes, among them (registers, symbol) and (stack frame, symbol) for every function.
 */
#include "sim/host.h"
#include <elf.h>
#include <string.h>

enum {
    FORMAT_SIZED = 0x04, // u16 length and payload follow; other formats take 4 bytes in all
    ATTRIBUTE_FRAME_SIZE = 0x11,
    ATTRIBUTE_REGISTERS = 0x2f,
};

typedef struct {
    const uint8_t *data;
    size_t bytes;
} Bytes;

typedef struct {
    Bytes image;
    Elf64_Ehdr header;
    Bytes names;
} Elf;

static bool slice(Bytes image, uint64_t offset, uint64_t bytes, Bytes *out) {
    if (offset > image.bytes || bytes > image.bytes - offset) return false;
    *out = (Bytes){image.data + offset, bytes};
    return true;
}

static bool elf_section(const Elf *elf, uint32_t index, Elf64_Shdr *section) {
    Bytes raw;
    if (index >= elf->header.e_shnum ||
        !slice(elf->image, elf->header.e_shoff + (uint64_t)index * sizeof *section, sizeof *section,
               &raw))
        return false;
    memcpy(section, raw.data, sizeof *section);
    return true;
}

static bool elf_section_data(const Elf *elf, uint32_t index, Elf64_Shdr *section, Bytes *data) {
    return elf_section(elf, index, section) && section->sh_type != SHT_NOBITS &&
           slice(elf->image, section->sh_offset, section->sh_size, data);
}

/* Compares the string at `offset` of a string table without leaving it. */
static bool string_is(Bytes table, uint64_t offset, const char *text) {
    Bytes tail;
    size_t length = strlen(text) + 1;
    return slice(table, offset, length, &tail) && !memcmp(tail.data, text, length);
}

static bool elf_open(Elf *elf, const uint8_t *image, size_t bytes) {
    Elf64_Shdr section;
    elf->image = (Bytes){image, bytes};
    if (bytes < sizeof elf->header || memcmp(image, ELFMAG, SELFMAG)) return false;
    memcpy(&elf->header, image, sizeof elf->header);
    return elf->header.e_ident[EI_CLASS] == ELFCLASS64 &&
           elf->header.e_shentsize == sizeof(Elf64_Shdr) &&
           elf_section_data(elf, elf->header.e_shstrndx, &section, &elf->names);
}

/* Index of the function symbol `name`; 0 if there is none. */
static uint32_t elf_function(const Elf *elf, const char *name) {
    for (uint32_t s = 0; s < elf->header.e_shnum; s++) {
        Elf64_Shdr section, string_section;
        Bytes symbols, strings;
        if (!elf_section_data(elf, s, &section, &symbols) || section.sh_type != SHT_SYMTAB ||
            !elf_section_data(elf, section.sh_link, &string_section, &strings))
            continue;
        for (size_t i = 0; (i + 1) * sizeof(Elf64_Sym) <= symbols.bytes; i++) {
            Elf64_Sym symbol;
            memcpy(&symbol, symbols.data + i * sizeof symbol, sizeof symbol);
            if (ELF64_ST_TYPE(symbol.st_info) == STT_FUNC &&
                string_is(strings, symbol.st_name, name))
                return (uint32_t)i;
        }
    }
    return 0;
}

static bool read_attributes(Bytes info, uint32_t function, CubinFigures *figures) {
    bool found = false;
    size_t at = 0;
    while (info.bytes - at >= 4) {
        uint8_t format = info.data[at], attribute = info.data[at + 1];
        uint16_t length;
        memcpy(&length, info.data + at + 2, sizeof length);
        at += 4;
        if (format != FORMAT_SIZED) continue;
        if (length > info.bytes - at) break;
        if (length >= 8) {
            uint32_t pair[2];
            memcpy(pair, info.data + at, sizeof pair);
            if (pair[0] == function && attribute == ATTRIBUTE_REGISTERS) {
                figures->registers = pair[1];
                found = true;
            }
            if (pair[0] == function && attribute == ATTRIBUTE_FRAME_SIZE)
                figures->stack_bytes = pair[1];
        }
        at += length;
    }
    return found;
}

bool cubin_figures(const uint8_t *cubin, size_t bytes, const char *kernel, CubinFigures *figures) {
    Elf elf;
    *figures = (CubinFigures){0};
    if (!elf_open(&elf, cubin, bytes)) return false;
    uint32_t function = elf_function(&elf, kernel);
    if (!function) return false;
    for (uint32_t s = 0; s < elf.header.e_shnum; s++) {
        Elf64_Shdr section;
        Bytes info;
        if (elf_section_data(&elf, s, &section, &info) &&
            string_is(elf.names, section.sh_name, ".nv.info"))
            return read_attributes(info, function, figures);
    }
    return false;
}
