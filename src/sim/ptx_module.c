/* ptx_module.c - PTX text to PtxModule: directives, variables, function heads.
 *
 * Bodies are read by ptx_body.c. The text comes from nvcc or from whoever wrote a fat binary, so
 * everything is checked, and the first thing that is wrong is told with its line and token.
 */
#include "sim/ptx_parser.h"
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool parser_fail(Parser *p, const char *what) {
    if (p->failed) return false;
    p->failed = true;
    if (p->token.kind == TOKEN_END) {
        snprintf(p->message, 512, "PTX line %u: the text ends where %s", p->token.line, what);
        return false;
    }
    char shown[48];
    size_t length = p->token.length < sizeof shown - 1 ? p->token.length : sizeof shown - 1;
    for (size_t i = 0; i < length; i++)
        shown[i] = isprint((unsigned char)p->token.start[i]) ? p->token.start[i] : '?';
    shown[length] = 0;
    snprintf(p->message, 512, "PTX line %u: at '%s': %s", p->token.line, shown, what);
    return false;
}

void parser_next(Parser *p) {
    p->token = lexer_next(&p->lexer);
}

bool token_is(const Parser *p, const char *text) {
    size_t length = strlen(text);
    return (p->token.kind == TOKEN_WORD || p->token.kind == TOKEN_PUNCT) &&
           p->token.length == length && !memcmp(p->token.start, text, length);
}

bool parser_accept(Parser *p, const char *text) {
    if (!token_is(p, text)) return false;
    parser_next(p);
    return true;
}

bool parser_expect(Parser *p, const char *text) {
    if (parser_accept(p, text)) return true;
    char what[64];
    snprintf(what, sizeof what, "'%.40s' is expected", text);
    return parser_fail(p, what);
}

bool parse_integer(Parser *p, int64_t *value) {
    bool negative = parser_accept(p, "-");
    if (p->token.kind != TOKEN_INTEGER) return parser_fail(p, "an integer is expected");
    *value = negative ? (int64_t)(0 - p->token.value) : (int64_t)p->token.value;
    parser_next(p);
    return true;
}

bool ptx_type(const char *text, size_t length, PtxType *type) {
    static const struct {
        const char *name;
        PtxType type;
    } types[] = {
        {"b8", {1, 'b'}},     {"u8", {1, 'u'}},         {"s8", {1, 's'}},      {"b16", {2, 'b'}},
        {"u16", {2, 'u'}},    {"s16", {2, 's'}},        {"f16", {2, 'f'}},     {"bf16", {2, 'f'}},
        {"b32", {4, 'b'}},    {"u32", {4, 'u'}},        {"s32", {4, 's'}},     {"f32", {4, 'f'}},
        {"f16x2", {4, 'f'}},  {"bf16x2", {4, 'f'}},     {"b64", {8, 'b'}},     {"u64", {8, 'u'}},
        {"s64", {8, 's'}},    {"f64", {8, 'f'}},        {"b128", {16, 'b'}},   {"pred", {0, 'p'}},
        {"texref", {8, 'b'}}, {"samplerref", {8, 'b'}}, {"surfref", {8, 'b'}},
    };
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        if (strlen(types[i].name) == length && !memcmp(types[i].name, text, length)) {
            *type = types[i].type;
            return true;
        }
    return false;
}

PtxFunction *ptx_find_function(PtxModule *module, const char *name) {
    for (PtxFunction *f = module->functions; f; f = f->next)
        if (!strcmp(f->name, name)) return f;
    return NULL;
}

PtxVariable *ptx_find_variable(PtxModule *module, const char *name) {
    for (PtxVariable *v = module->variables; v; v = v->next)
        if (!strcmp(v->name, name)) return v;
    return NULL;
}

/* ---- variables ------------------------------------------------------------------------------- */

#define MAX_VARIABLE_BYTES    ((uint64_t)1 << 32)
#define MAX_INITIALIZED_BYTES ((uint64_t)256 << 20)

static bool store_value(Parser *p, PtxVariable *v, uint64_t at, const void *value, uint32_t bytes) {
    if (at + bytes > v->bytes) return parser_fail(p, "the initialiser is longer than its variable");
    memcpy(v->data + at, value, bytes);
    return true;
}

static bool parse_fixup(Parser *p, PtxVariable *v, uint64_t at, uint32_t bytes) {
    PtxFixup *fixup = ptx_alloc(p->module->arena, sizeof *fixup);
    if (token_is(p, "generic")) {
        parser_next(p);
        fixup->generic = true;
        if (!parser_expect(p, "(")) return false;
    }
    if (p->token.kind != TOKEN_WORD) return parser_fail(p, "a symbol is expected");
    fixup->symbol = ptx_intern(p->module, p->token.start, p->token.length);
    fixup->offset = at;
    fixup->bytes = (uint8_t)bytes;
    parser_next(p);
    if (fixup->generic && !parser_expect(p, ")")) return false;
    if (parser_accept(p, "+") && !parse_integer(p, &fixup->addend)) return false;
    if (at + bytes > v->bytes) return parser_fail(p, "the initialiser is longer than its variable");
    fixup->next = v->fixups;
    v->fixups = fixup;
    return true;
}

/* One number or symbol; 0xFF(symbol) masks of bytes are not supported. */
static bool parse_initial_value(Parser *p, PtxVariable *v, PtxType type, uint64_t at) {
    if (p->token.kind == TOKEN_WORD) return parse_fixup(p, v, at, type.bytes);
    bool negative = parser_accept(p, "-");
    uint64_t bits = p->token.value;
    if (p->token.kind == TOKEN_F32 || p->token.kind == TOKEN_F64) {
        double number;
        float single;
        if (p->token.kind == TOKEN_F32) {
            memcpy(&single, &bits, sizeof single);
            number = single;
        } else {
            memcpy(&number, &bits, sizeof number);
        }
        number = negative ? -number : number;
        single = (float)number;
        if (type.bytes == 4)
            memcpy(&bits, &single, sizeof single);
        else
            memcpy(&bits, &number, sizeof number);
    } else if (p->token.kind == TOKEN_INTEGER) {
        bits = negative ? 0 - bits : bits;
    } else {
        return parser_fail(p, "a value is expected");
    }
    parser_next(p);
    return store_value(p, v, at, &bits, type.bytes < 8 ? type.bytes : 8);
}

static bool parse_initializer(Parser *p, PtxVariable *v, PtxType type, uint64_t *at,
                              uint32_t depth) {
    if (!parser_accept(p, "{")) {
        if (!parse_initial_value(p, v, type, *at)) return false;
        *at += type.bytes;
        return true;
    }
    if (depth > 8) return parser_fail(p, "braces are nested too deep");
    while (!token_is(p, "}")) {
        if (!parse_initializer(p, v, type, at, depth + 1)) return false;
        if (!parser_accept(p, ",")) break;
    }
    return parser_expect(p, "}");
}

static bool parse_extents(Parser *p, PtxVariable *v, uint64_t *elements, bool *unsized) {
    while (parser_accept(p, "[")) {
        int64_t extent = 0;
        if (parser_accept(p, "]")) {
            *unsized = true;
            continue;
        }
        if (!parse_integer(p, &extent) || !parser_expect(p, "]")) return false;
        if (extent < 0 || (extent && *elements > MAX_VARIABLE_BYTES / (uint64_t)extent))
            return parser_fail(p, "the variable is too large");
        *elements *= (uint64_t)extent;
    }
    (void)v;
    return true;
}

bool parse_variable(Parser *p, PtxVariable **list, PtxVariable **made) {
    static const struct {
        const char *word;
        PtxSpace space;
    } spaces[] = {{".global", SPACE_GLOBAL},
                  {".const", SPACE_CONST},
                  {".shared", SPACE_SHARED},
                  {".local", SPACE_LOCAL},
                  {".param", SPACE_PARAM}};
    PtxVariable *v = ptx_alloc(p->module->arena, sizeof *v);
    v->line = p->token.line;
    size_t s = 0;
    while (s < 5 && !token_is(p, spaces[s].word))
        s++;
    if (s == 5) return parser_fail(p, "a state space is expected");
    v->space = spaces[s].space;
    parser_next(p);
    PtxType type = {0, 0};
    uint32_t vector = 1;
    int64_t align = 0;
    while (p->token.kind == TOKEN_WORD && *p->token.start == '.') {
        if (parser_accept(p, ".align")) {
            if (!parse_integer(p, &align)) return false;
            if (align < 1 || align > 4096 || (align & (align - 1)))
                return parser_fail(p, "an alignment is a power of two up to 4096");
        } else if (parser_accept(p, ".ptr") || parser_accept(p, ".global") ||
                   parser_accept(p, ".shared") || parser_accept(p, ".const") ||
                   parser_accept(p, ".local") || parser_accept(p, ".attribute") ||
                   parser_accept(p, ".unified") || parser_accept(p, ".managed")) {
            if (parser_accept(p, "("))
                while (p->token.kind != TOKEN_END && !parser_accept(p, ")"))
                    parser_next(p);
        } else if (parser_accept(p, ".v2")) {
            vector = 2;
        } else if (parser_accept(p, ".v4")) {
            vector = 4;
        } else if (ptx_type(p->token.start + 1, p->token.length - 1, &type) && type.bytes) {
            parser_next(p);
        } else {
            return parser_fail(p, "not known in a variable's declaration");
        }
    }
    if (!type.bytes) return parser_fail(p, "a type is expected");
    if (p->token.kind != TOKEN_WORD) return parser_fail(p, "a name is expected");
    PtxName *name = ptx_name(p->module, p->token.start, p->token.length);
    v->name = name->text;
    parser_next(p);
    uint64_t elements = vector;
    bool unsized = false;
    if (!parse_extents(p, v, &elements, &unsized)) return false;
    v->bytes = elements * type.bytes;
    v->align = align ? (uint32_t)align : type.bytes * vector;
    if (v->bytes > MAX_VARIABLE_BYTES) return parser_fail(p, "the variable is too large");
    if (parser_accept(p, "=")) {
        if (unsized || v->bytes > MAX_INITIALIZED_BYTES)
            return parser_fail(p, "this variable cannot be initialised");
        v->data = ptx_alloc(p->module->arena, v->bytes);
        v->data_bytes = v->bytes;
        uint64_t at = 0;
        if (!parse_initializer(p, v, type, &at, 0)) return false;
    }
    if (unsized) v->bytes = 0;
    v->module_scope = !p->function;
    v->next = *list;
    *list = v;
    ptx_bind(p, name, BINDING_VARIABLE)->variable = v;
    if (made) *made = v;
    return true;
}

/* ---- functions ------------------------------------------------------------------------------- */

static bool parse_params(Parser *p, PtxFunction *f, PtxVariable ***params, uint32_t *count) {
    uint32_t capacity = 0;
    PtxVariable **found = NULL;
    bool ok = true;
    *count = 0;
    while (ok && !token_is(p, ")")) {
        PtxVariable *v = NULL;
        if (token_is(p, ".reg")) {
            ok = parser_fail(p, "register parameters are not supported");
            break;
        }
        ok = parse_variable(p, &f->variables, &v);
        if (!ok) break;
        found = ptx_grow(found, *count, &capacity, sizeof *found);
        found[(*count)++] = v;
        if (!parser_accept(p, ",")) break;
    }
    ok = ok && parser_expect(p, ")");
    *params = ptx_alloc(p->module->arena, *count * sizeof **params);
    if (found) memcpy(*params, found, *count * sizeof **params);
    free(found);
    return ok;
}

static bool parse_performance(Parser *p, PtxFunction *f) {
    bool bound = token_is(p, ".maxntid") || token_is(p, ".reqntid");
    parser_next(p);
    uint64_t product = 1;
    while (p->token.kind == TOKEN_INTEGER) {
        int64_t value = 0;
        if (!parse_integer(p, &value)) return false;
        product *= value > 0 && value <= 1024 ? (uint64_t)value : 1;
        if (!parser_accept(p, ",")) break;
    }
    if (bound) f->max_threads = product > 1024 ? 1024 : (uint32_t)product;
    return true;
}

static PtxFunction *declared_function(Parser *p, const char *name, uint32_t line) {
    PtxFunction *f = ptx_find_function(p->module, name);
    if (f && f->has_body) return NULL;
    if (!f) {
        f = ptx_alloc(p->module->arena, sizeof *f);
        f->name = name;
        f->next = p->module->functions;
        p->module->functions = f;
    }
    f->line = line;
    return f;
}

static bool parse_function(Parser *p) {
    bool entry = token_is(p, ".entry");
    parser_next(p);
    PtxFunction scratch = {.is_entry = entry};
    p->function = &scratch;
    ptx_open_scope(p);
    scratch.scope_parents[0] = UINT32_MAX;
    bool ok = true;
    if (!entry) {
        while (parser_accept(p, ".noreturn") || parser_accept(p, ".unique"))
            continue;
        if (parser_accept(p, "("))
            ok = parse_params(p, &scratch, &scratch.returns, &scratch.return_count);
    }
    if (ok && p->token.kind != TOKEN_WORD) ok = parser_fail(p, "a function's name is expected");
    PtxFunction *f = NULL;
    if (ok) {
        const char *name = ptx_intern(p->module, p->token.start, p->token.length);
        f = declared_function(p, name, p->token.line);
        if (!f)
            ok = parser_fail(p, "this function is defined twice");
        else
            parser_next(p);
    }
    if (ok && parser_accept(p, "("))
        ok = parse_params(p, &scratch, &scratch.params, &scratch.param_count);
    while (ok && p->token.kind == TOKEN_WORD && *p->token.start == '.')
        ok = token_is(p, ".noreturn") ? (parser_next(p), true) : parse_performance(p, &scratch);
    if (!f) {
        free(scratch.scope_parents);
        p->function = NULL;
        return false;
    }
    scratch.name = f->name;
    scratch.next = f->next;
    scratch.line = f->line;
    free(f->scope_parents);
    *f = scratch;
    p->function = f;
    if (ok && token_is(p, "{")) {
        f->has_body = true;
        ok = parse_body(p, f);
    } else if (ok) {
        ok = parser_expect(p, ";");
    }
    if (ok) ptx_close_scope(p);
    p->function = NULL;
    return ok;
}

/* ---- the module ------------------------------------------------------------------------------ */

static bool parse_file(Parser *p) {
    parser_next(p);
    int64_t number = 0;
    if (!parse_integer(p, &number)) return false;
    if (p->token.kind != TOKEN_STRING) return parser_fail(p, "a file name is expected");
    if (number < 0 || number > 65535) return parser_fail(p, "the file's number is out of range");
    PtxModule *m = p->module;
    if ((uint32_t)number >= m->file_count) {
        uint32_t count = (uint32_t)number + 16;
        const char **files = ptx_alloc(m->arena, count * sizeof *files);
        if (m->file_count) memcpy(files, m->files, m->file_count * sizeof *files);
        m->files = files;
        m->file_count = count;
    }
    m->files[number] = ptx_text(m->arena, p->token.start, p->token.length);
    parser_next(p);
    while (parser_accept(p, ",")) { // time stamp and size
        int64_t ignored;
        if (!parse_integer(p, &ignored)) return false;
    }
    return true;
}

static bool skip_section(Parser *p) {
    while (p->token.kind != TOKEN_END && !token_is(p, "{"))
        parser_next(p);
    uint32_t depth = 0;
    do {
        if (p->token.kind == TOKEN_END) return parser_fail(p, "'}' of a section is expected");
        depth += token_is(p, "{");
        depth -= token_is(p, "}");
        parser_next(p);
    } while (depth);
    return true;
}

static bool parse_version(Parser *p) {
    parser_next(p);
    double version = 0;
    if (p->token.kind == TOKEN_F64) memcpy(&version, &p->token.value, sizeof version);
    if (version < 6.0 || version >= 10.0)
        return parser_fail(p, "PTX versions 6.0 to 9.x are known; build with CUDA 12.8 to 13.x");
    parser_next(p);
    return true;
}

static bool parse_target(Parser *p) {
    parser_next(p);
    do {
        if (p->token.kind != TOKEN_WORD) return parser_fail(p, "a target is expected");
        parser_next(p);
    } while (parser_accept(p, ","));
    return true;
}

static bool parse_directive(Parser *p) {
    int64_t size = 0;
    if (token_is(p, ".version")) return parse_version(p);
    if (token_is(p, ".target")) return parse_target(p);
    if (parser_accept(p, ".address_size")) {
        if (!parse_integer(p, &size)) return false;
        return size == 64 || parser_fail(p, "only 64-bit addresses are supported");
    }
    if (token_is(p, ".file")) return parse_file(p);
    if (token_is(p, ".section")) return skip_section(p);
    if (parser_accept(p, ".pragma") || parser_accept(p, ".alias")) {
        while (p->token.kind != TOKEN_END && !token_is(p, ";"))
            parser_next(p);
        return parser_expect(p, ";");
    }
    if (parser_accept(p, ".visible") || parser_accept(p, ".extern") || parser_accept(p, ".weak") ||
        parser_accept(p, ".common"))
        return true;
    if (token_is(p, ".entry") || token_is(p, ".func")) return parse_function(p);
    if (token_is(p, ".global") || token_is(p, ".const") || token_is(p, ".shared"))
        return parse_variable(p, &p->module->variables, NULL) && parser_expect(p, ";");
    return parser_fail(p, "not known outside of a function");
}

bool ptx_parse(PtxModule *module, char message[512]) {
    Parser *p = calloc(1, sizeof *p);
    if (!p) abort();
    p->module = module;
    p->lexer = (Lexer){module->source, module->source + module->source_bytes, 1};
    p->message = message;
    parser_next(p);
    if (!token_is(p, ".version")) parser_fail(p, "PTX begins with .version");
    while (!p->failed && p->token.kind != TOKEN_END)
        parse_directive(p);
    bool ok = !p->failed;
    free(p);
    return ok;
}
