# e2e.sh - sourced by end-to-end tests with their own arguments: source root, build root.
#
# A test is a list of `expect CODE COMMAND…` lines, each followed by what standard output and
# standard error must say. A failed expectation is printed with what came instead; the test goes
# on, and `finish` gives the verdict.

set -u
root=$1
build=$2
cutegen=$build/cutegen
export LANG=C.UTF-8
# Kernels of tests are compiled once for the Release and the sanitized build.
export XDG_CACHE_HOME=$root/.cache/tests
[ -d "$root/.cache/cutlass/include" ] && export CUTLASS_PATH=$root/.cache/cutlass/include
unset NO_COLOR CUTEGEN_ROOT
mkdir -p "$XDG_CACHE_HOME"
scratch=$(mktemp -d)
cd "$scratch" || exit 1
failures=0
last="nothing was run"

# The Python that has jsonschema: the first in PATH need not be the system's.
python=python3
"$python" -c 'import jsonschema' 2>/dev/null || python=/usr/bin/python3

clean_up() {
    local pid
    for pid in $(jobs -p); do kill "$pid" 2>/dev/null; done
    cd /
    rm -rf "$scratch"
}
trap clean_up EXIT

fail() {
    failures=$((failures + 1))
    printf 'FAILED: %s\n  after: %s\n' "$1" "$last"
    sed 's/^/  out: /' "$scratch/.out" 2>/dev/null | head -n 40
    sed 's/^/  err: /' "$scratch/.err" 2>/dev/null | head -n 40
}

# expect CODE COMMAND… runs the command, keeps its output, compares its exit code.
expect() {
    local want=$1 got
    shift
    last="$*"
    "$@" >"$scratch/.out" 2>"$scratch/.err" </dev/null
    got=$?
    [ "$got" -eq "$want" ] || fail "exit code $got instead of $want"
}

# What standard output, standard error must (not) contain; fixed strings.
out_says() { grep -qF -- "$1" "$scratch/.out" || fail "standard output lacks: $1"; }
err_says() { grep -qF -- "$1" "$scratch/.err" || fail "standard error lacks: $1"; }
out_lacks() { ! grep -qF -- "$1" "$scratch/.out" || fail "standard output has: $1"; }
err_is() { [ "$(cat "$scratch/.err")" = "$1" ] || fail "standard error is not: $1"; }

# Standard output must be one JSON object that follows docs/schema/$1.json.
out_follows() {
    "$python" "$root/tests/support/validate.py" "$root/docs/schema/$1.json" <"$scratch/.out" \
        >"$scratch/.valid" 2>&1 || fail "standard output does not follow $1.json: $(cat "$scratch/.valid")"
}

# A value of the JSON on standard output: json_is verdict.verdict pass
json_is() {
    local got
    got=$(python3 -c 'import json, sys
value = json.load(sys.stdin)
for key in sys.argv[1].split("."):
    value = value[int(key)] if isinstance(value, list) else value[key]
print(value if isinstance(value, str) else json.dumps(value))' "$1" <"$scratch/.out" 2>&1)
    [ "$got" = "$2" ] || fail "$1 is $got instead of $2"
}

finish() {
    [ "$failures" -eq 0 ] || { echo "$failures expectations failed"; exit 1; }
    echo "all expectations hold"
}
