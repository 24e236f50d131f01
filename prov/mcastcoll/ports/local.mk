# The real side of what groups ask of their process: messages, multicast, shared memory, and what an endpoint keeps for all its groups.
noinst_LTLIBRARIES += %reldir%/libmccports.la
mcc_parts += \
	%reldir%/greetings.cc \
	%reldir%/greetings.h \
	%reldir%/group_multicast.cc \
	%reldir%/group_multicast.h \
	%reldir%/multicast_sockets.cc \
	%reldir%/multicast_sockets.h \
	%reldir%/process_watch.cc \
	%reldir%/process_watch.h \
	%reldir%/team_level.cc \
	%reldir%/team_level.h
nodist_%canon_reldir%_libmccports_la_SOURCES = %reldir%/all.cc
mcc_rooms += %reldir%/all.cc
# What can be tested without the provider stays apart.
%canon_reldir%_libmccports_la_SOURCES = %reldir%/messenger.cc %reldir%/messenger.h
%canon_reldir%_libmccports_la_CPPFLAGS = $(AM_CPPFLAGS) $(LIBFABRIC_CFLAGS) $(FMT_CFLAGS)
EXTRA_DIST += %reldir%/README.md
