# Protocol core of reliable multicast messages.
noinst_LTLIBRARIES += %reldir%/libmccreliable.la
%canon_reldir%_parts = \
	%reldir%/gap_timer.cc \
	%reldir%/gap_timer.h \
	%reldir%/incoming.cc \
	%reldir%/incoming.h \
	%reldir%/meeting.cc \
	%reldir%/member.h \
	%reldir%/members.cc \
	%reldir%/members.h \
	%reldir%/outgoing.cc \
	%reldir%/outgoing.h \
	%reldir%/pacer.h \
	%reldir%/packet.cc \
	%reldir%/packet.h \
	%reldir%/proof.cc \
	%reldir%/proof.h \
	%reldir%/protocol.cc \
	%reldir%/protocol.h \
	%reldir%/request_timer.cc \
	%reldir%/request_timer.h \
	%reldir%/sending.cc \
	%reldir%/store.h
mcc_parts += $(%canon_reldir%_parts)
mcc_rooms += %reldir%/all.cc
if ONE_FILE
nodist_%canon_reldir%_libmccreliable_la_SOURCES = %reldir%/all.cc
else
%canon_reldir%_libmccreliable_la_SOURCES = $(%canon_reldir%_parts)
endif
EXTRA_DIST += %reldir%/README.md
