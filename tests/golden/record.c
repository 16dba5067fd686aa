/* record.c - what is kept of a case.
 *
 * An instruction that is specified to the bit leaves a hash for every 64 lanes, enough to see
 * that and nearly where the simulator differs. One that is specified to an error bound leaves its
 * results: the simulator need not have the same.
 */
#include "golden/golden.h"
#include <stdlib.h>
#include <string.h>

uint32_t golden_hash(const uint32_t *words, size_t count) {
    uint32_t hash = 0x811c9dc5;
    for (size_t i = 0; i < count; i++) {
        hash = (hash ^ words[i]) * 0x9e3779b1;
        hash ^= hash >> 15;
    }
    return hash;
}

uint32_t golden_key(const GoldenCase *c, const uint64_t (*operands)[4]) {
    uint32_t key = 0x811c9dc5;
    for (const char *at = c->body; *at; at++)
        key = (key ^ (unsigned char)*at) * 0x01000193;
    for (const char *at = c->results; *at; at++)
        key = (key ^ (unsigned char)*at) * 0x01000193;
    return key ^ golden_hash((const uint32_t *)(const void *)operands, 8 * (size_t)c->lanes);
}

void golden_write_line(FILE *file, const GoldenCase *c, uint32_t key, const uint32_t *results) {
    fprintf(file, "%s %08x ", c->name, key);
    size_t step = c->approximate ? 1 : GOLDEN_GROUP * (size_t)c->words;
    for (size_t i = 0; i < (size_t)c->lanes * c->words; i += step)
        fprintf(file, "%08x", c->approximate ? results[i] : golden_hash(results + i, step));
    fputc('\n', file);
}

static bool hex8(const char *text, uint32_t *value) {
    char digits[9] = "", *end;
    memcpy(digits, text, strnlen(text, 8));
    *value = (uint32_t)strtoul(digits, &end, 16);
    return strlen(digits) == 8 && !*end;
}

static bool read_line(const char *line, size_t length, GoldenRecord *record) {
    size_t name = strcspn(line, " ");
    if (name >= sizeof record->name || name + 10 >= length || (length - name - 10) % 8 ||
        !hex8(line + name + 1, &record->key))
        return false;
    memcpy(record->name, line, name);
    record->count = (length - name - 10) / 8;
    record->values = calloc(record->count, sizeof *record->values);
    if (!record->values) abort();
    for (size_t i = 0; i < record->count; i++)
        if (!hex8(line + name + 10 + 8 * i, &record->values[i])) return false;
    return true;
}

bool golden_read(const char *path, GoldenRecord **records, size_t *count) {
    FILE *file = fopen(path, "r");
    char *line = NULL;
    size_t capacity = 0, room = 0;
    ssize_t length;
    bool good = file;
    *records = NULL;
    *count = 0;
    while (good && (length = getline(&line, &capacity, file)) > 0) {
        if (line[0] == '#') continue;
        if (*count == room) {
            room = room ? 2 * room : 256;
            *records = realloc(*records, room * sizeof **records);
            if (!*records) abort();
        }
        (*records)[*count] = (GoldenRecord){0};
        line[length - 1] = 0;
        good = read_line(line, (size_t)length - 1, &(*records)[(*count)++]);
    }
    free(line);
    if (file) fclose(file);
    return good;
}

void golden_records_free(GoldenRecord *records, size_t count) {
    for (size_t i = 0; i < count; i++)
        free(records[i].values);
    free(records);
}
