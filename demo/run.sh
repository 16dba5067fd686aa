#!/bin/bash
# demo/run.sh [BUILD] - replays a recorded session, with an empty build cache of its own. BUILD is
# relative to the root of the sources.
set -eu
cd "$(dirname "$0")/.."
build=${1:-build}
recording=demo/sgemm.jsonl
place=$build/demo
rm -rf "$place"
mkdir -p "$place"

cat <<TEXT
cutegen asks for a CuTe kernel for C = A B. The replies it gets are RECORDED
($(basename "$recording"), the first with a planted error); no model is asked now.
Everything else happens now, on this machine: the builds, with an empty cache; the
execution, on the simulator; the verdicts.

TEXT

begin=$(date +%s)
status=0
XDG_CACHE_HOME=$(realpath "$place")/cache "$build/cutegen" run sgemm --model "replay:$recording" \
    --state-dir "$place/runs" || status=$?
end=$(date +%s)

if [ "$status" -eq 0 ]; then
    echo
    echo "The recorded kernel was built, judged, repaired and judged again in $((end - begin)) s."
    echo "Take the planted error out of the recording and its round vanishes."
fi
exit "$status"
