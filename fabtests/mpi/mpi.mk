# The MPI test programs, included by fabtests/local.mk.
# The flags that $(MPICC) would add are given here, so that automake handles dependencies, distribution and cleaning.
# Scripts preload liblistener. libtool links a module as a shared library only with an -rpath.
noinst_LTLIBRARIES += %reldir%/liblistener.la
%canon_reldir%_liblistener_la_SOURCES = %reldir%/listener.c
%canon_reldir%_liblistener_la_LDFLAGS = -module -avoid-version -shared -rpath /nowhere
if HAVE_OMPI
mcc_mpi_cppflags = $(AM_CPPFLAGS) $(OMPI_CPPFLAGS) -DMCC_VERSION='"$(PACKAGE_VERSION)"'
mcc_mpi_ldadd = -L$(OMPI_LIBDIR) -lmpi -lpthread
noinst_PROGRAMS += \
	%reldir%/mpi_bcast_check \
	%reldir%/mpi_bcast_ranks \
	%reldir%/mpi_bcast_time \
	%reldir%/mpi_blocked_send \
	%reldir%/mpi_coll_check \
	%reldir%/mpi_composites \
	%reldir%/mpi_coll_threads \
	%reldir%/mpi_fallthrough \
	%reldir%/mpi_first_death \
	%reldir%/mpi_forming_fault \
	%reldir%/mpi_idup \
	%reldir%/mpi_part_first \
	%reldir%/mpi_short_lived \
	%reldir%/mpi_long_messages \
	%reldir%/mpi_many_nonblocking \
	%reldir%/mpi_progress_thread \
	%reldir%/mpi_variables \
	%reldir%/mpi_windows
%canon_reldir%_mpi_bcast_check_SOURCES = %reldir%/mpi_bcast_check.c %reldir%/mpi_support.h
%canon_reldir%_mpi_bcast_check_CPPFLAGS = $(mcc_mpi_cppflags)
%canon_reldir%_mpi_bcast_check_LDADD = $(mcc_mpi_ldadd)
%canon_reldir%_mpi_bcast_ranks_SOURCES = %reldir%/mpi_bcast_ranks.c %reldir%/mpi_support.h util/perf/perf_data.h
%canon_reldir%_mpi_bcast_ranks_CPPFLAGS = $(mcc_mpi_cppflags) -I$(top_srcdir)/util
%canon_reldir%_mpi_bcast_ranks_LDADD = $(mcc_mpi_ldadd)
%canon_reldir%_mpi_bcast_time_SOURCES = %reldir%/mpi_bcast_time.c %reldir%/mpi_support.h util/perf/perf_data.h
%canon_reldir%_mpi_bcast_time_CPPFLAGS = $(mcc_mpi_cppflags) -I$(top_srcdir)/util
%canon_reldir%_mpi_bcast_time_LDADD = $(mcc_mpi_ldadd)
%canon_reldir%_mpi_blocked_send_SOURCES = %reldir%/mpi_blocked_send.c %reldir%/mpi_support.h
%canon_reldir%_mpi_blocked_send_CPPFLAGS = $(mcc_mpi_cppflags)
%canon_reldir%_mpi_blocked_send_LDADD = $(mcc_mpi_ldadd)
%canon_reldir%_mpi_coll_check_SOURCES = %reldir%/mpi_coll_check.c %reldir%/mpi_coll_cases.c \
	%reldir%/mpi_coll_cases.h %reldir%/mpi_coll_data.h \
	%reldir%/mpi_device.h %reldir%/mpi_support.h
%canon_reldir%_mpi_coll_check_CPPFLAGS = $(mcc_mpi_cppflags)
%canon_reldir%_mpi_coll_check_LDADD = $(mcc_mpi_ldadd)
%canon_reldir%_mpi_coll_threads_SOURCES = %reldir%/mpi_coll_threads.c %reldir%/mpi_coll_cases.c \
	%reldir%/mpi_coll_cases.h %reldir%/mpi_coll_data.h %reldir%/mpi_device.h %reldir%/mpi_support.h
%canon_reldir%_mpi_coll_threads_CPPFLAGS = $(mcc_mpi_cppflags)
%canon_reldir%_mpi_coll_threads_LDADD = $(mcc_mpi_ldadd)
%canon_reldir%_mpi_composites_SOURCES = %reldir%/mpi_composites.c %reldir%/mpi_support.h
%canon_reldir%_mpi_composites_CPPFLAGS = $(mcc_mpi_cppflags)
%canon_reldir%_mpi_composites_LDADD = $(mcc_mpi_ldadd)
%canon_reldir%_mpi_fallthrough_SOURCES = %reldir%/mpi_fallthrough.c %reldir%/mpi_support.h
%canon_reldir%_mpi_fallthrough_CPPFLAGS = $(mcc_mpi_cppflags)
%canon_reldir%_mpi_fallthrough_LDADD = $(mcc_mpi_ldadd)
%canon_reldir%_mpi_first_death_SOURCES = %reldir%/mpi_first_death.c %reldir%/mpi_support.h
%canon_reldir%_mpi_first_death_CPPFLAGS = $(mcc_mpi_cppflags)
%canon_reldir%_mpi_first_death_LDADD = $(mcc_mpi_ldadd)
%canon_reldir%_mpi_forming_fault_SOURCES = %reldir%/mpi_forming_fault.c %reldir%/mpi_support.h
%canon_reldir%_mpi_forming_fault_CPPFLAGS = $(mcc_mpi_cppflags)
%canon_reldir%_mpi_forming_fault_LDADD = $(mcc_mpi_ldadd)
%canon_reldir%_mpi_part_first_SOURCES = %reldir%/mpi_part_first.c %reldir%/mpi_support.h
%canon_reldir%_mpi_part_first_CPPFLAGS = $(mcc_mpi_cppflags)
%canon_reldir%_mpi_part_first_LDADD = $(mcc_mpi_ldadd)
%canon_reldir%_mpi_idup_SOURCES = %reldir%/mpi_idup.c %reldir%/mpi_support.h
%canon_reldir%_mpi_idup_CPPFLAGS = $(mcc_mpi_cppflags)
%canon_reldir%_mpi_idup_LDADD = $(mcc_mpi_ldadd)
%canon_reldir%_mpi_short_lived_SOURCES = %reldir%/mpi_short_lived.c %reldir%/mpi_support.h
%canon_reldir%_mpi_short_lived_CPPFLAGS = $(mcc_mpi_cppflags)
%canon_reldir%_mpi_short_lived_LDADD = $(mcc_mpi_ldadd)
%canon_reldir%_mpi_long_messages_SOURCES = %reldir%/mpi_long_messages.c %reldir%/mpi_support.h
%canon_reldir%_mpi_long_messages_CPPFLAGS = $(mcc_mpi_cppflags)
%canon_reldir%_mpi_long_messages_LDADD = $(mcc_mpi_ldadd)
%canon_reldir%_mpi_many_nonblocking_SOURCES = %reldir%/mpi_many_nonblocking.c %reldir%/mpi_support.h
%canon_reldir%_mpi_many_nonblocking_CPPFLAGS = $(mcc_mpi_cppflags)
%canon_reldir%_mpi_many_nonblocking_LDADD = $(mcc_mpi_ldadd)
%canon_reldir%_mpi_variables_SOURCES = %reldir%/mpi_variables.c %reldir%/mpi_support.h
%canon_reldir%_mpi_variables_CPPFLAGS = $(mcc_mpi_cppflags)
%canon_reldir%_mpi_variables_LDADD = $(mcc_mpi_ldadd)
%canon_reldir%_mpi_windows_SOURCES = %reldir%/mpi_windows.c %reldir%/mpi_support.h
%canon_reldir%_mpi_windows_CPPFLAGS = $(mcc_mpi_cppflags)
%canon_reldir%_mpi_windows_LDADD = $(mcc_mpi_ldadd)
%canon_reldir%_mpi_progress_thread_SOURCES = %reldir%/mpi_progress_thread.c %reldir%/mpi_support.h
%canon_reldir%_mpi_progress_thread_CPPFLAGS = $(mcc_mpi_cppflags)
%canon_reldir%_mpi_progress_thread_LDADD = $(mcc_mpi_ldadd)
# A simulated accelerator for tests with Open MPI 5. Never installed; only tests name its folder.
if HAVE_OMPI_ACCELERATOR
noinst_LTLIBRARIES += mca_accelerator_mccfake.la
module_links += lib/fake/mca_accelerator_mccfake.so
lib/fake/mca_accelerator_mccfake.so: | mca_accelerator_mccfake.la
mca_accelerator_mccfake_la_SOURCES = %reldir%/mca_accelerator_mccfake.c %reldir%/mpi_device.h
mca_accelerator_mccfake_la_CPPFLAGS = $(mcc_mpi_cppflags)
mca_accelerator_mccfake_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -shared -rpath /nowhere \
	-export-symbols-regex '^mca_accelerator_mccfake_component$$'
mca_accelerator_mccfake_la_LIBADD = -L$(OMPI_LIBDIR) -lopen-pal
endif
if HAVE_CRITERION
check_PROGRAMS += %reldir%/test_addresses %reldir%/test_descriptors %reldir%/test_peers %reldir%/test_probe %reldir%/test_secret %reldir%/test_select %reldir%/test_settings
TESTS += %reldir%/test_addresses %reldir%/test_descriptors %reldir%/test_peers %reldir%/test_probe %reldir%/test_secret %reldir%/test_select %reldir%/test_settings
%canon_reldir%_test_probe_SOURCES = %reldir%/test_probe.c mpi/core/probe.c
%canon_reldir%_test_probe_CPPFLAGS = $(mca_coll_mcastcoll_la_CPPFLAGS) $(CRITERION_CFLAGS)
%canon_reldir%_test_probe_CFLAGS = $(mca_coll_mcastcoll_la_CFLAGS)
%canon_reldir%_test_probe_LDADD = $(CRITERION_LIBS)
%canon_reldir%_test_addresses_SOURCES = %reldir%/test_addresses.c mpi/core/addresses.c
%canon_reldir%_test_addresses_CPPFLAGS = $(mca_coll_mcastcoll_la_CPPFLAGS) $(CRITERION_CFLAGS)
%canon_reldir%_test_addresses_CFLAGS = $(mca_coll_mcastcoll_la_CFLAGS)
%canon_reldir%_test_addresses_LDADD = $(CRITERION_LIBS)
%canon_reldir%_test_descriptors_SOURCES = %reldir%/test_descriptors.c mpi/core/descriptors.c
%canon_reldir%_test_descriptors_CPPFLAGS = $(mca_coll_mcastcoll_la_CPPFLAGS) $(CRITERION_CFLAGS)
%canon_reldir%_test_descriptors_CFLAGS = $(mca_coll_mcastcoll_la_CFLAGS)
%canon_reldir%_test_descriptors_LDADD = $(CRITERION_LIBS)
%canon_reldir%_test_secret_SOURCES = %reldir%/test_secret.c mpi/core/secret.c
%canon_reldir%_test_secret_CPPFLAGS = $(mca_coll_mcastcoll_la_CPPFLAGS) $(CRITERION_CFLAGS)
%canon_reldir%_test_secret_CFLAGS = $(mca_coll_mcastcoll_la_CFLAGS)
%canon_reldir%_test_secret_LDADD = $(HOGWEED_LIBS) $(NETTLE_LIBS) $(CRITERION_LIBS)
check_PROGRAMS += %reldir%/test_accelerator
TESTS += %reldir%/test_accelerator
%canon_reldir%_test_accelerator_SOURCES = %reldir%/test_accelerator.c %reldir%/with_cuda.h mpi/openmpi/coll_mcastcoll_pack.c
%canon_reldir%_test_accelerator_CPPFLAGS = $(mca_coll_mcastcoll_la_CPPFLAGS) -I$(top_srcdir)/mpi/openmpi $(CRITERION_CFLAGS) \
	-include $(srcdir)/%reldir%/with_cuda.h
%canon_reldir%_test_accelerator_CFLAGS = $(mca_coll_mcastcoll_la_CFLAGS)
%canon_reldir%_test_accelerator_LDADD = -L$(OMPI_LIBDIR) -lmpi -lopen-pal $(CRITERION_LIBS)
%canon_reldir%_test_peers_SOURCES = %reldir%/test_peers.c mpi/core/provider.c mpi/core/addresses.c
%canon_reldir%_test_peers_CPPFLAGS = $(mca_coll_mcastcoll_la_CPPFLAGS) $(CRITERION_CFLAGS)
%canon_reldir%_test_peers_CFLAGS = $(mca_coll_mcastcoll_la_CFLAGS)
%canon_reldir%_test_peers_LDADD = $(LIBFABRIC_LIBS) $(CRITERION_LIBS)
%canon_reldir%_test_select_SOURCES = %reldir%/test_select.c mpi/openmpi/coll_mcastcoll_select.c mpi/core/collectives.c mpi/core/settings.c
%canon_reldir%_test_select_CPPFLAGS = $(mca_coll_mcastcoll_la_CPPFLAGS) -I$(top_srcdir)/mpi/openmpi $(CRITERION_CFLAGS)
%canon_reldir%_test_select_CFLAGS = $(mca_coll_mcastcoll_la_CFLAGS)
%canon_reldir%_test_select_LDADD = -L$(OMPI_LIBDIR) -lmpi -lopen-pal $(CRITERION_LIBS)
%canon_reldir%_test_settings_SOURCES = %reldir%/test_settings.c mpi/core/collectives.c mpi/core/settings.c
%canon_reldir%_test_settings_CPPFLAGS = $(mca_coll_mcastcoll_la_CPPFLAGS) $(CRITERION_CFLAGS)
%canon_reldir%_test_settings_CFLAGS = $(mca_coll_mcastcoll_la_CFLAGS)
%canon_reldir%_test_settings_LDADD = -L$(OMPI_LIBDIR) -lmpi $(CRITERION_LIBS)
endif
endif

if HAVE_MPICH
noinst_PROGRAMS += %reldir%/mpi_pmpi_check %reldir%/mpi_pmpi_bounds %reldir%/mpi_pmpi_errors \
	%reldir%/mpi_pmpi_fallthrough %reldir%/mpi_pmpi_callbacks %reldir%/mpi_pmpi_device
mcc_pmpi_calls = %reldir%/mpi_pmpi_calls.c %reldir%/mpi_pmpi_calls.h %reldir%/mpi_support.h
%canon_reldir%_mpi_pmpi_check_SOURCES = %reldir%/mpi_pmpi_check.c $(mcc_pmpi_calls)
%canon_reldir%_mpi_pmpi_check_CPPFLAGS = $(AM_CPPFLAGS) $(MPICH_CPPFLAGS) -DMCC_VERSION='"$(PACKAGE_VERSION)"'
%canon_reldir%_mpi_pmpi_check_LDADD = $(MPICH_LIBS)
%canon_reldir%_mpi_pmpi_bounds_SOURCES = %reldir%/mpi_pmpi_bounds.c $(mcc_pmpi_calls)
%canon_reldir%_mpi_pmpi_bounds_CPPFLAGS = $(%canon_reldir%_mpi_pmpi_check_CPPFLAGS)
%canon_reldir%_mpi_pmpi_bounds_LDADD = $(MPICH_LIBS)
%canon_reldir%_mpi_pmpi_callbacks_SOURCES = %reldir%/mpi_pmpi_callbacks.c %reldir%/mpi_support.h
%canon_reldir%_mpi_pmpi_callbacks_CPPFLAGS = $(%canon_reldir%_mpi_pmpi_check_CPPFLAGS)
%canon_reldir%_mpi_pmpi_callbacks_LDADD = $(MPICH_LIBS)
%canon_reldir%_mpi_pmpi_errors_SOURCES = %reldir%/mpi_pmpi_errors.c %reldir%/mpi_support.h
%canon_reldir%_mpi_pmpi_errors_CPPFLAGS = $(%canon_reldir%_mpi_pmpi_check_CPPFLAGS)
%canon_reldir%_mpi_pmpi_errors_LDADD = $(MPICH_LIBS)
%canon_reldir%_mpi_pmpi_device_SOURCES = %reldir%/mpi_pmpi_device.c %reldir%/mpi_coll_cases.c \
	%reldir%/mpi_coll_cases.h %reldir%/mpi_coll_data.h %reldir%/mpi_device.h %reldir%/mpi_support.h
%canon_reldir%_mpi_pmpi_device_CPPFLAGS = $(%canon_reldir%_mpi_pmpi_check_CPPFLAGS)
%canon_reldir%_mpi_pmpi_device_LDFLAGS = $(AM_LDFLAGS) -export-dynamic
%canon_reldir%_mpi_pmpi_device_LDADD = $(MPICH_LIBS) -ldl
%canon_reldir%_mpi_pmpi_fallthrough_SOURCES = %reldir%/mpi_fallthrough.c %reldir%/mpi_support.h
%canon_reldir%_mpi_pmpi_fallthrough_CPPFLAGS = $(%canon_reldir%_mpi_pmpi_check_CPPFLAGS)
%canon_reldir%_mpi_pmpi_fallthrough_LDADD = $(MPICH_LIBS) -lpthread
endif
