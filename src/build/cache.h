/* cache.h - what the compilers made, kept by content. */
#pragma once
#include "build/build.h"
#include "build/headers.h"
#include "build/nvcc.h"

/* The directory of one entry, created. */
char *cache_entry_directory(Arena *arena, const Hash *key, Error *err);
char *cache_log_path(Arena *arena, const char *directory);

/* Fills `outcome` from the entry. False when there is none, it is damaged, or a header is not as
 * it was. */
bool cache_load(Arena *arena, const char *directory, const Hash *key, CompileOutcome *outcome);

/* Copies log and object into `directory`, whether or not they will make an entry; the outcome
 * then names that object. */
bool cache_keep(Arena *arena, const char *directory, CompileOutcome *outcome, Error *err);

/* Makes an entry of what cache_keep() put there and the headers it depends on. */
bool cache_store(Arena *arena, const char *directory, const Hash *key,
                 const CompileOutcome *outcome, const HeaderList *headers, Error *err);
