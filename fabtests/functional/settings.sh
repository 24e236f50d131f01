#!/bin/bash
# settings.sh -- checks that the provider accepts a valid value of each setting, and refuses other values with an error
# that names what is allowed.
#
# Runs in the top folder of a build. Variables, keys, defaults and values are those that `fi_info -e` prints; each key's
# former variable must be refused with the new form.
set -u
case ${1:-} in --help | -h) awk 'NR > 1 { if (!/^#/) exit; sub(/^# ?/, ""); print }' "$0"; exit 0 ;; esac
if nm -D prov/mcastcoll/ofi/.libs/libmcastcoll-fi.so | grep -q __asan; then
    echo "skip fi_info does not load a provider with sanitizers"
    exit 77
fi
bad=0
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
echo 'bcast 3- * 1M- levels' >"$scratch/selection"
echo 'a key for this test only' >"$scratch/key"
chmod 600 "$scratch/key"
good() { # good NAME=VALUE...
    said=$(env FI_PROVIDER=mcastcoll FI_LOG_LEVEL=warn "$@" fi_info -p mcastcoll 2>&1 >/dev/null) && return
    echo "settings: $* is refused: $said"
    bad=1
}
refused() { # refused TEXT NAME=VALUE...: the log has TEXT
    local text=$1
    shift
    if said=$(env FI_PROVIDER=mcastcoll FI_LOG_LEVEL=warn "$@" fi_info -p mcastcoll 2>&1 >/dev/null); then
        echo "settings: $* is accepted"
        bad=1
    elif ! grep -aqF -- "$text" <<<"$said"; then
        echo "settings: $*: no '$text' in $said"
        bad=1
    fi
}
registered=$(FI_PROVIDER=mcastcoll fi_info -e 2>/dev/null)
values=(INNER=tcp MULTICAST=udp IFACE=lo TTL=255 RCVBUF=65536 JOIN_TIMEOUT=1 HOST_TIMEOUT=3600000 STALL_TIMEOUT=60 TOPOLOGY=-host
    "SELECTION=$scratch/selection" SECURITY=encrypt "KEY_FILE=$scratch/key" "STATS=$scratch/stats" EXPERIMENT=repair=push FAULT=loss=1)
while read -r name; do
    value=$(printf '%s\n' "${values[@]}" | grep "^$name=") || { echo "settings: this test sets no value of $name"; bad=1; continue; }
    good "FI_MCASTCOLL_$value"
done < <(grep -ao '^# FI_MCASTCOLL_[A-Z_]*' <<<"$registered" | sed 's/.*MCASTCOLL_//')
# A build without fault injection refuses the variable.
grep -aq '^# FI_MCASTCOLL_FAULT' <<<"$registered" || refused 'this build has no fault injection' FI_MCASTCOLL_FAULT=loss=1
pairs=$(grep -a -A1 '^# FI_MCASTCOLL_EXPERIMENT:' <<<"$registered" | grep -ao '[a-z_]*=[a-z0-9]* (' | tr -d ' (')
[ "$(wc -l <<<"$pairs")" -ge 10 ] || { echo "settings: fi_info shows hardly any experiment"; exit 1; }
all=$(tr '\n' ',' <<<"$pairs")
good FI_MCASTCOLL_EXPERIMENT=
good "FI_MCASTCOLL_EXPERIMENT=$all"
good FI_MCASTCOLL_EXPERIMENT=channels=65,channels=1,root_sync=delay:100000
while IFS='=' read -r key value; do
    refused "set FI_MCASTCOLL_EXPERIMENT=$key=$value" "FI_MCASTCOLL_${key^^}=$value"
    refused "FI_MCASTCOLL_EXPERIMENT: $key=-1 is not valid" "FI_MCASTCOLL_EXPERIMENT=$key=-1"
done <<<"$pairs"
refused 'channels=65 is not valid; allowed: 1 to 64' FI_MCASTCOLL_EXPERIMENT=channels=65
refused 'channel=1 is not valid; allowed: KEY=VALUE' FI_MCASTCOLL_EXPERIMENT=repair=sync,channel=1
refused 'channels is not valid; allowed: KEY=VALUE' FI_MCASTCOLL_EXPERIMENT=channels
refused 'set FI_MCASTCOLL_MULTICAST=verbs' FI_MCASTCOLL_TRANSPORT=verbs
refused 'set FI_MCASTCOLL_EXPERIMENT=address_scheme=tree' FI_MCASTCOLL_PLAN=tree
refused 'allowed: auto, udp, verbs or off' FI_MCASTCOLL_MULTICAST=on
for setting in FI_MCASTCOLL_TTL=256 FI_MCASTCOLL_RCVBUF=1K FI_MCASTCOLL_JOIN_TIMEOUT=0 FI_MCASTCOLL_HOST_TIMEOUT=0 FI_MCASTCOLL_STALL_TIMEOUT=-1 \
    FI_MCASTCOLL_SECURITY=on FI_MCASTCOLL_TOPOLOGY=x FI_MCASTCOLL_INNER=mcastcoll; do
    refused "$setting is not valid" "$setting"
done
exit $bad
