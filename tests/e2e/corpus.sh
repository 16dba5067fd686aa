# Every kernel of tests/corpus and hacks gets the verdict and the line that its first line promises:
#
#   // expect: VERDICT [line=N|line=N-M] [text="part of the message"] task=NAME
#
# and so do files that cannot say it themselves: an empty and a binary one. Builds are kept in the
# build directory, so that only the first run is long.
. "$1/tests/support/e2e.sh"

check() { # EXPECTATION KERNEL
    local word=${1%% *} code=1
    [ "$word" = pass ] && code=0
    expect "$code" "$cutegen" check "${1##*task=}" "$2" --json --quiet
    out_follows check
    python3 - "$1" "$scratch/.out" >"$scratch/.told" 2>&1 <<'PYTHON' || fail "$(cat "$scratch/.told")"
import json
import re
import sys

expectation, output = sys.argv[1:]
verdict = json.load(open(output))["verdict"]
problems = []
word = expectation.split()[0]
if verdict["verdict"] != word:
    problems.append(f"the verdict is {verdict['verdict']}, not {word}")
line = re.search(r"line=(\d+)(?:-(\d+))?", expectation)
told = (verdict["place"] or {}).get("line", 0)
if line and not int(line[1]) <= told <= int(line[2] or line[1]):
    problems.append(f"the line is {told}, not {line[0][5:]}")
text = re.search(r'text="([^"]*)"', expectation)
if text and text[1] not in verdict["message"]:
    problems.append(f"'{text[1]}' is not in the message")
if problems:
    sys.exit("; ".join(problems) + ": " + verdict["message"])
print(verdict["message"])
PYTHON
    printf '%-40s %s\n' "$(basename "$2")" "$(head -n 1 "$scratch/.told")"
}

for kernel in "$root"/tests/corpus/*.cu "$root"/hacks/*.cu; do
    read -r first <"$kernel"
    case $first in
    "// expect: "*) check "${first#// expect: }" "$kernel" ;;
    *) fail "$kernel: no expectation in its first line" ;;
    esac
done

: >empty.cu
check "compile_error task=relu" empty.cu
head -c 4096 /dev/urandom >binary.cu
check "compile_error task=relu" binary.cu

finish
