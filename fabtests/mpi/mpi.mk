# The MPI test programs, compiled by the MPI's own wrapper. To be included by fabtests/local.mk.
EXTRA_DIST += %reldir%/mpi_support.h %reldir%/mpi_bcast_check.c %reldir%/mpi_bcast_time.c %reldir%/mpi_fallthrough.c
if HAVE_OMPI
mpi_tests = %reldir%/mpi_bcast_check %reldir%/mpi_bcast_time %reldir%/mpi_fallthrough
noinst_SCRIPTS += $(mpi_tests)
CLEANFILES += $(mpi_tests)

$(mpi_tests): %reldir%/%: %reldir%/%.c %reldir%/mpi_support.h
	$(AM_V_CC)$(MKDIR_P) %reldir% && $(MPICC) $(MCC_CFLAGS) $(CFLAGS) $(MCC_SANITIZE) -DMCC_VERSION='"$(PACKAGE_VERSION)"' -o $@ $< -lpthread
endif
