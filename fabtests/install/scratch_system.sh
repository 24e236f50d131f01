#!/bin/bash
# scratch_system.sh COMMAND [ARGUMENT...] -- runs COMMAND, as root, on a temporary copy of this system, and discards all
# changes.
#
# Changes to the tree, /usr, /etc, /var and /root stay in memory, over the real folders; /tmp, /run, /dev/shm and
# /etc/netns are empty.  The network is that of a machine with one interface: eth0, 10.1.0.1/16.  All processes end with
# COMMAND. Exit code 77, and a line that begins with "skip", if this machine cannot do that.
set -eu
TOP=$(cd "$(dirname "$0")/../.." && pwd)
[ $# -gt 0 ] || { echo "${0##*/}: what am I to run?" >&2; exit 2; }
if [ "$1" != --inside ]; then
    [ "$(id -u)" = 0 ] || { echo "skip a scratch system needs root"; exit 77; }
    unshare --mount --net --pid --fork --kill-child --mount-proc "$0" --inside true 2>/dev/null || { echo "skip this machine makes no scratch system"; exit 77; }
    # unshare ignores SIGTERM, so the kernel kills it when the parent ends.
    exec setpriv --pdeathsig KILL unshare --mount --net --pid --fork --kill-child --mount-proc "$0" --inside "$@"
fi
shift

memory=/mnt
mount -t tmpfs scratch "$memory"
cover() { # cover FOLDER: from now on, changes in FOLDER go to memory
    mkdir -p "$memory$1"/{upper,work}
    mount -t overlay scratch -o "lowerdir=$1,upperdir=$memory$1/upper,workdir=$memory$1/work" "$1"
}
for folder in /usr /etc /var /root "$TOP"; do cover "$folder"; done
mkdir -p /etc/netns
for folder in /run /dev/shm /tmp /etc/netns; do
    case $TOP/ in "$folder"/*) continue ;; esac
    mount -t tmpfs scratch "$folder"
done
chmod 1777 /tmp /dev/shm
ip link set lo up
ip link add eth0 type veth peer name switch
ip address add 10.1.0.1/16 dev eth0
ip link set eth0 up
ip link set switch up
# Ports of the documents' servers: no other connection may use them.
echo 7400,47592 >/proc/sys/net/ipv4/ip_local_reserved_ports
mount -t sysfs sysfs /sys 2>/dev/null || : # otherwise /sys shows the outer network's interfaces
cd "$TOP"
exec "$@"
