# What the documents point at is there, and the README keeps its length.
. "$1/tests/support/e2e.sh"
cd "$root" || exit 1

words=$(wc -w <README.md)
[ "$words" -le 1200 ] || fail "README.md has $words words; 1,200 are allowed"

# Links: [text](path#anchor), relative to the document.
for document in README.md docs/*.md; do
    while read -r target; do
        [ -e "$(dirname "$document")/$target" ] || fail "$document links to $target"
    done < <(grep -oE '\]\([^)#]+' "$document" | cut -c3- | grep -v '^https\?:')
done

# Files that docs/architecture.md names, below src/ or in the root; stars are patterns.
while read -r path; do
    [ -n "$(compgen -G "src/$path")" ] || [ -n "$(compgen -G "$path")" ] ||
        fail "docs/architecture.md names $path"
done < <(grep -oE '`[a-z_0-9*/.]+/[a-z_0-9*.]*`' docs/architecture.md | tr -d '`' | grep -v '^\.')

# Every folder of src/ is explained there.
for folder in src/*/; do
    grep -qF "| \`$(basename "$folder")\` |" docs/architecture.md || fail "no word about $folder"
done
# The README's own task is one: a relu is judged, and is wrong.
mkdir "$scratch/swish"
sed -n '/^```yaml/,/^```/p' README.md | sed '/^```/d' >"$scratch/swish/task.yaml"
sed -n '/^```c$/,/^```/p' README.md | sed '/^```/d' >"$scratch/swish/reference.c"
expect 1 "$cutegen" check "$scratch/swish" exemplars/elementwise/relu.cu --quick
out_says "wrong          kernel.cu: y is wrong"

finish
