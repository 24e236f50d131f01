# FI_MULTICAST endpoints: a separate product, beside the collectives.
noinst_LTLIBRARIES += %reldir%/libmccdatagram.la
%canon_reldir%_parts = \
	%reldir%/address_vector.cc \
	%reldir%/address_vector.h \
	%reldir%/call.h \
	%reldir%/channel.cc \
	%reldir%/channel.h \
	%reldir%/completion_queue.cc \
	%reldir%/completion_queue.h \
	%reldir%/counter.cc \
	%reldir%/counter.h \
	%reldir%/domain.h \
	%reldir%/endpoint.cc \
	%reldir%/endpoint.h \
	%reldir%/entry.cc \
	%reldir%/entry.h \
	%reldir%/event_queue.cc \
	%reldir%/event_queue.h \
	%reldir%/fabric.h \
	%reldir%/inbox.cc \
	%reldir%/inbox.h \
	%reldir%/info.cc \
	%reldir%/info.h \
	%reldir%/membership.cc \
	%reldir%/membership.h \
	%reldir%/object.h \
	%reldir%/posted_receive.cc \
	%reldir%/posted_receive.h \
	%reldir%/receiver.cc \
	%reldir%/receiver.h \
	%reldir%/refusal.h \
	%reldir%/reliable.cc \
	%reldir%/reliable.h \
	%reldir%/sockets.cc \
	%reldir%/sockets.h \
	%reldir%/source.h \
	%reldir%/transfer.cc \
	%reldir%/waiter.cc \
	%reldir%/waiter.h
mcc_parts += $(%canon_reldir%_parts)
mcc_rooms += %reldir%/all.cc
if ONE_FILE
nodist_%canon_reldir%_libmccdatagram_la_SOURCES = %reldir%/all.cc
else
%canon_reldir%_libmccdatagram_la_SOURCES = $(%canon_reldir%_parts)
endif
%canon_reldir%_libmccdatagram_la_CPPFLAGS = $(AM_CPPFLAGS) $(LIBFABRIC_CFLAGS) $(FMT_CFLAGS)
%canon_reldir%_libmccdatagram_la_LIBADD = prov/mcastcoll/reliable/libmccreliable.la
EXTRA_DIST += %reldir%/README.md
