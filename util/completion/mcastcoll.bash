# Completion of mcastcoll's commands in bash: options, and the values of an option, taken from the command's own --help-all.
#
# Runs the command of that name in PATH, whatever path was typed: pressing the tab key must not run a program of the current
# folder. Bash expands nothing in the text of the help.
_mcastcoll() {
    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} command help words=() one
    COMPREPLY=()
    command=$(type -P "${1##*/}") && [[ $command == /* ]] || return 0
    help=$("$command" --help-all 2>/dev/null) || return 0
    if [[ $word == -* ]]; then
        mapfile -t words < <(grep -oE -- '--[a-z][a-z-]+' <<<"$help" | sort -u)
    elif [[ $before =~ ^--[a-z][a-z-]+$ ]]; then
        mapfile -t words < <(grep -oE -- "(^|[ ,])$before [^ ]*\{[^}]+\}" <<<"$help" | head -n 1 | sed 's/.*{//; s/}//' | tr , '\n' |
            grep -xE '[A-Za-z0-9._:+-]+')
    fi
    for one in "${words[@]}"; do [[ $one != "$word"* ]] || COMPREPLY+=("$one"); done
}
complete -o default -F _mcastcoll mcastcoll-{cp,doctor,gateway,perf,sim,topo,tune}
