# Tests of the topology: the model, the user's overrides, and machines made up by hwloc.
if HAVE_CRITERION
check_PROGRAMS += %reldir%/test_topology
TESTS += %reldir%/test_topology
endif
test_topology_parts = \
	%reldir%/test_topology.cc \
	%reldir%/test_topology_discover.cc \
	%reldir%/test_topology_override.cc \
	%reldir%/test_topology_report.cc \
	%reldir%/topology_fixture.cc \
	%reldir%/topology_fixture.h
%reldir%/topology/all.cc: parts = $(test_topology_parts)
mcc_rooms += %reldir%/topology/all.cc
EXTRA_DIST += $(test_topology_parts)
if ONE_FILE
nodist_%canon_reldir%_test_topology_SOURCES = %reldir%/topology/all.cc
else
%canon_reldir%_test_topology_SOURCES = $(test_topology_parts)
endif
%canon_reldir%_test_topology_CPPFLAGS = $(AM_CPPFLAGS) $(CRITERION_CFLAGS) -I$(top_srcdir)/util
# Criterion's macros use old-style casts.
%canon_reldir%_test_topology_CXXFLAGS = $(MCC_UNIT_CXXFLAGS)
%canon_reldir%_test_topology_LDADD = util/topo/libmccjob.a prov/mcastcoll/topology/libmccdiscover.la $(CRITERION_LIBS)
