/* filesystem.c - tells file systems that other machines may write to from those of this one.
 *
 * statfs(2) names a file system by a magic number. FUSE is among the remote ones: sshfs and
 * most cloud drives are FUSE, and for the few local ones the rollback journal is merely slower.
 */
#include "journal/filesystem.h"
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/vfs.h>

static const unsigned kRemote[] = {
    0x00006969, // nfs
    0x0000517b, // smbfs
    0xff534d42, // cifs
    0xfe534d42, // smb2
    0x0bd00bd0, // lustre
    0x47504653, // gpfs
    0x19830326, // beegfs
    0xaad7aaea, // panfs
    0x00c36400, // ceph
    0x5346414f, // afs
    0x73757245, // coda
    0x01021997, // 9p
    0x65735546, // fuse
    0x7461636f, // ocfs2
    0x01161970, // gfs2
};

bool filesystem_type_is_local(long type) {
    for (size_t i = 0; i < sizeof kRemote / sizeof kRemote[0]; i++)
        if ((unsigned)type == kRemote[i]) return false;
    return true;
}

bool filesystem_is_local(const char *path) {
    struct statfs info;
    if (statfs(path, &info) == 0) return filesystem_type_is_local(info.f_type);
    // Not there yet: its directory is.
    char directory[4096];
    if ((size_t)snprintf(directory, sizeof directory, "%s", path) >= sizeof directory) return false;
    char *slash = strrchr(directory, '/');
    if (!slash)
        strcpy(directory, ".");
    else
        slash[slash == directory ? 1 : 0] = 0;
    return statfs(directory, &info) == 0 && filesystem_type_is_local(info.f_type);
}
