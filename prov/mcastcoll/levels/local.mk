# Composes an operation from the levels host, segment and site.
noinst_LTLIBRARIES += %reldir%/libmcclevels.la
%canon_reldir%_parts = \
	%reldir%/exchange_level.cc \
	%reldir%/exchange_level.h \
	%reldir%/hierarchy.cc \
	%reldir%/hierarchy.h \
	%reldir%/level.h \
	%reldir%/message_credits.cc \
	%reldir%/message_level.cc \
	%reldir%/message_level.h \
	%reldir%/placement.cc \
	%reldir%/placement.h \
	%reldir%/places.cc \
	%reldir%/places.h \
	%reldir%/planner.cc \
	%reldir%/planner.h \
	%reldir%/queue.h \
	%reldir%/request.h \
	%reldir%/schedule.cc \
	%reldir%/schedule.h \
	%reldir%/segment_level.cc \
	%reldir%/segment_level.h \
	%reldir%/selection.cc \
	%reldir%/selection.h \
	%reldir%/site_level.cc \
	%reldir%/site_level.h
mcc_parts += $(%canon_reldir%_parts)
mcc_rooms += %reldir%/all.cc
if ONE_FILE
nodist_%canon_reldir%_libmcclevels_la_SOURCES = %reldir%/all.cc
else
%canon_reldir%_libmcclevels_la_SOURCES = $(%canon_reldir%_parts)
endif
%canon_reldir%_libmcclevels_la_LIBADD = prov/mcastcoll/engine/libmccengine.la
EXTRA_DIST += %reldir%/README.md
