# A run from a faulty draft to a repaired pass; its story; its replay; a kill and a resume.
. "$1/tests/support/e2e.sh"

# vector_add without the guard of the last tile: it reads past the ends of a and b.
good=$root/exemplars/elementwise/vector_add.cu
guard='if (first + get<0>(place(i)) < n) '
sed "s/$guard//" "$good" >faulty.cu
line=$(grep -n 'c_part(i) = a_part(i) + b_part(i);' faulty.cu | cut -d: -f1)
{ printf 'Idea: tiled copies.\n```cuda\n'; cat faulty.cu; printf '```\n'; } >draft.reply
cat >debug.reply <<REPLY
Cause: the last tile is ragged, and nothing keeps its threads inside.
<<<<<<< SEARCH
            c_part(i) = a_part(i) + b_part(i);
=======
            ${guard}c_part(i) = a_part(i) + b_part(i);
>>>>>>> REPLACE
REPLY

expect 0 "$cutegen" run vector_add --model 'exec:cat $CUTEGEN_STAGE.reply' --state-dir runs
out_says "simulated sm_90a (no GPU asked for); builds use nvcc"
out_says "draft 1        asked the model"
out_says "idea: tiled copies."
out_says "cause: the last tile is ragged"
out_says "memory_error   kernel.cu:$line: "
out_says "4 bytes past its end"
out_says "▸ $(printf %4d "$line") │"
out_says "repair 1/5     asked the model"
out_says "edit applied at line $line: +1"
out_says "pass           right on all"
out_says "passed         2 replies, 2 builds, 1 edit"
run=$(echo runs/vector_add-*)
out_says "kernel: $run/best.cu"
cmp "$run/best.cu" "$good" || fail "best.cu is not the repaired kernel"

expect 0 "$cutegen" show "$run"
out_says "memory_error   kernel.cu:$line: "
out_says "- $(printf %4d "$line") │"
out_says "+ $(printf %4d "$line") │"
out_says "2 replies ("
expect 0 "$cutegen" show "$(basename "$run")" --state-dir runs
expect 0 "$cutegen" show "$run/run.db"

# The export replays to the same kernel, without the model.
expect 0 "$cutegen" export-journal "$run" recording.jsonl
expect 0 "$cutegen" run vector_add --model replay:recording.jsonl --state-dir replays
out_says "passed         2 replies, 2 builds, 1 edit"
cmp replays/vector_add-*/best.cu "$run/best.cu" || fail "the replay gave another kernel"
expect 0 bash -c "'$cutegen' export-journal $run | cmp - recording.jsonl"

# A finished run has nothing left to do.
expect 0 "$cutegen" resume "$run"
out_says "this run had ended already: passed"

# --start begins at the judge; --hint reaches the model.
expect 0 "$cutegen" run vector_add --model 'exec:tee prompt.seen >/dev/null; cat $CUTEGEN_STAGE.reply' \
    --start faulty.cu --hint 'mind the ragged edge' --quiet
grep -q 'mind the ragged edge' prompt.seen || fail "the hint did not reach the model"
out_says "passed: cutegen-runs/vector_add-"
[ "$(wc -l <"$scratch/.out")" -eq 1 ] || fail "--quiet prints more than the outcome"

# Killed while it waits for the second reply, it does not ask for the first again.
plain="setpriv --bounding-set=-all --inh-caps=-all" # as a user, who may not look everywhere
$plain true 2>/dev/null || plain=
$plain "$cutegen" run vector_add --model manual:chat --state-dir killed --seeds 5 --timeout 77 \
    >killed.out 2>&1 </dev/null &
owner=$!
wait_for() {
    for _ in $(seq 300); do
        [ -e "$1" ] && return
        sleep 0.1
    done
    fail "$1 did not appear"
}
wait_for chat/0001.prompt.md
# Meanwhile a kernel, which runs as the same user, cannot read its environment.
$plain sh -c '"$@" & cat /proc/$!/environ; got=$?; kill $!; exit $got' - sleep 60 >/dev/null ||
    fail "no process of the user can be read, so this test shows nothing"
! $plain cat "/proc/$owner/environ" >/dev/null 2>&1 || fail "the environment can be read"
cp draft.reply chat/tmp && mv chat/tmp chat/0001.reply.md
wait_for chat/0002.prompt.md
kill -KILL "$owner"
wait "$owner" 2>/dev/null
expect 0 "$cutegen" show killed/vector_add-*
out_says "the record ends here"
cp debug.reply chat/tmp && mv chat/tmp chat/0002.reply.md
expect 0 "$cutegen" resume killed/vector_add-* --reference-timeout 99
out_says "passed         2 replies, 2 builds, 1 edit"
cmp killed/vector_add-*/best.cu "$good" || fail "the resumed run gave another kernel"
[ ! -e chat/0003.prompt.md ] || fail "the resumed run asked once more"
# It judges as the run did from the beginning, but for what was given anew.
expect 0 "$cutegen" export-journal killed/vector_add-*
out_says '"judge":{"seeds":5,"call_timeout_s":77.0,"reference_timeout_s":300.0}'
out_says '"judge":{"seeds":5,"call_timeout_s":77.0,"reference_timeout_s":99.0}'
out_says '"calls":5'
out_says '"compiler":"nvcc '

finish
