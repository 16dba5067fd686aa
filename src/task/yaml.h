/* yaml.h - a YAML file as a plain tree that remembers where everything stood. Private to task/. */
#pragma once
#include "base/base.h"

typedef struct YamlNode YamlNode;

typedef enum { YAML_SCALAR, YAML_SEQUENCE, YAML_MAPPING } YamlKind;

struct YamlNode {
    YamlKind kind;
    const char *text; // scalars: never NULL, "" where the file says nothing
    bool quoted;      // scalars: their place is that of the first character inside
    int line, column; // 1-based; of the first character
    size_t count;
    YamlNode **keys;   // mappings: scalars, all different
    YamlNode **values; // mappings and sequences
};

/* Parses one document. `where` is the path that error messages begin with. */
bool yaml_parse(Arena *arena, const char *where, const char *text, size_t bytes, YamlNode **root,
                Error *err);

/* The value of `key`, or NULL. */
YamlNode *yaml_get(const YamlNode *mapping, const char *key);
