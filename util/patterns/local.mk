# Communication patterns of the NAS kernels, to measure the effect of gateways.
if HAVE_OMPI
noinst_PROGRAMS += %reldir%/patterns
%canon_reldir%_patterns_SOURCES = \
	%reldir%/kernels.c \
	%reldir%/patterns.c \
	%reldir%/patterns.h \
	%reldir%/tcp_watch.c \
	util/perf/perf_data.h
%canon_reldir%_patterns_CPPFLAGS = $(mcc_mpi_cppflags) -I$(top_srcdir)/util
%canon_reldir%_patterns_LDADD = $(mcc_mpi_ldadd)
endif
TESTS += %reldir%/test_count.sh
EXTRA_DIST += %reldir%/test_count.sh
