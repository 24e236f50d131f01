# Functional programs: several processes of this host over real libfabric.  Not installed.
noinst_LIBRARIES += fabtests/support/libmccfabtest.a
fabtests_support_parts = \
	fabtests/support/board.cc \
	fabtests/support/board.h \
	fabtests/support/buffer.cc \
	fabtests/support/buffer.h \
	fabtests/support/failure.h \
	fabtests/support/host.cc \
	fabtests/support/host.h \
	fabtests/support/launcher.cc \
	fabtests/support/launcher.h \
	fabtests/support/member.cc \
	fabtests/support/member.h \
	fabtests/support/munged.cc \
	fabtests/support/munged.h \
	fabtests/support/options.h \
	fabtests/support/program.cc \
	fabtests/support/process.h \
	fabtests/support/program.h \
	fabtests/support/reduction.cc \
	fabtests/support/reduction.h
mcc_parts += $(fabtests_support_parts)
mcc_rooms += fabtests/support/all.cc
fabtests_support_libmccfabtest_a_SOURCES = fabtests/support/statistics.cc fabtests/support/statistics.h
if ONE_FILE
nodist_fabtests_support_libmccfabtest_a_SOURCES = fabtests/support/all.cc
else
fabtests_support_libmccfabtest_a_SOURCES += $(fabtests_support_parts)
endif
fabtests_support_libmccfabtest_a_CPPFLAGS = $(functional_cppflags)

# The libraries' headers are included as system headers, which turns our warnings off there.
functional_cppflags = $(AM_CPPFLAGS) -I$(top_srcdir)/fabtests -I$(top_srcdir)/util $(LIBFABRIC_CFLAGS)
if HAVE_MUNGE
else
functional_cppflags += -DMCC_NO_MUNGE
endif
functional_ldadd = fabtests/support/libmccfabtest.a $(MCC_ARGUMENTS) $(LIBFABRIC_LIBS)

functional_programs = \
	fi_mcc_reduce \
	fi_mcc_groups \
	fi_mcc_kill \
	fi_mcc_limits \
	fi_mcc_args \
	fi_mcc_barrier \
	fi_mcc_broadcast \
	fi_mcc_collectives \
	fi_mcc_datagram \
	fi_mcc_failures \
	fi_mcc_flood \
	fi_mcc_forge \
	fi_mcc_join \
	fi_mcc_large \
	fi_mcc_mpich \
	fi_mcc_munge \
	fi_mcc_tagged \
	fi_mcc_reliable \
	fi_mcc_threads \
	fi_mcc_wait
noinst_PROGRAMS += fi_mcc_shortage $(functional_programs)

fi_mcc_args_SOURCES = %reldir%/args.cc
fi_mcc_args_CPPFLAGS = $(functional_cppflags)
fi_mcc_args_LDADD = $(functional_ldadd)
fi_mcc_barrier_SOURCES = %reldir%/barrier.cc
fi_mcc_barrier_CPPFLAGS = $(functional_cppflags)
fi_mcc_barrier_LDADD = $(functional_ldadd)
fi_mcc_broadcast_SOURCES = %reldir%/broadcast.cc
fi_mcc_broadcast_CPPFLAGS = $(functional_cppflags)
fi_mcc_broadcast_LDADD = $(functional_ldadd)
fi_mcc_large_SOURCES = %reldir%/large.cc
fi_mcc_large_CPPFLAGS = $(functional_cppflags)
fi_mcc_large_LDADD = $(functional_ldadd)
fi_mcc_datagram_SOURCES = %reldir%/datagram.cc %reldir%/datagram_node.h
fi_mcc_datagram_CPPFLAGS = $(functional_cppflags)
fi_mcc_datagram_LDADD = $(functional_ldadd)
# The replaced functions of the C library must be found before the C library's.
fi_mcc_failures_SOURCES = %reldir%/failures.cc %reldir%/datagram_node.h fabtests/support/failing.cc fabtests/support/failing.h
fi_mcc_failures_CPPFLAGS = $(functional_cppflags)
fi_mcc_failures_LDFLAGS = $(AM_LDFLAGS) -export-dynamic
fi_mcc_failures_LDADD = $(functional_ldadd) -ldl
fi_mcc_flood_SOURCES = \
	%reldir%/datagram_node.h \
	%reldir%/flood.cc \
	%reldir%/flood_source.cc \
	%reldir%/flood_source.h \
	%reldir%/forge_listening.cc \
	%reldir%/forge_listening.h \
	%reldir%/forge_sender.cc \
	%reldir%/forge_sender.h \
	%reldir%/forge_spoofed.cc \
	%reldir%/forge_spoofed.h \
	%reldir%/multicast_sockets.cc \
	%reldir%/multicast_sockets.h
fi_mcc_flood_CPPFLAGS = $(functional_cppflags)
fi_mcc_flood_LDADD = $(functional_ldadd) prov/mcastcoll/transport/libmcctransport.la prov/mcastcoll/wire/libmccwire.la
fi_mcc_forge_SOURCES = \
	%reldir%/datagram_node.h \
	%reldir%/forge.cc \
	%reldir%/forge_attacked.cc \
	%reldir%/forge_attacked.h \
	%reldir%/forge_attacks.cc \
	%reldir%/forge_attacks.h \
	%reldir%/forge_hellos.cc \
	%reldir%/forge_hellos.h \
	%reldir%/forge_intruder.h \
	%reldir%/forge_listening.cc \
	%reldir%/forge_listening.h \
	%reldir%/forge_sender.cc \
	%reldir%/forge_sender.h \
	%reldir%/forge_spoofed.cc \
	%reldir%/forge_spoofed.h \
	%reldir%/forge_foreign.cc \
	%reldir%/forge_foreign.h \
	%reldir%/multicast_sockets.cc \
	%reldir%/multicast_sockets.h
fi_mcc_forge_CPPFLAGS = $(functional_cppflags)
fi_mcc_forge_LDADD = $(functional_ldadd) prov/mcastcoll/transport/libmcctransport.la prov/mcastcoll/wire/libmccwire.la
fi_mcc_groups_SOURCES = %reldir%/groups.cc
fi_mcc_groups_CPPFLAGS = $(functional_cppflags)
fi_mcc_groups_LDADD = $(functional_ldadd)
fi_mcc_join_SOURCES = %reldir%/join.cc
fi_mcc_join_CPPFLAGS = $(functional_cppflags)
fi_mcc_join_LDADD = $(functional_ldadd)
fi_mcc_kill_SOURCES = %reldir%/kill.cc
fi_mcc_kill_CPPFLAGS = $(functional_cppflags)
fi_mcc_kill_LDADD = $(functional_ldadd)
fi_mcc_limits_SOURCES = %reldir%/limits.cc
fi_mcc_limits_CPPFLAGS = $(functional_cppflags)
fi_mcc_limits_LDADD = $(functional_ldadd)
fi_mcc_mpich_SOURCES = %reldir%/mpich_contract.cc
fi_mcc_mpich_CPPFLAGS = $(functional_cppflags)
fi_mcc_mpich_LDADD = $(functional_ldadd)
fi_mcc_munge_SOURCES = %reldir%/munge.cc
fi_mcc_munge_CPPFLAGS = $(functional_cppflags)
fi_mcc_munge_LDADD = $(functional_ldadd)
# Shared by the tests of collectives.
noinst_LIBRARIES += %reldir%/libmccexercise.a
%canon_reldir%_libmccexercise_a_SOURCES = %reldir%/exercise.cc %reldir%/exercise.h
%canon_reldir%_libmccexercise_a_CPPFLAGS = $(functional_cppflags)
fi_mcc_collectives_SOURCES = %reldir%/collectives.cc
fi_mcc_collectives_CPPFLAGS = $(functional_cppflags)
fi_mcc_collectives_LDADD = %reldir%/libmccexercise.a $(functional_ldadd)
fi_mcc_shortage_SOURCES = %reldir%/shortage.cc
fi_mcc_shortage_CPPFLAGS = $(functional_cppflags)
fi_mcc_shortage_LDADD = $(functional_ldadd)
fi_mcc_tagged_SOURCES = %reldir%/tagged.cc
fi_mcc_tagged_CPPFLAGS = $(functional_cppflags)
fi_mcc_tagged_LDADD = $(functional_ldadd)
fi_mcc_reliable_SOURCES = %reldir%/reliable.cc %reldir%/reliable_foreign.cc %reldir%/reliable_foreign.h %reldir%/datagram_node.h %reldir%/forge_spoofed.cc %reldir%/forge_spoofed.h
fi_mcc_reliable_CPPFLAGS = $(functional_cppflags)
fi_mcc_reliable_LDADD = $(functional_ldadd) prov/mcastcoll/reliable/libmccreliable.la prov/mcastcoll/wire/libmccwire.la
fi_mcc_threads_SOURCES = %reldir%/threads.cc
fi_mcc_threads_CPPFLAGS = $(functional_cppflags)
fi_mcc_threads_LDADD = %reldir%/libmccexercise.a $(functional_ldadd)
fi_mcc_reduce_SOURCES = \
	%reldir%/reduce.cc \
	%reldir%/reduce_blocking.cc \
	%reldir%/reduce_cases.h
fi_mcc_reduce_CPPFLAGS = $(functional_cppflags)
fi_mcc_reduce_LDADD = %reldir%/libmccexercise.a $(functional_ldadd)
fi_mcc_wait_SOURCES = %reldir%/wait.cc
fi_mcc_wait_CPPFLAGS = $(functional_cppflags)
fi_mcc_wait_LDADD = $(functional_ldadd)

# In C, like the loader of an application.
check_PROGRAMS += %reldir%/load_test
%canon_reldir%_load_test_SOURCES = %reldir%/load_test.c
%canon_reldir%_load_test_CPPFLAGS = $(AM_CPPFLAGS) $(LIBFABRIC_CFLAGS)
%canon_reldir%_load_test_LDADD = $(LIBFABRIC_LIBS) -ldl

functional_scripts = %reldir%/variants.sh %reldir%/levels.sh %reldir%/faults.sh %reldir%/manual.sh %reldir%/settings.sh %reldir%/full_shm.sh %reldir%/load.sh
TESTS += $(functional_scripts) $(functional_programs)
EXTRA_DIST += $(functional_scripts) %reldir%/valgrind.sh %reldir%/valgrind.supp
