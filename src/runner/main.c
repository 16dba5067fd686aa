/* main.c - cutegen-runner: owns one device, loads one kernel, runs it on request.
 *
 * Started by cutegen (device/start.c), spoken to in frames (wire/wire.h). It is disposable: the
 * parent kills it after any fault and starts another. A kernel may print, so the frames travel on
 * descriptors of their own, standard input is empty and standard output leads to stderr.
 *
 * The order is: CUDA runtime and context, exchange file, lock down, and only then the kernel,
 * because an object's static constructors run as soon as it is loaded.
 */
#include "runner/runner.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FIRST_PRIVATE_FD = 60, EXIT_USAGE = 2, EXIT_PROTOCOL = 3 };

bool fault(Fault *fault, const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    vsnprintf(fault->text, sizeof fault->text, fmt, args);
    va_end(args);
    return false;
}

typedef struct {
    DeviceChoice device;
    const char *exchange, *arch;
} Arguments;

static bool parse_arguments(int argc, char **argv, Arguments *arguments, Fault *why) {
    const char *device = NULL;
    for (int i = 1; i < argc; i += 2) {
        const char **value = !strcmp(argv[i], "--device")     ? &device
                             : !strcmp(argv[i], "--exchange") ? &arguments->exchange
                             : !strcmp(argv[i], "--cudart")   ? &arguments->device.library
                             : !strcmp(argv[i], "--arch")     ? &arguments->arch
                                                              : NULL;
        if (!value || i + 1 == argc)
            return fault(why, "unknown or incomplete argument '%s'", argv[i]);
        *value = argv[i + 1];
    }
    if (!device || !arguments->exchange) return fault(why, "--device and --exchange are needed");
    if (!strcmp(device, "sim")) {
        arguments->device.simulated = true;
        return true;
    }
    char *end = "";
    if (!strncmp(device, "cuda:", 5) && device[5])
        arguments->device.index = (int)strtol(device + 5, &end, 10);
    else
        return fault(why, "unknown device '%s'", device);
    return *end ? fault(why, "unknown device '%s'", device) : true;
}

/* Moves the frames away from where a kernel's printf could reach them. */
static bool separate_streams(int *from_parent, int *to_parent, Fault *why) {
    *from_parent = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, FIRST_PRIVATE_FD);
    *to_parent = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, FIRST_PRIVATE_FD);
    int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (*from_parent < 0 || *to_parent < 0 || null < 0 || dup2(null, STDIN_FILENO) < 0 ||
        dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
        return fault(why, "cannot set up the standard streams: %s", strerror(errno));
    close(null);
    return true;
}

static bool serve(Runner *runner, const Frame *ask, uint16_t *type, WireWriter *answer,
                  Fault *why) {
    WireReader reader = frame_reader(ask);
    *type = RUNNER_OK;
    switch (ask->type) {
    case RUNNER_TENSORS:
        return tensors_allocate(runner, &reader, why);
    case RUNNER_LOAD:
        *type = RUNNER_LOADED;
        return kernel_load(runner, &reader, answer, why);
    case RUNNER_FILL:
        return tensors_fill(runner, &reader, why);
    case RUNNER_POISON:
        return tensors_poison(runner, &reader, why);
    case RUNNER_LAUNCH:
        *type = RUNNER_LAUNCHED;
        return kernel_launch(runner, &reader, answer, why);
    case RUNNER_REDZONES:
        *type = RUNNER_REDZONES;
        return tensors_red_zones(runner, answer, why);
    case RUNNER_EXPORT:
        *type = RUNNER_EXPORTED;
        return tensors_export(runner, &reader, answer, why);
    case RUNNER_COUNTERS:
        *type = RUNNER_COUNTERS;
        return kernel_counters(runner, answer, why);
    default:
        return fault(why, "unknown request %u", ask->type);
    }
}

static int serve_all(Runner *runner, int from_parent, int to_parent) {
    Frame ask = {0};
    for (;;) {
        WireStatus status = frame_receive(from_parent, &ask, -1);
        if (status == WIRE_CLOSED || (status == WIRE_OK && ask.type == RUNNER_QUIT))
            _exit(0); // without the kernel's destructors: they are not ours to run
        if (status != WIRE_OK) return EXIT_PROTOCOL;
        uint16_t type;
        WireWriter answer = {0};
        Fault why = {{0}};
        if (!serve(runner, &ask, &type, &answer, &why)) {
            wire_writer_free(&answer);
            put_text(&answer, why.text);
            type = RUNNER_FAULT;
        }
        status = frame_send(to_parent, type, answer.data, answer.bytes, -1);
        wire_writer_free(&answer);
        answer = (WireWriter){0};
        if (status != WIRE_OK) return EXIT_PROTOCOL;
    }
}

int main(int argc, char **argv) {
    static Runner runner; // large, and there is exactly one
    Arguments arguments = {0};
    Fault why = {{0}};
    int from_parent = STDIN_FILENO, to_parent = STDOUT_FILENO;
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); // an exchange file that cannot grow is a fault, no kernel's crash

    if (!parse_arguments(argc, argv, &arguments, &why)) {
        fprintf(stderr,
                "cutegen-runner: %s\n"
                "usage: cutegen-runner --device sim|cuda:N --exchange FILE [--cudart LIBRARY] "
                "[--arch ARCH]\n",
                why.text);
        return EXIT_USAGE;
    }
    bool ready = separate_streams(&from_parent, &to_parent, &why);
    if (ready && arguments.arch && setenv("CUTEGEN_SIM_ARCH", arguments.arch, 1))
        ready = fault(&why, "cannot set the simulated architecture: %s", strerror(errno));
    if (ready)
        ready = cudart_open(&runner.cudart, &arguments.device, &why) &&
                cuda_ok(&runner.cudart, runner.cudart.StreamCreate(&runner.stream),
                        "cudaStreamCreate", &why);
    if (ready) {
        runner.exchange = open(arguments.exchange, O_RDWR | O_CLOEXEC);
        runner.staging = malloc(STAGING_BYTES);
        if (runner.exchange < 0)
            ready = fault(&why, "exchange file %s: %s", arguments.exchange, strerror(errno));
        else if (!runner.staging)
            ready = fault(&why, "out of memory");
    }

    WireWriter hello = {0};
    if (ready)
        cudart_greet(&runner.cudart, arguments.device.index, &hello);
    else
        put_text(&hello, why.text);
    WireStatus status =
        frame_send(to_parent, ready ? RUNNER_HELLO : RUNNER_FAULT, hello.data, hello.bytes, -1);
    wire_writer_free(&hello);
    if (!ready || status != WIRE_OK) return EXIT_PROTOCOL;
    return serve_all(&runner, from_parent, to_parent);
}
