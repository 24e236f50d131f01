# Protocol core of reliable multicast messages.
noinst_LTLIBRARIES += %reldir%/libmccreliable.la
mcc_parts += \
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
nodist_%canon_reldir%_libmccreliable_la_SOURCES = %reldir%/all.cc
mcc_rooms += %reldir%/all.cc
EXTRA_DIST += %reldir%/README.md
