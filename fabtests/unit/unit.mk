# Tests of the pure parts: the wire format, the engine, and whole groups of engines in the simulator. No sockets, no clocks.
if HAVE_CRITERION
check_PROGRAMS += %reldir%/test_wire %reldir%/test_engine %reldir%/test_simulator
TESTS += %reldir%/test_wire %reldir%/test_engine %reldir%/test_simulator
endif
TESTS += %reldir%/purity.sh
EXTRA_DIST += %reldir%/purity.sh

# Criterion's macros cast in the old style.
MCC_UNIT_CPPFLAGS = $(AM_CPPFLAGS) $(ISAL_CFLAGS) $(CRITERION_CFLAGS)
MCC_UNIT_CXXFLAGS = $(AM_CXXFLAGS) -Wno-old-style-cast

%canon_reldir%_test_wire_SOURCES = \
	%reldir%/test_wire.cc \
	%reldir%/test_wire_join.cc
%canon_reldir%_test_wire_CPPFLAGS = $(MCC_UNIT_CPPFLAGS)
%canon_reldir%_test_wire_CXXFLAGS = $(MCC_UNIT_CXXFLAGS)
%canon_reldir%_test_wire_LDADD = prov/mcastcoll/wire/libmccwire.la $(ISAL_LIBS) $(CRITERION_LIBS)

%canon_reldir%_test_engine_SOURCES = \
	%reldir%/engine_fixture.h \
	%reldir%/test_bitmap.cc \
	%reldir%/test_engine_flow.cc \
	%reldir%/test_engine_join.cc \
	%reldir%/test_engine_packets.cc \
	%reldir%/test_engine_submit.cc \
	%reldir%/test_supply_graph.cc
%canon_reldir%_test_engine_CPPFLAGS = $(MCC_UNIT_CPPFLAGS)
%canon_reldir%_test_engine_CXXFLAGS = $(MCC_UNIT_CXXFLAGS)
%canon_reldir%_test_engine_LDADD = prov/mcastcoll/engine/libmccengine.la $(CRITERION_LIBS)

%canon_reldir%_test_simulator_SOURCES = \
	%reldir%/simulator.cc \
	%reldir%/simulator.h \
	%reldir%/simulator_cases.h \
	%reldir%/test_simulator.cc \
	%reldir%/test_simulator_death.cc \
	%reldir%/test_simulator_faults.cc
%canon_reldir%_test_simulator_CPPFLAGS = $(MCC_UNIT_CPPFLAGS)
%canon_reldir%_test_simulator_CXXFLAGS = $(MCC_UNIT_CXXFLAGS)
%canon_reldir%_test_simulator_LDADD = prov/mcastcoll/engine/libmccengine.la $(CRITERION_LIBS)
