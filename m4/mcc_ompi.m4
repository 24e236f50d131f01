# Open MPI's headers for an out-of-tree component, and its wrapper compiler for the MPI tests.
# --with-ompi fails without them; --without-ompi skips them; by default they are used if available.
AC_DEFUN([MCC_CHECK_OMPI], [
  AC_ARG_WITH([ompi-componentdir],
    [AS_HELP_STRING([--with-ompi-componentdir=DIR], [where the coll component is installed @<:@Open MPI's own@:>@])],
    [], [with_ompi_componentdir=])
  have_ompi=no
  AS_IF([test "x$with_ompi" != xno], [
    AC_PATH_PROGS([MPICC], [mpicc.openmpi mpicc], [none])
    AS_IF([test "$MPICC" != none], [
      # the component's headers are two levels below the include directory of mpi.h
      for dir in `$MPICC --showme:incdirs 2>/dev/null`; do
        AS_IF([test -f "$dir/openmpi/ompi/mca/coll/coll.h"], [have_ompi=yes; ompi_incdir=$dir])
        AS_IF([test -f "$dir/ompi/mca/coll/coll.h"], [have_ompi=yes; ompi_incdir=`dirname $dir`])
      done
    ])
    AS_IF([test "$have_ompi" = yes], [
      # Headers missing in a package are searched last (mpi/openmpi/absent).
      OMPI_CPPFLAGS="-I$ompi_incdir -I$ompi_incdir/openmpi -I\$(top_srcdir)/mpi/openmpi/absent"
      OMPI_LIBDIR=`$MPICC --showme:libdirs | tr ' ' '\n' | head -1`
      OMPI_LIBS="-lmpi"
      # Releases before 5.0 have their own run-time layer, later ones use PMIx.
      AS_IF([test -f "$ompi_incdir/openmpi/ompi/mca/rte/rte.h"], [OMPI_LIBS="$OMPI_LIBS -lopen-rte"],
            [OMPI_CPPFLAGS="$OMPI_CPPFLAGS `$PKG_CONFIG --cflags-only-I pmix 2>/dev/null`"])
      OMPI_LIBS="$OMPI_LIBS -lopen-pal"
      ompi_componentdir=`ompi_info --parsable --path pkglibdir 2>/dev/null | sed -n 's/^path:pkglibdir://p'`
      test -n "$ompi_componentdir" || ompi_componentdir="$OMPI_LIBDIR/openmpi"    # the default without packages
      test -n "$with_ompi_componentdir" && ompi_componentdir=$with_ompi_componentdir
    ])
  ])
  AS_IF([test "x$with_ompi" = xyes && test "$have_ompi" = no],
    [AC_MSG_ERROR([--with-ompi: no Open MPI with its component headers found (Debian: libopenmpi-dev)])])
  AM_CONDITIONAL([HAVE_OMPI], [test "$have_ompi" = yes])
  # From 5.0 on accelerators have a framework; the tests contain a component for it.
  AM_CONDITIONAL([HAVE_OMPI_ACCELERATOR],
    [test "$have_ompi" = yes && test -f "$ompi_incdir/openmpi/opal/mca/accelerator/accelerator.h"])
  AC_SUBST([OMPI_CPPFLAGS])
  AC_SUBST([OMPI_LIBDIR])
  AC_SUBST([OMPI_LIBS])
  AC_SUBST([ompi_componentdir])
])
