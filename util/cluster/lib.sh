# shellcheck shell=bash
# Common functions, sourced by every command of the virtual cluster. The README beside it is the manual.
#
# Ownership: `up` creates $STATE and all files in it, `down` removes them; the other commands only read. A host hN is
# the network namespace $VC-hN, a site's switch and router is $VC-swN, so clusters with different names are separate.
VC=${VC:-vc}
NET=${NET:-10.77}
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
TOP=$(cd "$HERE/../.." && pwd)
ME=${0##*/}
STATE=/run/mcastcoll/$VC

die() { echo "$ME: $*" >&2; exit 1; }
bad_usage() { echo "$ME: $*; see '$ME --help'" >&2; exit 2; }

# The help of a command is the comment at its top.
usage() { awk 'NR > 1 { if (!/^#/) exit; sub(/^# ?/, ""); print }' "$0"; }
version() { sed -n 's/^AC_INIT(\[mcastcoll\], \[\([^]]*\)\].*/mcastcoll \1/p' "$TOP/configure.ac"; }
standard_options() {
    case ${1:-} in
        --help | -h) usage; exit 0 ;;
        --version) version; exit 0 ;;
    esac
}

need_root() {
    [ "$(id -u)" = 0 ] || die "needs root (it makes and enters network namespaces): run it as root or through sudo"
    local tool
    for tool in ip unshare "$@"; do
        command -v "$tool" >/dev/null || die "needs '$tool', which is not installed: run util/install-deps"
    done
}
is_number() { [[ $1 =~ ^[0-9]+$ ]]; }
is_up() { [ -s "$STATE/hosts" ]; }
need_up() { is_up || die "cluster '$VC' is not up: start it with '${VC:+VC=$VC }$HERE/up N'"; }
hosts() { awk '{print $2}' "$STATE/hosts" 2>/dev/null; }
gateways() { awk '{print $2}' "$STATE/gateways" 2>/dev/null; } # gw0, gw1, ..: one at each site's border, if there are gateways
address_of() { { cat "$STATE/hosts" "$STATE/gateways" 2>/dev/null || :; } | awk -v h="$1" '$2 == h {print $1}'; }
# nftables rules at a host's ingress hook: a sender's own loopback copies pass the hook, too, so its own addresses are
# exempt.
spare_own() { # spare_own HOST
    echo "ip saddr $(address_of "$1") return"
    ip -n "$(ns "$1")" -6 -o addr show dev eth0 | awk '{ sub("/.*", "", $4); all = all sep $4; sep = ", " }
        END { if (all) print "ip6 saddr { " all " } return" }'
}
need_gateways() { [ -s "$STATE/gateways" ] || die "cluster '$VC' has no gateways: start it with GATEWAYS=1"; }
need_host() { [ -n "$(address_of "$1")" ] || die "no host '$1' in cluster '$VC': it has $(hosts | paste -sd' ')"; }
ns() { echo "$VC-$1"; }
our_namespaces() { ip netns list 2>/dev/null | awk -v p="^$VC-(h|sw|gw)[0-9]+\$" '$1 ~ p {print $1}'; }

[[ $VC =~ ^[A-Za-z][A-Za-z0-9_-]{0,31}$ ]] || die "VC='$VC' is no cluster name: letters, digits, '-' and '_' only"
if ! [[ $NET =~ ^([0-9]{1,3})\.([0-9]{1,3})$ ]] || ((10#${BASH_REMATCH[1]} > 223 || 10#${BASH_REMATCH[2]} > 255)); then
    die "NET='$NET' is no network: give the first two numbers of an IPv4 network, like 10.77"
fi
NET6=fd4d:$((10#${BASH_REMATCH[1]})):$((10#${BASH_REMATCH[2]}))
