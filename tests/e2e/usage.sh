# Wrong usage exits 2 with one line that says what to do; help and version exit 0.
. "$1/tests/support/e2e.sh"

expect 0 "$cutegen" --version
out_says "cutegen "
expect 0 "$cutegen" --help
out_says "export-journal"
for command in run resume check show export-journal tasks; do
    expect 0 "$cutegen" $command --help
    out_says "usage: cutegen $command"
    out_says "examples:"
done

expect 2 "$cutegen"
err_is "usage: cutegen COMMAND [OPTION]... [ARGUMENT]...; see cutegen --help"
expect 2 "$cutegen" chek
err_is "cutegen: unknown command 'chek'; did you mean check?"
expect 2 "$cutegen" xyzzy
err_is "cutegen: unknown command 'xyzzy'; see cutegen --help"
expect 2 "$cutegen" check relu
err_is "usage: cutegen check TASK KERNEL.cu; see cutegen check --help"
expect 2 "$cutegen" check relu a.cu b.cu
err_is "cutegen check: 'b.cu' is one argument too many; usage: cutegen check TASK KERNEL.cu"
expect 2 "$cutegen" run relu --modle exec:true
err_is "cutegen run: unknown option '--modle'; did you mean --model?"
expect 2 "$cutegen" run relu --model
err_is "cutegen run: --model needs a value: --model SPEC"
expect 2 "$cutegen" run relu --max-edits=none --model exec:true
err_is "cutegen run: --max-edits takes a whole number from 1 to 1000, not 'none'"
expect 2 "$cutegen" run relu --json=yes
err_is "cutegen run: --json takes no value"
expect 2 "$cutegen" show relu -q
err_is "cutegen show: unknown option '-q'; see cutegen show --help"
expect 2 "$cutegen" run relu
err_says "cutegen run: no model given; add --model manual:DIR"
expect 2 "$cutegen" run relu --model opena:gpt
err_says "unknown model 'opena:gpt'"
err_says "manual:DIR"
expect 2 "$cutegen" run relu --model exec:true --device gpu
err_says "unknown device 'gpu'"
expect 2 "$cutegen" run softmx --model exec:true
err_is "unknown task 'softmx'; did you mean row_softmax?"
expect 2 "$cutegen" run row_softmx --model exec:true
err_is "unknown task 'row_softmx'; did you mean row_softmax?"
expect 2 "$cutegen" show nowhere
err_is "no run 'nowhere', neither as a directory nor in cutegen-runs"
expect 2 "$cutegen" check relu nowhere.cu
err_says "nowhere.cu"
[ ! -e cutegen-runs ] || fail "a run that could not begin left a directory behind"

# With --json the same message is an object on standard output.
expect 2 "$cutegen" run softmx --model exec:true --json
out_follows error
json_is error.kind input
json_is error.message "unknown task 'softmx'; did you mean row_softmax?"
err_is "unknown task 'softmx'; did you mean row_softmax?"
expect 2 "$cutegen" chek --json
out_follows error

expect 0 "$cutegen" tasks
for task in relu vector_add row_softmax sgemm; do out_says "$task"; done
expect 0 "$cutegen" tasks --json
out_follows tasks

# Standard output that cannot be written is a failure, one that nobody reads is not.
expect 3 sh -c "'$cutegen' tasks >/dev/full"
err_is "cannot write to standard output: No space left on device"
expect 0 sh -c "'$cutegen' tasks >&-"
expect 0 bash -c "set -o pipefail; '$cutegen' --help | true"

finish
