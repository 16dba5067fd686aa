/* golden_program [REFUSED] - writes the PTX module of all cases but the refused ones to standard
 * output. */
#include "golden/golden.h"
#include <stdlib.h>

static char *file_text(const char *path) {
    FILE *file = fopen(path, "r");
    char *text = NULL;
    size_t capacity = 0;
    if (file && getdelim(&text, &capacity, 0, file) < 0) { // an empty file has no text
        free(text);
        text = NULL;
    }
    if (file) fclose(file);
    return text;
}

int main(int count, char **arguments) {
    GoldenCases cases = golden_cases();
    char *refused = count > 1 ? file_text(arguments[1]) : NULL;
    char *ptx = golden_ptx(&cases, refused);
    bool written = fputs(ptx, stdout) >= 0 && fflush(stdout) == 0;
    fprintf(stderr, "golden_program: %zu cases\n", cases.count);
    free(ptx);
    free(refused);
    golden_cases_free(&cases);
    return written ? 0 : 1;
}
