# Programs for host::Team alone: no libfabric.  Not installed.
noinst_LIBRARIES += %reldir%/libmcchostmembers.a
%canon_reldir%_libmcchostmembers_a_SOURCES = %reldir%/host_members.cc %reldir%/host_members.h %reldir%/host_shapes.cc %reldir%/host_shapes.h
%canon_reldir%_libmcchostmembers_a_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/fabtests/functional
host_ldadd = %reldir%/libmcchostmembers.a prov/mcastcoll/host/libmcchost.la prov/mcastcoll/transport/libmcctransport.la

noinst_PROGRAMS += fi_mcc_host_perf fi_mcc_host_stress
fi_mcc_host_perf_SOURCES = %reldir%/host_perf.cc
fi_mcc_host_perf_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/fabtests/functional -I$(top_srcdir)/util
fi_mcc_host_perf_LDADD = $(MCC_ARGUMENTS) $(host_ldadd)
fi_mcc_host_stress_SOURCES = %reldir%/host_stress.cc
fi_mcc_host_stress_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/fabtests/functional -I$(top_srcdir)/util
fi_mcc_host_stress_LDADD = $(MCC_ARGUMENTS) $(host_ldadd)

if HAVE_CRITERION
check_PROGRAMS += fabtests/unit/test_host
TESTS += fabtests/unit/test_host
endif
fabtests_unit_test_host_SOURCES = fabtests/unit/test_host.cc fabtests/unit/test_host_failures.cc \
	fabtests/unit/test_host_memory.cc fabtests/unit/test_host_parts.cc fabtests/unit/host_cases.cc fabtests/unit/host_cases.h \
	fabtests/unit/host_fixture.h
fabtests_unit_test_host_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/fabtests/functional $(CRITERION_CFLAGS)
# Criterion's macros use old-style casts.
fabtests_unit_test_host_CXXFLAGS = $(MCC_UNIT_CXXFLAGS)
fabtests_unit_test_host_LDADD = $(host_ldadd) $(CRITERION_LIBS)

host_scripts = %reldir%/host_stress.sh
TESTS += $(host_scripts)
EXTRA_DIST += $(host_scripts)
