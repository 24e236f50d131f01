# Collectives in shared memory between the processes of one host.
noinst_LTLIBRARIES += %reldir%/libmcchost.la
mcc_parts += \
	%reldir%/blocks.cc \
	%reldir%/broadcast.cc \
	%reldir%/calibration.cc \
	%reldir%/clusters.cc \
	%reldir%/collectives.cc \
	%reldir%/collectives.h \
	%reldir%/context.h \
	%reldir%/direct.cc \
	%reldir%/formation.cc \
	%reldir%/formation.h \
	%reldir%/layout.h \
	%reldir%/memories.cc \
	%reldir%/reductions.cc \
	%reldir%/rings.cc \
	%reldir%/rings.h \
	%reldir%/segment.cc \
	%reldir%/segment.h \
	%reldir%/team.cc \
	%reldir%/team.h \
	%reldir%/waiting.cc \
	%reldir%/waiting.h
nodist_%canon_reldir%_libmcchost_la_SOURCES = %reldir%/all.cc
mcc_rooms += %reldir%/all.cc
%canon_reldir%_libmcchost_la_CPPFLAGS = $(AM_CPPFLAGS) $(FMT_CFLAGS)
EXTRA_DIST += %reldir%/README.md
