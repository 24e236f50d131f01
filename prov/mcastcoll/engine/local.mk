noinst_LTLIBRARIES += %reldir%/libmccengine.la
mcc_parts += \
	%reldir%/admission.cc \
	%reldir%/admission.h \
	%reldir%/ballots.cc \
	%reldir%/ballots.h \
	%reldir%/checkpoint.cc \
	%reldir%/checkpoint.h \
	%reldir%/config.h \
	%reldir%/core.cc \
	%reldir%/core.h \
	%reldir%/deadlines.cc \
	%reldir%/deadlines.h \
	%reldir%/departure.h \
	%reldir%/doubts.h \
	%reldir%/effects.cc \
	%reldir%/effects.h \
	%reldir%/elections.cc \
	%reldir%/elections.h \
	%reldir%/engine.cc \
	%reldir%/engine.h \
	%reldir%/failure.h \
	%reldir%/failure_detector.cc \
	%reldir%/failure_detector.h \
	%reldir%/flow_control.cc \
	%reldir%/flow_control.h \
	%reldir%/gather.cc \
	%reldir%/gatherer.h \
	%reldir%/holds.cc \
	%reldir%/holds.h \
	%reldir%/nacker.cc \
	%reldir%/nacker.h \
	%reldir%/notices.h \
	%reldir%/policy.cc \
	%reldir%/policy.h \
	%reldir%/poll.cc \
	%reldir%/poll.h \
	%reldir%/pool.h \
	%reldir%/ranges.cc \
	%reldir%/ranges.h \
	%reldir%/readiness.h \
	%reldir%/receiver.h \
	%reldir%/reduce.cc \
	%reldir%/region.h \
	%reldir%/repairer.cc \
	%reldir%/repairer.h \
	%reldir%/root_sync.cc \
	%reldir%/root_sync.h \
	%reldir%/round_trip.h \
	%reldir%/sender.cc \
	%reldir%/sender.h \
	%reldir%/silence.h \
	%reldir%/slot.cc \
	%reldir%/slot.h \
	%reldir%/slots.cc \
	%reldir%/slots.h \
	%reldir%/supplier.cc \
	%reldir%/supplier.h \
	%reldir%/supply_graph.h \
	%reldir%/timing.h \
	%reldir%/turns.h \
	%reldir%/verdicts.h \
	%reldir%/watch_list.h \
	%reldir%/watermark.cc \
	%reldir%/watermark.h
nodist_%canon_reldir%_libmccengine_la_SOURCES = %reldir%/all.cc
mcc_rooms += %reldir%/all.cc
# What a broken build of the simulator compiles anew stays apart.
%canon_reldir%_libmccengine_la_SOURCES = %reldir%/receiver.cc %reldir%/supply_graph.cc
%canon_reldir%_libmccengine_la_LIBADD = prov/mcastcoll/wire/libmccwire.la
EXTRA_DIST += %reldir%/README.md
