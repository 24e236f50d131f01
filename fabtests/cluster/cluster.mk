# Programs that the tests run on the virtual cluster.
noinst_PROGRAMS += %reldir%/fanout
%canon_reldir%_fanout_SOURCES = %reldir%/fanout.cc fabtests/functional/datagram_node.h
%canon_reldir%_fanout_CPPFLAGS = $(functional_cppflags)
%canon_reldir%_fanout_LDADD = $(functional_ldadd)
noinst_PROGRAMS += fi_mcc_campaign
fi_mcc_campaign_SOURCES = %reldir%/campaign.cc %reldir%/campaign.h %reldir%/campaign_fault.cc %reldir%/campaign_member.cc
fi_mcc_campaign_CPPFLAGS = $(functional_cppflags)
fi_mcc_campaign_LDADD = $(functional_ldadd)
if HAVE_OMPI
noinst_PROGRAMS += %reldir%/mpi_kill %reldir%/mpi_phases %reldir%/mpi_silence %reldir%/mpi_slow
%canon_reldir%_mpi_kill_SOURCES = %reldir%/mpi_kill.c
%canon_reldir%_mpi_kill_CPPFLAGS = $(OMPI_CPPFLAGS)
%canon_reldir%_mpi_kill_LDADD = -L$(OMPI_LIBDIR) -lmpi
%canon_reldir%_mpi_phases_SOURCES = %reldir%/mpi_phases.c fabtests/mpi/mpi_support.h
%canon_reldir%_mpi_phases_CPPFLAGS = $(mcc_mpi_cppflags)
%canon_reldir%_mpi_phases_LDADD = $(mcc_mpi_ldadd)
%canon_reldir%_mpi_silence_SOURCES = %reldir%/mpi_silence.c fabtests/mpi/mpi_support.h
%canon_reldir%_mpi_silence_CPPFLAGS = $(mcc_mpi_cppflags)
%canon_reldir%_mpi_silence_LDADD = $(mcc_mpi_ldadd)
%canon_reldir%_mpi_slow_SOURCES = %reldir%/mpi_slow.c fabtests/mpi/mpi_support.h
%canon_reldir%_mpi_slow_CPPFLAGS = $(mcc_mpi_cppflags)
%canon_reldir%_mpi_slow_LDADD = $(mcc_mpi_ldadd)
endif
EXTRA_DIST += docs/GATEWAYS.md docs/HOST.md docs/figures/host.csv docs/figures/host.svg \
	%reldir%/all_check.py \
	%reldir%/broadcasts_here.conf \
	%reldir%/common.sh \
	%reldir%/doctor.sh \
	%reldir%/cp.sh \
	%reldir%/cp_bench.py \
	%reldir%/faults.sh \
	%reldir%/flood.sh \
	%reldir%/load.sh \
	%reldir%/load_jobs.py \
	%reldir%/host_bench.py \
	%reldir%/host_table.py \
	%reldir%/kill.sh \
	%reldir%/large_groups.sh \
	%reldir%/levels_check.py \
	%reldir%/mpi_all.sh \
	%reldir%/mpi_compare.sh \
	%reldir%/mpi_composites.sh \
	%reldir%/cut_check.py \
	%reldir%/mpi_cut.sh \
	%reldir%/mpi_first_death.sh \
	%reldir%/mpi_forming.sh \
	%reldir%/mpi_networks.sh \
	%reldir%/mpi_host.sh \
	%reldir%/mpi_host_kill.sh \
	%reldir%/mpi_kill.sh \
	%reldir%/mpi_large.sh \
	%reldir%/mpi_collectives.sh \
	%reldir%/mpi_device.sh \
	%reldir%/mpi_levels.sh \
	%reldir%/mpi_long_messages.sh \
	%reldir%/mpi_measured.sh \
	%reldir%/mpi_loss.sh \
	%reldir%/mpi_loss_price.sh \
	%reldir%/mpi_pmpi.sh \
	%reldir%/mpi_policies.sh \
	%reldir%/mpi_silence.sh \
	%reldir%/mpi_sites.sh \
	%reldir%/mpi_slow.sh \
	%reldir%/reliable.sh \
	%reldir%/policies_table.py \
	%reldir%/sites_table.py \
	%reldir%/split_patterns.sh \
	%reldir%/split_speed.sh \
	%reldir%/split_programs.sh \
	%reldir%/watch.sh \
	%reldir%/split_sockets.py \
	%reldir%/split_table.py
