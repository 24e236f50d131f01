#!/bin/bash
# install.sh -- tests which files "make install" installs and "make uninstall" leaves, and that a stock system finds
# them.
#
# Into an empty folder (DESTDIR) on every machine; and on a scratch system, in the folders that users get, if this
# machine can create one.
set -u
TOP=$(cd "$(dirname "$0")/../.." && pwd)
HERE=$TOP/fabtests/install
BUILD=${MCASTCOLL_BUILD:-$TOP/build}
skipped=0
. "$HERE/outcomes.sh"
made() { make -s -C "$BUILD" "$@"; }
folder() { made -f Makefile -f <(printf 'say-folder:\n\t@echo $(%s)\n' "$1") say-folder; }
whole_list() { # the list of files, with this build's folders
    grep -v '^#' "$HERE/files" | sed -e "s,^BIN/,$(folder bindir)/," -e "s,^INCLUDE/,$(folder includedir)/," -e "s,^LIB/,$(folder libdir)/," \
        -e "s,^LIBEXEC/,$(folder libexecdir)/," -e "s,^MAN/,$(folder mandir)/," -e "s,^OPENMPI/,$(folder ompi_componentdir)/," \
        -e "s,^PREFIX/,$(folder prefix)/," -e "s,^PROVIDERS/,$(folder provdir)/," -e "s,^SHARE/,$(folder datarootdir)/," | sort
}
same_list() { diff <(whole_list) <(cd "$1" && find . ! -type d | sed 's/^\.//' | sort); }
# Each file is in exactly one of Debian's packages, which contain no further files.
packaged() {
    local file pattern times bad=0
    while read -r file; do
        times=0
        while read -r pattern; do case $file in $pattern | $pattern/*) times=$((times + 1)) ;; esac; done < <(cat "$TOP"/debian/*.install)
        [ $times = 1 ] || { echo "$file is in $times packages"; bad=1; }
    done < <(grep -v '^#' "$HERE/files" | sed -e 's,^BIN/,usr/bin/,' -e 's,^INCLUDE/,usr/include/,' -e 's,^LIB/,usr/lib/x/,' -e 's,^LIBEXEC/,usr/libexec/,' \
        -e 's,^MAN/,usr/share/man/,' -e 's,^OPENMPI/,usr/lib/x/openmpi/lib/x/,' -e 's,^PREFIX/,usr/,' -e 's,^PROVIDERS/,usr/lib/x/libfabric/,' -e 's,^SHARE/,usr/share/,')
    return $bad
}
one_version() { # configure's version, like 1.2.3
    local version=$(folder PACKAGE_VERSION) major minor _
    IFS=. read -r major minor _ <<<"$version"
    grep -m 1 '^mcastcoll (' "$TOP/debian/changelog" | grep -F "($version)" && grep -xF "Version: $version" "$TOP/mcastcoll.spec" &&
        grep -m 1 -xE '[0-9.]+' "$TOP/NEWS" | grep -xF "$version" && grep -F "version = FI_VERSION($major, $minor)" "$TOP/prov/mcastcoll/ofi/provider.cc"
}
nothing_in() { ! find "$1" ! -type d | grep . && ! find "$1" -type d | grep -E 'mcastcoll|libfabric$'; }

# On a scratch system: this script again, inside the system.
silent() { local said; said=$("$@" 2>&1) && [ -z "$said" ] || { echo "$said"; false; }; }
compiles() { # compiles COMPILER LANGUAGE
    printf '#include <mcastcoll/mcastcoll.h>\nint main(void) { return (int)sizeof(struct fi_mcastcoll_set_ops) == 0; }\n' |
        "$1" -x "$2" -Wall -Wextra -Werror $(pkg-config --cflags mcastcoll) -o /tmp/compiled - && /tmp/compiled
}
listing() { find /usr /etc ! -type d -printf '%p %s\n' | grep -v '^/etc/ld.so.cache ' | sort; }
unchanged() { listing | diff /tmp/before -; }
on_system() {
    cd /
    listing >/tmp/before
    check "make install" made install
    check "its files are in their places" ls $(whole_list)
    check "libfabric finds the provider" fi_info -p mcastcoll
    check "libfabric lists its variables" grep -q FI_MCASTCOLL_INNER <(fi_info -e)
    check "Open MPI finds the component" grep -q 'MCA coll: mcastcoll' <(ompi_info)
    check "pkg-config prints the provider's folder" test "$(pkg-config --variable=providerdir mcastcoll)" = "$(folder provdir)"
    check "the header compiles as C" compiles gcc c
    check "the header compiles as C++" compiles g++ c++
    for so in libmcastcoll-pmpi.so libmcastcoll-split.so; do
        check "the loader finds $so by its name" silent env LD_PRELOAD=$so true
    done
    for tool in cp doctor gateway perf sim topo tune; do check "mcastcoll-$tool is a command" "mcastcoll-$tool" --version; done
    if command -v man >/dev/null; then check "man finds the pages" man -w fi_mcastcoll libmcastcoll-pmpi libmcastcoll-split mcastcoll-perf; fi
    check "make uninstall" made uninstall
    check "it leaves everything as it was" unchanged
    for so in libmcastcoll-pmpi.so libmcastcoll-split.so; do
        check "the loader has forgotten $so" grep -q 'cannot be preloaded' <(env LD_PRELOAD=$so true 2>&1)
    done
    echo "$passed passed, $failed failed, $skipped skipped"
    [ $failed = 0 ]
}
if [ "${1:-}" = --inside ]; then on_system; exit; fi

root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
check "make install DESTDIR" made install DESTDIR="$root"
check "exactly the files of fabtests/install/files" same_list "$root"
check "each is in one of Debian's packages" packaged
check "they are all of one version" one_version
check "make uninstall DESTDIR" made uninstall DESTDIR="$root"
check "it leaves nothing" nothing_in "$root"
code=0
"$HERE/scratch_system.sh" env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root MCASTCOLL_BUILD="$BUILD" "$0" --inside >"$root/said" || code=$?
grep -v ' skipped$' "$root/said"
case $code in
    0 | 1) read -r p _ f _ < <(grep ' skipped$' "$root/said"); passed=$((passed + ${p:-0})) failed=$((failed + ${f:-1})) ;;
    77) skipped=1 ;;
    *) echo "FAIL on a scratch system: code $code"; failed=$((failed + 1)) ;;
esac
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ]
