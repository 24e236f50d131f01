# shellcheck shell=bash
# Sourced by the installation tests: counts outcomes.

passed=0 failed=0
check() { # check TEXT COMMAND...: prints the command's output if it fails
    local text=$1 said
    shift
    if said=$("$@" 2>&1); then
        echo "ok   $text"
        passed=$((passed + 1))
    else
        echo "FAIL $text"
        tail -n 25 <<<"$said" | sed 's/^/     /'
        failed=$((failed + 1))
        false
    fi
}
