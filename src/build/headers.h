/* headers.h - what a cached result depends on besides its key. */
#pragma once
#include "base/base.h"

typedef struct {
    const char *path;
    int64_t bytes, mtime_ns, ctime_ns;
    Hash hash;
} HeaderState;

typedef struct {
    int count;
    HeaderState *items; // in the order of their paths
} HeaderList;

/* Reads the names of all headers from the line markers of the preprocessed sources (*.ii) in
 * `directory`, but for files inside it, and hashes each. `complete` is false when a header changed
 * after `start_ns` (since 1970), could not be read, or is no plain file at a lasting place: then
 * the result must not be kept. */
bool headers_collect(Arena *arena, const char *directory, int64_t start_ns, HeaderList *list,
                     bool *complete, Error *err);

/* False when `source` may depend on files that no line marker names: .incbin, __has_include. */
bool headers_reach_all(const char *source);

char *headers_text(Arena *arena, const HeaderList *headers);
bool headers_parse(Arena *arena, const char *text, size_t bytes, HeaderList *headers);

/* Whether every header has the content it had. `touched`: some were hashed to tell, and the list
 * now holds their new times. */
bool headers_unchanged(HeaderList *list, bool *touched);

int64_t headers_clock_ns(void); // the clock that files are stamped with
