/* cache.h - results of builds, kept by content. */
#pragma once
#include "build/build.h"

/* What is needed to know whether a result still holds: every header that was reached, as it was. */
typedef struct {
    const char *path;
    int64_t bytes, mtime_ns, ctime_ns;
    Hash hash;
} HeaderState;

typedef struct {
    int count;
    HeaderState *items;
} HeaderList;

/* Reads the names of all headers from the line markers of the preprocessed sources (*.ii) in
 * `directory`, but for files inside it, and hashes each. `complete` is false when a header changed
 * after `start` or could not be read: then the result must not be kept. */
bool headers_collect(Arena *arena, const char *directory, int64_t start_ns, HeaderList *list,
                     bool *complete, Error *err);

/* The directory of one entry, created. */
char *cache_entry_directory(Arena *arena, const Hash *key, Error *err);

/* Fills `result` from the entry. False (with err untouched) when there is none, it is damaged, or
 * a header is not as it was. */
bool cache_load(Arena *arena, const char *directory, const Hash *key, BuildResult *result);

/* Writes the result and the headers it depends on; object and log must lie in `directory`
 * already. */
bool cache_store(Arena *arena, const char *directory, const BuildResult *result,
                 const HeaderList *headers, Error *err);
