# Turns text files into a C table, so that the program needs no directory of prompts beside it.
#   cmake -DROOT=dir -DOUTPUT=file.c -P embed.cmake
# Each file below ROOT ending in .md becomes {"playbooks/gemm", "its text"}.
file(GLOB_RECURSE files RELATIVE ${ROOT} ${ROOT}/*.md)
list(SORT files)
set(table "")
set(arrays "")
set(number 0)
foreach(file IN LISTS files)
    file(READ ${ROOT}/${file} bytes HEX)
    string(REGEX REPLACE "(................................)" "\\1\n" bytes "${bytes}")
    string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
    string(REGEX REPLACE "\\.md$" "" name ${file})
    string(APPEND arrays "static const unsigned char text_${number}[] = {\n${bytes}0};\n")
    string(APPEND table "    {\"${name}\", (const char *)text_${number}},\n")
    math(EXPR number "${number} + 1")
endforeach()
file(WRITE ${OUTPUT} "/* Generated from prompts/ by cmake/embed.cmake. */
#include \"agent/prompt.h\"
${arrays}
const EmbeddedText embedded_prompts[] = {
${table}    {0, 0},
};
")
