/* ptx_names.c - memory of a module, its interned identifiers, and what they mean in a scope.
 *
 * Every `{ }` of PTX opens a scope; inline assembly relies on it, its labels and registers repeat
 * from one expansion to the next. A name carries the chain of its current meanings, innermost
 * first; leaving a scope undoes those that belong to it.
 */
#include "sim/ptx_parser.h"
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

typedef struct Chunk {
    struct Chunk *next;
    size_t used, size;
    _Alignas(16) unsigned char data[];
} Chunk;

struct PtxArena {
    Chunk *chunks;
};

#define CHUNK_BYTES ((size_t)64 << 10)

static void *must_allocate(size_t bytes) {
    void *memory = calloc(1, bytes ? bytes : 1);
    if (!memory) abort();
    return memory;
}

PtxArena *ptx_arena_new(void) {
    return must_allocate(sizeof(PtxArena));
}

void ptx_arena_free(PtxArena *arena) {
    while (arena && arena->chunks) {
        Chunk *chunk = arena->chunks;
        arena->chunks = chunk->next;
        free(chunk);
    }
    free(arena);
}

void *ptx_alloc(PtxArena *arena, size_t bytes) {
    bytes = (bytes + 15) & ~(size_t)15;
    if (!arena->chunks || arena->chunks->size - arena->chunks->used < bytes) {
        size_t size = bytes > CHUNK_BYTES ? bytes : CHUNK_BYTES;
        Chunk *chunk = must_allocate(sizeof(Chunk) + size);
        chunk->size = size;
        chunk->next = arena->chunks;
        arena->chunks = chunk;
    }
    void *memory = arena->chunks->data + arena->chunks->used;
    arena->chunks->used += bytes;
    return memory;
}

char *ptx_text(PtxArena *arena, const char *text, size_t bytes) {
    char *copy = ptx_alloc(arena, bytes + 1);
    memcpy(copy, text, bytes);
    return copy;
}

void *ptx_grow(void *data, uint32_t count, uint32_t *capacity, size_t element_bytes) {
    if (count < *capacity) return data;
    *capacity = *capacity ? *capacity * 2 : 16;
    data = realloc(data, *capacity * element_bytes);
    if (!data) abort();
    return data;
}

static uint32_t hash_text(const char *text, size_t bytes) {
    uint32_t hash = 2166136261u;
    for (size_t i = 0; i < bytes; i++)
        hash = (hash ^ (unsigned char)text[i]) * 16777619u;
    return hash;
}

static void enlarge_names(PtxModule *module) {
    uint32_t capacity = module->name_capacity ? module->name_capacity * 2 : 1024;
    PtxName **names = must_allocate(capacity * sizeof *names);
    for (uint32_t i = 0; i < module->name_capacity; i++) {
        PtxName *name = module->names[i];
        if (!name) continue;
        uint32_t at = name->hash & (capacity - 1);
        while (names[at])
            at = (at + 1) & (capacity - 1);
        names[at] = name;
    }
    free(module->names);
    module->names = names;
    module->name_capacity = capacity;
}

PtxName *ptx_name(PtxModule *module, const char *text, size_t bytes) {
    if (module->name_count * 2 >= module->name_capacity) enlarge_names(module);
    uint32_t hash = hash_text(text, bytes);
    uint32_t at = hash & (module->name_capacity - 1);
    for (PtxName *name; (name = module->names[at]); at = (at + 1) & (module->name_capacity - 1))
        if (name->hash == hash && name->length == bytes && !memcmp(name->text, text, bytes))
            return name;
    PtxName *name = ptx_alloc(module->arena, sizeof *name);
    name->text = ptx_text(module->arena, text, bytes);
    name->length = (uint32_t)bytes;
    name->hash = hash;
    module->names[at] = name;
    module->name_count++;
    return name;
}

const char *ptx_intern(PtxModule *module, const char *text, size_t bytes) {
    return ptx_name(module, text, bytes)->text;
}

/* ---- scopes ---------------------------------------------------------------------------------- */

static Binding *bind_at(Parser *p, PtxName *name, BindingKind kind, uint32_t depth) {
    Binding *binding = ptx_alloc(p->module->arena, sizeof *binding);
    binding->name = name;
    binding->kind = kind;
    binding->depth = depth;
    binding->hidden = name->binding;
    name->binding = binding;
    binding->next_in_scope = p->scopes[depth];
    p->scopes[depth] = binding;
    return binding;
}

Binding *ptx_bind(Parser *p, PtxName *name, BindingKind kind) {
    return bind_at(p, name, kind, p->depth);
}

void ptx_open_scope(Parser *p) {
    PtxFunction *f = p->function;
    f->scope_parents =
        ptx_grow(f->scope_parents, f->scope_count, &f->scope_capacity, sizeof *f->scope_parents);
    f->scope_parents[f->scope_count] = p->scope_ids[p->depth];
    p->depth++;
    p->scopes[p->depth] = NULL;
    p->scope_ids[p->depth] = f->scope_count++;
}

void ptx_close_scope(Parser *p) {
    for (Binding *b = p->scopes[p->depth]; b; b = b->next_in_scope)
        b->name->binding = b->hidden;
    p->scopes[p->depth--] = NULL;
}

static uint32_t new_register(PtxFunction *f, const char *name, PtxType type) {
    f->registers =
        ptx_grow(f->registers, f->register_count, &f->register_capacity, sizeof *f->registers);
    f->registers[f->register_count] = (PtxRegister){name, type};
    return f->register_count++;
}

bool ptx_resolve_register(Parser *p, const char *text, size_t bytes, uint32_t *index) {
    PtxName *name = ptx_name(p->module, text, bytes);
    if (!name->binding) {
        size_t prefix = bytes;
        while (prefix && isdigit((unsigned char)text[prefix - 1]))
            prefix--;
        if (prefix == bytes || bytes - prefix > 9) return false;
        Binding *range = ptx_name(p->module, text, prefix)->binding;
        if (!range || range->kind != BINDING_RANGE ||
            strtoul(name->text + prefix, NULL, 10) >= range->count)
            return false;
        Binding *made = bind_at(p, name, BINDING_REGISTER, range->depth);
        made->type = range->type;
        made->index = new_register(p->function, name->text, range->type);
    }
    if (name->binding->kind != BINDING_REGISTER) return false;
    if (name->binding->index == UINT32_MAX)
        name->binding->index = new_register(p->function, name->text, name->binding->type);
    *index = name->binding->index;
    return true;
}
