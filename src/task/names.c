/* names.c - names that a task may use, and the ones that would not compile.
 *
 * Names end up as parameters of launch(), as members of Dims, Inputs and Outputs, in C and in
 * CUDA C++. A clash found here costs a second; found in nvcc's output it costs a round.
 */
#include "task/names.h"

#include <ctype.h>
#include <string.h>

static const char *const keywords[] = {
    // clang-format off
    "alignas", "alignof", "and", "and_eq", "asm", "auto", "bitand", "bitor", "bool", "break",
    "case", "catch", "char", "char8_t", "char16_t", "char32_t", "class", "co_await", "co_return",
    "co_yield", "compl", "concept", "const", "const_cast", "consteval", "constexpr", "constinit",
    "continue", "decltype", "default", "delete", "do", "double", "dynamic_cast", "else", "enum",
    "explicit", "export", "extern", "false", "float", "for", "friend", "goto", "if", "inline",
    "int", "long", "mutable", "namespace", "new", "noexcept", "not", "not_eq", "nullptr",
    "operator", "or", "or_eq", "private", "protected", "public", "register", "reinterpret_cast",
    "requires", "restrict", "return", "short", "signed", "sizeof", "static", "static_assert",
    "static_cast", "struct", "switch", "template", "this", "thread_local", "throw", "true", "try",
    "typedef", "typeid", "typename", "typeof", "union", "unsigned", "using", "virtual", "void",
    "volatile", "wchar_t", "while", "xor", "xor_eq",
    // clang-format on
};

/* launch()'s own parameters, the types that prototypes name, macros of gcc and of C headers. */
static const char *const taken[] = {
    // clang-format off
    "dims", "workspace", "stream", "Dims", "real", "launch",
    "size_t", "int8_t", "int16_t", "int32_t", "int64_t", "uint8_t", "cudaStream_t", "cudaError_t",
    "threadIdx", "blockIdx", "blockDim", "gridDim", "warpSize",
    "linux", "unix", "i386", "errno", "complex", "imaginary", "stdin", "stdout", "stderr",
    "NULL", "EOF", "NAN", "INFINITY", "HUGE_VAL", "DOMAIN", "SING", "OVERFLOW", "UNDERFLOW",
    // clang-format on
};

static bool listed(const char *name, const char *const *list, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (strcmp(list[i], name) == 0) return true;
    return false;
}

const char *identifier_problem(const char *name) {
    if (name[0] == 0) return "is empty";
    if (strlen(name) > NAME_MAX_LENGTH) return "is longer than 63 characters";
    if (isdigit((unsigned char)name[0])) return "begins with a digit";
    for (const char *c = name; *c; c++)
        if (!isalnum((unsigned char)*c) && *c != '_')
            return "is not a C identifier: only letters, digits and _";
    if (name[0] == '_' || strncmp(name, "cutegen_", 8) == 0) return "is reserved";
    if (listed(name, keywords, COUNT_OF(keywords))) return "is a keyword of C or C++";
    if (listed(name, taken, COUNT_OF(taken))) return "is taken by the generated headers";
    return NULL;
}

const char *task_name_problem(const char *name) {
    if (name[0] == 0) return "is empty";
    if (strlen(name) > NAME_MAX_LENGTH) return "is longer than 63 characters";
    if (!isalnum((unsigned char)name[0])) return "must begin with a letter or a digit";
    for (const char *c = name; *c; c++)
        if (!isalnum((unsigned char)*c) && !strchr("_-.", *c))
            return "becomes part of file names: only letters, digits, _ - and .";
    return NULL;
}

static const struct {
    const char *other, *ours;
} synonyms[] = {
    {"double", "f64"},    {"float64", "f64"},      {"fp64", "f64"},      {"float", "f32"},
    {"float32", "f32"},   {"fp32", "f32"},         {"single", "f32"},    {"tf32", "f32"},
    {"half", "f16"},      {"float16", "f16"},      {"fp16", "f16"},      {"bfloat16", "bf16"},
    {"bfloat", "bf16"},   {"fp8", "e4m3"},         {"f8", "e4m3"},       {"float8_e4m3fn", "e4m3"},
    {"fp8_e4m3", "e4m3"}, {"float8_e5m2", "e5m2"}, {"fp8_e5m2", "e5m2"}, {"int64", "i64"},
    {"int64_t", "i64"},   {"long", "i64"},         {"int32", "i32"},     {"int32_t", "i32"},
    {"int", "i32"},       {"int16", "i16"},        {"short", "i16"},     {"int8", "i8"},
    {"char", "i8"},       {"uint8", "u8"},         {"byte", "u8"},       {"boolean", "bool"},
};

const char *dtype_synonym(const char *name) {
    for (size_t i = 0; i < COUNT_OF(synonyms); i++)
        if (strcmp(synonyms[i].other, name) == 0) return synonyms[i].ours;
    return NULL;
}
