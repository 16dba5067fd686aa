/* device.h - starts runners and oracles, and speaks to them.
 *
 * A runner owns one device and one kernel and is disposable: after any fault it is killed and
 * another one started. This file's errors are harness faults; what a kernel did is in the
 * answers.
 */
#pragma once
#include "base/base.h"
#include "wire/wire.h"

typedef struct {
    bool simulated;
    int index;                  // cuda:N
    const char *via;            // a command that starts programs in another place, or NULL
    const char *text;           // as the user wrote it
} DeviceSpec;
/* "sim", "cuda", "cuda:1", each optionally followed by " via CMD". */
bool device_parse(Arena *arena, const char *text, DeviceSpec *spec, Error *err);

/* Where the companion programs lie: beside the running executable in a build tree
 * (build/cutegen-runner, build/lib/cutegen/sim/libcudart.so.13), or ../lib/cutegen installed. */
typedef struct {
    const char *runner, *oracle, *sim_library_dir, *root; // root: directory with prompts/ tasks/
} Installation;
bool installation_find(Arena *arena, Installation *installation, Error *err);

typedef enum {
    PEER_OK,
    PEER_FAULT,    // it answered RUNNER_FAULT / ORACLE_FAULT; err holds its text
    PEER_DIED,     // it ended: `signal` or `exit_code` of the peer say how
    PEER_TIMEOUT,  // no answer in time; it has been killed
    PEER_GARBLED,  // it answered nonsense; it has been killed
    PEER_CANCELLED,
} PeerStatus;

/* A runner or an oracle: a child process spoken to in frames. Zero-initialise. */
typedef struct {
    Child child;
    const char *name;           // "runner" or "oracle", for messages
    Frame answer;               // of the last request
    int exit_code, signal;      // once it has died
    char last_words[1024];      // the end of what it wrote to stderr
    Cancel *cancel;
} Peer;

/* Sends one request and waits for the answer of type `expected`. */
PeerStatus peer_ask(Peer *peer, uint16_t type, const WireWriter *request, uint16_t expected,
                    double seconds, Error *err);
/* The two halves of peer_ask, so that two peers can work at the same time. */
PeerStatus peer_send(Peer *peer, uint16_t type, const WireWriter *request, Error *err);
PeerStatus peer_receive(Peer *peer, uint16_t expected, double seconds, Error *err);
bool peer_running(const Peer *peer);
void peer_stop(Peer *peer);     // kill, reap; safe to call twice

typedef struct {
    bool simulated;
    char device_name[128], arch[16];
    uint32_t cudart_version, multiprocessors;
    uint64_t memory_bytes;
    char isolation[128];        // the layers that hold around the kernel: "no_new_privs, rlimits"
} RunnerInfo;

/* `exchange`: path of the file through which tensors reach the oracle (exchange_create).
 * `arch`: what the simulator pretends to be. */
bool runner_start(Arena *arena, const Installation *installation, const DeviceSpec *spec,
                  const char *arch, const char *exchange, Cancel *cancel, Peer *runner,
                  RunnerInfo *info, Error *err);
bool oracle_start(Arena *arena, const Installation *installation, const DeviceSpec *spec,
                  const char *exchange, Cancel *cancel, Peer *oracle, Error *err);
/* An empty file in /dev/shm (else $TMPDIR), mode 0600. The runner writes tensors into it, the
 * oracle only reads them. Goes with the arena; one whose process was killed goes when the next is
 * created. */
char *exchange_create(Arena *arena, Error *err);
