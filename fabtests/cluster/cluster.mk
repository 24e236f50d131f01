# What the tests on the virtual cluster run there.
if HAVE_OMPI
noinst_PROGRAMS += %reldir%/mpi_kill
%canon_reldir%_mpi_kill_SOURCES = %reldir%/mpi_kill.c
%canon_reldir%_mpi_kill_CPPFLAGS = $(OMPI_CPPFLAGS)
%canon_reldir%_mpi_kill_LDADD = -L$(OMPI_LIBDIR) -lmpi
endif
EXTRA_DIST += \
	%reldir%/common.sh \
	%reldir%/mpi_compare.sh \
	%reldir%/mpi_kill.sh \
	%reldir%/mpi_loss.sh
