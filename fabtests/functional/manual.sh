#!/bin/bash
# manual.sh [--write] -- checks that the settings in the documents are those of the provider.
#
# Runs in the top folder of a build. The reference is the table that the provider registers with libfabric, as
# `fi_info -e` prints it: names, defaults and texts of the manual page's section ENVIRONMENT, and keys, defaults and
# values in docs/EXPERIMENTS.md. --write replaces the manual page's texts by those of the table. The keys of the MPI front
# ends are compared with their sources.
set -u
case ${1:-} in --help | -h) awk 'NR > 1 { if (!/^#/) exit; sub(/^# ?/, ""); print }' "$0"; exit 0 ;; esac
provider=prov/mcastcoll/ofi/.libs/libmcastcoll-fi.so
if nm -D "$provider" | grep -q __asan; then
    echo "skip fi_info does not load a provider with sanitizers"
    exit 77
fi
top=${FABTESTS_SRCDIR:-$(dirname "$0")/..}/..
page=$top/man/fi_mcastcoll.7 experiments=$top/docs/EXPERIMENTS.md
for file in "$page" "$experiments"; do [ -r "$file" ] || { echo "manual: no $file"; exit 1; }; done

# "# FI_MCASTCOLL_TTL: Integer", then "# mcastcoll: Maximum number .. (default: 1)".
registered=$(FI_PROVIDER=mcastcoll fi_info -e 2>/dev/null | grep -a -A1 '^# FI_MCASTCOLL_')
# The texts of the manual page, in lines of at most 120 columns. Variables for tests only are not in the page.
section=$(awk '
    function escaped(word) { # a hyphen at the start of an option, a value or a level is a minus sign in print
        gsub(/\\/, "\\\\&", word)
        if (word ~ /^[(,]?-/) gsub(/-/, "\\-", word)
        return word
    }
    function put(text, words, n, i, line, word) {
        n = split(text, words, " ")
        for (i = 1; i <= n; i++) {
            word = escaped(words[i])
            if (line != "" && length(line) + 1 + length(word) > 120) { print line; line = "" }
            line = line == "" ? word : line " " word
        }
        print line
    }
    /^# FI_MCASTCOLL_/ { name = $2; sub(/:.*/, "", name); next }
    name {
        sub(/^# ([a-z]+: )?/, "")
        at = match($0, / \(default: [^()]*\)$/)
        value = substr($0, at + 11, length($0) - at - 11)
        if (!/^For tests only/) { printf ".TP\n.BR %s \" (%s)\"\n", name, value; put(substr($0, 1, at - 1) ".") }
        name = ""
    }' <<<"$registered")
[ "$(grep -c '^\.BR' <<<"$section")" -ge 10 ] || { echo "manual: fi_info shows hardly any variable"; exit 1; }
# The variables are between the section's first .TP and the next section.
if [ "${1:-}" = --write ]; then
    awk -v section="$(sed 's/\\/\\\\/g' <<<"$section")" '
        /^\.SH/ { inside = /ENVIRONMENT/; if (inside) written = 0 }
        inside && /^\.TP/ && !written { print section; written = 1 }
        !(inside && written)' "$page" >"$page.new" && mv "$page.new" "$page"
fi
described=$(awk '/^\.SH/ { inside = /ENVIRONMENT/; found = 0 } inside && /^\.TP/ { found = 1 } inside && found' "$page")
bad=0
diff <(echo "$section") <(echo "$described") || { echo "manual: < is what the provider has, > what $page says (--write puts it right)"; bad=1; }
keys=$(grep -a -A1 '^# FI_MCASTCOLL_EXPERIMENT:' <<<"$registered" | sed -n 's/ (default: [^()]*)$//; s/^# .* explains the keys: //p' |
    sed 's/), /)\n/g' | sed 's/^\([a-z_]*\)=\([^ ]*\) (\(.*\))$/\1 | \2 | \3/')
[ "$(wc -l <<<"$keys")" -ge 10 ] || { echo "manual: fi_info shows hardly any experiment"; exit 1; }
diff <(echo "$keys") <(sed -n '/^## /q; s/^| `\([a-z_]*\)` | \([^|]*\) | \([^|]*\) |.*/\1 | \2 | \3/p' "$experiments") ||
    { echo "manual: < is what the provider has, > what $experiments says"; bad=1; }
# keys_in SECTION and keys_of FILE: the keys in the document's section, and in the table of a front end's source.
keys_in() { awk -v section="## $1" '/^## / { inside = $0 == section } inside && /^\| `/ { print $2 }' "$experiments" | tr -d '`' | sort; }
keys_of() { sed -n 's/^ *\[k[A-Za-z]*\] = {"\([a-z_]*\)".*/\1/p' "$top/$1" | sort; }
while read -r source section; do
    diff <(keys_of "$source") <(keys_in "$section") || { echo "manual: < is what $source has, > what $experiments says"; bad=1; }
done <<<'mpi/openmpi/coll_mcastcoll_settings.c Open MPI
mpi/pmpi/settings.c MPICH'
exit $bad
