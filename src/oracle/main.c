/* main.c - cutegen-oracle: knows what is right, and says how an output differs from it.
 *
 * A process of its own, for two reasons: a reference is the user's code and may crash or never
 * end, and expected values must not lie in any process that a kernel runs in. It speaks frames
 * (wire/wire.h) on the standard input and output it was started with; those descriptors are
 * moved away first and replaced, so that a reference that prints cannot garble them. What a
 * kernel wrote is only ever read, from the exchange file.
 */
#include "oracle/oracle.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

/* Answers one request; false when the parent is gone. */
static bool answer_request(Oracle *oracle, const Frame *request, int out) {
    Fault why = {""};
    WireReader ask = frame_reader(request);
    WireWriter answer = {0};
    uint16_t type = ORACLE_OK;
    bool ok;
    switch (request->type) {
    case ORACLE_TASK:
        ok = oracle_task(oracle, &ask, &why);
        break;
    case ORACLE_TRUTH:
        ok = oracle_truth(oracle, &ask, &why);
        break;
    case ORACLE_COMPARE:
        type = ORACLE_COMPARED;
        ok = oracle_compare(oracle, &ask, &answer, &why);
        break;
    default:
        ok = fault(&why, "unknown request %u", request->type);
        break;
    }
    if (!ok) {
        wire_writer_free(&answer);
        answer = (WireWriter){0};
        put_text(&answer, why.text);
        type = ORACLE_FAULT;
    }
    WireStatus status = frame_send(out, type, answer.data, answer.bytes, -1);
    wire_writer_free(&answer);
    return status == WIRE_OK;
}

/* Moves the protocol's descriptors out of a reference's reach. */
static bool take_protocol(int *in, int *out) {
    *in = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
    *out = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
    int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    return *in >= 0 && *out >= 0 && null >= 0 && dup2(null, STDIN_FILENO) >= 0 &&
           dup2(STDERR_FILENO, STDOUT_FILENO) >= 0 && close(null) == 0;
}

int main(int argc, char **argv) {
    Oracle oracle = {0};
    if (argc == 3 && strcmp(argv[1], "--exchange") == 0) {
        oracle.exchange = argv[2];
    } else if (argc != 1) {
        fprintf(stderr, "usage: cutegen-oracle [--exchange PATH], spoken to in frames\n");
        return 2;
    }
    signal(SIGPIPE, SIG_IGN);
    // Whatever a library has installed: a reference that crashes shall be seen to die by its
    // signal.
    static const int crashes[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
    for (size_t i = 0; i < sizeof crashes / sizeof *crashes; i++)
        signal(crashes[i], SIG_DFL);
    // The kernel's process runs as the same user: it shall not look into this one's memory.
    prctl(PR_SET_DUMPABLE, 0);
    int in, out;
    if (!take_protocol(&in, &out)) {
        perror("cutegen-oracle");
        return 3;
    }
    WireWriter hello = {0};
    put_text(&hello, "c");
    WireStatus status = frame_send(out, ORACLE_HELLO, hello.data, hello.bytes, -1);
    wire_writer_free(&hello);

    Frame request = {0};
    while (status == WIRE_OK) {
        status = frame_receive(in, &request, -1);
        if (status != WIRE_OK || request.type == ORACLE_QUIT) break;
        if (!answer_request(&oracle, &request, out)) status = WIRE_CLOSED;
    }
    if (status == WIRE_CORRUPT)
        fprintf(stderr, "cutegen-oracle: a damaged request; is the parent of another version?\n");
    frame_free(&request);
    oracle_free(&oracle);
    return status == WIRE_CORRUPT ? 3 : 0;
}
