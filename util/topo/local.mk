# mcastcoll-topo: shows the places of processes and the trees that result.
bin_PROGRAMS += %reldir%/mcastcoll-topo
%canon_reldir%_parts = \
	%reldir%/activity.cc \
	%reldir%/activity.h \
	%reldir%/job_command.cc \
	%reldir%/job_command.h \
	%reldir%/json.cc \
	%reldir%/look.cc \
	%reldir%/look.h \
	%reldir%/main.cc \
	%reldir%/members.cc \
	%reldir%/page.cc \
	%reldir%/show.cc \
	%reldir%/svg.cc \
	%reldir%/topo.h
mcc_parts += $(%canon_reldir%_parts)
mcc_rooms += %reldir%/all.cc
%canon_reldir%_mcastcoll_topo_SOURCES = \
	prov/mcastcoll/levels/selection.cc \
	prov/mcastcoll/provider/selection_file.cc
if ONE_FILE
nodist_%canon_reldir%_mcastcoll_topo_SOURCES = %reldir%/all.cc
else
%canon_reldir%_mcastcoll_topo_SOURCES += $(%canon_reldir%_parts)
endif
%canon_reldir%_mcastcoll_topo_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/util -DMCC_VERSION='"$(PACKAGE_VERSION)"'
%canon_reldir%_mcastcoll_topo_LDADD = %reldir%/libmccjob.a $(MCC_HOST_SET)

# The reports of processes are parsed by a test, too.
noinst_LIBRARIES += %reldir%/libmccjob.a
%canon_reldir%_libmccjob_a_SOURCES = %reldir%/job.cc %reldir%/job.h
%canon_reldir%_libmccjob_a_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/util

# A process that reports groups like the provider, for the test.
check_PROGRAMS += %reldir%/reporter
%canon_reldir%_reporter_SOURCES = %reldir%/reporter.cc
%canon_reldir%_reporter_LDADD = prov/mcastcoll/topology/libmccdiscover.la

TESTS += %reldir%/test_topo.sh
EXTRA_DIST += %reldir%/test_topo.sh
dist_man_MANS += man/mcastcoll-topo.1
