noinst_LTLIBRARIES += %reldir%/libmccengine.la
%canon_reldir%_parts = \
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
	%reldir%/effects.h \
	%reldir%/elections.cc \
	%reldir%/elections.h \
	%reldir%/engine.cc \
	%reldir%/engine.h \
	%reldir%/failure_detector.cc \
	%reldir%/failure_detector.h \
	%reldir%/gatherer.cc \
	%reldir%/gatherer.h \
	%reldir%/header_prediction.cc \
	%reldir%/header_prediction.h \
	%reldir%/outcome.h \
	%reldir%/parity.cc \
	%reldir%/parity.h \
	%reldir%/policy.cc \
	%reldir%/policy.h \
	%reldir%/poll_hint.cc \
	%reldir%/poll_hint.h \
	%reldir%/pool.h \
	%reldir%/ranges.cc \
	%reldir%/ranges.h \
	%reldir%/receiver.cc \
	%reldir%/receiver.h \
	%reldir%/redundancy.cc \
	%reldir%/redundancy.h \
	%reldir%/repairer.cc \
	%reldir%/repairer.h \
	%reldir%/restorer.cc \
	%reldir%/restorer.h \
	%reldir%/sender.cc \
	%reldir%/sender.h \
	%reldir%/slots.cc \
	%reldir%/slots.h \
	%reldir%/supplier.cc \
	%reldir%/supplier.h \
	%reldir%/supply_graph.cc \
	%reldir%/supply_graph.h \
	%reldir%/suspicion.h \
	%reldir%/timing.h
mcc_parts += $(%canon_reldir%_parts)
mcc_rooms += %reldir%/all.cc
if ONE_FILE
nodist_%canon_reldir%_libmccengine_la_SOURCES = %reldir%/all.cc
else
%canon_reldir%_libmccengine_la_SOURCES = $(%canon_reldir%_parts)
endif
%canon_reldir%_libmccengine_la_CPPFLAGS = $(AM_CPPFLAGS) $(ISAL_CFLAGS)
%canon_reldir%_libmccengine_la_LIBADD = prov/mcastcoll/wire/libmccwire.la $(ISAL_LIBS)
EXTRA_DIST += %reldir%/README.md docs/ENGINE.md
