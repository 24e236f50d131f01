# Tests of the pure parts: the wire format, the engine, and whole groups of engines in the simulator. No sockets, no clocks.
if HAVE_CRITERION
check_PROGRAMS += %reldir%/test_wire %reldir%/test_engine %reldir%/test_reliable %reldir%/test_levels %reldir%/test_group %reldir%/test_simulator %reldir%/test_reduce %reldir%/test_sites
TESTS += %reldir%/test_wire %reldir%/test_engine %reldir%/test_reliable %reldir%/test_levels %reldir%/test_group %reldir%/test_simulator %reldir%/test_reduce %reldir%/test_sites
endif
TESTS += %reldir%/purity.sh
EXTRA_DIST += %reldir%/purity.sh

# Criterion's macros use old-style casts; a test's local names may equal those of another file's helpers.
MCC_UNIT_CPPFLAGS = $(AM_CPPFLAGS) $(ISAL_CFLAGS) $(ZSTD_CFLAGS) $(CRITERION_CFLAGS)
MCC_UNIT_CXXFLAGS = $(AM_CXXFLAGS) -Wno-old-style-cast -Wno-shadow

test_wire_parts = \
	%reldir%/test_wire.cc \
	%reldir%/test_wire_join.cc \
	%reldir%/test_wire_peers.cc \
	%reldir%/peers_fixture.h \
	%reldir%/test_protection.cc \
	%reldir%/wire_fixture.h
%reldir%/wire/all.cc: parts = $(test_wire_parts)
mcc_rooms += %reldir%/wire/all.cc
EXTRA_DIST += $(test_wire_parts)
if ONE_FILE
nodist_%canon_reldir%_test_wire_SOURCES = %reldir%/wire/all.cc
else
%canon_reldir%_test_wire_SOURCES = $(test_wire_parts)
endif
%canon_reldir%_test_wire_CPPFLAGS = $(MCC_UNIT_CPPFLAGS)
%canon_reldir%_test_wire_CXXFLAGS = $(MCC_UNIT_CXXFLAGS)
%canon_reldir%_test_wire_LDADD = prov/mcastcoll/wire/libmccwire.la $(ISAL_LIBS) $(ZSTD_LIBS) $(CRITERION_LIBS)

%canon_reldir%_test_reliable_SOURCES = %reldir%/test_reliable.cc %reldir%/test_reliable_foreign.cc %reldir%/reliable_fixture.h
%canon_reldir%_test_reliable_CPPFLAGS = $(MCC_UNIT_CPPFLAGS)
%canon_reldir%_test_reliable_CXXFLAGS = $(MCC_UNIT_CXXFLAGS)
%canon_reldir%_test_reliable_LDADD = prov/mcastcoll/reliable/libmccreliable.la prov/mcastcoll/wire/libmccwire.la $(ISAL_LIBS) $(ZSTD_LIBS) $(CRITERION_LIBS)

test_engine_parts = \
	%reldir%/engine_fixture.h \
	%reldir%/reduce_cases.h \
	%reldir%/test_bitmap.cc \
	%reldir%/test_ballots.cc \
	%reldir%/test_engine_components.cc \
	%reldir%/test_engine_disagree.cc \
	%reldir%/test_engine_poll_hint.cc \
	%reldir%/test_engine_failure.cc \
	%reldir%/test_engine_flow.cc \
	%reldir%/test_engine_late.cc \
	%reldir%/test_engine_join.cc \
	%reldir%/test_engine_elections.cc \
	%reldir%/test_engine_packets.cc \
	%reldir%/test_engine_policies.cc \
	%reldir%/test_engine_root_sync.cc \
	%reldir%/test_engine_reduce.cc \
	%reldir%/test_engine_running.cc \
	%reldir%/test_engine_silence.cc \
	%reldir%/test_engine_stream.cc \
	%reldir%/test_engine_parity.cc \
	%reldir%/test_engine_parts.cc \
	%reldir%/test_engine_prediction.cc \
	%reldir%/test_engine_redundancy.cc \
	%reldir%/test_engine_submit.cc \
	%reldir%/test_ranges.cc \
	%reldir%/test_supply_graph.cc
%reldir%/engine/all.cc: parts = $(test_engine_parts)
mcc_rooms += %reldir%/engine/all.cc
EXTRA_DIST += $(test_engine_parts)
if ONE_FILE
nodist_%canon_reldir%_test_engine_SOURCES = %reldir%/engine/all.cc
else
%canon_reldir%_test_engine_SOURCES = $(test_engine_parts)
endif
%canon_reldir%_test_engine_CPPFLAGS = $(MCC_UNIT_CPPFLAGS)
%canon_reldir%_test_engine_CXXFLAGS = $(MCC_UNIT_CXXFLAGS)
%canon_reldir%_test_engine_LDADD = prov/mcastcoll/engine/libmccengine.la $(CRITERION_LIBS)

test_levels_parts = \
	%reldir%/levels_fixture.h \
	%reldir%/meeting_level.h \
	%reldir%/test_planner.cc \
	%reldir%/test_exchange_level.cc \
	%reldir%/test_levels.cc \
	%reldir%/test_selection.cc \
	%reldir%/test_site_level.cc
%reldir%/levels/all.cc: parts = $(test_levels_parts)
mcc_rooms += %reldir%/levels/all.cc
EXTRA_DIST += $(test_levels_parts)
if ONE_FILE
nodist_%canon_reldir%_test_levels_SOURCES = %reldir%/levels/all.cc
else
%canon_reldir%_test_levels_SOURCES = $(test_levels_parts)
endif
%canon_reldir%_test_levels_CPPFLAGS = $(MCC_UNIT_CPPFLAGS) -I$(top_srcdir)/fabtests/functional
%canon_reldir%_test_levels_CXXFLAGS = $(MCC_UNIT_CXXFLAGS)
%canon_reldir%_test_levels_LDADD = fabtests/functional/libmcchostmembers.a prov/mcastcoll/levels/libmcclevels.la prov/mcastcoll/topology/libmcctopology.la $(CRITERION_LIBS)

test_simulator_parts = \
	%reldir%/simulator_cases.h \
	%reldir%/test_simulator.cc \
	%reldir%/test_simulator_death.cc \
	%reldir%/test_simulator_faults.cc \
	%reldir%/test_simulator_flow.cc \
	%reldir%/test_simulator_multicast_path.cc \
	%reldir%/test_simulator_ranges.cc \
	%reldir%/test_simulator_redundancy.cc \
	%reldir%/test_simulator_reduce.cc \
	%reldir%/test_simulator_stream.cc
%reldir%/simulator/all.cc: parts = $(test_simulator_parts)
mcc_rooms += %reldir%/simulator/all.cc
EXTRA_DIST += $(test_simulator_parts)
if ONE_FILE
nodist_%canon_reldir%_test_simulator_SOURCES = %reldir%/simulator/all.cc
else
%canon_reldir%_test_simulator_SOURCES = $(test_simulator_parts)
endif
%canon_reldir%_test_simulator_CPPFLAGS = $(MCC_UNIT_CPPFLAGS) -I$(top_srcdir)/util
%canon_reldir%_test_simulator_CXXFLAGS = $(MCC_UNIT_CXXFLAGS)
%canon_reldir%_test_simulator_LDADD = util/sim/libmccsim.la $(MCC_SIMULATED) $(CRITERION_LIBS)

# Life cycle of a group: joins of several members in the simulator's network.
test_group_parts = \
	%reldir%/test_poll_selector.cc \
	%reldir%/peers_fixture.h \
	%reldir%/join_world.cc \
	%reldir%/join_world.h \
	%reldir%/test_group_join.cc \
	%reldir%/test_group_losses.cc \
	%reldir%/test_group_memory.cc \
	%reldir%/test_group_outbox.cc \
	%reldir%/test_group_roster.cc \
	%reldir%/test_group_welcome.cc \
	%reldir%/test_groups.cc \
	%reldir%/test_join_memory.cc \
	%reldir%/test_joins.cc \
	%reldir%/test_run_queue.cc \
	%reldir%/test_secret_exchange.cc \
	%reldir%/test_tree_of_levels.cc \
	%reldir%/topology_fixture.cc \
	%reldir%/topology_fixture.h \
	%reldir%/wire_fixture.h
%reldir%/group/all.cc: parts = $(test_group_parts)
mcc_rooms += %reldir%/group/all.cc
EXTRA_DIST += $(test_group_parts)
if ONE_FILE
nodist_%canon_reldir%_test_group_SOURCES = %reldir%/group/all.cc
else
%canon_reldir%_test_group_SOURCES = $(test_group_parts)
endif
%canon_reldir%_test_group_CPPFLAGS = $(MCC_UNIT_CPPFLAGS) -I$(top_srcdir)/fabtests/functional -I$(top_srcdir)/util
%canon_reldir%_test_group_CXXFLAGS = $(MCC_UNIT_CXXFLAGS)
%canon_reldir%_test_group_LDADD = fabtests/functional/libmcchostmembers.a util/sim/libmccsim.la $(MCC_SIMULATED) $(CRITERION_LIBS)

# The kernels of reductions, and the checks of application requests for them.
test_reduce_parts = \
	prov/mcastcoll/ofi/request.cc \
	%reldir%/test_message_form.cc \
	%reldir%/test_reduce.cc \
	%reldir%/test_request.cc
%reldir%/reduce/all.cc: parts = $(test_reduce_parts)
mcc_rooms += %reldir%/reduce/all.cc
EXTRA_DIST += $(test_reduce_parts)
if ONE_FILE
nodist_%canon_reldir%_test_reduce_SOURCES = %reldir%/reduce/all.cc
else
%canon_reldir%_test_reduce_SOURCES = $(test_reduce_parts)
endif
%canon_reldir%_test_reduce_CPPFLAGS = $(MCC_UNIT_CPPFLAGS) $(LIBFABRIC_CFLAGS) $(FMT_CFLAGS)
%canon_reldir%_test_reduce_CXXFLAGS = $(MCC_UNIT_CXXFLAGS)
%canon_reldir%_test_reduce_LDADD = prov/mcastcoll/reduce/libmccreduce.la $(CRITERION_LIBS)
%canon_reldir%_test_sites_SOURCES = %reldir%/test_sites.cc
%canon_reldir%_test_sites_CPPFLAGS = $(MCC_UNIT_CPPFLAGS) -I$(top_srcdir)/util
%canon_reldir%_test_sites_CXXFLAGS = $(MCC_UNIT_CXXFLAGS)
%canon_reldir%_test_sites_LDADD = util/sim/libmccsim.la $(MCC_SIMULATED) $(CRITERION_LIBS)

if HAVE_CRITERION
check_PROGRAMS += %reldir%/test_doctor
TESTS += %reldir%/test_doctor
endif
%canon_reldir%_test_doctor_SOURCES = %reldir%/doctor_fixture.h %reldir%/test_doctor.cc %reldir%/test_doctor_firewall.cc
%canon_reldir%_test_doctor_CPPFLAGS = $(MCC_UNIT_CPPFLAGS) -I$(top_srcdir)/util
%canon_reldir%_test_doctor_CXXFLAGS = $(MCC_UNIT_CXXFLAGS)
%canon_reldir%_test_doctor_LDADD = util/doctor/libmccdoctor.a prov/mcastcoll/base/libmccbase.la $(CRITERION_LIBS)
