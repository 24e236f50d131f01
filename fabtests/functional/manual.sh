#!/bin/bash
# manual.sh -- checks that the provider's manual page lists exactly the provider's variables, with their defaults.
#
# Runs in the top folder of a build. The reference is what the provider registers with libfabric: `fi_info -e`.
set -u
case ${1:-} in --help | -h) awk 'NR > 1 { if (!/^#/) exit; sub(/^# ?/, ""); print }' "$0"; exit 0 ;; esac
provider=prov/mcastcoll/ofi/.libs/libmcastcoll-fi.so
if nm -D "$provider" | grep -q __asan; then
    echo "skip fi_info does not load a provider with sanitizers"
    exit 77
fi
page=${FABTESTS_SRCDIR:-$(dirname "$0")/..}/../man/fi_mcastcoll.7
[ -r "$page" ] || { echo "manual: no $page"; exit 1; }
# "# FI_MCASTCOLL_TTL: Integer", then "# mcastcoll: How many .. (default: 1)"; "none" means empty, and "auto" may be
# followed by text.
registered=$(FI_PROVIDER=mcastcoll fi_info -e 2>/dev/null | grep -a -A1 '^# FI_MCASTCOLL_' |
    awk '/^# FI_MCASTCOLL_/ { name = $2; sub(/:.*/, "", name); next }
         name { default_ = $0; sub(/.*\(default: /, "", default_); sub(/[:)].*/, "", default_)
             if (default_ == "none" && name !~ /ROOT_SYNC/ || default_ ~ /^(the one|endpoints that)/) default_ = "empty"
             print name, "(" default_ ")"; name = "" }' | sort)
described=$(sed -n 's/^\.BR \(FI_MCASTCOLL_[A-Z_]*\) " \(([^)]*)\)"$/\1 \2/p' "$page" | sort)
[ "$(wc -l <<<"$registered")" -ge 20 ] || { echo "manual: fi_info shows hardly any variable"; exit 1; }
diff <(echo "$registered") <(echo "$described") || { echo "manual: < is what the provider has, > what $page says"; exit 1; }
