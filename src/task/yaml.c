/* yaml.c - reads YAML through libfyaml's events into a tree with the place of every node.
 *
 * Only what a task needs: one document of mappings, sequences and scalars. Anchors, aliases and
 * tags are refused, so nothing expands and every scalar means what it says. Going by events, not
 * by libfyaml's own documents, gives the place of each brace and keeps the errors ours.
 *
 * One thing is added to YAML. In `{fill: uniform(0,1)}` YAML sees the comma as the end of an
 * entry; people do not. Pieces of a flow collection are put together again until the parentheses
 * balance.
 */
#include "task/yaml.h"

#include <assert.h>
#include <ctype.h>
#include <libfyaml.h>
#include <string.h>

#define MAX_DEPTH 16
#define MAX_NODES 100000

typedef struct {
    Arena *arena;
    const char *where;
    struct fy_parser *parser;
    struct fy_diag *diag;
    size_t nodes;
    int line; // of the last event that had a place: errors at "nothing" point there
    Error *err;
} Reader;

typedef struct {
    YamlNode **items;
    size_t count, capacity;
} NodeList;

static void list_add(Arena *arena, NodeList *list, YamlNode *node) {
    if (list->count == list->capacity) {
        list->capacity = list->capacity ? 2 * list->capacity : 8;
        YamlNode **grown = arena_array_of(arena, YamlNode *, list->capacity);
        if (list->count > 0) memcpy(grown, list->items, list->count * sizeof(*grown));
        list->items = grown;
    }
    list->items[list->count++] = node;
}

static bool refuse(const Reader *r, const YamlNode *at, const char *what) {
    int line = at->line ? at->line : r->line; // nothing, decorated, has no place of its own
    return error_input(r->err, "%s:%d:%d: %s", r->where, line, at->column ? at->column : 1, what);
}

/* libfyaml's own words for what is malformed, at its place. */
static bool malformed(Reader *r) {
    void *cursor = NULL;
    const struct fy_diag_error *first = fy_diag_errors_iterate(r->diag, &cursor);
    if (!first || !first->msg)
        return error_input(r->err, "%s:%d:1: not valid YAML", r->where, r->line);
    char message[256];
    size_t length = strcspn(first->msg, "\n");
    if (length >= sizeof(message)) length = sizeof(message) - 1;
    memcpy(message, first->msg, length);
    message[length] = 0;
    if (isupper((unsigned char)message[0]) && !isupper((unsigned char)message[1]))
        message[0] = (char)tolower((unsigned char)message[0]);
    return error_input(r->err, "%s:%d:%d: not valid YAML: %s", r->where,
                       first->line > 0 ? first->line : r->line,
                       first->column > 0 ? first->column : 1, message);
}

static bool next_event(Reader *r, struct fy_event **event) {
    *event = fy_parser_parse(r->parser);
    if (!*event) return malformed(r);
    const struct fy_mark *mark = fy_event_start_mark(*event);
    if (mark) r->line = mark->line + 1;
    return true;
}

static int open_parentheses(const char *text) {
    int open = 0;
    for (const char *c = text; *c; c++)
        open += (*c == '(') - (*c == ')');
    return open;
}

/* "uniform(0" and "1)" become "uniform(0,1)"; blanks keep later columns true. */
static void join(Arena *arena, YamlNode *head, const YamlNode *tail) {
    int gap = 0;
    if (tail->line == head->line) gap = tail->column - head->column - (int)strlen(head->text) - 1;
    if (gap < 0 || gap > 100) gap = 0;
    head->text = arena_printf(arena, "%s,%*s%s", head->text, gap, "", tail->text);
}

static bool plain(const YamlNode *node) {
    return node->kind == YAML_SCALAR && !node->quoted;
}

static void join_sequence(Arena *arena, YamlNode *sequence) {
    size_t kept = 0;
    for (size_t i = 0; i < sequence->count; i++) {
        YamlNode *item = sequence->values[i];
        YamlNode *last = kept > 0 ? sequence->values[kept - 1] : NULL;
        if (last && plain(last) && plain(item) && open_parentheses(last->text) > 0)
            join(arena, last, item);
        else
            sequence->values[kept++] = item;
    }
    sequence->count = kept;
}

static void join_mapping(Arena *arena, YamlNode *mapping) {
    size_t kept = 0;
    for (size_t i = 0; i < mapping->count; i++) {
        YamlNode *key = mapping->keys[i], *value = mapping->values[i];
        YamlNode *last = kept > 0 ? mapping->values[kept - 1] : NULL;
        bool alone = plain(value) && value->text[0] == 0;
        if (last && plain(last) && plain(key) && alone && open_parentheses(last->text) > 0) {
            join(arena, last, key);
            continue;
        }
        mapping->keys[kept] = key;
        mapping->values[kept++] = value;
    }
    mapping->count = kept;
}

static bool check_keys(Reader *r, const YamlNode *mapping) {
    for (size_t i = 0; i < mapping->count; i++)
        for (size_t j = 0; j < i; j++)
            if (strcmp(mapping->keys[i]->text, mapping->keys[j]->text) == 0)
                return error_input(r->err, "%s:%d:%d: key '%s' is given twice, first in line %d",
                                   r->where, mapping->keys[i]->line, mapping->keys[i]->column,
                                   mapping->keys[i]->text, mapping->keys[j]->line);
    return true;
}

static bool read_node(Reader *r, struct fy_event *event, int depth, YamlNode **node);

/* Reads up to the end event of a collection. A mapping's children alternate key and value. */
static bool read_children(Reader *r, YamlNode *collection, bool flow, int depth) {
    bool is_mapping = collection->kind == YAML_MAPPING;
    NodeList keys = {0}, values = {0};
    for (bool is_key = is_mapping;; is_key = is_mapping && !is_key) {
        struct fy_event *event;
        if (!next_event(r, &event)) return false;
        if (event->type == FYET_MAPPING_END || event->type == FYET_SEQUENCE_END) {
            fy_parser_event_free(r->parser, event);
            break;
        }
        YamlNode *child = NULL;
        if (!read_node(r, event, depth + 1, &child)) return false;
        assert(child);
        if (is_key && child->kind != YAML_SCALAR) return refuse(r, child, "a key must be a word");
        if (!is_key && is_mapping && child->line == 0) { // "key:" and nothing: point at the key
            child->line = keys.items[keys.count - 1]->line;
            child->column = keys.items[keys.count - 1]->column;
        } else if (child->line == 0) {
            child->line = r->line;
            child->column = 1;
        }
        list_add(r->arena, is_key ? &keys : &values, child);
    }
    collection->keys = keys.items;
    collection->values = values.items;
    collection->count = values.count;
    if (is_mapping) {
        if (flow) join_mapping(r->arena, collection);
        return check_keys(r, collection);
    }
    if (flow) join_sequence(r->arena, collection);
    return true;
}

/* Consumes `event` and, of a collection, everything up to its end. */
static bool read_node(Reader *r, struct fy_event *event, int depth, YamlNode **out) {
    YamlNode *node = arena_new_of(r->arena, YamlNode);
    const struct fy_mark *mark = fy_event_start_mark(event);
    if (mark) {
        node->line = mark->line + 1;
        node->column = mark->column + 1;
    }
    bool decorated = fy_event_get_anchor_token(event) || fy_event_get_tag_token(event);
    bool flow = fy_event_get_node_style(event) == FYNS_FLOW;
    enum fy_event_type type = event->type;
    if (type == FYET_SCALAR) {
        struct fy_token *token = event->scalar.value;
        size_t length = 0;
        const char *text = token ? fy_token_get_text(token, &length) : "";
        enum fy_scalar_style style = token ? fy_token_scalar_style(token) : FYSS_PLAIN;
        node->kind = YAML_SCALAR;
        node->quoted = style == FYSS_SINGLE_QUOTED || style == FYSS_DOUBLE_QUOTED;
        node->text = arena_string_n(r->arena, text ? text : "", text ? length : 0);
        if (length == 0 && !node->quoted) node->line = 0; // nothing is nowhere, in any version
        bool has_nul = strlen(node->text) != (text ? length : 0);
        fy_parser_event_free(r->parser, event);
        if (has_nul) return refuse(r, node, "a zero character cannot be part of a text");
    } else {
        node->kind = type == FYET_MAPPING_START ? YAML_MAPPING : YAML_SEQUENCE;
        node->text = "";
        fy_parser_event_free(r->parser, event);
    }
    if (type == FYET_ALIAS || decorated)
        return refuse(r, node, "anchors, aliases and tags have no meaning here; write it out");
    if (type != FYET_SCALAR && type != FYET_MAPPING_START && type != FYET_SEQUENCE_START)
        return refuse(r, node, "not valid YAML");
    if (depth > MAX_DEPTH) return refuse(r, node, "nested too deeply");
    if (++r->nodes > MAX_NODES) return refuse(r, node, "too large for a task");
    *out = node;
    return node->kind == YAML_SCALAR || read_children(r, node, flow, depth);
}

static bool read_document(Reader *r, YamlNode **root) {
    *root = NULL;
    for (;;) {
        struct fy_event *event;
        if (!next_event(r, &event)) return false;
        switch (event->type) {
        case FYET_STREAM_START:
        case FYET_DOCUMENT_END:
            fy_parser_event_free(r->parser, event);
            break;
        case FYET_STREAM_END:
            fy_parser_event_free(r->parser, event);
            if (!*root) return error_input(r->err, "%s:1:1: the file is empty", r->where);
            return true;
        case FYET_DOCUMENT_START:
            fy_parser_event_free(r->parser, event);
            if (*root)
                return error_input(r->err, "%s:%d:1: one document is enough; this is a second",
                                   r->where, r->line);
            break;
        default:
            if (!read_node(r, event, 0, root)) return false;
            if ((*root)->line == 0) (*root)->line = (*root)->column = 1;
        }
    }
}

bool yaml_parse(Arena *arena, const char *where, const char *text, size_t bytes, YamlNode **root,
                Error *err) {
    if (memchr(text, 0, bytes) || !text_is_utf8(text, bytes))
        return error_input(err, "%s:1:1: not a text file in UTF-8", where);

    struct fy_diag_cfg diag_options;
    fy_diag_cfg_default(&diag_options);
    diag_options.fp = NULL;
    struct fy_diag *diag = fy_diag_create(&diag_options);
    if (!diag) return error_harness(err, "%s: libfyaml could not be started", where);
    fy_diag_set_collect_errors(diag, true);
    struct fy_parse_cfg options = {
        .flags = FYPCF_QUIET | FYPCF_COLLECT_DIAG,
        .diag = diag,
    };
    struct fy_parser *parser = fy_parser_create(&options);
    bool ok = false;
    if (!parser || fy_parser_set_string(parser, text, bytes) != 0) {
        error_harness(err, "%s: libfyaml could not be started", where);
    } else {
        Reader reader = {arena, where, parser, diag, 0, 1, err};
        ok = read_document(&reader, root);
    }
    if (parser) fy_parser_destroy(parser);
    fy_diag_destroy(diag);
    return ok;
}

YamlNode *yaml_get(const YamlNode *mapping, const char *key) {
    for (size_t i = 0; i < mapping->count; i++)
        if (strcmp(mapping->keys[i]->text, key) == 0) return mapping->values[i];
    return NULL;
}
