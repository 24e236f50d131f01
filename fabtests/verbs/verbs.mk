# Multicast over RDMA.  Most of these tests skip on a machine without two connected RDMA devices: util/rxe-lab has them.
EXTRA_DIST += docs/VERBS.md docs/figures/verbs.csv docs/figures/verbs.svg %reldir%/compare.sh %reldir%/in_lab.sh %reldir%/verbs_lab.sh
if HAVE_CRITERION
check_PROGRAMS += %reldir%/test_verbs
TESTS += %reldir%/test_verbs
endif
%canon_reldir%_test_verbs_SOURCES = \
	%reldir%/test_verbs_address.cc \
	%reldir%/test_verbs_groups.cc \
	$(verbs_failures) \
	%reldir%/test_verbs_queue.cc \
	%reldir%/verbs_fixture.cc \
	%reldir%/verbs_fixture.h
# These replace rdma-core's functions.
if HAVE_VERBS
verbs_failures = %reldir%/test_verbs_failures.cc
else
EXTRA_DIST += %reldir%/test_verbs_failures.cc
endif
%canon_reldir%_test_verbs_CPPFLAGS = $(AM_CPPFLAGS) $(CRITERION_CFLAGS)
# Criterion's macros use old-style casts.
%canon_reldir%_test_verbs_CXXFLAGS = $(MCC_UNIT_CXXFLAGS)
%canon_reldir%_test_verbs_LDADD = prov/mcastcoll/transport/libmcctransport.la $(VERBS_LIBS) $(CRITERION_LIBS) -ldl
