/* decode_program.c - a kernel and all it may call: where variables lie, and how much stack there
 * is.
 *
 * What a kernel calls is decoded with it, so that the layout of shared memory is the kernel's own.
 */
#include "sim/decode.h"
#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_FUNCTIONS 4096

/* ---- variables ------------------------------------------------------------------------------- */

static pthread_mutex_t place_lock = PTHREAD_MUTEX_INITIALIZER;

static uint64_t place_variable(PtxModule *module, PtxVariable *v, uint32_t depth) {
    if (v->placed) return v->address;
    uint64_t bytes = v->bytes ? v->bytes : 1;
    char *memory = memory_allocate(bytes, v->name);
    if (!memory) return 0;
    memset(memory, 0, bytes);
    if (v->data) memcpy(memory, v->data, v->data_bytes);
    memory_mark((uint64_t)(uintptr_t)memory, bytes, true);
    v->address = (uint64_t)(uintptr_t)memory;
    v->placed = true;
    for (PtxFixup *fixup = v->fixups; fixup && depth < 64; fixup = fixup->next) {
        PtxVariable *other = ptx_find_variable(module, fixup->symbol);
        if (!other || (other->space != SPACE_GLOBAL && other->space != SPACE_CONST)) continue;
        uint64_t address = place_variable(module, other, depth + 1) + (uint64_t)fixup->addend;
        memcpy(memory + fixup->offset, &address, fixup->bytes <= 8 ? fixup->bytes : 8);
    }
    return v->address;
}

uint64_t variable_place(PtxModule *module, PtxVariable *variable) {
    pthread_mutex_lock(&place_lock);
    memory_open();
    uint64_t address = place_variable(module, variable, 0);
    memory_close();
    pthread_mutex_unlock(&place_lock);
    return address;
}

Code *program_code(Program *program, const PtxFunction *function, uint32_t *index) {
    for (uint32_t i = 0; i < program->count; i++)
        if (program->functions[i] == function) {
            *index = i;
            return program->codes[i];
        }
    return NULL;
}

static uint32_t place_local(uint32_t *at, PtxVariable *v) {
    uint32_t align = v->align > 16 ? v->align : 16;
    *at = (*at + align - 1) & ~(align - 1);
    v->address = *at;
    *at += (uint32_t)v->bytes;
    return (uint32_t)v->address;
}

#define MAX_LOCAL_BYTES (512u << 10)

static bool layout_locals(Decoder *d) {
    Code *c = d->code;
    PtxFunction *f = d->function;
    uint32_t at = 0;
    if (f->param_count > 256)
        return decode_fail(d, "'%.120s' has more than 256 parameters", f->name);
    c->param_offsets = calloc(f->param_count + 1, sizeof(uint32_t));
    c->return_offsets = calloc(f->return_count + 1, sizeof(uint32_t));
    if (!c->param_offsets || !c->return_offsets) abort();
    uint64_t total = 0;
    for (PtxVariable *v = f->variables; v; v = v->next)
        total += v->space == SPACE_SHARED ? 0 : v->bytes + v->align;
    if (total > MAX_LOCAL_BYTES)
        return decode_fail(d, "'%.120s' uses too much local memory", f->name);
    c->params.count = f->is_entry ? f->param_count : 0;
    uint32_t param_at = 0;
    for (uint32_t i = 0; i < f->param_count; i++) {
        PtxVariable *v = f->params[i];
        if (!f->is_entry) {
            c->param_offsets[i] = place_local(&at, v);
            continue;
        }
        uint32_t align = v->align ? v->align : 1;
        param_at = (param_at + align - 1) & ~(align - 1);
        c->params.offset[i] = param_at;
        c->params.size[i] = (uint32_t)v->bytes;
        param_at += (uint32_t)v->bytes;
    }
    c->params.bytes = param_at;
    for (uint32_t i = 0; i < f->return_count; i++)
        c->return_offsets[i] = place_local(&at, f->returns[i]);
    for (PtxVariable *v = f->variables; v; v = v->next) {
        bool placed = v->space == SPACE_SHARED || decode_param_index(f, v) != UINT32_MAX;
        for (uint32_t i = 0; i < f->return_count; i++)
            placed |= f->returns[i] == v;
        if (!placed) place_local(&at, v);
    }
    c->local_bytes = (at + 15) & ~15u;
    return true;
}

/* ---- programs -------------------------------------------------------------------------------- */

static void add_function(Program *p, PtxFunction *f) {
    uint32_t index;
    if (f && p->count <= MAX_FUNCTIONS && !program_code(p, f, &index)) {
        uint32_t capacity = p->capacity;
        p->functions = ptx_grow(p->functions, p->count, &capacity, sizeof *p->functions);
        p->codes = ptx_grow(p->codes, p->count, &p->capacity, sizeof *p->codes);
        p->functions[p->count] = f;
        p->codes[p->count] = calloc(1, sizeof(Code));
        if (!p->codes[p->count]) abort();
        p->codes[p->count]->function = f;
        p->codes[p->count]->module = p->module;
        p->count++;
    }
}

static void add_shared(Program *p, PtxVariable *v) {
    for (uint32_t i = 0; i < p->shared_count; i++)
        if (p->shared[i].variable == v) return;
    p->shared = ptx_grow(p->shared, p->shared_count, &p->shared_capacity, sizeof *p->shared);
    p->shared[p->shared_count++] = (SharedPlace){v, 0};
}

static void collect_operand(Program *p, const PtxOperand *o) {
    if (o->kind == OPERAND_NAME) {
        PtxVariable *v = ptx_find_variable(p->module, o->name);
        if (v && v->space == SPACE_SHARED) add_shared(p, v);
        add_function(p, ptx_find_function(p->module, o->name));
    }
    if (o->kind == OPERAND_VARIABLE && o->variable->space == SPACE_SHARED)
        add_shared(p, o->variable);
    for (uint32_t i = 0; i < o->count; i++)
        collect_operand(p, &o->items[i]);
}

static void place_shared(Program *p) {
    uint64_t at = 0;
    for (int dynamic = 0; dynamic < 2; dynamic++)
        for (uint32_t i = 0; i < p->shared_count; i++) {
            PtxVariable *v = p->shared[i].variable;
            if ((v->bytes == 0) != dynamic) continue;
            uint64_t align = dynamic ? (v->align > 16 ? v->align : 16) : (v->align ? v->align : 1);
            uint64_t place = (at + align - 1) / align * align;
            p->shared[i].offset = place;
            at = dynamic ? at : place + v->bytes;
        }
    p->static_shared = at;
}

static void program_collect(Program *p) {
    for (uint32_t i = 0; i < p->count; i++) {
        const PtxFunction *f = p->functions[i];
        for (uint32_t s = 0; s < f->statement_count; s++)
            for (uint32_t k = 0; k < f->statements[s].operand_count; k++)
                collect_operand(p, &f->statements[s].operands[k]);
    }
    place_shared(p);
}

/* Local memory that a call chain from `code` may need; recursion gets what is left. */
#define STACK_FOR_RECURSION (64u << 10)

enum { UNVISITED, VISITING, VISITED };

static uint32_t stack_need(const Program *p, uint32_t index, uint8_t *visits) {
    Code *c = p->codes[index];
    if (visits[index] == VISITING) return STACK_FOR_RECURSION;
    if (visits[index] == VISITED) return c->stack_bytes;
    visits[index] = VISITING;
    uint32_t deepest = 0;
    for (uint32_t i = 0; i < c->count; i++)
        if (c->insts[i].control == CONTROL_CALL) {
            uint32_t need = stack_need(p, c->insts[i].target, visits);
            deepest = need > deepest ? need : deepest;
        }
    visits[index] = VISITED;
    uint64_t total = (uint64_t)c->local_bytes + deepest;
    c->stack_bytes = total > MAX_LOCAL_BYTES ? MAX_LOCAL_BYTES : (uint32_t)total;
    return c->stack_bytes;
}

static void code_release(Code *c) {
    free(c->insts);
    free(c->origins);
    free(c->lists);
    free(c->constants);
    free(c->specials);
    free(c->undefined);
    free(c->param_offsets);
    free(c->return_offsets);
    free(c);
}

void code_free(Code *code) {
    if (!code) return;
    Code **callees = code->callees;
    for (uint32_t i = code->callee_count; i-- > 0;)
        code_release(callees[i]);
    free(callees);
}

Code *decode_function(PtxModule *module, PtxFunction *function, char message[512]) {
    Program p = {.module = module};
    add_function(&p, function);
    program_collect(&p);
    bool ok = p.count <= MAX_FUNCTIONS;
    if (!ok) snprintf(message, 512, "'%.200s' calls too many functions", function->name);
    for (uint32_t i = 0; ok && i < p.count; i++) {
        Decoder d = {.program = &p,
                     .module = module,
                     .function = p.functions[i],
                     .code = p.codes[i],
                     .message = message};
        ok = layout_locals(&d) && (!p.functions[i]->has_body || decode_body(&d));
        decoder_free(&d);
    }
    if (ok && p.static_shared > UINT32_MAX / 2) {
        snprintf(message, 512, "'%.200s' has too much shared memory", function->name);
        ok = false;
    }
    uint8_t *visits = calloc(p.count, 1);
    if (!visits) abort();
    for (uint32_t i = 0; i < p.count; i++) {
        Code *c = p.codes[i];
        c->callees = p.codes;
        c->callee_count = p.count;
        c->static_shared = (uint32_t)p.static_shared;
        c->ordered = p.ordered;
        if (ok) stack_need(&p, i, visits);
    }
    free(visits);
    assert(p.codes); // the kernel itself, at least
    Code *code = p.codes[0];
    free(p.functions);
    free(p.shared);
    if (ok) return code;
    code_free(code);
    return NULL;
}
