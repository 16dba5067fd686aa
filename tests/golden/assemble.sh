#!/bin/sh
# assemble.sh BUILD FOLDER - makes FOLDER/golden.cubin with the golden_program of BUILD.
#
# Cases that ptxas refuses for sm_90a are left out and listed, with its reason, in
# FOLDER/refused.txt.
set -eu
build=$1 folder=$2
mkdir -p "$folder"
: >"$folder/refused.txt"
while :; do
    "$build/golden_program" "$folder/refused.txt" >"$folder/golden.ptx"
    if ptxas -arch=sm_90a "$folder/golden.ptx" -o "$folder/golden.cubin" >"$folder/ptxas.log" 2>&1
    then
        break
    fi
    # A kernel begins with a comment that names its case.
    awk -F '\t' '
        FNR == NR {
            if (match($0, /line [0-9]+; error *: /))
                why[substr($0, RSTART + 5, RLENGTH) + 0] = substr($0, RSTART + RLENGTH)
            next
        }
        /^\/\/ / { name = substr($0, 4) }
        FNR in why { printf "%s\t%s\n", name, why[FNR] }
    ' "$folder/ptxas.log" "$folder/golden.ptx" | sort -u -k1,1 >"$folder/more.txt"
    if ! [ -s "$folder/more.txt" ]; then
        cat "$folder/ptxas.log" >&2
        exit 1
    fi
    cat "$folder/more.txt" >>"$folder/refused.txt"
done
rm -f "$folder/more.txt"
sort -o "$folder/refused.txt" "$folder/refused.txt"
echo "assemble.sh: $(wc -l <"$folder/refused.txt") cases refused"
