# build_cubin.sh ROOT - machine code of two small kernels on standard output.
set -eu
root=$1
. "$root/tests/support/nvcc.sh"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cat >"$scratch/kernels.cu" <<'EOF'
extern "C" __global__ void simple(int *x) { x[threadIdx.x] = 1; }
extern "C" __global__ void with_stack(int *x, int n) {
    int local[100];
    for (int i = 0; i < 100; i++)
        local[i] = x[i];
    for (int i = 0; i < n; i++)
        local[x[i]] += i;
    x[n] = local[x[n]];
}
EOF
"$nvcc" -cubin -arch=sm_90a -o "$scratch/kernels.cubin" "$scratch/kernels.cu" >&2
cat "$scratch/kernels.cubin"
