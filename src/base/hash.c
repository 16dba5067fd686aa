/* hash.c - SHA-256 for content addresses, and random bytes.
 *
 * What addresses a build is hashed field by field with the lengths in (hasher_add_text), so that
 * moving a byte from one field to the next always gives another address.
 */
#include "base/base.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

struct Hasher {
    EVP_MD_CTX *context;
};

// libcrypto's SHA-256 fails only when memory runs out or the library is broken.
static void crypto_check(int ok) {
    if (ok != 1) {
        abort();
    }
}

Hasher *hasher_new(void) {
    Hasher *hasher = calloc(1, sizeof *hasher);
    if (!hasher) {
        abort();
    }
    hasher->context = EVP_MD_CTX_new();
    crypto_check(hasher->context != NULL);
    crypto_check(EVP_DigestInit_ex(hasher->context, EVP_sha256(), NULL));
    return hasher;
}

void hasher_add(Hasher *hasher, const void *data, size_t bytes) {
    crypto_check(EVP_DigestUpdate(hasher->context, data, bytes));
}

void hasher_add_text(Hasher *hasher, const char *text) {
    uint64_t length = strlen(text);
    unsigned char prefix[8];
    for (int i = 0; i < 8; i++) {
        prefix[i] = (unsigned char)(length >> (8 * i));
    }
    hasher_add(hasher, prefix, sizeof prefix);
    hasher_add(hasher, text, length);
}

Hash hasher_finish(Hasher *hasher) {
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned int bytes = 0;
    crypto_check(EVP_DigestFinal_ex(hasher->context, digest, &bytes));
    EVP_MD_CTX_free(hasher->context);
    free(hasher);
    Hash hash = {0};
    static const char digits[] = "0123456789abcdef";
    for (unsigned int i = 0; i < 32 && i < bytes; i++) {
        hash.hex[2 * i] = digits[digest[i] >> 4];
        hash.hex[2 * i + 1] = digits[digest[i] & 15];
    }
    return hash;
}

Hash hash_bytes(const void *data, size_t bytes) {
    Hasher *hasher = hasher_new();
    hasher_add(hasher, data, bytes);
    return hasher_finish(hasher);
}

bool hash_file(const char *path, Hash *hash, Error *err) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return error_input(err, "cannot read %s: %s", path, strerror(errno));
    }
    Hasher *hasher = hasher_new();
    bool ok = true;
    for (;;) {
        unsigned char chunk[16 * 1024];
        ssize_t got = read(fd, chunk, sizeof chunk);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            ok = error_input(err, "cannot read %s: %s", path, strerror(errno));
        }
        if (got <= 0) {
            break;
        }
        hasher_add(hasher, chunk, (size_t)got);
    }
    close(fd);
    *hash = hasher_finish(hasher);
    return ok;
}

bool random_bytes(void *out, size_t bytes, Error *err) {
    unsigned char *at = out;
    while (bytes > 0) {
        ssize_t got = getrandom(at, bytes, 0);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            return error_harness(err, "the system gives no random bytes: %s", strerror(errno));
        }
        at += got;
        bytes -= (size_t)got;
    }
    return true;
}
