noinst_LTLIBRARIES += %reldir%/libmccengine.la
%canon_reldir%_parts = \
	%reldir%/address_choice.cc \
	%reldir%/address_choice.h \
	%reldir%/admission.cc \
	%reldir%/admission.h \
	%reldir%/aligned_range.cc \
	%reldir%/aligned_range.h \
	%reldir%/ballots.cc \
	%reldir%/ballots.h \
	%reldir%/checkpoint.cc \
	%reldir%/checkpoint.h \
	%reldir%/core.cc \
	%reldir%/core.h \
	%reldir%/deadlines.cc \
	%reldir%/deadlines.h \
	%reldir%/departure.h \
	%reldir%/effects.h \
	%reldir%/elections.cc \
	%reldir%/elections.h \
	%reldir%/engine.cc \
	%reldir%/engine.h \
	%reldir%/failure_detector.cc \
	%reldir%/failure_detector.h \
	%reldir%/flow_control.cc \
	%reldir%/flow_control.h \
	%reldir%/fragment_set.cc \
	%reldir%/fragment_set.h \
	%reldir%/gatherer.cc \
	%reldir%/gatherer.h \
	%reldir%/group_config.h \
	%reldir%/header_prediction.cc \
	%reldir%/header_prediction.h \
	%reldir%/holds.cc \
	%reldir%/holds.h \
	%reldir%/loss_meter.cc \
	%reldir%/loss_meter.h \
	%reldir%/loss_report.cc \
	%reldir%/loss_report.h \
	%reldir%/notices.h \
	%reldir%/parity_code.cc \
	%reldir%/parity_code.h \
	%reldir%/policy.cc \
	%reldir%/policy.h \
	%reldir%/poll_hint.cc \
	%reldir%/poll_hint.h \
	%reldir%/pool.h \
	%reldir%/rank_list.h \
	%reldir%/reachability_map.cc \
	%reldir%/reachability_map.h \
	%reldir%/reachability_maps.h \
	%reldir%/receiver.cc \
	%reldir%/receiver.h \
	%reldir%/recent_times.h \
	%reldir%/redundancy_policy.cc \
	%reldir%/redundancy_policy.h \
	%reldir%/repairer.cc \
	%reldir%/repairer.h \
	%reldir%/restorer.cc \
	%reldir%/restorer.h \
	%reldir%/root_repairer.cc \
	%reldir%/root_repairer.h \
	%reldir%/root_synchronizer.cc \
	%reldir%/root_synchronizer.h \
	%reldir%/round.h \
	%reldir%/round_trip.h \
	%reldir%/sender.cc \
	%reldir%/sender.h \
	%reldir%/share.h \
	%reldir%/slot.cc \
	%reldir%/slot.h \
	%reldir%/slots.cc \
	%reldir%/slots.h \
	%reldir%/smoothed_time.h \
	%reldir%/speakers.cc \
	%reldir%/speakers.h \
	%reldir%/supplier.cc \
	%reldir%/supplier.h \
	%reldir%/supply_graph.cc \
	%reldir%/supply_graph.h \
	%reldir%/suspicion.h \
	%reldir%/turns.h
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
