# The demo passes within a minute from an empty build cache, and its failing round is live: taken
# out of the recording, the planted error leaves no failure behind.
. "$1/tests/support/e2e.sh"
recording=$root/demo/sgemm.jsonl

begin=$(date +%s)
expect 0 "$root/demo/run.sh" "$build"
seconds=$(($(date +%s) - begin))
out_says "RECORDED"
out_says "memory_error   kernel.cu:"
out_says "edit applied"
out_says "pass           right on all"
echo "the demo took $seconds s"

# Each edit of the recording is applied to the draft beforehand, as if the model had not erred.
python3 - "$recording" innocent.jsonl <<'PYTHON'
import json
import re
import sys

events = [json.loads(line) for line in open(sys.argv[1])]
blobs = {}
for event in events:
    blobs.update(event.get("blobs", {}))
replies = [e["body"] for e in events if e["kind"] == "reply.received"]
edit = re.compile(r"<<<<<<< SEARCH\n(.*?)=======\n(.*?)>>>>>>> REPLACE", re.S)
draft = blobs[replies[0]["reply"]]
for reply in replies[1:]:
    for search, replace in edit.findall(blobs[reply["reply"]]):
        assert draft.count(search) == 1, search
        draft = draft.replace(search, replace)
for event in events:
    if replies[0]["reply"] in event.get("blobs", {}):
        event["blobs"][replies[0]["reply"]] = draft
with open(sys.argv[2], "w") as out:
    for event in events:
        out.write(json.dumps(event) + "\n")
PYTHON
expect 0 "$cutegen" run sgemm --model replay:innocent.jsonl
out_lacks "memory_error"
out_lacks "repair"
out_says "passed         1 reply, 1 build, 0 edits"
cmp "$build"/demo/runs/sgemm-*/best.cu cutegen-runs/sgemm-*/best.cu ||
    fail "the innocent recording ends with another kernel"

finish
