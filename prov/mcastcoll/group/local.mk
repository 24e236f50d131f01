# The life of a group; makes no system calls.
noinst_LTLIBRARIES += %reldir%/libmccgroup.la
%canon_reldir%_parts = \
	%reldir%/arrival.cc \
	%reldir%/arrival.h \
	%reldir%/gathering.cc \
	%reldir%/gathering.h \
	%reldir%/group.cc \
	%reldir%/group.h \
	%reldir%/host_level.h \
	%reldir%/join.cc \
	%reldir%/join.h \
	%reldir%/join_memory.cc \
	%reldir%/join_memory.h \
	%reldir%/join_port.h \
	%reldir%/joins.cc \
	%reldir%/joins.h \
	%reldir%/level_counters.h \
	%reldir%/level_set.cc \
	%reldir%/level_set.h \
	%reldir%/losses.cc \
	%reldir%/losses.h \
	%reldir%/member_table.cc \
	%reldir%/member_table.h \
	%reldir%/multicast.h \
	%reldir%/news.cc \
	%reldir%/outbox.h \
	%reldir%/pending_hellos.h \
	%reldir%/poll_selector.h \
	%reldir%/port.h \
	%reldir%/recent.h \
	%reldir%/roster.cc \
	%reldir%/roster.h \
	%reldir%/round_trips.h \
	%reldir%/run_queue.h \
	%reldir%/secret_exchange.cc \
	%reldir%/secret_exchange.h \
	%reldir%/secret_exchanges.cc \
	%reldir%/secret_exchanges.h \
	%reldir%/stall_timer.h \
	%reldir%/survey_round.cc \
	%reldir%/survey_round.h \
	%reldir%/surveyor.cc \
	%reldir%/surveyor.h \
	%reldir%/welcome.cc \
	%reldir%/welcome.h
mcc_parts += $(%canon_reldir%_parts)
mcc_rooms += %reldir%/all.cc
if ONE_FILE
nodist_%canon_reldir%_libmccgroup_la_SOURCES = %reldir%/all.cc
else
%canon_reldir%_libmccgroup_la_SOURCES = $(%canon_reldir%_parts)
endif
%canon_reldir%_libmccgroup_la_LIBADD = prov/mcastcoll/levels/libmcclevels.la
EXTRA_DIST += %reldir%/README.md
