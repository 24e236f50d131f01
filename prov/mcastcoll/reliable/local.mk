# Protocol core of reliable multicast messages.
noinst_LTLIBRARIES += %reldir%/libmccreliable.la
%canon_reldir%_parts = \
	%reldir%/protocol.cc \
	%reldir%/protocol.h \
	%reldir%/meeting.cc \
	%reldir%/members.cc \
	%reldir%/members.h \
	%reldir%/packet.cc \
	%reldir%/packet.h \
	%reldir%/proof.cc \
	%reldir%/proof.h \
	%reldir%/sending.cc \
	%reldir%/window.cc \
	%reldir%/window.h
mcc_parts += $(%canon_reldir%_parts)
mcc_rooms += %reldir%/all.cc
if ONE_FILE
nodist_%canon_reldir%_libmccreliable_la_SOURCES = %reldir%/all.cc
else
%canon_reldir%_libmccreliable_la_SOURCES = $(%canon_reldir%_parts)
endif
EXTRA_DIST += %reldir%/README.md
