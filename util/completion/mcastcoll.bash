# Completion of mcastcoll's commands in bash: options, and the words that one takes, as the command's own --help-all has them.
_mcastcoll() {
    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} help words=''
    help=$("$1" --help-all 2>/dev/null) || return 0
    if [[ $word == -* ]]; then
        words=$(grep -oE -- '--[a-z][a-z-]+' <<<"$help" | sort -u)
    elif [[ $before == --* ]]; then
        words=$(grep -oE -- "(^|[ ,])$before [^ ]*\{[^}]+\}" <<<"$help" | head -n 1 | sed 's/.*{//; s/}//; s/,/ /g')
    fi
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
}
complete -o default -F _mcastcoll mcastcoll-{cp,doctor,gateway,perf,sim,topo,tune}
