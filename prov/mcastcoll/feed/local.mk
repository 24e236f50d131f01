# Reliable multicast messages: the protocol, pure.
noinst_LTLIBRARIES += %reldir%/libmccfeed.la
mcc_parts += \
	%reldir%/feed.cc \
	%reldir%/feed.h \
	%reldir%/feed_send.cc \
	%reldir%/incoming.cc \
	%reldir%/incoming.h \
	%reldir%/members.cc \
	%reldir%/members.h \
	%reldir%/outgoing.cc \
	%reldir%/outgoing.h \
	%reldir%/pacer.h \
	%reldir%/packet.cc \
	%reldir%/packet.h
nodist_%canon_reldir%_libmccfeed_la_SOURCES = %reldir%/all.cc
mcc_rooms += %reldir%/all.cc
EXTRA_DIST += %reldir%/README.md
