# sim_programs.sh - CUDA programs that are not ours run on the simulator as on a GPU.
#
# They are built by nvcc with a shared cudart, linked to nothing of CUDA but the simulator's
# library, and must print what the same program printed on an H200.
. "$(dirname "$0")/../support/e2e.sh"
. "$root/tests/support/nvcc.sh"
simulator=$build/lib/cutegen/sim
export LD_LIBRARY_PATH=$simulator
# The sanitizers' runtime must be loaded first where the library was built with them.
if nm -D "$simulator/libcudart.so.13" | grep -q __asan_init; then
    LD_PRELOAD=$(gcc -print-file-name=libasan.so)
    export LD_PRELOAD ASAN_OPTIONS=detect_leaks=0
fi

# compile SOURCE PROGRAM FLAGS…: PTX for sm_90a beside machine code
major=13
compile() {
    local source=$1 program=$2
    shift 2
    last="nvcc $source"
    env -u LD_PRELOAD "$nvcc" -gencode "arch=compute_90a,code=[compute_90a,sm_90a]" -lineinfo \
        -cudart none "$@" -o "$program" "$source" -Xlinker "$simulator/libcudart.so.$major" \
        >.out 2>.err || fail "nvcc failed"
}

# prints EXPECTED: standard output is that file's text
prints() {
    diff -u "$1" .out >.diff || fail "$(printf 'differs from %s\n' "$1"; head -n 60 .diff)"
}

data=$root/tests/data/sim

# The simulator's own declarations are the toolkit's.
cp "$data/abi.c" abi.cu
compile abi.cu toolkit
gcc -DSIM -I"$root/src" -o ours "$data/abi.c" || fail "abi.c does not compile"
expect 0 ./toolkit
cp .out toolkit.txt
expect 0 ./ours
prints toolkit.txt

compile "$data/host_api.cu" host_api --no-compress
for part in api illegal misaligned assert trap; do
    expect 0 ./host_api "$part"
    prints "$data/host_api.$part.expected"
done

# CUB and thrust: a radix sort whose blocks wait for each other, a look-back scan, a reduction.
compile "$data/cub.cu" cub --no-compress -std=c++17
expect 0 ./cub
prints "$data/cub.expected"

# What cannot be executed fails at the launch, not at the start.
cat >small.cu <<'EOF'
#include <cstdio>
__global__ void k(int *x) { *x = 1; }
int main() {
    int *x;
    cudaMalloc(&x, 4);
    k<<<1, 1>>>(x);
    puts(cudaGetErrorName(cudaGetLastError()));
    puts(cudaGetErrorName(cudaDeviceSynchronize()));
}
EOF
compile small.cu compressed -Xfatbin -compress-all
expect 0 ./compressed
out_says cudaErrorNoKernelImageForDevice
compile small.cu plain --no-compress
expect 0 ./plain
printf 'cudaSuccess\ncudaSuccess\n' >ok
prints ok
major=12
compile small.cu plain_12 --no-compress
expect 0 ./plain_12
prints ok
expect 0 env CUTEGEN_SIM_ARCH=sm_80 ./plain
out_says cudaErrorNoKernelImageForDevice

finish
