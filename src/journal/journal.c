/* journal.c - the record of a run on SQLite: opening, appending, reading.
 *
 * Each append is a transaction of its own and synced, so what journal_append said is durable is
 * durable. The owner holds a lock file beside the database for as long as it is open, because
 * two processes that step one run would both be right and the record nonsense. Errors of the
 * file system arrive here as SQLite result codes; complain() turns them into advice.
 */
#include "journal/journal.h"
#include "journal/filesystem.h"
#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SCHEMA         1
#define APPLICATION_ID 0x43544a31 // "CTJ1"

struct Journal {
    sqlite3 *db;
    char *path;
    int lock;         // descriptor of the lock file; -1: a reader
    bool write_ahead; // the write-ahead log is in use
    sqlite3_stmt *append, *put_blob, *get_blob, *events;
};

static const char kTables[] =
    "create table meta(key text primary key, value text not null) without rowid;"
    "create table event(seq integer primary key, time text not null, kind text not null,"
    "                   json text not null);"
    "create table blob(hash text primary key, bytes blob not null) without rowid;"
    "insert into meta values('schema', '1');";

static bool is_full(int code, int system) {
    return code == SQLITE_FULL || system == ENOSPC || system == EDQUOT || system == EFBIG;
}

/* Says what SQLite's last failure means for the user. */
static bool complain(Journal *journal, int code, Error *err) {
    // SQLite remembers errno for failed opens alone; after a failed write it is still in errno,
    // which the callers cleared beforehand.
    int system = errno;
    if (journal->db && sqlite3_system_errno(journal->db))
        system = sqlite3_system_errno(journal->db);
    const char *path = journal->path;
    int primary = code & 0xff;
    if (primary != SQLITE_IOERR && primary != SQLITE_CANTOPEN) system = 0;
    if (is_full(primary, system))
        return error_harness(err,
                             "%s: no room to record the run (%s); free some space, then resume",
                             path, system == EFBIG ? "file size limit reached" : "disk full");
    switch (primary) {
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
        return error_input(err,
                           "%s is damaged (%s); restore it from a copy, or save what is left with "
                           "`sqlite3 %s .recover`",
                           path, journal->db ? sqlite3_errmsg(journal->db) : "not a database",
                           path);
    case SQLITE_READONLY:
    case SQLITE_PERM:
        return error_input(err, "%s: cannot be written; check the permissions of its directory",
                           path);
    case SQLITE_CANTOPEN:
        return error_input(err,
                           "%s: cannot be opened (%s); check that its directory exists and "
                           "can be written",
                           path, system ? strerror(system) : "unknown reason");
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return error_input(err, "%s is being written by another program; try again when it is done",
                           path);
    default:
        return error_harness(err, "%s: cannot record the run: %s%s%s", path,
                             journal->db ? sqlite3_errmsg(journal->db) : sqlite3_errstr(code),
                             system ? ": " : "", system ? strerror(system) : "");
    }
}

static bool execute(Journal *journal, const char *sql, Error *err) {
    errno = 0;
    int code = sqlite3_exec(journal->db, sql, NULL, NULL, NULL);
    return code == SQLITE_OK ? true : complain(journal, code, err);
}

static bool prepare(Journal *journal, const char *sql, sqlite3_stmt **statement, Error *err) {
    int code = sqlite3_prepare_v2(journal->db, sql, -1, statement, NULL);
    return code == SQLITE_OK ? true : complain(journal, code, err);
}

/* First column of the first row as text into `out`; "" when there is no row. */
static int query_text(Journal *journal, const char *sql, char *out, size_t capacity) {
    sqlite3_stmt *statement = NULL;
    out[0] = 0;
    int code = sqlite3_prepare_v2(journal->db, sql, -1, &statement, NULL);
    if (code != SQLITE_OK) return code;
    code = sqlite3_step(statement);
    if (code == SQLITE_ROW) {
        const unsigned char *text = sqlite3_column_text(statement, 0);
        snprintf(out, capacity, "%s", text ? (const char *)text : "");
        code = SQLITE_OK;
    } else if (code == SQLITE_DONE) {
        code = SQLITE_OK;
    }
    sqlite3_finalize(statement);
    return code;
}

/* ---- ownership -------------------------------------------------------------------------- */

static bool take_ownership(Journal *journal, Error *err) {
    char lock_path[4096];
    if ((size_t)snprintf(lock_path, sizeof lock_path, "%s.lock", journal->path) >= sizeof lock_path)
        return error_input(err, "%s: the path is too long", journal->path);
    err->kind = ERROR_NONE;
    journal->lock = file_lock(lock_path, false, NULL, err);
    if (journal->lock >= 0) {
        // The number is for the message below; that it cannot be written is no reason to fail.
        char text[32];
        int length = snprintf(text, sizeof text, "%d\n", (int)getpid());
        if (ftruncate(journal->lock, 0) != 0 ||
            pwrite(journal->lock, text, (size_t)length, 0) != length)
            log_debug("%s: the owner's number could not be written", lock_path);
        return true;
    }
    if (err->kind != ERROR_NONE) return false;
    char owner[32] = "";
    int fd = open(lock_path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        ssize_t got = read(fd, owner, sizeof owner - 1);
        owner[got > 0 ? strspn(owner, "0123456789") : 0] = 0;
        close(fd);
    }
    return error_input(err, "run %s is in use by process %s; wait for it to end, or stop it",
                       journal->path, owner[0] ? owner : "of unknown number");
}

/* ---- opening ---------------------------------------------------------------------------- */

static Journal *journal_new(const char *path) {
    Journal *journal = calloc(1, sizeof *journal);
    char *copy = strdup(path);
    if (!journal || !copy) abort();
    journal->path = copy;
    journal->lock = -1;
    return journal;
}

static int open_database(Journal *journal, const char *name, int flags) {
    // A failed open leaves a handle that carries the message; the next attempt replaces it.
    sqlite3_close(journal->db);
    journal->db = NULL;
    errno = 0;
    int code = sqlite3_open_v2(name, &journal->db, flags, NULL);
    if (journal->db) {
        sqlite3_extended_result_codes(journal->db, 1);
        sqlite3_busy_timeout(journal->db, 5000);
    }
    return code;
}

static bool choose_mode(Journal *journal, Error *err) {
    journal->write_ahead = filesystem_is_local(journal->path);
    return execute(journal,
                   journal->write_ahead ? "pragma journal_mode=wal;"
                                          "pragma synchronous=full;"
                                        : "pragma journal_mode=delete;"
                                          "pragma synchronous=full;",
                   err);
}

static bool prepare_writing(Journal *journal, Error *err) {
    return prepare(journal, "insert into event(time, kind, json) values(?1, ?2, ?3)",
                   &journal->append, err) &&
           prepare(journal, "insert or ignore into blob(hash, bytes) values(?1, ?2)",
                   &journal->put_blob, err);
}

static bool prepare_reading(Journal *journal, Error *err) {
    return prepare(journal, "select bytes from blob where hash = ?1", &journal->get_blob, err) &&
           prepare(journal, "select seq, time, kind, json from event where seq > ?1 order by seq",
                   &journal->events, err);
}

/* Is this a sound journal of a schema we know? */
static bool check_contents(Journal *journal, Error *err) {
    char text[256];
    int code = query_text(journal, "pragma quick_check(1)", text, sizeof text);
    if (code != SQLITE_OK) return complain(journal, code, err);
    if (strcmp(text, "ok") != 0)
        return error_input(err,
                           "%s is damaged (%s); restore it from a copy, or save what is left with "
                           "`sqlite3 %s .recover`",
                           journal->path, text, journal->path);
    code = query_text(journal,
                      "select count(*) from sqlite_master where type = 'table' and "
                      "name in ('meta', 'event', 'blob')",
                      text, sizeof text);
    if (code != SQLITE_OK) return complain(journal, code, err);
    if (strcmp(text, "3") != 0)
        return error_input(err, "%s is not the journal of a run", journal->path);
    code = query_text(journal, "select value from meta where key = 'schema'", text, sizeof text);
    if (code != SQLITE_OK) return complain(journal, code, err);
    long schema = strtol(text, NULL, 10);
    if (schema > SCHEMA)
        return error_input(err,
                           "%s has schema %ld, this cutegen (%s) knows schema %d; use the version "
                           "that wrote it, or a newer one",
                           journal->path, schema, CUTEGEN_VERSION, SCHEMA);
    if (schema != SCHEMA)
        return error_input(err, "%s is not the journal of a run: it names no schema",
                           journal->path);
    return true;
}

static bool finish(Journal *opened, bool good, Journal **journal) {
    if (!good) {
        journal_close(opened);
        opened = NULL;
    }
    *journal = opened;
    return good;
}

static bool create(Journal *journal, Error *err) {
    if (path_exists(journal->path))
        return error_input(err, "%s exists already; resume that run, or choose another directory",
                           journal->path);
    if (!take_ownership(journal, err)) return false;
    int code = open_database(journal, journal->path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE);
    if (code != SQLITE_OK) return complain(journal, code, err);
    char sql[sizeof kTables + 128];
    snprintf(sql, sizeof sql, "pragma application_id=%d; begin; %s commit;", APPLICATION_ID,
             kTables);
    return choose_mode(journal, err) && execute(journal, sql, err) &&
           prepare_reading(journal, err) && prepare_writing(journal, err);
}

bool journal_create(const char *path, Journal **journal, Error *err) {
    Journal *created = journal_new(path);
    return finish(created, create(created, err), journal);
}

static bool require_file(const char *path, Error *err) {
    struct stat info;
    if (stat(path, &info) != 0)
        return error_input(err, "%s: %s; name the directory of a run or its run.db", path,
                           errno == ENOENT ? "no such run" : strerror(errno));
    if (!S_ISREG(info.st_mode))
        return error_input(err, "%s is not a file; name the directory of a run or its run.db",
                           path);
    return true;
}

static bool open_for_appending(Journal *journal, Error *err) {
    if (!require_file(journal->path, err) || !take_ownership(journal, err)) return false;
    int code = open_database(journal, journal->path, SQLITE_OPEN_READWRITE);
    if (code != SQLITE_OK) return complain(journal, code, err);
    return check_contents(journal, err) && choose_mode(journal, err) &&
           prepare_reading(journal, err) && prepare_writing(journal, err);
}

bool journal_open(const char *path, Journal **journal, Error *err) {
    Journal *opened = journal_new(path);
    return finish(opened, open_for_appending(opened, err), journal);
}

/* file:PATH?immutable=1, with the characters that mean something in a URI escaped. */
static char *immutable_uri(const char *path) {
    char *uri = malloc(strlen(path) * 3 + 32);
    if (!uri) abort();
    char *to = uri + sprintf(uri, "file:");
    for (const char *c = path; *c; c++) {
        if (strchr("%?#", *c))
            to += sprintf(to, "%%%02x", (unsigned char)*c);
        else
            *to++ = *c;
    }
    memcpy(to, "?immutable=1", sizeof "?immutable=1");
    return uri;
}

static bool open_for_reading(Journal *journal, Error *err) {
    if (!require_file(journal->path, err)) return false;
    char text[8];
    int code = open_database(journal, journal->path, SQLITE_OPEN_READONLY);
    if (code == SQLITE_OK)
        code = query_text(journal, "select count(*) from sqlite_master", text, sizeof text);
    int primary = code & 0xff;
    if (primary == SQLITE_CANTOPEN || primary == SQLITE_READONLY) {
        // A file in write-ahead mode cannot be read in a directory that we may not write to,
        // unless it is taken for unchanging. There the owner is not at work either.
        char *uri = immutable_uri(journal->path);
        code = open_database(journal, uri, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI);
        free(uri);
    }
    if (code != SQLITE_OK) return complain(journal, code, err);
    return check_contents(journal, err) && prepare_reading(journal, err);
}

bool journal_open_read_only(const char *path, Journal **journal, Error *err) {
    Journal *opened = journal_new(path);
    return finish(opened, open_for_reading(opened, err), journal);
}

void journal_close(Journal *journal) {
    if (!journal) return;
    sqlite3_finalize(journal->append);
    sqlite3_finalize(journal->put_blob);
    sqlite3_finalize(journal->get_blob);
    sqlite3_finalize(journal->events);
    // Leaves a plain file that can be copied and read anywhere; fails harmlessly while it is read.
    if (journal->write_ahead) {
        sqlite3_busy_timeout(journal->db, 0);
        sqlite3_exec(journal->db, "pragma journal_mode=delete", NULL, NULL, NULL);
    }
    sqlite3_close(journal->db);
    if (journal->lock >= 0) close(journal->lock);
    free(journal->path);
    free(journal);
}

/* ---- writing ---------------------------------------------------------------------------- */

/* Runs a prepared insert; leaves it reset and unbound. */
static bool insert(Journal *journal, sqlite3_stmt *statement, Error *err) {
    errno = 0;
    int code = sqlite3_step(statement);
    bool good = code == SQLITE_DONE || complain(journal, code, err);
    sqlite3_reset(statement);
    sqlite3_clear_bindings(statement);
    return good;
}

bool journal_append(Journal *journal, const char *kind, const Json *body, int64_t *seq,
                    Error *err) {
    if (journal->lock < 0) return error_harness(err, "%s is open for reading alone", journal->path);
    char *text = json_dumps(body, JSON_COMPACT);
    if (!text) return error_harness(err, "event %s has no JSON form", kind);
    Arena *arena = arena_new();
    sqlite3_bind_text(journal->append, 1, clock_utc(arena), -1, SQLITE_STATIC);
    sqlite3_bind_text(journal->append, 2, kind, -1, SQLITE_STATIC);
    sqlite3_bind_text(journal->append, 3, text, -1, SQLITE_STATIC);
    bool good = insert(journal, journal->append, err);
    if (good && seq) *seq = sqlite3_last_insert_rowid(journal->db);
    arena_free(arena);
    free(text);
    return good;
}

bool journal_put_blob(Journal *journal, const void *data, size_t bytes, Hash *hash, Error *err) {
    if (journal->lock < 0) return error_harness(err, "%s is open for reading alone", journal->path);
    *hash = hash_bytes(data, bytes);
    sqlite3_bind_text(journal->put_blob, 1, hash->hex, -1, SQLITE_STATIC);
    // A null pointer would bind NULL even with a length of 0.
    sqlite3_bind_blob64(journal->put_blob, 2, bytes ? data : "", bytes, SQLITE_STATIC);
    return insert(journal, journal->put_blob, err);
}

/* ---- reading ---------------------------------------------------------------------------- */

bool journal_get_blob(Journal *journal, Arena *arena, const char *hash_hex, char **data,
                      size_t *bytes, Error *err) {
    sqlite3_stmt *statement = journal->get_blob;
    sqlite3_bind_text(statement, 1, hash_hex, -1, SQLITE_STATIC);
    int code = sqlite3_step(statement);
    bool good = code == SQLITE_ROW;
    if (good) {
        size_t length = (size_t)sqlite3_column_bytes(statement, 0);
        *data = arena_string_n(arena, sqlite3_column_blob(statement, 0), length);
        if (bytes) *bytes = length;
    } else if (code == SQLITE_DONE) {
        error_input(err, "%s is incomplete: it has no text %.12s…", journal->path, hash_hex);
    } else {
        complain(journal, code, err);
    }
    sqlite3_reset(statement);
    sqlite3_clear_bindings(statement);
    return good;
}

/* A table that we did not make may hold NULL where ours cannot. */
static char *column_text(Arena *arena, sqlite3_stmt *statement, int column) {
    const char *text = (const char *)sqlite3_column_text(statement, column);
    return arena_string(arena, text ? text : "");
}

bool journal_events(Journal *journal, Arena *arena, int64_t after, JournalEvent **events,
                    size_t *count, Error *err) {
    sqlite3_stmt *statement = journal->events;
    JournalEvent *list = NULL;
    size_t used = 0, capacity = 0;
    bool good = true;
    int code;
    sqlite3_bind_int64(statement, 1, after);
    while (good && (code = sqlite3_step(statement)) == SQLITE_ROW) {
        if (used == capacity) {
            capacity = capacity ? capacity * 2 : 64;
            list = realloc(list, capacity * sizeof *list);
            if (!list) abort();
        }
        JournalEvent *event = &list[used];
        char where[64];
        event->seq = sqlite3_column_int64(statement, 0);
        event->time = column_text(arena, statement, 1);
        event->kind = column_text(arena, statement, 2);
        snprintf(where, sizeof where, "event %lld", (long long)event->seq);
        const char *text = (const char *)sqlite3_column_text(statement, 3);
        size_t bytes = (size_t)sqlite3_column_bytes(statement, 3);
        good = json_parse(arena, text ? text : "", bytes, where, &event->body, err);
        if (!good) {
            char why[512];
            snprintf(why, sizeof why, "%.500s", err->message);
            error_input(err, "%s is damaged (%s)", journal->path, why);
        }
        used++;
    }
    if (good && code != SQLITE_DONE) good = complain(journal, code, err);
    sqlite3_reset(statement);
    if (good) {
        *events = used ? arena_copy(arena, list, used * sizeof *list) : NULL;
        *count = used;
    }
    free(list);
    return good;
}
