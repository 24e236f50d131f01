# Tests of the transports. They use real sockets on loopback and, if run by root, in their own network namespaces.
if HAVE_CRITERION
check_PROGRAMS += %reldir%/test_transport
TESTS += %reldir%/test_transport
endif
test_transport_parts = \
	%reldir%/test_transport_address.cc \
	%reldir%/test_transport_hub.cc \
	%reldir%/test_transport_interceptor.cc \
	%reldir%/test_transport_multicast.cc \
	%reldir%/test_transport_queue.cc \
	%reldir%/test_transport_rendezvous.cc \
	%reldir%/test_transport_wait_set.cc \
	%reldir%/test_transport_watch.cc \
	%reldir%/test_transport_watch_limits.cc \
	%reldir%/transport_fixture.cc \
	%reldir%/transport_fixture.h
%reldir%/transport/all.cc: parts = $(test_transport_parts)
mcc_rooms += %reldir%/transport/all.cc
EXTRA_DIST += $(test_transport_parts)
if ONE_FILE
nodist_%canon_reldir%_test_transport_SOURCES = %reldir%/transport/all.cc
else
%canon_reldir%_test_transport_SOURCES = $(test_transport_parts)
endif
%canon_reldir%_test_transport_CPPFLAGS = $(AM_CPPFLAGS) $(CRITERION_CFLAGS)
# Criterion's macros use old-style casts.
%canon_reldir%_test_transport_CXXFLAGS = $(MCC_UNIT_CXXFLAGS)
%canon_reldir%_test_transport_LDADD = prov/mcastcoll/transport/libmcctransport.la $(CRITERION_LIBS)
