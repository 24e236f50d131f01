# Where the members of a group are. The model makes no system calls; discovery is a library of its own.
noinst_LTLIBRARIES += %reldir%/libmccsubnet.la %reldir%/libmcctopology.la
%canon_reldir%_libmccsubnet_la_SOURCES = \
	%reldir%/subnet.cc \
	%reldir%/subnet.h
%canon_reldir%_libmcctopology_la_LIBADD = %reldir%/libmccsubnet.la
%canon_reldir%_parts = \
	%reldir%/algorithms.cc \
	%reldir%/algorithms.h \
	%reldir%/map.cc \
	%reldir%/map.h \
	%reldir%/name.cc \
	%reldir%/name.h \
	%reldir%/override.cc \
	%reldir%/override.h \
	%reldir%/place.cc \
	%reldir%/place.h \
	%reldir%/policy.cc \
	%reldir%/policy.h \
	%reldir%/site_survey.cc \
	%reldir%/site_survey.h \
	%reldir%/tree.cc \
	%reldir%/tree.h
mcc_parts += $(%canon_reldir%_parts)
mcc_rooms += %reldir%/all.cc
if ONE_FILE
nodist_%canon_reldir%_libmcctopology_la_SOURCES = %reldir%/all.cc
else
%canon_reldir%_libmcctopology_la_SOURCES = $(%canon_reldir%_parts)
endif

# Queries the system.
noinst_LTLIBRARIES += %reldir%/libmccdiscover.la
%canon_reldir%_libmccdiscover_la_SOURCES = \
	%reldir%/discover.cc \
	%reldir%/discover.h \
	%reldir%/job_report.cc \
	%reldir%/job_report.h \
	%reldir%/machine.h
if HAVE_HWLOC
%canon_reldir%_libmccdiscover_la_SOURCES += %reldir%/machine_hwloc.cc
else
%canon_reldir%_libmccdiscover_la_SOURCES += %reldir%/machine_unknown.cc
endif
%canon_reldir%_libmccdiscover_la_CPPFLAGS = $(AM_CPPFLAGS) $(FMT_CFLAGS) $(HWLOC_CFLAGS)
%canon_reldir%_libmccdiscover_la_LIBADD = \
	%reldir%/libmcctopology.la \
	prov/mcastcoll/transport/libmcctransport.la \
	$(HWLOC_LIBS)
EXTRA_DIST += %reldir%/README.md
