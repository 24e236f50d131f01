# The transports: sockets and RDMA devices, without libfabric.
noinst_LTLIBRARIES += %reldir%/libmcctransport.la
%canon_reldir%_parts = \
	%reldir%/interceptor.cc \
	%reldir%/interceptor.h \
	%reldir%/interface.cc \
	%reldir%/interface.h \
	%reldir%/joinable_transport.h \
	%reldir%/membership.cc \
	%reldir%/membership.h \
	%reldir%/multicast_hub.cc \
	%reldir%/multicast_hub.h \
	%reldir%/multicast_options.h \
	%reldir%/multicast_paths.cc \
	%reldir%/multicast_queue.cc \
	%reldir%/multicast_queue.h \
	%reldir%/multicast_transport.h \
	%reldir%/peer_watch.cc \
	%reldir%/peer_watch.h \
	%reldir%/receive_batch.cc \
	%reldir%/receive_batch.h \
	%reldir%/rendezvous.cc \
	%reldir%/rendezvous.h \
	%reldir%/rendezvous_source.cc \
	%reldir%/rendezvous_source.h \
	%reldir%/socket_address.cc \
	%reldir%/socket_address.h \
	%reldir%/udp_receiver.cc \
	%reldir%/udp_receiver.h \
	%reldir%/udp_sender.cc \
	%reldir%/udp_sender.h \
	%reldir%/udp_socket.cc \
	%reldir%/udp_socket.h \
	%reldir%/verbs_address.cc \
	%reldir%/verbs_address.h \
	%reldir%/verbs_transport.h \
	%reldir%/wait_set.cc \
	%reldir%/wait_set.h \
	%reldir%/watch_listener.cc \
	%reldir%/watch_listener.h \
	%reldir%/watch_point.cc \
	%reldir%/watch_point.h
mcc_parts += $(%canon_reldir%_parts)
mcc_rooms += %reldir%/all.cc
%canon_reldir%_libmcctransport_la_CPPFLAGS = $(AM_CPPFLAGS) $(FMT_CFLAGS) $(VERBS_CFLAGS)
%canon_reldir%_libmcctransport_la_LIBADD = prov/mcastcoll/base/libmccbase.la
if HAVE_VERBS
%canon_reldir%_libmcctransport_la_SOURCES = \
	%reldir%/verbs_hub.cc \
	%reldir%/verbs_queue.cc \
	%reldir%/verbs_queue.h
%canon_reldir%_libmcctransport_la_LIBADD += $(VERBS_LIBS)
else
%canon_reldir%_libmcctransport_la_SOURCES = %reldir%/verbs_absent.cc
endif
if ONE_FILE
nodist_%canon_reldir%_libmcctransport_la_SOURCES = %reldir%/all.cc
else
%canon_reldir%_libmcctransport_la_SOURCES += $(%canon_reldir%_parts)
endif
EXTRA_DIST += %reldir%/README.md
