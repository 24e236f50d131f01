#!/bin/bash
# settings.sh -- checks that the provider accepts valid settings for experiments, and refuses others with an error that
# names what is allowed.
#
# Runs in the top folder of a build. Keys, defaults and values are those that `fi_info -e` prints; each key's former
# variable, such as FI_MCASTCOLL_REPAIR, must be refused with the new form.
set -u
case ${1:-} in --help | -h) awk 'NR > 1 { if (!/^#/) exit; sub(/^# ?/, ""); print }' "$0"; exit 0 ;; esac
if nm -D prov/mcastcoll/ofi/.libs/libmcastcoll-fi.so | grep -q __asan; then
    echo "skip fi_info does not load a provider with sanitizers"
    exit 77
fi
bad=0
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
pairs=$(FI_PROVIDER=mcastcoll fi_info -e 2>/dev/null | grep -a -A1 '^# FI_MCASTCOLL_EXPERIMENT:' | grep -ao '[a-z_]*=[a-z0-9]* (' | tr -d ' (')
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
refused 'allowed: auto, udp, verbs or off' FI_MCASTCOLL_MULTICAST=on
for setting in FI_MCASTCOLL_TTL=256 FI_MCASTCOLL_RCVBUF=1K FI_MCASTCOLL_JOIN_TIMEOUT=0 FI_MCASTCOLL_HOST_TIMEOUT=0 FI_MCASTCOLL_STALL_TIMEOUT=-1 \
    FI_MCASTCOLL_SECURITY=on FI_MCASTCOLL_TOPOLOGY=x FI_MCASTCOLL_INNER=mcastcoll; do
    refused "$setting is not valid" "$setting"
done
exit $bad
