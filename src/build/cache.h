/* cache.h - results of builds, kept by content. */
#pragma once
#include "build/build.h"
#include "build/headers.h"

/* The directory of one entry, created. */
char *cache_entry_directory(Arena *arena, const Hash *key, Error *err);

/* Fills `result` from the entry. False (with err untouched) when there is none, it is damaged, or
 * a header is not as it was. */
bool cache_load(Arena *arena, const char *directory, const Hash *key, BuildResult *result);

/* Writes the result and the headers it depends on; object and log must lie in `directory`
 * already. */
bool cache_store(Arena *arena, const char *directory, const BuildResult *result,
                 const HeaderList *headers, Error *err);
