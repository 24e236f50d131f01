#!/bin/bash
# Checks that the wire format, the engine, the join of a group and the topology model are pure: no system call, clock,
# random source, environment, log or libfabric. Checks the includes of their sources and the undefined symbols of their
# objects.  Run in the top build directory.
set -u
top=${top_srcdir:-${srcdir:-.}}
folder_of() { # folder_of LAYER: where sources and objects are, relative to the top folder
    case $1 in session) echo util/gateway/session ;; *) echo "prov/mcastcoll/$1" ;; esac
}
failures=0

complain() {
    echo "purity: $*" >&2
    failures=$((failures + 1))
}

# Standard headers without input, output, time or randomness. Exceptions: <chrono> only for types, <charconv> for
# reading numbers, <arpa/inet.h> for converting addresses to and from text, and fmt for making strings.
allowed_system='algorithm|arpa/inet\.h|array|bit|bitset|cassert|cerrno|charconv|chrono|compare|cstddef|cstdint|cstring|deque|functional|intel-ipsec-mb\.h|iterator|limits|list|map|memory|new|numeric|nettle/(gcm|hmac|memops|umac)\.h|optional|set|span|string|string_view|tuple|type_traits|unordered_map|unordered_set|utility|variant|vector|isa-l/(crc|erasure_code)\.h|zstd\.h|zstd_errors\.h|fmt/core\.h'
calls='(::)?(socket|recv[a-z]*|send(to|msg|mmsg)|poll|select|epoll_[a-z]+|read|write|open|clock_gettime|gettimeofday|time|rand|random|getrandom|getenv|secure_getenv|s?printf|fprintf|puts|usleep|nanosleep|fi_[a-z]+)'

# Pure headers of base/.
base='base/(cache|collective|combiner|function_ref|rank_set|result|ring|rule_line|types|window_bitmap)\.h'

for layer in wire engine reliable levels topology session group; do
    folder=$top/$(folder_of $layer)
    [ -d "$folder" ] || { complain "no folder $folder"; continue; }
    own='wire'
    sources=("$folder"/*.h "$folder"/*.cc)
    case $layer in
        reliable) own='wire|reliable' ;;
        session) own='wire|gateway/session' ;;
        engine) own='wire|engine|reduce' ;;
        levels) own='wire|engine|reduce|topology|levels' ;;
        group) own='wire|engine|topology|levels|group' ;;
        topology) # the part with system calls is a separate library
            own='wire|topology'
            sources=()
            for file in "$folder"/*.h "$folder"/*.cc; do
                case ${file##*/} in discover.*|machine*|job_report*) ;; *) sources+=("$file") ;; esac
            done ;;
    esac
    while IFS= read -r line; do
        complain "not allowed: $line"
    done < <(grep -nE '^[[:space:]]*#[[:space:]]*include' "${sources[@]}" |
             grep -vE "#[[:space:]]*include[[:space:]]+(<($allowed_system)>|\"($own)/[a-z_]+\.h\"|\"$base\")")
    while IFS= read -r line; do
        complain "a call that is not allowed: $line"
    done < <(grep -nE "(^|[^A-Za-z0-9_.>:])$calls\(" "${sources[@]}" | grep -vE ':[0-9]+:[[:space:]]*//')
    while IFS= read -r line; do
        complain "a clock or chance: $line"
    done < <(grep -nE '_clock::now|random_device|mt19937|thread_local|std::c(out|err|in)|std::(thread|mutex|atomic)' \
             "${sources[@]}" | grep -vE ':[0-9]+:[[:space:]]*//')
done

# Sources of the doctor for the evaluation of facts, and for their JSON.
doctor=$top/util/doctor
sources=("$doctor"/{look,reception}.h "$doctor"/{facts,firewall_rules,judg,report,tally}*.{h,cc})
while IFS= read -r line; do
    complain "not allowed: $line"
done < <(grep -nE '^[[:space:]]*#[[:space:]]*include' "${sources[@]}" |
         grep -vE "#[[:space:]]*include[[:space:]]+(<($allowed_system|fmt/format\.h|nlohmann/json\.hpp)>|\"(facts|firewall_rules|judge|judging|look|reception|report|tally)\.h\"|\"$base\")")
while IFS= read -r line; do
    complain "a call that is not allowed: $line"
done < <(grep -nE "(^|[^A-Za-z0-9_.>:])$calls\(" "${sources[@]}" | grep -vE ':[0-9]+:[[:space:]]*//')

# Undefined symbols of the objects.
denied='socket|bind|connect|listen|accept4?|recv|recvfrom|recvmsg|recvmmsg|send|sendto|sendmsg|sendmmsg|poll|ppoll|select|epoll_.*|open|openat|read|readv|write|writev|ioctl|fcntl|clock_gettime|gettimeofday|time|nanosleep|usleep|sleep|rand|srand|random|srandom|rand_r|drand48|getrandom|getentropy|getenv|secure_getenv|printf|fprintf|vprintf|vfprintf|puts|fputs|fwrite|syslog|fork|execve|mmap|munmap|shm_open|pthread_create|syscall|fi_.*'
for layer in wire engine reliable levels topology session group; do
    archive=$(folder_of $layer)/.libs/libmcc$layer.a
    if [ ! -f "$archive" ]; then
        complain "no archive $archive: build first"
        continue
    fi
    symbols=$(nm -u "$archive" 2>/dev/null | awk '$1 == "U" || $1 == "w" { sub(/@.*/, "", $2); print $2 }' | sort -u)
    [ -n "$symbols" ] || complain "nm finds nothing in $archive"
    while IFS= read -r symbol; do
        [ -n "$symbol" ] && complain "$archive needs $symbol"
    done < <(printf '%s\n' "$symbols" | grep -E "^($denied)$"
             printf '%s\n' "$symbols" | c++filt | grep -E 'std::(basic_[io]*stream|cout|cerr|random_device|chrono::.*::now)')
done

[ "$failures" -eq 0 ] || exit 1
echo "purity: wire, engine, reliable, levels, session, group, the model of the topology and what the doctor makes of facts are pure"
