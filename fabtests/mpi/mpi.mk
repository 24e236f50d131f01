# The MPI test programs. To be included by fabtests/local.mk.
# What $(MPICC) would add is spelled out, so that dependencies, distribution and cleaning are automake's.
if HAVE_OMPI
mcc_mpi_cppflags = $(AM_CPPFLAGS) $(OMPI_CPPFLAGS) -DMCC_VERSION='"$(PACKAGE_VERSION)"'
mcc_mpi_ldadd = -L$(OMPI_LIBDIR) -lmpi -lpthread
noinst_PROGRAMS += \
	%reldir%/mpi_bcast_check \
	%reldir%/mpi_bcast_time \
	%reldir%/mpi_fallthrough
%canon_reldir%_mpi_bcast_check_SOURCES = %reldir%/mpi_bcast_check.c %reldir%/mpi_support.h
%canon_reldir%_mpi_bcast_check_CPPFLAGS = $(mcc_mpi_cppflags)
%canon_reldir%_mpi_bcast_check_LDADD = $(mcc_mpi_ldadd)
%canon_reldir%_mpi_bcast_time_SOURCES = %reldir%/mpi_bcast_time.c %reldir%/mpi_support.h
%canon_reldir%_mpi_bcast_time_CPPFLAGS = $(mcc_mpi_cppflags)
%canon_reldir%_mpi_bcast_time_LDADD = $(mcc_mpi_ldadd)
%canon_reldir%_mpi_fallthrough_SOURCES = %reldir%/mpi_fallthrough.c %reldir%/mpi_support.h
%canon_reldir%_mpi_fallthrough_CPPFLAGS = $(mcc_mpi_cppflags)
%canon_reldir%_mpi_fallthrough_LDADD = $(mcc_mpi_ldadd)
endif
