# The virtual cluster's WAN relay, and build/env, which makes this build usable from a shell without installing it.

noinst_PROGRAMS += %reldir%/cluster/wan
%canon_reldir%_cluster_wan_SOURCES = %reldir%/cluster/wan.c
%canon_reldir%_cluster_wan_CFLAGS = $(AM_CFLAGS) -D_GNU_SOURCE

# libfabric and Open MPI want folders that hold nothing else, and libtool keeps its modules in .libs folders.
nodist_noinst_DATA = env
env: $(srcdir)/%reldir%/env.in Makefile FORCE
	$(AM_V_GEN)$(MKDIR_P) lib/openmpi && \
	ln -sfn "$(abs_top_builddir)/prov/mcastcoll/ofi/.libs/libmcastcoll-fi.so" lib/libmcastcoll-fi.so && \
	if test -e mpi/.libs/mca_coll_mcastcoll.so; then \
		ln -sfn "$(abs_top_builddir)/mpi/.libs/mca_coll_mcastcoll.so" lib/openmpi/mca_coll_mcastcoll.so; fi && \
	sed -e 's|@abs_top_builddir[@]|$(abs_top_builddir)|g' -e 's|@abs_top_srcdir[@]|$(abs_top_srcdir)|g' $< > $@.tmp && \
	mv $@.tmp $@
.PHONY: FORCE
FORCE:
CLEANFILES += env env.tmp lib/libmcastcoll-fi.so lib/openmpi/mca_coll_mcastcoll.so

include fabtests/cluster/cluster.mk

EXTRA_DIST += \
	.ci/run \
	.clang-format \
	HACKING.md \
	%reldir%/build \
	%reldir%/check.sh \
	%reldir%/cluster/README \
	%reldir%/cluster/down \
	%reldir%/cluster/lib.sh \
	%reldir%/cluster/loss \
	%reldir%/cluster/on \
	%reldir%/cluster/probe.py \
	%reldir%/cluster/rsh \
	%reldir%/cluster/run \
	%reldir%/cluster/selftest \
	%reldir%/cluster/up \
	%reldir%/env.in \
	%reldir%/install-deps \
	%reldir%/plot \
	%reldir%/quickstart.sh \
	%reldir%/quickstart_table.py
