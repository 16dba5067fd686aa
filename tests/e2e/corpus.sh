#!/usr/bin/env bash
# Every kernel of tests/corpus and hacks gets the verdict and the line that its first line promises:
#
#   // expect: VERDICT [line=N|line=N-M] [text="part of the message"] task=NAME
#
# and so do files that cannot say it themselves: an empty one, a binary one, a huge one. Builds are
# cached in the build directory, so that only the first run is long.
set -euo pipefail
source_root=$1 build_root=$2
export XDG_CACHE_HOME=$build_root/test-cache
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# check EXPECTATION KERNEL
check() {
    local expectation=$1 kernel=$2 task output code=0
    task=${expectation##*task=}
    output=$scratch/output.json
    "$build_root/cutegen" check "$task" "$kernel" --json --quiet \
        > "$output" 2> "$scratch/errors" || code=$?
    python3 - "$expectation" "$(basename "$kernel")" "$code" "$output" "$scratch/errors" <<'PYTHON'
import json
import re
import sys

expectation, kernel, code, output, errors = sys.argv[1:]
problems = []
word = expectation.split()[0]
try:
    verdict = json.load(open(output))["verdict"]
except (ValueError, KeyError):
    sys.exit(f"FAIL {kernel}: exit code {code}, no verdict: {open(errors).read().strip()}")
if verdict["verdict"] != word:
    problems.append(f"the verdict is {verdict['verdict']}, not {word}")
if int(code) != (0 if word == "pass" else 1):
    problems.append(f"the exit code is {code}")
line = re.search(r"line=(\d+)(?:-(\d+))?", expectation)
if line:
    first, last = int(line[1]), int(line[2] or line[1])
    told = (verdict["place"] or {}).get("line", 0)
    if not first <= told <= last:
        problems.append(f"the line is {told}, not {line[0][5:]}")
text = re.search(r'text="([^"]*)"', expectation)
if text and text[1] not in verdict["message"]:
    problems.append(f"'{text[1]}' is not in the message")
if problems:
    sys.exit(f"FAIL {kernel}: {'; '.join(problems)}\n     {verdict['message']}")
print(f"ok   {kernel}: {verdict['message']}")
PYTHON
}

failures=0
for kernel in "$source_root"/tests/corpus/*.cu "$source_root"/hacks/*.cu; do
    read -r first < "$kernel"
    if [[ $first != "// expect: "* ]]; then
        echo "FAIL $(basename "$kernel"): no expectation in its first line"
        failures=$((failures + 1))
        continue
    fi
    check "${first#// expect: }" "$kernel" || failures=$((failures + 1))
done

: > "$scratch/empty.cu"
check 'compile_error task=relu' "$scratch/empty.cu" || failures=$((failures + 1))
head -c 4096 /dev/urandom > "$scratch/binary.cu"
check 'compile_error task=relu' "$scratch/binary.cu" || failures=$((failures + 1))

# The exemplars are right.
check 'pass task=relu' "$source_root/exemplars/elementwise/relu.cu" || failures=$((failures + 1))
check 'pass task=row_softmax' "$source_root/exemplars/softmax/row_softmax.cu" ||
    failures=$((failures + 1))

echo "$failures failures"
[ "$failures" = 0 ]
