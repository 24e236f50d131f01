# shellcheck shell=bash
# Sourced by util/check.sh: reports how a step ended, from its log, and counts its tests.

passed=0 failed=0 skipped=0
processors=0 # seconds of processor time that this shell's children have used until their ends
declare -A outcome # of each step that has ended: ok, skipped or failed
read -r check_began _ </proc/uptime

say() { echo "         $*"; } # below the line that reports a step's beginning

# report NAME CODE LIMIT_s TOOK_s: the step NAME has exited with CODE.  A step whose log counts no tests counts as one test.
report() {
    local log=$LOGS/$1.log p f s counts before=$processors
    times >"$LOGS/times" # a file, because a subshell would print its own times
    processors=$(awk -F'[ms ]+' 'END { printf "%d", 60 * ($1 + $3) + $2 + $4 }' "$LOGS/times")
    read -r p f s counts < <(count_tests "$log")
    [ -n "$counts" ] || case $2 in 0) p=1 ;; 77) s=1 ;; *) f=1 ;; esac
    outcome[$1]=failed
    case $2:$f in
        0:0) outcome[$1]=ok; say "$1: ok${counts:+, $counts} ($4 s; processor time $((processors - before)) s)" ;;
        77:0) outcome[$1]=skipped; say "$1: skipped: $(sed -n '/^skip /{s///p;q}' "$log")" ;;
        124:* | 137:*) say "$1: FAILED, no end within $3 s${counts:+ ($counts)}" ;;
        *) say "$1: FAILED, code $2${counts:+ ($counts)}" ;;
    esac
    if [ "${outcome[$1]}" = failed ]; then
        [ "$f" != 0 ] || f=1
        show_failure "$log"
        show_lost_neighbours
    fi
    passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
}

# report_unrun NAME failed|skipped REASON: the step NAME cannot run.
report_unrun() {
    outcome[$1]=$2
    case $2 in
        failed) say "$1: FAILED, $3"; failed=$((failed + 1)) ;;
        skipped) say "$1: skipped: $3"; skipped=$((skipped + 1)) ;;
    esac
}

# count_tests LOG: prints the tests passed, failed and skipped, and these counts as text, which is empty if the log has no counts.
# "make check" prints "# PASS: 3", other tests "3 passed, 0 failed, 0 skipped".  A failed "make check" prints its totals twice, so
# each "# TOTAL" starts anew.
count_tests() {
    awk '
        /^# TOTAL: +[0-9]+$/ { p = f = s = 0; seen = 1 }
        /^# (PASS|XFAIL): +[0-9]+$/ { p += $3; seen = 1 }
        /^# (FAIL|XPASS|ERROR): +[0-9]+$/ { f += $3; seen = 1 }
        /^# SKIP: +[0-9]+$/ { s += $3; seen = 1 }
        /^[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped$/ { p += $1; f += $3; s += $5; seen = 1 }
        END {
            printf "%d %d %d", p, f, s
            if (seen) printf " %d passed%s%s", p, f ? ", " f " failed" : "", s ? ", " s " skipped" : ""
            print ""
        }' "$1"
}

# show_failure LOG: prints the lines of the log that report failures, and the last lines.
show_failure() {
    {
        grep -E '^(FAIL|ERROR|XPASS)[: ]|error:|ERROR: AddressSanitizer|runtime error' "$1" | head -n 20
        echo ...
        tail -n 15 "$1"
    } | sed 's/^/         | /'
    say "all of it is in $1"
}

# A full neighbor table of the kernel drops packets of each cluster on the machine, which can make any step fail.  Prints the
# kernel's message, if the table was full during this check.
show_lost_neighbours() {
    dmesg 2>/dev/null | awk -F'[][ ]+' -v since="$check_began" '
        /neighbor table overflow/ && $2 + 0 >= since { lines++; last = $0 }
        END { if (lines) printf "         the kernel dropped packets during the check (%d lines of dmesg): %s\n", lines, last }'
}
