# All tests.  run-test starts each of TESTS: it makes libfabric load this build's provider, and ends tests that take too long.
noinst_SCRIPTS =
LOG_COMPILER = $(top_srcdir)/%reldir%/run-test
TEST_EXTENSIONS = .sh
SH_LOG_COMPILER = $(LOG_COMPILER)
AM_SH_LOG_FLAGS = bash
EXTRA_DIST += %reldir%/run-test

# "make check" starts tests in this order: the longest first, so that no processor is idle at the end.
TESTS += fi_mcc_shortage
include %reldir%/unit/transport.mk
include %reldir%/functional/host.mk
include %reldir%/functional/functional.mk
include %reldir%/unit/unit.mk
include %reldir%/unit/topology.mk
include %reldir%/unit/ports.mk
include %reldir%/gateway/gateway.mk
include %reldir%/split/split.mk
include %reldir%/verbs/verbs.mk
include %reldir%/mpi/mpi.mk
include %reldir%/fuzz/fuzz.mk

TESTS += %reldir%/unit/symbols.sh
EXTRA_DIST += %reldir%/unit/symbols.sh
EXTRA_DIST += %reldir%/processors/criterion/criterion.h %reldir%/processors/emulated.sh
EXTRA_DIST += \
	%reldir%/install/commands.py \
	%reldir%/install/commands.unrun \
	%reldir%/install/files \
	%reldir%/install/install.sh \
	%reldir%/install/packages.sh \
	%reldir%/install/outcomes.sh \
	%reldir%/install/scratch_system.sh
EXTRA_DIST += %reldir%/README.md

# check-pure: tests that compute and never wait, so that a slow machine cannot fail them. check-rest: all others except the
# figures, which with sanitizers take more than a minute for code that test_simulator has already covered.
pure_tests = $(filter %/test_wire %/test_engine %/test_reliable %/test_levels %/test_group %/test_simulator %/test_reduce %/test_sites %/test_topology %/purity.sh, $(TESTS))
.PHONY: check-pure check-rest
check-pure:
	$(MAKE) $(AM_MAKEFLAGS) check TESTS="$(pure_tests)"
check-rest:
	$(MAKE) $(AM_MAKEFLAGS) check TESTS="$(filter-out $(pure_tests) %/test_figures.sh, $(TESTS))"

# Build and test of packages: only the programs of tests that take seconds and need no network.
quick_tests = $(filter %/test_wire %/test_reduce %/test_topology %/load.sh %/purity.sh %/symbols.sh, $(TESTS))
quick = noinst_PROGRAMS= TESTS="$(quick_tests)" check_PROGRAMS="fabtests/functional/load_test $(filter-out %.sh, $(quick_tests))"
.PHONY: check-quick
check-quick:
	$(MAKE) $(AM_MAKEFLAGS) $(quick) check

# Builds everything that "make check" runs.
.PHONY: tests
tests: all
	$(MAKE) $(AM_MAKEFLAGS) $(check_PROGRAMS)
