# Every code fence that a model is shown compiles, without a warning, and computes what it says. A
# fence tagged cuda holds functions at namespace scope behind `using namespace cute`. All of them go
# into one kernel file, with the launch() of tests/data/prompt_kernels, so that one build suffices.
. "$1/tests/support/e2e.sh"

{
    echo '#include "task.h"'
    echo '#include <cute/tensor.hpp>'
    echo 'using namespace cute;'
    find "$root/prompts" -name '*.md' | sort | while read -r file; do
        awk '/^```cuda$/ { inside = 1; text = ""; next }
             /^```$/ && inside { inside = 0; if (text !~ /\{\{[a-z_]+\}\}/) print "// fence\n" text }
             inside { text = text $0 "\n" }' "$file"
    done
    cat "$root/tests/data/prompt_kernels/launch.cu"
} >kernel.cu
fences=$(grep -c '^// fence' kernel.cu)
kernels=$(grep -c '^__global__' kernel.cu)
[ "$fences" -ge 6 ] || fail "only $fences fences found in prompts/"
[ "$(grep -c '<<<' kernel.cu)" -eq "$kernels" ] ||
    fail "$kernels kernels are shown, but launch.cu does not call each of them"

expect 0 "$cutegen" check "$root/tests/data/prompt_kernels" kernel.cu --json
json_is verdict.verdict pass
finish
