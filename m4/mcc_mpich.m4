# The headers of an MPI with MPICH's ABI (MPICH, MVAPICH, Intel MPI ...), for libmcastcoll-pmpi.so and its test.
# --with-mpich[=MPICC] fails without one; --without-mpich skips it; by default it is used if available.
AC_DEFUN([MCC_CHECK_MPICH], [
  AC_ARG_WITH([mpich],
    [AS_HELP_STRING([--with-mpich=MPICC], [build libmcastcoll-pmpi.so for this MPICH (its compiler wrapper) @<:@if there is one@:>@])],
    [], [with_mpich=check])
  have_mpich=no
  AS_CASE([$with_mpich], [no], [], [yes | check], [AC_PATH_PROGS([MPICH_CC], [mpicc.mpich mpicc], [none])],
          [MPICH_CC=$with_mpich])
  AS_IF([test "x$with_mpich" != xno && test "$MPICH_CC" != none], [
    # from the wrapper's compiler line, only the search paths
    for word in `$MPICH_CC -show 2>/dev/null`; do
      AS_CASE([$word],
        [-I*], [MPICH_CPPFLAGS="$MPICH_CPPFLAGS $word"
                dir=`echo "$word" | sed 's/^-I//'`
                AS_IF([grep -q '^#define MPICH_VERSION' "$dir/mpi.h" 2>/dev/null], [have_mpich=yes])],
        [-L* | -l*], [MPICH_LIBS="$MPICH_LIBS $word"])
    done
  ])
  AS_IF([test "x$with_mpich" != xno && test "x$with_mpich" != xcheck && test "$have_mpich" = no],
    [AC_MSG_ERROR([--with-mpich: $MPICH_CC knows no mpi.h of MPICH (Debian: libmpich-dev)])])
  AC_MSG_CHECKING([for MPICH's headers])
  AC_MSG_RESULT([$have_mpich])
  AM_CONDITIONAL([HAVE_MPICH], [test "$have_mpich" = yes])
  AC_SUBST([MPICH_CPPFLAGS])
  AC_SUBST([MPICH_LIBS])
])
