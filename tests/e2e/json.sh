# Every JSON output follows its schema, whatever the exit code.
. "$1/tests/support/e2e.sh"
relu=$root/exemplars/elementwise/relu.cu
corpus=$root/tests/corpus

expect 0 "$cutegen" check relu "$relu" --json
out_follows check
json_is verdict.verdict pass
err_says "simulated sm_90a (no GPU asked for); builds use nvcc"
err_says "sandbox: own process group, rlimits, scrubbed environment"

verdict() { # KERNEL VERDICT: quick, since the corpus test judges them in full
    expect 1 "$cutegen" check relu "$corpus/$1.cu" --quick --json --quiet
    out_follows check
    json_is verdict.verdict "$2"
    [ ! -s "$scratch/.err" ] || fail "--quiet with --json prints something"
}
verdict relu_copy_that_does_not_fit compile_error
verdict relu_allocates forbidden
grep -q "ask for memory with workspace_bytes() instead" "$scratch/.out" ||
    fail "the repair text of a forbidden symbol lacks its advice"
verdict relu_returns_an_error launch_error
verdict relu_factor wrong

# One verdict again, from its seed.
expect 1 "$cutegen" check relu "$corpus/relu_factor.cu" --quick --json --quiet --seed 12345
out_follows check
json_is verdict.evidence.first_seed 12345

expect 2 "$cutegen" check relu nowhere.cu --json
out_follows error
json_is error.kind input

{ printf '```cuda\n'; cat "$relu"; printf '```\n'; } >reply
expect 0 "$cutegen" run relu --model 'exec:cat reply' --json
out_follows run
json_is stop passed
json_is verdict.verdict pass
run=$(python3 -c 'import json, sys; print(json.load(sys.stdin)["run"])' <"$scratch/.out")
[ -s "$run/best.cu" ] || fail "there is no best.cu"
cmp -s "$run/best.cu" "$relu" || fail "best.cu is not the kernel of the reply"
expect 0 "$cutegen" show "$run" --json
out_follows show
json_is stopped passed
json_is totals.verdicts 1

expect 4 "$cutegen" run relu --model 'exec:exit 1' --json
out_follows run
json_is stop model
json_is verdict null
run=$(python3 -c 'import json, sys; print(json.load(sys.stdin)["run"])' <"$scratch/.out")
expect 0 "$cutegen" show "$run" --json
out_follows show
json_is stopped model

# Interrupted while it waits for a model.
"$cutegen" run relu --model manual:chat --json >.out 2>.err </dev/null &
owner=$!
for _ in $(seq 100); do
    [ -e chat/0001.prompt.md ] && break
    sleep 0.1
done
kill -INT "$owner"
wait "$owner"
[ $? -eq 130 ] || fail "SIGINT did not end the waiting run with 130"
last="SIGINT to a run that waits"
out_follows run
json_is stop interrupted

expect 0 "$cutegen" tasks --json
out_follows tasks

finish
