/* lockdown.c - what is taken from the process before a kernel is loaded into it.
 *
 * The parent has already set resource limits, scrubbed the environment and put us in a process
 * group of our own. seccomp and Landlock belong into lock_down(); until they stand there,
 * lockdown_layers() does not claim them, and cutegen says so when it runs.
 */
#include "runner/runner.h"
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>

bool lock_down(Fault *why) {
    const struct rlimit none = {0, 0};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
        return fault(why, "PR_SET_NO_NEW_PRIVS: %s", strerror(errno));
    if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) || setrlimit(RLIMIT_CORE, &none))
        return fault(why, "cannot switch core dumps off: %s", strerror(errno));
    // Whatever a library has installed: a kernel that crashes shall be seen to die by its signal.
    static const int crashes[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP};
    for (size_t i = 0; i < sizeof crashes / sizeof *crashes; i++)
        signal(crashes[i], SIG_DFL);
    return true;
}

const char *lockdown_layers(void) {
    return "process group, clean environment, rlimits, no_new_privs";
}
