# The simulator. The library does not contain engine and group: a program links its own, and mcastcoll-sim links the
# provider's archives.
MCC_SIMULATED = prov/mcastcoll/group/libmccgroup.la prov/mcastcoll/topology/libmcctopology.la $(MCC_ARGUMENTS)
noinst_LTLIBRARIES += %reldir%/libmccsim.la
%canon_reldir%_parts = \
	%reldir%/address.h \
	%reldir%/application.cc \
	%reldir%/arrival.cc \
	%reldir%/arrival.h \
	%reldir%/campaign.cc \
	%reldir%/event.h \
	%reldir%/event_queue.h \
	%reldir%/experiment.h \
	%reldir%/fault_injector.cc \
	%reldir%/fault_injector.h \
	%reldir%/faults.cc \
	%reldir%/faults.h \
	%reldir%/figures/acceptance.cc \
	%reldir%/figures/channels.cc \
	%reldir%/figures/figure.cc \
	%reldir%/figures/figure.h \
	%reldir%/figures/growth.cc \
	%reldir%/figures/redundancy.cc \
	%reldir%/figures/sites.cc \
	%reldir%/figures/two_stage.cc \
	%reldir%/group_environment.h \
	%reldir%/group_experiment.h \
	%reldir%/group_member.cc \
	%reldir%/group_member.h \
	%reldir%/group_options.h \
	%reldir%/group_process.cc \
	%reldir%/group_process.h \
	%reldir%/group_world.cc \
	%reldir%/group_world.h \
	%reldir%/host_memory.cc \
	%reldir%/host_memory.h \
	%reldir%/layout.cc \
	%reldir%/layout.h \
	%reldir%/link_traffic.h \
	%reldir%/measure.cc \
	%reldir%/measure.h \
	%reldir%/measure_groups.cc \
	%reldir%/measure_groups.h \
	%reldir%/measured.cc \
	%reldir%/measured.h \
	%reldir%/memory_level.cc \
	%reldir%/memory_level.h \
	%reldir%/memory_meter.h \
	%reldir%/memory_readers.h \
	%reldir%/message_tree.cc \
	%reldir%/message_tree.h \
	%reldir%/model.h \
	%reldir%/network.cc \
	%reldir%/network.h \
	%reldir%/program/command.cc \
	%reldir%/program/command.h \
	%reldir%/program/program.cc \
	%reldir%/program/program.h \
	%reldir%/random.h \
	%reldir%/scenario.cc \
	%reldir%/scenario.h \
	%reldir%/script.cc \
	%reldir%/script.h \
	%reldir%/shared_group.cc \
	%reldir%/shared_group.h \
	%reldir%/simulation.h \
	%reldir%/sink.h \
	%reldir%/text.cc \
	%reldir%/text.h \
	%reldir%/traffic_by_link.h \
	%reldir%/transmission.h \
	%reldir%/unmetered.h \
	%reldir%/wan_links.h \
	%reldir%/world.cc \
	%reldir%/world.h
mcc_parts += $(%canon_reldir%_parts)
%canon_reldir%_libmccsim_la_SOURCES = %reldir%/memory_meter.cc
if ONE_FILE
nodist_%canon_reldir%_libmccsim_la_SOURCES = %reldir%/all.cc
else
%canon_reldir%_libmccsim_la_SOURCES += $(%canon_reldir%_parts)
endif
mcc_rooms += %reldir%/all.cc
%canon_reldir%_libmccsim_la_CPPFLAGS = $(AM_CPPFLAGS) -DMCC_VERSION='"$(PACKAGE_VERSION)"' -I$(top_srcdir)/util -I$(top_srcdir)/%reldir%
%canon_reldir%_libmccsim_la_LIBADD = prov/mcastcoll/transport/libmcctransport.la

bin_PROGRAMS += %reldir%/mcastcoll-sim
%canon_reldir%_mcastcoll_sim_SOURCES = %reldir%/program/main.cc
%canon_reldir%_mcastcoll_sim_LDADD = %reldir%/libmccsim.la $(MCC_SIMULATED)

# The campaign must catch these deliberate faults. The engine or the group is compiled anew, without optimisation, so the linker
# takes no object from its archive. Not built with sanitizers, which would add nothing here.
if !SANITIZED
check_PROGRAMS += %reldir%/broken-duplicates %reldir%/broken-ring %reldir%/broken-welcome %reldir%/broken-death
%canon_reldir%_broken_duplicates_SOURCES = %reldir%/program/main.cc
nodist_%canon_reldir%_broken_duplicates_SOURCES = prov/mcastcoll/engine/all.cc
%canon_reldir%_broken_duplicates_CPPFLAGS = $(AM_CPPFLAGS) -DMCC_BREAK_DUPLICATE_CHECK
%canon_reldir%_broken_duplicates_LDADD = %reldir%/libmccsim.la $(MCC_SIMULATED)
%canon_reldir%_broken_ring_SOURCES = %reldir%/program/main.cc
nodist_%canon_reldir%_broken_ring_SOURCES = prov/mcastcoll/engine/all.cc
%canon_reldir%_broken_ring_CPPFLAGS = $(AM_CPPFLAGS) -DMCC_BREAK_LAST_RING_EDGE
%canon_reldir%_broken_ring_LDADD = %reldir%/libmccsim.la $(MCC_SIMULATED)

%canon_reldir%_broken_welcome_SOURCES = %reldir%/program/main.cc
nodist_%canon_reldir%_broken_welcome_SOURCES = prov/mcastcoll/group/all.cc
%canon_reldir%_broken_welcome_CPPFLAGS = $(AM_CPPFLAGS) -DMCC_BREAK_WELCOME_ONCE
%canon_reldir%_broken_welcome_LDADD = %reldir%/libmccsim.la $(MCC_SIMULATED)

%canon_reldir%_broken_death_SOURCES = %reldir%/program/main.cc
nodist_%canon_reldir%_broken_death_SOURCES = prov/mcastcoll/group/all.cc
%canon_reldir%_broken_death_CPPFLAGS = $(AM_CPPFLAGS) -DMCC_BREAK_DEATH_PASSED_ON
%canon_reldir%_broken_death_LDADD = %reldir%/libmccsim.la $(MCC_SIMULATED)
endif

dist_man_MANS += man/mcastcoll-sim.1

TESTS += %reldir%/test_campaign.sh %reldir%/test_command_line.sh %reldir%/test_figures.sh
EXTRA_DIST += %reldir%/test_campaign.sh %reldir%/test_command_line.sh %reldir%/test_figures.sh

EXTRA_DIST += docs/EXPERIMENTS.md docs/FIGURES.md docs/PAPERS.md docs/POLICIES.md docs/REDUNDANCY.md \
	docs/figures/policies.csv docs/figures/policies.svg \
	docs/figures/size.csv docs/figures/size.svg \
	docs/figures/ranks.csv docs/figures/ranks.svg \
	docs/figures/first-last.csv docs/figures/first-last.svg \
	docs/figures/penalty.csv docs/figures/penalty.svg \
	docs/figures/crc.csv docs/figures/crc.svg \
	docs/figures/collisions.csv docs/figures/collisions.svg \
	docs/figures/channels-latency.csv docs/figures/channels-latency.svg \
	docs/figures/channels-cost.csv docs/figures/channels-cost.svg \
	docs/figures/channels-count.csv docs/figures/channels-count.svg \
	docs/figures/karonis-wan.csv docs/figures/karonis-wan.svg \
	docs/figures/karonis-lan.csv docs/figures/karonis-lan.svg \
	docs/figures/karonis-both.csv docs/figures/karonis-both.svg \
	docs/figures/karonis-clusters.csv docs/figures/karonis-clusters.svg \
	docs/figures/redundancy.csv docs/figures/redundancy.svg \
	docs/figures/growth.csv docs/figures/growth.svg \
	docs/figures/lab-wide.csv docs/figures/lab-wide.svg \
	docs/figures/lab-local.csv docs/figures/lab-local.svg \
	docs/figures/lab-both.csv docs/figures/lab-both.svg
EXTRA_DIST += %reldir%/README.md
