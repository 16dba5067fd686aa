# Every code fence that a model is shown compiles. A fence tagged cuda holds functions at namespace
# scope that `using namespace cute` may precede; all of them go into one file, each in a namespace
# of its own, so that one compilation suffices.
set -u
root=$1
build=$2
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

nvcc=
for candidate in "${CUDA_HOME:-/nonexistent}/bin/nvcc" "$root/.cache/cuda/bin/nvcc" \
    "$(command -v nvcc)" /usr/local/cuda/bin/nvcc; do
    [ -x "$candidate" ] && nvcc=$candidate && break
done
cutlass=${CUTLASS_PATH:-$root/.cache/cutlass/include}
[ -n "$nvcc" ] || { echo "nvcc not found"; exit 1; }
[ -f "$cutlass/cute/tensor.hpp" ] || cutlass=$cutlass/include
[ -f "$cutlass/cute/tensor.hpp" ] || { echo "CUTLASS headers not found in $cutlass"; exit 1; }

{
    echo '#include <cute/tensor.hpp>'
    find "$root/prompts" -name '*.md' | sort | while read -r file; do
        awk -v file="$file" -v name="$(basename "$file" .md)" '
            /^```cuda$/ { inside = 1; start = NR; text = ""; next }
            /^```$/ && inside {
                inside = 0
                if (text !~ /\{\{[a-z_]+\}\}/)
                    printf "namespace %s_%d {\nusing namespace cute;\n#line %d \"%s\"\n%s}\n", \
                           name, start, start + 1, file, text
            }
            inside { text = text $0 "\n" }' "$file"
    done
} >"$scratch/fences.cu"
fences=$(grep -c '^namespace' "$scratch/fences.cu")
[ "$fences" -ge 5 ] || { echo "only $fences fences found"; exit 1; }
"$nvcc" -std=c++17 -arch=sm_90a -I"$cutlass" --expt-relaxed-constexpr -Werror all-warnings \
    --ptx -o "$scratch/fences.ptx" "$scratch/fences.cu" || exit 1
kernels=$(grep -c '^\.visible \.entry\|^\.entry' "$scratch/fences.ptx")
echo "$fences fences compile, $kernels kernels"
[ "$kernels" -ge 5 ]
