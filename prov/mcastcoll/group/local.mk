# The life of a group, pure: the join so far.
noinst_LTLIBRARIES += %reldir%/libmccgroup.la
%canon_reldir%_libmccgroup_la_SOURCES = \
	%reldir%/group_settings.h \
	%reldir%/join.cc \
	%reldir%/join.h \
	%reldir%/join_port.h \
	%reldir%/losses.cc \
	%reldir%/losses.h \
	%reldir%/outbox.cc \
	%reldir%/outbox.h \
	%reldir%/places.cc \
	%reldir%/places.h \
	%reldir%/recent.h \
	%reldir%/round_trips.h \
	%reldir%/survey_round.cc \
	%reldir%/survey_round.h \
	%reldir%/surveyor.cc \
	%reldir%/surveyor.h \
	%reldir%/welcome.cc \
	%reldir%/welcome.h
%canon_reldir%_libmccgroup_la_LIBADD = prov/mcastcoll/levels/libmcclevels.la
EXTRA_DIST += %reldir%/README.md
