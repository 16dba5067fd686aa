/* golden_run MODULE FOLDER - runs all cases on the GPU and records what they made.
 *
 * MODULE is what ptxas made of golden_program's text. FOLDER receives rows.txt and
 * approximations.txt, which are kept in tests/data/golden/, and results.bin: all results, too
 * large to keep, for whoever looks into a difference. Only the driver is needed, found at run time,
 * so that this is built and carried to a machine with a GPU from one without.
 */
#include "golden/golden.h"
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    int (*init)(unsigned);
    int (*device_get)(int *, int);
    int (*device_name)(char *, int, int);
    int (*driver_version)(int *);
    int (*context_retain)(void **, int);
    int (*context_set)(void *);
    int (*module_load)(void **, const void *);
    int (*module_function)(void **, void *, const char *);
    int (*allocate)(uint64_t *, size_t);
    int (*to_device)(uint64_t, const void *, size_t);
    int (*to_host)(void *, uint64_t, size_t);
    int (*fill)(uint64_t, unsigned char, size_t);
    int (*launch)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                  void *, void **, void **);
    int (*synchronize)(void);
} Driver;

static void must(int result, const char *what) {
    if (result) {
        fprintf(stderr, "golden_run: %s: CUDA driver error %d\n", what, result);
        exit(1);
    }
}

static Driver load_driver(void) {
    Driver d;
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    if (!library) {
        fprintf(stderr, "golden_run: %s\n", dlerror());
        exit(1);
    }
    const struct {
        const char *name;
        void *to;
    } functions[] = {
        {"cuInit", &d.init},
        {"cuDeviceGet", &d.device_get},
        {"cuDeviceGetName", &d.device_name},
        {"cuDriverGetVersion", &d.driver_version},
        {"cuDevicePrimaryCtxRetain", &d.context_retain},
        {"cuCtxSetCurrent", &d.context_set},
        {"cuModuleLoadData", &d.module_load},
        {"cuModuleGetFunction", &d.module_function},
        {"cuMemAlloc_v2", &d.allocate},
        {"cuMemcpyHtoD_v2", &d.to_device},
        {"cuMemcpyDtoH_v2", &d.to_host},
        {"cuMemsetD8_v2", &d.fill},
        {"cuLaunchKernel", &d.launch},
        {"cuCtxSynchronize", &d.synchronize},
    };
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        void *found = dlsym(library, functions[i].name);
        must(!found, functions[i].name);
        memcpy(functions[i].to, &found, sizeof found);
    }
    return d;
}

static void *file_bytes(const char *path) {
    FILE *file = fopen(path, "rb");
    long size = -1;
    if (file && !fseek(file, 0, SEEK_END)) size = ftell(file);
    char *bytes = size > 0 ? calloc((size_t)size + 1, 1) : NULL;
    if (!bytes || fseek(file, 0, SEEK_SET) || fread(bytes, 1, (size_t)size, file) != (size_t)size) {
        fprintf(stderr, "golden_run: cannot read %s\n", path);
        exit(1);
    }
    fclose(file);
    return bytes;
}

static FILE *in_folder(const char *folder, const char *name) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "wb");
    if (!file) {
        fprintf(stderr, "golden_run: cannot write %s\n", path);
        exit(1);
    }
    return file;
}

int main(int count, char **arguments) {
    if (count != 3) {
        fprintf(stderr, "usage: golden_run MODULE FOLDER\n");
        return 2;
    }
    Driver d = load_driver();
    int device, version;
    void *context, *module, *bytes = file_bytes(arguments[1]);
    char name[128] = "";
    must(d.init(0), "cuInit");
    must(d.device_get(&device, 0), "cuDeviceGet");
    must(d.device_name(name, sizeof name, device), "cuDeviceGetName");
    must(d.driver_version(&version), "cuDriverGetVersion");
    must(d.context_retain(&context, device), "cuDevicePrimaryCtxRetain");
    must(d.context_set(context), "cuCtxSetCurrent");
    must(d.module_load(&module, bytes), "cuModuleLoadData");
    FILE *rows = in_folder(arguments[2], "rows.txt");
    FILE *approximations = in_folder(arguments[2], "approximations.txt");
    FILE *all = in_folder(arguments[2], "results.bin");
    FILE *heads[] = {rows, approximations};
    for (int i = 0; i < 2; i++)
        fprintf(heads[i], "# recorded on %s, CUDA driver %d.%d; see tests/golden/README.md\n", name,
                version / 1000, version % 1000 / 10);

    static uint64_t operands[GOLDEN_MAX_LANES][4];
    static uint32_t results[GOLDEN_MAX_LANES * GOLDEN_MAX_WORDS];
    uint64_t in, out;
    must(d.allocate(&in, sizeof operands), "cuMemAlloc");
    must(d.allocate(&out, sizeof results), "cuMemAlloc");
    GoldenCases cases = golden_cases();
    size_t recorded = 0;
    for (size_t i = 0; i < cases.count; i++) {
        const GoldenCase *c = &cases.all[i];
        char kernel[32];
        void *function, *parameters[] = {&in, &out};
        snprintf(kernel, sizeof kernel, "k%zu", i);
        if (d.module_function(&function, module, kernel)) continue; // refused by ptxas
        size_t words = (size_t)c->lanes * c->words;
        golden_operands(c, operands);
        must(d.to_device(in, operands, sizeof operands), c->name);
        must(d.fill(out, 0, 4 * words), c->name);
        must(d.launch(function, c->lanes / GOLDEN_BLOCK, 1, 1, GOLDEN_BLOCK, 1, 1, 0, NULL,
                      parameters, NULL),
             c->name);
        must(d.synchronize(), c->name);
        must(d.to_host(results, out, 4 * words), c->name);
        golden_write_line(c->approximate ? approximations : rows, c,
                          golden_key(c, (const uint64_t(*)[4])operands), results);
        fprintf(all, "%s %zu\n", c->name, words);
        must(fwrite(results, 4, words, all) != words, "results.bin");
        recorded++;
    }
    must(fclose(rows) || fclose(approximations) || fclose(all), "closing the files");
    printf("golden_run: %zu of %zu cases recorded on %s\n", recorded, cases.count, name);
    golden_cases_free(&cases);
    free(bytes);
    return 0;
}
