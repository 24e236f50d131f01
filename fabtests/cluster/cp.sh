#!/bin/bash
# cp.sh [--hosts N] [--losses PCT,PCT] [--only WORD] -- tests mcastcoll-cp on the cluster: copies equal the source,
# whatever is lost or fails.
#
# A tree with every kind of entry goes to all hosts, with --hosts and with mpirun, with and without loss of datagrams; a
# host is killed in the middle of a copy, a disk is full, a copy is interrupted and started again; and impossible
# requests are reported.
#   --hosts N      hosts (4)            --losses LIST   percentages of datagrams lost (0,5)
#   --only WORD    only the parts whose names contain WORD: tree, kill, full, resume, usage, mpirun, ways
set -u
. "$(dirname "$0")/common.sh"
hosts=4 losses=0,5 only=''
while [ $# -gt 0 ]; do
    case $1 in
        --help | -h) usage; exit 0 ;;
        --version) version; exit 0 ;;
        --hosts | --losses | --only)
            [ $# -ge 2 ] || bad_usage "'$1' needs a value"
            declare "${1#--}=$2"
            shift 2
            ;;
        *) bad_usage "'$1' is no option" ;;
    esac
done
[[ $hosts =~ ^[0-9]+$ ]] && ((hosts >= 3 && hosts <= 32)) || bad_usage "'--hosts $hosts': give 3 to 32"
can_cluster || finish
use_build
RATE=400mbit start_cluster "$hosts" # slow, so that a copy can be interrupted in its middle
all=$(seq -f 'h%g' -s, 0 $((hosts - 1)))
last=h$((hosts - 1))
on_exit '"$LAB/down"; umount "$work"/full/* 2>/dev/null; rm -rf "$work"'

# copy() starts a copy with --hosts on h0; launched() one with mpirun and one process per host.
copy() { # copy ARGUMENT...: into $work/out, $work/err; its code is $code
    code=0
    bounded 200 "$LAB/on" h0 "$BUILD/util/cp/mcastcoll-cp" --hosts "$all" --rsh "$LAB/rsh" "$@" >"$work/out" 2>"$work/err" </dev/null || code=$?
}
launched() {
    code=0
    STACK=none bounded 200 "$LAB/run" "${options[@]}" "$BUILD/util/cp/mcastcoll-cp" "$@" >"$work/out" 2>"$work/err" </dev/null || code=$?
}
options=()
place() { # place NAME: creates a new folder for each host
    local h
    for h in $("$LAB/on" h0 true && tr , ' ' <<<"$all"); do rm -rf "${work:?}/$1/$h" && mkdir -p "$work/$1/$h"; done
}
# Lists a folder's contents with programs other than mcastcoll-cp.
listed() { (cd "$1" && find . -type f -print0 | sort -z | xargs -0r sha256sum && find . -printf '%p %y %m %U:%G %s %T@ %l\n' | awk '$2 == "d" { $5 = "" } 1' | sort); }
same_on() { # same_on PLACE SUB HOST...: PLACE/HOST/SUB of each host equals the source
    local at=$1 sub=$2 h
    shift 2
    listed "$work/tree" >"$work/want"
    for h in "$@"; do
        listed "$work/$at/$h/$sub" >"$work/got" 2>&1 || return
        cmp -s "$work/want" "$work/got" || { diff "$work/want" "$work/got" >>"$work/err"; return 1; }
    done
}
others() { tr , '\n' <<<"$all" | grep -vx "$1"; }
expect() { # expect WHAT CODE TEXT...
    local what=$1 want=$2 text
    shift 2
    [ "$code" = "$want" ] || { lament "$what: code $code, not $want"; return 1; }
    for text in "$@"; do grep -qF -- "$text" "$work/out" "$work/err" || { lament "$what: nothing says '$text'"; return 1; }; done
}
lament() { fail "$@"; tail -n 12 "$work/out" "$work/err" | sed 's/^/     /'; }
of_json() { python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))[sys.argv[2]])' "$work/out" "$1"; }
wants() { case ${only:-$1} in "$1") ;; *) return 1 ;; esac; }

make_tree() {
    local i
    mkdir -p "$work/tree/deep/er" "$work/tree/many" "$work/tree/none"
    head -c 67108864 /dev/urandom >"$work/tree/large"
    : >"$work/tree/empty"
    truncate -s 60M "$work/tree/sparse" && printf 'in the middle' | dd of="$work/tree/sparse" bs=1 seek=30000000 conv=notrunc status=none
    for ((i = 0; i < 2000; i++)); do echo "$i $RANDOM" >"$work/tree/many/$i"; done
    printf 'a name' >"$work/tree/deep/er/with
a line"
    ln -s ../large "$work/tree/deep/link" && ln -s nowhere "$work/tree/deep/broken"
    chmod 600 "$work/tree/deep/er/with
a line" && chmod 4755 "$work/tree/empty" && chmod 750 "$work/tree/many" && chmod 444 "$work/tree/many/7"
    chown 12:34 "$work/tree/many/8" && touch -d '2001-02-03 04:05:06.789' "$work/tree/many/9" "$work/tree/none"
    touch -h -d '2002-02-02' "$work/tree/deep/broken"
    touch -d '1999-12-31 23:59:59' "$work/tree/deep" "$work/tree"
}
sparse_stays() { # on a host: du of a sparse file of 60 MB with a few bytes of data
    local kib
    kib=$(du -k "$work/$1/$2/tree/sparse" | awk '{print $1}')
    ((kib < 1024)) || { lament "$2: the sparse file takes $kib KiB"; return 1; }
}

by_hosts() { # by_hosts LOSS
    place "tree$1"
    copy --json "$work/tree" "$work/tree$1/%h/"
    expect "a tree, $1 % lost" 0 '"hosts": '"$hosts" || return
    # shellcheck disable=SC2046
    same_on "tree$1" tree $(others none) || { lament "a tree, $1 % lost: another one has arrived"; return; }
    sparse_stays "tree$1" "$last" || return
    pass "a tree to $hosts hosts, $1 % lost"
}
again() { # existing files are not sent
    copy --json "$work/tree" "$work/tree0/%h/"
    expect "the same again" 0 '"files_sent": 0' '"bytes_sent": 0' && pass "the same again sends nothing"
    touch -d '2020-01-01' "$work/tree0/h1/tree/many/5" && echo other >"$work/tree0/h2/tree/many/6" && chmod 777 "$work/tree0/h2/tree/many/4"
    copy --json "$work/tree" "$work/tree0/%h/"
    # shellcheck disable=SC2046
    expect "two files of others" 0 '"files_sent": 2' && { same_on tree0 tree $(others none) && pass "what differs is sent" || lament "what differs is sent"; }
}
by_mpirun() {
    place mpirun
    options=() && launched "$work/tree" "$work/mpirun/%h/tree"
    # shellcheck disable=SC2046
    expect "mpirun" 0 "$hosts of $hosts hosts have" && { same_on mpirun tree $(others none) && pass "mpirun, the target a new name" || lament "mpirun: another tree has arrived"; }
    options=(-n $((hosts + 1))) && launched "$work/tree/empty" "$work/mpirun/%h/"
    [ "$code" = 0 ] || code=other
    expect "mpirun, two on a host" other "start one process per host" && pass "mpirun, two on a host"
    options=() && launched "$work/nothing" "$work/mpirun/%h/"
    [ "$code" = 0 ] || code=other
    expect "mpirun, no such source" other "$work/nothing: No such file" && pass "mpirun, no such source"
}

# Processes of the copy on a host.
copying() { ip netns pids "$VC-$1" | while read -r p; do [ "$(cat "/proc/$p/comm" 2>/dev/null)" != mcastcoll-cp ] || echo "$p"; done; }
# Waits until this many bytes of the large file exist; returns false if the copy ends before.
await_part() { # await_part PLACE HOST BYTES
    local size
    for _ in {1..2000}; do
        size=$(stat -c %s "$work/$1/$2/tree/".large.mcastcoll-* 2>/dev/null) && ((size >= $3)) && return
        kill -0 "$job" 2>/dev/null || return
        sleep .02
    done
    return 1
}
start_copy() { # start_copy PLACE ARGUMENT...
    timeout -k 5 200 "$LAB/on" h0 "$BUILD/util/cp/mcastcoll-cp" --hosts "$all" --rsh "$LAB/rsh" "${@:2}" "$work/tree" "$work/$1/%h/" >"$work/out" 2>"$work/err" </dev/null &
    job=$!
}
end_copy() { code=0; wait "$job" || code=$?; }
killed() {
    local pids
    place kill
    start_copy kill
    await_part kill "$last" 16000000 || { lament "a killed host: nothing to kill"; end_copy; return; }
    pids=$(copying "$last")
    # shellcheck disable=SC2086
    kill -9 $pids
    end_copy
    # shellcheck disable=SC2046
    expect "a killed host" 1 "$last: " "$((hosts - 1)) of $hosts hosts have" && { same_on kill tree $(others "$last") && pass "a killed host, and the others finish" || lament "a killed host: another tree"; }
}
full() {
    place full
    mount -t tmpfs -o size=24m none "$work/full/$last" || { skip "a full disk needs a tmpfs"; return; }
    copy "$work/tree" "$work/full/%h/"
    umount "$work/full/$last"
    # shellcheck disable=SC2046
    expect "a full disk" 1 "$last: $work/full/$last/tree/large: No space left" && { same_on full tree $(others "$last") && pass "a full disk, and the others finish" || lament "a full disk: another tree"; }
    place full
    rmdir "$work/full/h1" && echo "no folder" >"$work/full/h1"
    copy "$work/tree" "$work/full/%h/"
    # shellcheck disable=SC2046
    expect "no folder" 1 "h1: $work/full/h1: is not a folder" && { same_on full tree $(others h1) && pass "a target that is no folder" || lament "no folder: another tree"; }
}
resumed() {
    local h p sent whole=67108864
    place resume
    start_copy resume
    await_part resume "$last" 24000000 || { lament "resume: nothing to interrupt"; end_copy; return; }
    for h in $(others none); do for p in $(copying "$h"); do kill -TERM "$p" 2>/dev/null; done; done
    end_copy
    [ "$code" != 0 ] || { lament "resume: the copy was not interrupted"; return; }
    [ ! -e "$work/resume/$last/tree/large" ] || { lament "resume: the file is there before all of it is"; return; }
    copy --json "$work/tree" "$work/resume/%h/"
    expect "resume" 0 '"failed": {}' || return
    sent=$(of_json bytes_sent)
    # shellcheck disable=SC2046
    same_on resume tree $(others none) || { lament "resume: another tree has arrived"; return; }
    ((sent > 0 && sent < whole - 16000000)) && pass "an interrupted copy goes on: $((sent >> 20)) of 64 MiB sent" || lament "resume: $sent bytes sent"
    # A partial file of a source with another modification time is useless, and is removed.
    rm "$work/resume/$last/tree/large" && head -c 1000000 /dev/zero >"$work/resume/$last/tree/.large.mcastcoll-0123456789abcdef"
    copy --json "$work/tree" "$work/resume/%h/"
    expect "another source" 0 && { [ "$(of_json bytes_sent)" = $whole ] && same_on resume tree "$last" && pass "what is of another source is not used" || lament "another source"; }
}
usage_errors() {
    place bad
    copy "$work/nothing" "$work/bad/%h/" && expect "no such source" 2 "$work/nothing: No such file" && pass "no such source"
    copy "$work/tree/empty" "$work/tree/large" "$work/bad/%h/new" && expect "no folder" 2 "is not a folder on any host" && pass "several sources, no folder"
    copy "$work/tree/empty" "$work/tree/deep/../empty" "$work/bad/%h" && expect "twice" 2 "two sources are called 'empty'" && pass "two sources of one name"
    copy "$work/tree/empty" "$work/bad/%x/" && expect "%x" 2 "after % there is h" && pass "a placeholder that is none"
    copy / "$work/bad/%h/" && expect "/" 2 "'/' has no name" && pass "a source without a name"
    copy "$work/tree/empty" "/nonexistent/%h/sub/" && expect "no parent" 2 "$last: /nonexistent/$last/sub: No such file" && pass "a target whose folder is not there"
    copy one && expect "one word" 2 "at least one source and a target" && pass "one word"
    local all=$all,nowhere
    copy "$work/tree/large" "$work/bad/%h/" && expect "unknown host" 1 "nowhere: " "no host 'nowhere'" "$hosts of $((hosts + 1)) hosts have" && pass "an unknown host, and the others have it"
}
# Unusual kinds of sources and targets.
ways() {
    place ways
    copy "$work/tree/large" "$work/ways/%h/new" && expect "a new name" 0 && cmp -s "$work/tree/large" "$work/ways/$last/new" && pass "a file under a new name" || lament "a new name"
    rm -r "${work:?}/ways/h1" && ln -s "$work/elsewhere" "$work/ways/h1"
    mkdir -p "$work/elsewhere" "$work/outside" "$work/ways/h0/tree" && ln -s "$work/outside" "$work/ways/h0/tree/many"
    copy "$work/tree" "$work/ways/%h/"
    [ -z "$(ls -A "$work/outside")" ] && expect "a link in the way" 1 "h0: $work/ways/h0/tree/many: is in the way" "and 2000 more" "$((hosts - 1)) of" && same_on ways tree h1 "$last" && pass "nothing is written through a link below the target" || lament "a link below the target"
    copy --json "$work/tree/large" "$work/tree/"
    expect "onto itself" 0 '"bytes_sent": 0' && cmp -s "$work/tree/large" "$work/ways/$last/new" && pass "a file onto itself stays" || lament "onto itself"
    all=h1,$last copy "$work/tree/empty" "$work/ways/%h/led" && expect "h0 only leads" 0 "2 of 2 hosts have" && [ ! -e "$work/ways/h0/led" ] && pass "a head that is not in the list gets nothing" || lament "a head that only leads"
}

make_tree
for loss in ${losses//,/ }; do
    if [ "$loss" = 0 ]; then "$LAB/loss" off; else "$LAB/loss" "$loss"; fi
    ! wants tree || by_hosts "$loss"
done
! wants tree || again
! wants mpirun || by_mpirun
! wants kill || killed
! wants full || full
! wants resume || resumed
"$LAB/loss" off
! wants usage || usage_errors
! wants ways || ways
finish
