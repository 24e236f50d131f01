noinst_LTLIBRARIES += %reldir%/libmccengine.la
%canon_reldir%_libmccengine_la_SOURCES = \
	%reldir%/admission.cc \
	%reldir%/broadcast.cc \
	%reldir%/checkpoint.cc \
	%reldir%/deadlines.cc \
	%reldir%/deadlines.h \
	%reldir%/departure.h \
	%reldir%/doubts.h \
	%reldir%/config.h \
	%reldir%/effects.cc \
	%reldir%/effects.h \
	%reldir%/ballots.cc \
	%reldir%/ballots.h \
	%reldir%/engine.cc \
	%reldir%/engine.h \
	%reldir%/failure.cc \
	%reldir%/failure.h \
	%reldir%/notices.h \
	%reldir%/policy.cc \
	%reldir%/policy.h \
	%reldir%/gather.cc \
	%reldir%/elections.cc \
	%reldir%/ranges.cc \
	%reldir%/ranges.h \
	%reldir%/pool.h \
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
	%reldir%/silence.h \
	%reldir%/slot.cc \
	%reldir%/slot.h \
	%reldir%/slots.cc \
	%reldir%/slots.h \
	%reldir%/stream.cc \
	%reldir%/supply_graph.cc \
	%reldir%/supply_graph.h \
	%reldir%/sync.cc \
	%reldir%/timing.h \
	%reldir%/turns.h \
	%reldir%/verdicts.h \
	%reldir%/watch_list.h \
	%reldir%/watermark.cc \
	%reldir%/watermark.h
%canon_reldir%_libmccengine_la_LIBADD = prov/mcastcoll/wire/libmccwire.la
EXTRA_DIST += %reldir%/README.md
