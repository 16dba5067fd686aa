#!/usr/bin/env bash
# arrows.sh - the architecture, enforced: who may include whom, and how long a file may be.
#
# A folder of src/ is entered through its public header alone, and only along the arrows listed
# here. (CMakeLists.txt says the same of linking, which a stray inline function would escape.)
root=$1
cd "$root" || exit 1

# folder: folders whose public header it may include. Its own headers it may include always.
arrows='
base:
wire:
task:    base wire
build:   base task
device:  base wire
judge:   base wire task build device
journal: base
model:   base journal
agent:   base task judge journal model
report:  base journal
cli:     base wire task build device judge journal model agent report
runner:  wire
oracle:  wire
sim:     wire
'
# The runner finds the simulator by its exported symbols, whose declarations are this header.
exceptions='
runner sim/sim.h
'
longest=800

complaints=$(
    for path in src/*/; do
        folder=$(basename "$path")
        allowed=$(sed -n "s/^$folder://p" <<<"$arrows")
        if ! grep -q "^$folder:" <<<"$arrows"; then
            echo "src/$folder: not in the list of arrows"
            continue
        fi
        grep -nE '^[[:space:]]*#[[:space:]]*include[[:space:]]*"' "$path"*.[ch] /dev/null |
            sed -E 's/:[[:space:]]*#[[:space:]]*include[[:space:]]*"([^"]*)".*/ \1/' |
            while read -r place header; do
                target=${header%%/*}
                if [ "$target" = "$header" ]; then
                    [ -e "$path$header" ] ||
                        echo "$place: \"$header\" is not a file of src/$folder"
                elif [ "$target" = "$folder" ] || grep -qx "$folder $header" <<<"$exceptions"; then
                    :
                elif [ ! -e "src/$header" ]; then
                    # Generated or embedded text; never another folder's.
                    [ ! -d "src/$target" ] || echo "$place: there is no src/$header"
                elif ! grep -qw "$target" <<<"$allowed"; then
                    echo "$place: $folder may not include $target (\"$header\")"
                elif [ "$header" != "$target/$target.h" ]; then
                    echo "$place: \"$header\" is private to $target"
                fi
            done
    done
    find src tests bench -name '*.[ch]' -exec wc -l {} + | awk -v longest=$longest \
        '$2 != "total" && $1 > longest { print $2 ": " $1 " lines, more than " longest }'
)
if [ -n "$complaints" ]; then
    printf '%s\n' "$complaints"
    exit 1
fi
echo "the arrows hold"
