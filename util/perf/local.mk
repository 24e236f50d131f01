# mcastcoll-perf and mcastcoll-tune: Python over two measuring programs. From a build they run as util/mcastcoll-perf, in the PATH
# after ". build/env"; installed, their modules are in share/mcastcoll/perf and the programs in libexec/mcastcoll. The MPI
# program's source is installed, too: for another MPI it must be compiled with that MPI's mpicc.
perfdir = $(pkgdatadir)/perf
perflibexecdir = $(libexecdir)/mcastcoll
perf_sources = %reldir%/perf_data.h %reldir%/perf_floor.c %reldir%/perf_floor.h %reldir%/perf_mpi.c
dist_perf_DATA = \
	$(perf_sources) \
	%reldir%/perf_arguments.py \
	%reldir%/perf_bench.py \
	%reldir%/perf_report.py \
	%reldir%/perf_selection.py \
	%reldir%/perf_stacks.py \
	%reldir%/stacks.conf

perflibexec_PROGRAMS = %reldir%/mcastcoll-perf-fabric
%canon_reldir%_mcastcoll_perf_fabric_SOURCES = %reldir%/perf_fabric.cc %reldir%/perf_data.h
%canon_reldir%_mcastcoll_perf_fabric_CPPFLAGS = $(functional_cppflags)
%canon_reldir%_mcastcoll_perf_fabric_LDADD = $(functional_ldadd)
if HAVE_OMPI
perflibexec_PROGRAMS += %reldir%/mcastcoll-perf-mpi
%canon_reldir%_mcastcoll_perf_mpi_SOURCES = $(perf_sources)
%canon_reldir%_mcastcoll_perf_mpi_CPPFLAGS = $(mcc_mpi_cppflags)
%canon_reldir%_mcastcoll_perf_mpi_LDADD = $(mcc_mpi_ldadd)
endif

nodist_bin_SCRIPTS = util/mcastcoll-perf util/mcastcoll-tune
util/mcastcoll-perf: %reldir%/mcastcoll-perf.py
	$(AM_V_GEN)$(MKDIR_P) util && ln -sfn "$(abs_top_srcdir)/%reldir%/mcastcoll-perf.py" $@
util/mcastcoll-tune: %reldir%/mcastcoll-tune.py
	$(AM_V_GEN)$(MKDIR_P) util && ln -sfn "$(abs_top_srcdir)/%reldir%/mcastcoll-tune.py" $@

TESTS += %reldir%/test_perf.sh
dist_man_MANS += man/mcastcoll-perf.1 man/mcastcoll-tune.1
EXTRA_DIST += docs/PERF.md docs/TRIED.md docs/figures/perf.csv docs/figures/perf.svg
EXTRA_DIST += %reldir%/mcastcoll-perf.py %reldir%/mcastcoll-tune.py %reldir%/test_perf.sh
