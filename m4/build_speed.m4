# What makes the build or the provider faster. Each measure says what it gains; --disable-build-speed leaves all of them
# out, so that a build with one object for each file, -g and -O2 shows whether an error comes from a measure. The rules
# for make are in build_speed.mk.

# Before AC_PROG_CC. Debug information for traces only (-g1): full information doubles the time to build.
AC_DEFUN([MCC_DEFAULT_FLAGS], [
AC_ARG_ENABLE([build-speed],
  [AS_HELP_STRING([--disable-build-speed], [compile each file by itself with -O2, without precompiled headers and -flto])])
AS_IF([test "${CXXFLAGS+given}" = given], [mcc_speed_given=yes], [mcc_speed_given=no])
AS_IF([test "x$enable_build_speed" != xno],
  [: ${CFLAGS="-g1 -O2"}
   AS_IF([test $mcc_speed_given = no], [CXXFLAGS=-g1])],
  [mcc_speed_given=yes])
])

# After the compilers and --enable-sanitizers.
AC_DEFUN([MCC_BUILD_SPEED], [
AS_IF([test "x$enable_build_speed" = xno], [mcc_one_file=no mcc_precompile=no], [mcc_one_file=yes
   # Only g++ keeps compiled headers in a folder and selects the suitable one; clang++ claims to be g++, too.
   AS_IF([test "x$GXX" = xyes && ! $CXX --version 2>/dev/null | grep -q clang], [mcc_precompile=yes], [mcc_precompile=no])])

# The files of a folder are compiled as one, in a third of the time, since they include the same headers and instantiate
# the same templates.
AM_CONDITIONAL([ONE_FILE], [test $mcc_one_file = yes])

# The headers of base/standard.h are precompiled, which halves the compile time of most files. All files are compiled with
# -pthread and with the flags of libraries, since the compiled headers require the same flags. With these headers in memory
# g++ would collect garbage all the time: a threshold of 512 MiB makes it a tenth faster.
AM_CONDITIONAL([PRECOMPILE], [test $mcc_precompile = yes])
AS_IF([test $mcc_precompile = yes],
  [MCC_STANDARD="-pthread -fPIC -DPIC --param ggc-min-heapsize=524288 -include base/standard.h"], [MCC_STANDARD=])
AC_SUBST([MCC_STANDARD])

# Unit tests, mutants, and code that parses command lines or writes JSON are not optimised, which halves their compile
# time. With sanitizers the same holds for functional tests and for tools that move little data, and the rest gets -O1.
# Without sanitizers functional tests get -O1: they compare many bytes.
mcc_speed=-O2 mcc_plain_sanitized=
AS_IF([test "x$enable_sanitizers" != xno], [mcc_speed=-O1 mcc_plain_sanitized='fabtests/functional/% util/doctor/% util/hostset/%'])
mcc_plain='fabtests/unit/% prov/mcastcoll/%-all.o fabtests/gateway/% fabtests/verbs/% util/arguments/% util/topo/% util/hostset/test_% util/cp/test_% %-status.o %-statistics.o %-summary.o %/test '$mcc_plain_sanitized
AS_IF([test $mcc_speed_given = yes], [MCC_SPEED=],
  [MCC_SPEED='$(if $(filter '$mcc_plain',$][@),-O0,$(if $(filter fabtests/%,$][@),-O1,'$mcc_speed'))'])
AC_SUBST([MCC_SPEED])

# The checks object-size and pointer-overflow take a fifth of the time to compile with sanitizers, and the address sanitizer
# finds the accesses that follow.
AS_IF([test $mcc_one_file = yes],
  [AS_CASE([,$enable_sanitizers,], [*,undefined,*], [MCC_SANITIZE="$MCC_SANITIZE -fno-sanitize=object-size,pointer-overflow"])])

# A packet passes seven folders of code, so g++ optimises the provider as a whole, which makes it slightly faster and the
# build a fifth longer; clang would need a different linker. Programs linked from the same folders use the machine code
# that each object has as well; by default, g++ would optimise those programs as a whole, too. Not with sanitizers, nor if
# CXXFLAGS has no optimisation.
MCC_WHOLE=
AS_CASE([$mcc_one_file$mcc_speed_given$enable_sanitizers$CXXFLAGS], [yesnono*|yesyesno*-O[[23]]*],
  [mcc_whole="-flto=auto -ffat-lto-objects"
   mcc_given=$CXXFLAGS CXXFLAGS="$CXXFLAGS $mcc_whole -Werror"
   AC_LINK_IFELSE([AC_LANG_PROGRAM()], [MCC_WHOLE='$(if $(filter prov/%.lo prov/%.la,$][@),'$mcc_whole',-fno-lto)'])
   CXXFLAGS=$mcc_given])
AC_SUBST([MCC_WHOLE])
])
