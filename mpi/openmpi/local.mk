# The Open MPI coll component. A module for Open MPI's own loader: no lib prefix, no version, one exported symbol.
if HAVE_OMPI
ompiexecdir = $(ompi_componentdir)
ompiexec_LTLIBRARIES = mca_coll_mcastcoll.la
module_links += lib/openmpi/mca_coll_mcastcoll.so
lib/openmpi/mca_coll_mcastcoll.so: | mca_coll_mcastcoll.la
mca_coll_mcastcoll_la_SOURCES = $(mcc_mpi_core) \
	%reldir%/coll_mcastcoll.h \
	%reldir%/coll_mcastcoll_call.c \
	%reldir%/coll_mcastcoll_component.c \
	%reldir%/coll_mcastcoll_entries.c \
	%reldir%/coll_mcastcoll_fabric.c \
	%reldir%/coll_mcastcoll_group.c \
	%reldir%/coll_mcastcoll_handshake.c \
	%reldir%/coll_mcastcoll_libfabric.c \
	%reldir%/coll_mcastcoll_ompi.h \
	%reldir%/coll_mcastcoll_pack.c \
	%reldir%/coll_mcastcoll_peers.c \
	%reldir%/coll_mcastcoll_previous.c \
	%reldir%/coll_mcastcoll_process.c \
	%reldir%/coll_mcastcoll_request.c \
	%reldir%/coll_mcastcoll_run.c \
	%reldir%/coll_mcastcoll_select.c \
	%reldir%/coll_mcastcoll_settings.c \
	%reldir%/coll_mcastcoll_tree.c \
	%reldir%/coll_mcastcoll_tree.h \
	%reldir%/coll_mcastcoll_variables.c \
	%reldir%/coll_mcastcoll_windows.c
mca_coll_mcastcoll_la_CPPFLAGS = -I$(top_srcdir)/include -I$(top_srcdir)/mpi -I$(top_srcdir)/prov/mcastcoll $(OMPI_CPPFLAGS)
mca_coll_mcastcoll_la_CFLAGS = $(AM_CFLAGS) $(LIBFABRIC_CFLAGS) $(HOGWEED_CFLAGS) $(NETTLE_CFLAGS)
mca_coll_mcastcoll_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -shared -Wl,-z,nodelete \
	-export-symbols-regex '^mca_coll_mcastcoll_component$$'
mca_coll_mcastcoll_la_LIBADD = -L$(OMPI_LIBDIR) $(OMPI_LIBS) $(HOGWEED_LIBS) $(NETTLE_LIBS)
endif
EXTRA_DIST += %reldir%/README.md \
	%reldir%/absent/README.md \
	%reldir%/absent/opal/mca/threads/pthreads/threads_pthreads_mutex.h \
	%reldir%/absent/opal/mca/threads/pthreads/threads_pthreads_threads.h \
	%reldir%/absent/opal/mca/threads/pthreads/threads_pthreads_tsd.h \
	%reldir%/absent/opal/mca/timer/linux/timer_linux.h
