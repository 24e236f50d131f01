# Collectives in shared memory between the processes of one host.
noinst_LTLIBRARIES += %reldir%/libmcchost.la
%canon_reldir%_parts = \
	%reldir%/alarm.cc \
	%reldir%/alarm.h \
	%reldir%/backoff.cc \
	%reldir%/backoff.h \
	%reldir%/blocks.cc \
	%reldir%/broadcast.cc \
	%reldir%/calibration.cc \
	%reldir%/clusters.cc \
	%reldir%/clusters.h \
	%reldir%/collectives.cc \
	%reldir%/collectives.h \
	%reldir%/context.h \
	%reldir%/direct.cc \
	%reldir%/failure_detector.h \
	%reldir%/formation.cc \
	%reldir%/formation.h \
	%reldir%/layout.h \
	%reldir%/memories.cc \
	%reldir%/memories.h \
	%reldir%/process.cc \
	%reldir%/process.h \
	%reldir%/reductions.cc \
	%reldir%/rings.cc \
	%reldir%/rings.h \
	%reldir%/segment.cc \
	%reldir%/segment.h \
	%reldir%/team.cc \
	%reldir%/team.h
mcc_parts += $(%canon_reldir%_parts)
mcc_rooms += %reldir%/all.cc
if ONE_FILE
nodist_%canon_reldir%_libmcchost_la_SOURCES = %reldir%/all.cc
else
%canon_reldir%_libmcchost_la_SOURCES = $(%canon_reldir%_parts)
endif
%canon_reldir%_libmcchost_la_CPPFLAGS = $(AM_CPPFLAGS) $(FMT_CFLAGS)
EXTRA_DIST += %reldir%/README.md
