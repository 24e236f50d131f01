# Tests of the ports over libfabric's own providers.
if HAVE_CRITERION
check_PROGRAMS += %reldir%/test_ports
TESTS += %reldir%/test_ports
endif
%canon_reldir%_test_ports_SOURCES = prov/mcastcoll/provider/key_file.cc %reldir%/test_service_socket.cc %reldir%/test_guard.cc %reldir%/test_key_file.cc %reldir%/test_messenger.cc fabtests/support/stalled.h
# test_ports creates credentials of other kinds itself.
if HAVE_MUNGE
%canon_reldir%_test_ports_SOURCES += %reldir%/test_munge.cc fabtests/support/munged.cc
endif
%canon_reldir%_test_ports_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/fabtests $(CRITERION_CFLAGS) $(FMT_CFLAGS) $(LIBFABRIC_CFLAGS)
%canon_reldir%_test_ports_CXXFLAGS = $(MCC_UNIT_CXXFLAGS)
%canon_reldir%_test_ports_LDADD = prov/mcastcoll/ports/libmccports.la prov/mcastcoll/transport/libmcctransport.la prov/mcastcoll/group/libmccgroup.la prov/mcastcoll/topology/libmcctopology.la \
	prov/mcastcoll/base/libmccbase.la $(LIBFABRIC_LIBS) $(CRITERION_LIBS) $(MUNGE_TEST_LIBS)
