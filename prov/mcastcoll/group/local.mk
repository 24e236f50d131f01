# The life of a group, pure.
noinst_LTLIBRARIES += %reldir%/libmccgroup.la
mcc_parts += \
	%reldir%/engine_news.cc \
	%reldir%/engine_news.h \
	%reldir%/group.cc \
	%reldir%/group.h \
	%reldir%/group_news.cc \
	%reldir%/group_news.h \
	%reldir%/group_settings.h \
	%reldir%/host_level.h \
	%reldir%/join.h \
	%reldir%/join_memory.h \
	%reldir%/join_port.h \
	%reldir%/joins.h \
	%reldir%/level_counters.h \
	%reldir%/level_set.cc \
	%reldir%/level_set.h \
	%reldir%/level_words.cc \
	%reldir%/losses.cc \
	%reldir%/losses.h \
	%reldir%/outbox.cc \
	%reldir%/outbox.h \
	%reldir%/patience.h \
	%reldir%/places.cc \
	%reldir%/places.h \
	%reldir%/port.h \
	%reldir%/roster.cc \
	%reldir%/roster.h \
	%reldir%/round_trips.h \
	%reldir%/survey_round.cc \
	%reldir%/survey_round.h \
	%reldir%/surveyor.cc \
	%reldir%/surveyor.h \
	%reldir%/welcome.cc \
	%reldir%/welcome.h
nodist_%canon_reldir%_libmccgroup_la_SOURCES = %reldir%/all.cc
mcc_rooms += %reldir%/all.cc
# What a broken build of the simulator compiles anew stays apart.
%canon_reldir%_libmccgroup_la_SOURCES = %reldir%/join.cc %reldir%/joins.cc %reldir%/group_end.cc
%canon_reldir%_libmccgroup_la_LIBADD = prov/mcastcoll/levels/libmcclevels.la
EXTRA_DIST += %reldir%/README.md
