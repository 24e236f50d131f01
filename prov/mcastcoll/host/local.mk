# Collectives in shared memory between the processes of one host.
noinst_LTLIBRARIES += %reldir%/libmcchost.la
mcc_parts += \
	%reldir%/alarm.cc \
	%reldir%/alarm.h \
	%reldir%/alltoall.cc \
	%reldir%/backoff.cc \
	%reldir%/backoff.h \
	%reldir%/both_copy.cc \
	%reldir%/broadcast.cc \
	%reldir%/calibration.cc \
	%reldir%/calibration.h \
	%reldir%/clusters.cc \
	%reldir%/collectives.cc \
	%reldir%/collectives.h \
	%reldir%/context.h \
	%reldir%/direct.cc \
	%reldir%/formation.cc \
	%reldir%/formation.h \
	%reldir%/gather.cc \
	%reldir%/layout.h \
	%reldir%/liveness.cc \
	%reldir%/liveness.h \
	%reldir%/memories.cc \
	%reldir%/memories.h \
	%reldir%/one_step.cc \
	%reldir%/operation.h \
	%reldir%/reduce_direct.cc \
	%reldir%/reduce_scatter.cc \
	%reldir%/rings.cc \
	%reldir%/rings.h \
	%reldir%/scatter.cc \
	%reldir%/segment.cc \
	%reldir%/segment.h \
	%reldir%/shares.cc \
	%reldir%/team.cc \
	%reldir%/team.h \
	%reldir%/window.h
nodist_%canon_reldir%_libmcchost_la_SOURCES = %reldir%/all.cc
mcc_rooms += %reldir%/all.cc
%canon_reldir%_libmcchost_la_CPPFLAGS = $(AM_CPPFLAGS) $(FMT_CFLAGS)
EXTRA_DIST += %reldir%/README.md
