/* filesystem.h - private to journal/: does a path lie on a file system of this machine? */
#pragma once
#include <stdbool.h>

/* SQLite's write-ahead log needs memory shared by all who open the file, which no network file
 * system gives. An unknown file system counts as local, a path that cannot be asked as remote. */
bool filesystem_is_local(const char *path);
bool filesystem_type_is_local(long type); // statfs.f_type
