# The interposer for programs of MPICH's ABI. It is not linked with MPI: the preloaded program has its own MPI library, and a
# shell between mpiexec and the program needs none.
if HAVE_MPICH
lib_LTLIBRARIES += libmcastcoll-pmpi.la
module_links += lib/pmpi/libmcastcoll-pmpi.so
lib/pmpi/libmcastcoll-pmpi.so: | libmcastcoll-pmpi.la
libmcastcoll_pmpi_la_SOURCES = $(mcc_mpi_core) \
	%reldir%/calls.c \
	%reldir%/group.c \
	%reldir%/layout.c \
	%reldir%/life.c \
	%reldir%/pmpi.h \
	%reldir%/progress.c \
	%reldir%/secret.c \
	%reldir%/settings.c
libmcastcoll_pmpi_la_CPPFLAGS = -I$(top_srcdir)/include -I$(top_srcdir)/mpi -I$(top_srcdir)/prov/mcastcoll $(MPICH_CPPFLAGS)
libmcastcoll_pmpi_la_CFLAGS = $(AM_CFLAGS) $(LIBFABRIC_CFLAGS) $(HOGWEED_CFLAGS) $(NETTLE_CFLAGS)
libmcastcoll_pmpi_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -shared -Wl,-z,lazy -Wl,-z,nodelete \
	-export-symbols-regex '^MPI_'
libmcastcoll_pmpi_la_LIBADD = $(LIBFABRIC_LIBS) $(HOGWEED_LIBS) $(NETTLE_LIBS) -lpthread
endif
dist_man_MANS += man/libmcastcoll-pmpi.7
EXTRA_DIST += %reldir%/README.md
