# The virtual cluster's WAN relay, and build/env, which makes this build usable from a shell without installing it.

noinst_PROGRAMS += %reldir%/cluster/wan
%canon_reldir%_cluster_wan_SOURCES = %reldir%/cluster/wan.c
# Background traffic.
noinst_PROGRAMS += %reldir%/cluster/flows
%canon_reldir%_cluster_flows_SOURCES = %reldir%/cluster/flows.c

# libfabric and Open MPI expect folders with modules only, and libtool keeps modules in .libs folders: each module has a link
# in a folder of its own. Open MPI gives up on a folder with a dangling link, hence the module is built first.
$(module_links):
	$(AM_V_GEN)$(MKDIR_P) $(@D) && ln -sfn "$(abs_top_builddir)/`dirname $|`/.libs/$(@F)" $@
# Each installed program has a link in util/, which is in the PATH, and each manual page has a link in the folder of its section.
nodist_noinst_DATA = env $(module_links)
env: $(srcdir)/%reldir%/env.in Makefile
	$(AM_V_GEN)$(MKDIR_P) util man/man1 man/man7 && \
	for program in $(bin_PROGRAMS); do ln -sfn "$(abs_top_builddir)/$$program" util/ || exit; done && \
	for page in $(dist_man_MANS); do ln -sfn "$(abs_top_srcdir)/$$page" "man/man$${page##*.}/" || exit; done && \
	sed -e 's|@abs_top_builddir[@]|$(abs_top_builddir)|g' -e 's|@abs_top_srcdir[@]|$(abs_top_srcdir)|g' \
		$(srcdir)/%reldir%/env.in > $@.tmp && \
	mv $@.tmp $@
CLEANFILES += env env.tmp $(module_links) man/man1/*.1 man/man7/*.7 util/mcastcoll-*

# The parts used by util/quickstart.sh.
quickstart_parts = env lib/libmcastcoll-fi.so %reldir%/cluster/wan %reldir%/cluster/flows
if HAVE_OMPI
quickstart_parts += lib/openmpi/mca_coll_mcastcoll.so fabtests/mpi/mpi_bcast_check
quickstart_parts += util/mcastcoll-perf %reldir%/perf/mcastcoll-perf-mpi
endif
.PHONY: quickstart
quickstart: $(optimised_headers) config.h
	$(MAKE) $(AM_MAKEFLAGS) $(quickstart_parts)

include util/arguments/local.mk
include util/completion/local.mk
include util/hostset/local.mk
include fabtests/cluster/cluster.mk
include util/sim/local.mk
include util/gateway/local.mk
include util/gateway/session/local.mk
include util/cp/local.mk
include util/topo/local.mk
include util/doctor/local.mk
include util/patterns/local.mk
include util/perf/local.mk
include util/split/local.mk

EXTRA_DIST += \
	.ci/run \
	.clang-format \
	HACKING.md \
	%reldir%/build \
	%reldir%/check-functions.sh \
	%reldir%/check-report.sh \
	%reldir%/check-steps \
	%reldir%/check.sh \
	%reldir%/cluster/README \
	%reldir%/cluster/crossings \
	%reldir%/cluster/cut \
	%reldir%/cluster/down \
	%reldir%/cluster/gateways \
	%reldir%/cluster/lib.sh \
	%reldir%/cluster/loss \
	%reldir%/cluster/on \
	%reldir%/cluster/probe.py \
	%reldir%/cluster/rsh \
	%reldir%/cluster/run \
	%reldir%/cluster/selftest \
	%reldir%/cluster/traffic \
	%reldir%/cluster/up \
	%reldir%/env.in \
	%reldir%/fuzz \
	%reldir%/install-deps \
	%reldir%/plot \
	%reldir%/prose \
	docs/figures/quickstart.svg \
	%reldir%/quickstart.sh \
	%reldir%/quickstart_report.py \
	%reldir%/on-debian \
	docs/PROGRAMS.md \
	%reldir%/programs/arrays.py \
	%reldir%/programs/blocks.py \
	%reldir%/programs/compare.py \
	%reldir%/programs/descent.py \
	%reldir%/programs/eigen.py \
	%reldir%/programs/solve.py \
	%reldir%/rxe-lab \
	%reldir%/rxe/hosts \
	%reldir%/rxe/init \
	%reldir%/rxe/loss \
	%reldir%/rxe/prepare \
	%reldir%/rxe/rank
