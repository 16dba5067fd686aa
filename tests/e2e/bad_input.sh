# Bad tasks, bad references, bad replies, bad machines: each with its message and exit code.
. "$1/tests/support/e2e.sh"

relu=$root/exemplars/elementwise/relu.cu

# ---- tasks ---------------------------------------------------------------------------------------

make_task() { # DIR: a relu of its own, whose task.yaml is then edited
    mkdir -p "$1"
    cp "$root/tasks/relu/reference.c" "$1"
    cat >"$1/task.yaml" <<'YAML'
schema: 1
name: mine
summary: one of the user's
class: elementwise
dims: {n: 4096}
check:
  - {n: 3}
inputs:
  - {name: x, dtype: f32, shape: [n], fill: normal}
outputs:
  - {name: y, dtype: f32, shape: [n]}
reference: reference.c
YAML
}

make_task malformed
sed -i 's/dims: {n: 4096}/dims: {n: 4096/' malformed/task.yaml
expect 2 "$cutegen" check malformed "$relu"
err_says "malformed/task.yaml:"

make_task dtype
sed -i 's/{name: x, dtype: f32/{name: x, dtype: fp32/' dtype/task.yaml
expect 2 "$cutegen" check dtype "$relu"
err_is "dtype/task.yaml:9:22: unknown dtype 'fp32' for input 'x'; did you mean f32?"

make_task dimension
sed -i 's/{name: y, dtype: f32, shape: \[n\]/{name: y, dtype: f32, shape: [m]/' dimension/task.yaml
expect 2 "$cutegen" check dimension "$relu"
err_says "dimension/task.yaml:11:"
err_says "'m'"

make_task binary
head -c 300 /dev/urandom >binary/task.yaml
expect 2 "$cutegen" check binary "$relu"
err_says "binary/task.yaml"

make_task missing
rm missing/reference.c
expect 2 "$cutegen" check missing "$relu"
err_says "reference.c"

head -c 10000000 /dev/zero >huge.cu
expect 2 "$cutegen" check relu huge.cu
err_says "huge.cu"

cat "$relu" <(printf '\0') >zero.cu
expect 2 "$cutegen" run relu --model exec:false --start zero.cu
err_is "zero.cu: this is a binary file, not CUDA source (it holds a zero byte)"

# With --json the same sentence is an object.
expect 2 "$cutegen" check dtype "$relu" --json
out_follows error
json_is error.kind input

# ---- references ----------------------------------------------------------------------------------

reference() { # DIR BODY: a reference whose function does BODY
    make_task "$1"
    printf '#include "reference.h"\n%s\nvoid reference(const Inputs *in, Outputs *out, const Dims *dims,\n               int64_t begin, int64_t end) {\n    (void)in, (void)out, (void)dims, (void)begin, (void)end;\n    %s\n}\n' \
        "${3:-}" "$2" >"$1/reference.c"
}

reference uncompilable 'out->y[begin] = in->z[begin];'
expect 2 "$cutegen" check uncompilable "$relu"
err_says "uncompilable/reference.c:6:"
err_says "has no member named"

reference crashing '*(volatile int *)8 = 1;'
expect 2 "$cutegen" check crashing "$relu"
err_says "crashing/reference.c: reference() crashed at n=3"

reference exiting 'exit(7);' '#include <stdlib.h>'
expect 2 "$cutegen" check exiting "$relu"
err_says "exiting/reference.c: reference() ended the process"

reference endless 'for (volatile int i = 0;; i++) {}'
expect 2 "$cutegen" check endless "$relu" --reference-timeout 2
err_says "endless/reference.c: reference() did not end at n=3"

reference lazy ''
expect 2 "$cutegen" check lazy "$relu"
err_says "lazy/reference.c"

# ---- replies: none of them costs a build --------------------------------------------------------

reply_with() { # SCRIPT TEXT: a model that always answers TEXT
    printf '#!/bin/sh\ncat >/dev/null\n%s\n' "$2" >"$1"
    chmod +x "$1"
}

refused() { # NAME COMMAND REASON: the run ends without a kernel, and says why each reply was no use
    reply_with "$1.sh" "$2"
    expect 4 "$cutegen" run relu --model "exec:./$1.sh"
    out_says "edit refused"
    out_says "$3"
    out_says "no kernel      every draft and its repairs failed"
    out_lacks "built in"
}

refused empty ':' "Your reply is empty."
refused binary 'head -c 1000 /dev/urandom' "Your reply is not text"
refused huge 'head -c 10000000 /dev/zero | tr "\000" x' "Your reply has 10000000 bytes"
refused prose 'echo "I would rather not."' "Your reply has no code."
refused several "printf '\`\`\`cuda\nint a;\n\`\`\`\n\`\`\`cuda\nint b;\n\`\`\`\n'" "Your reply has 2 code blocks"
refused cut "printf '\`\`\`cuda\n#include \"task.h\"\nextern \"C\" cudaError_t launch(const float *x, float *y, Dims d, void *w, cudaStream_t s) {\n    if (d.n > 0) {\n'" "is never closed; the reply seems to be cut off"
refused no_launch "printf '\`\`\`cuda\n#include \"task.h\"\n\`\`\`\n'" "does not define launch()"
refused early_edit "printf '<<<<<<< SEARCH\na\n=======\nb\n>>>>>>> REPLACE\n'" "There is no source yet"

reply_with failing.sh 'echo "quota exceeded" >&2; exit 3'
expect 4 "$cutegen" run relu --model exec:./failing.sh
out_says "quota exceeded"
out_says "cutegen resume cutegen-runs/relu-"
expect 4 "$cutegen" run relu --model exec:./failing.sh --json
out_follows run
json_is stop model
json_is passed false

# A reply in CRLF is as good as any; so is an edit in CRLF.
sed 's/y_part(i) = activate(x_part(i))/y_part(i) = activate(x_part(i)) oops/' "$relu" >broken.cu
{ printf '```cuda\n'; cat broken.cu; printf '```\n'; } | sed 's/$/\r/' >draft.reply
printf 'Cause: a typo.\r\n<<<<<<< SEARCH\r\n            if (first + get<0>(place(i)) < n) y_part(i) = activate(x_part(i)) oops;\r\n=======\r\n            if (first + get<0>(place(i)) < n) y_part(i) = activate(x_part(i));\r\n>>>>>>> REPLACE\r\n' >debug.reply
reply_with crlf.sh 'cat $CUTEGEN_STAGE.reply'
expect 0 "$cutegen" run relu --model exec:./crlf.sh
out_says "compile_error"
out_says "edit applied"
out_says "pass "

# An anchor that is not there, and one that is there twice: the reason goes back, nothing is built.
refused_edit() { # NAME ANCHOR REASON
    printf '<<<<<<< SEARCH\n%s\n=======\nint x;\n>>>>>>> REPLACE\n' "$2" >debug.reply
    reply_with "$1.sh" '[ $CUTEGEN_STAGE = debug ] && cat debug.reply'
    expect 4 "$cutegen" run relu --start broken.cu --max-edits 1 --model "exec:./$1.sh"
    out_says "$3"
}
refused_edit absent '    no such line;' "its SEARCH text is not in the source"
refused_edit twice '        CUTE_UNROLL' "its anchor matches lines 32 and 37 of the source"

# ---- the compiler ---------------------------------------------------------------------------------

fake_nvcc() { # DIR SCRIPT
    mkdir -p "$1/bin"
    printf '#!/bin/sh\n%s\n' "$2" >"$1/bin/nvcc"
    chmod +x "$1/bin/nvcc"
}
elsewhere() { # CUDA_HOME COMMAND…: as if no other toolkit were installed
    local home=$1
    shift
    unshare -m sh -c 'for d in /usr/local/cuda*; do mount -t tmpfs none "$d"; done
        PATH=/usr/bin:/bin CUDA_HOME=$0 exec "$@"' "$home" "$@"
}
old='[ "$1" = --version ] && echo "Cuda compilation tools, release 12.1, V12.1.105"'
killed='[ "$1" = --version ] && { echo "Cuda compilation tools, release 13.0, V13.0.88"; exit; }
kill -9 $$'
fake_nvcc old "$old"
fake_nvcc killed "$killed"
if unshare -m true 2>/dev/null && [ ! -e "$root/.cache/cuda" ]; then
    expect 2 elsewhere "$scratch/none" "$cutegen" check relu "$relu"
    err_says "nvcc not found: install CUDA 12.8 or newer"
    expect 2 elsewhere "$scratch/old" "$cutegen" check relu "$relu"
    err_says "nvcc 12.1.105 at $scratch/old/bin/nvcc is too old"
else
    echo "not tried: a missing or old nvcc (no mount namespaces, or nvcc below .cache/)"
fi
expect 3 env CUDA_HOME="$scratch/killed" "$cutegen" check relu "$relu"
err_says "nvcc was killed by signal 9 (Killed); is the machine out of memory?"
expect 3 env CUDA_HOME="$scratch/killed" "$cutegen" check relu "$relu" --json
out_follows error
json_is error.kind harness

# ---- the machine ----------------------------------------------------------------------------------

touch file
expect 2 "$cutegen" run relu --model exec:true --state-dir file/runs
err_says "cannot create file/runs/relu-"
err_says "Not a directory; choose another place with --state-dir"

if mkdir full && mount -t tmpfs -o size=16k none full 2>/dev/null; then
    expect 3 "$cutegen" run relu --model exec:true --state-dir full
    err_says "run.db: no room to record the run (disk full)"
    [ -z "$(ls full)" ] || fail "a run that could not begin left a directory behind"
    umount full
    mount -t tmpfs -o size=100k none full
    expect 3 "$cutegen" run relu --model 'exec:head -c 1000000 /dev/zero' --state-dir full
    err_says "run.db: no room to record the run (disk full)"
    err_says "go on with: cutegen resume full/relu-"
    umount full
    mount -t tmpfs -o ro none full
    expect 2 "$cutegen" run relu --model exec:true --state-dir full
    err_says "Read-only file system; choose another place with --state-dir"
    umount full
else
    echo "not tried: a full disk (mounting is not allowed here)"
fi
expect 3 bash -c "ulimit -f 8; '$cutegen' run relu --model exec:true"
err_says "run.db: no room to record the run (file size limit reached)"

# Two processes on one run: the second is told who has it.
"$cutegen" run relu --model manual:chat --state-dir two >two.out 2>&1 </dev/null &
owner=$!
for _ in $(seq 100); do
    [ -e chat/0001.prompt.md ] && break
    sleep 0.1
done
expect 2 "$cutegen" resume two/relu-*
err_says "$owner"
expect 0 "$cutegen" show two/relu-*
out_says "draft 1"
kill -TERM "$owner"
wait "$owner"
[ $? -eq 143 ] || fail "SIGTERM did not end the waiting run with 143"
grep -q "cutegen resume two/relu-" two.out || fail "the interrupted run does not say how to go on"
expect 4 "$cutegen" resume two/relu-* --model exec:true
out_says "resumed"

# A FIFO that nobody writes to is an empty file, not a wait without end.
mkfifo fifo
expect 1 timeout 60 "$cutegen" check relu fifo --quiet
out_says "compile_error"

# A limit on file sizes that leaves no room for the tensors is not the kernel's fault.
kernel=$root/tests/corpus/relu_calls_a_plain_function.cu
expect 0 "$cutegen" check relu "$kernel" --quiet
expect 3 bash -c 'ulimit -f 64; exec "$0" check relu "$1" --quiet' "$cutegen" "$kernel"
err_says "exchange file"

finish
