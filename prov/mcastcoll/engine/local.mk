noinst_LTLIBRARIES += %reldir%/libmccengine.la
%canon_reldir%_libmccengine_la_SOURCES = \
	%reldir%/admission.cc \
	%reldir%/broadcast.cc \
	%reldir%/checkpoint.cc \
	%reldir%/departure.h \
	%reldir%/config.h \
	%reldir%/effects.cc \
	%reldir%/effects.h \
	%reldir%/election.cc \
	%reldir%/election.h \
	%reldir%/engine.cc \
	%reldir%/engine.h \
	%reldir%/failure.cc \
	%reldir%/failure.h \
	%reldir%/policy.cc \
	%reldir%/policy.h \
	%reldir%/gather.cc \
	%reldir%/lane.cc \
	%reldir%/lane.h \
	%reldir%/ranges.cc \
	%reldir%/ranges.h \
	%reldir%/poll.cc \
	%reldir%/poll.h \
	%reldir%/readiness.h \
	%reldir%/reduce.cc \
	%reldir%/relay.cc \
	%reldir%/repair.cc \
	%reldir%/region.h \
	%reldir%/root_sync.cc \
	%reldir%/root_sync.h \
	%reldir%/round_trip.h \
	%reldir%/slot.cc \
	%reldir%/slot.h \
	%reldir%/stream.cc \
	%reldir%/supply_graph.cc \
	%reldir%/supply_graph.h \
	%reldir%/sync.cc \
	%reldir%/timing.h \
	%reldir%/watch_list.h \
	%reldir%/watermark.cc \
	%reldir%/watermark.h
%canon_reldir%_libmccengine_la_LIBADD = prov/mcastcoll/wire/libmccwire.la
EXTRA_DIST += %reldir%/README.md
