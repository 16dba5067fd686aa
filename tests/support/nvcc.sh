# nvcc.sh - sourced by tests that compile CUDA themselves: sets `nvcc`.
#
# The first nvcc in the order in which the program looks, $root being the source tree.

find_nvcc() {
    local candidate
    for candidate in "${CUDA_HOME:-}/bin/nvcc" "${CUDA_PATH:-}/bin/nvcc" \
        "$(command -v nvcc || true)" /usr/local/cuda/bin/nvcc "$root/.cache/cuda/bin/nvcc"; do
        if [ -x "$candidate" ]; then
            echo "$candidate"
            return
        fi
    done
    echo "nvcc not found: run 'make setup'" >&2
    return 1
}
nvcc=$(find_nvcc) || exit 1
