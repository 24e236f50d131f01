# The life of a group; makes no system calls.
noinst_LTLIBRARIES += %reldir%/libmccgroup.la
%canon_reldir%_parts = \
	%reldir%/gathering.cc \
	%reldir%/gathering.h \
	%reldir%/group.cc \
	%reldir%/group.h \
	%reldir%/join.cc \
	%reldir%/join.h \
	%reldir%/joins.cc \
	%reldir%/joins.h \
	%reldir%/level_set.cc \
	%reldir%/level_set.h \
	%reldir%/member_table.cc \
	%reldir%/member_table.h \
	%reldir%/members.cc \
	%reldir%/members.h \
	%reldir%/news.cc \
	%reldir%/outbox.h \
	%reldir%/pending_hellos.h \
	%reldir%/poll_selector.h \
	%reldir%/port.h \
	%reldir%/run_queue.h \
	%reldir%/secret_exchange.cc \
	%reldir%/secret_exchange.h \
	%reldir%/survey.cc \
	%reldir%/survey.h \
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
