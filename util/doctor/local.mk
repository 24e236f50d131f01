# mcastcoll-doctor: checks whether and how well mcastcoll will work on some hosts.
bin_PROGRAMS += %reldir%/mcastcoll-doctor
%canon_reldir%_parts = \
	%reldir%/examination.cc \
	%reldir%/examination.h \
	%reldir%/experiment.cc \
	%reldir%/experiment.h \
	%reldir%/firewall.cc \
	%reldir%/group_child.cc \
	%reldir%/group_child.h \
	%reldir%/group_process.cc \
	%reldir%/group_process.h \
	%reldir%/libraries.cc \
	%reldir%/machine.cc \
	%reldir%/main.cc \
	%reldir%/memory.cc \
	%reldir%/network.cc \
	%reldir%/probes.h \
	%reldir%/querier_watch.cc \
	%reldir%/querier_watch.h \
	%reldir%/rdma.cc \
	%reldir%/system.cc
mcc_parts += $(%canon_reldir%_parts)
mcc_rooms += %reldir%/all.cc
if ONE_FILE
nodist_%canon_reldir%_mcastcoll_doctor_SOURCES = %reldir%/all.cc
else
%canon_reldir%_mcastcoll_doctor_SOURCES = $(%canon_reldir%_parts)
endif
%canon_reldir%_mcastcoll_doctor_CPPFLAGS = $(AM_CPPFLAGS) $(LIBFABRIC_CFLAGS) -I$(top_srcdir)/util -DMCC_VERSION='"$(PACKAGE_VERSION)"'
%canon_reldir%_mcastcoll_doctor_LDADD = %reldir%/libmccdoctor.a prov/mcastcoll/ports/libmccports.la \
	prov/mcastcoll/provider/libmccprovider.la prov/mcastcoll/group/libmccgroup.la $(MCC_HOST_SET) $(LIBFABRIC_LIBS)

# The pure part, also for its tests.
noinst_LIBRARIES += %reldir%/libmccdoctor.a
%canon_reldir%_libmccdoctor_a_SOURCES = \
	%reldir%/facts.h \
	%reldir%/facts_json.cc \
	%reldir%/firewall_rules.cc \
	%reldir%/firewall_rules.h \
	%reldir%/judge.cc \
	%reldir%/judge.h \
	%reldir%/judge_group.cc \
	%reldir%/judge_host.cc \
	%reldir%/judge_interface.cc \
	%reldir%/judge_libraries.cc \
	%reldir%/judge_losses.cc \
	%reldir%/judge_reception.cc \
	%reldir%/judging.h \
	%reldir%/look.h \
	%reldir%/reception.h \
	%reldir%/report.cc \
	%reldir%/report.h \
	%reldir%/report_json.cc \
	%reldir%/tally.cc \
	%reldir%/tally.h
%canon_reldir%_libmccdoctor_a_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/util
dist_man_MANS += man/mcastcoll-doctor.1
EXTRA_DIST += %reldir%/README.md docs/DOCTOR.md
