# FI_MULTICAST endpoints: a separate product, beside the collectives.
noinst_LTLIBRARIES += %reldir%/libmccdatagram.la
%canon_reldir%_parts = \
	%reldir%/address_vector.cc \
	%reldir%/address_vector.h \
	%reldir%/channel.cc \
	%reldir%/channel.h \
	%reldir%/endpoint.cc \
	%reldir%/endpoint.h \
	%reldir%/entry.cc \
	%reldir%/entry.h \
	%reldir%/fabric.h \
	%reldir%/info.cc \
	%reldir%/info.h \
	%reldir%/membership.cc \
	%reldir%/membership.h \
	%reldir%/object.h \
	%reldir%/queues.cc \
	%reldir%/queues.h \
	%reldir%/receiver.cc \
	%reldir%/receiver.h \
	%reldir%/reliable.cc \
	%reldir%/reliable.h \
	%reldir%/sockets.cc \
	%reldir%/sockets.h \
	%reldir%/transfer.cc
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
