# Implements the ports of groups (messages, multicast, shared memory) and the other services that an endpoint has for all its groups.
noinst_LTLIBRARIES += %reldir%/libmccports.la
%canon_reldir%_parts = \
	%reldir%/group_multicast.cc \
	%reldir%/group_multicast.h \
	%reldir%/multicast_sockets.cc \
	%reldir%/multicast_sockets.h \
	%reldir%/munge_secret.cc \
	%reldir%/munge_secret.h \
	%reldir%/process_watch.cc \
	%reldir%/process_watch.h \
	%reldir%/sealed_secret.cc \
	%reldir%/sealed_secret.h \
	%reldir%/service_pace.h \
	%reldir%/service_socket.cc \
	%reldir%/service_socket.h \
	%reldir%/team_level.cc \
	%reldir%/team_level.h
mcc_parts += $(%canon_reldir%_parts)
mcc_rooms += %reldir%/all.cc
# These files are compiled separately, so that tests can link them without the provider.
%canon_reldir%_libmccports_la_SOURCES = \
	%reldir%/messenger.cc \
	%reldir%/messenger.h \
	%reldir%/multicast_choice.cc \
	%reldir%/multicast_choice.h \
	%reldir%/munge_call.cc \
	%reldir%/munge_call.h \
	%reldir%/munge_library.h \
	%reldir%/foreign_connection_pace.h \
	%reldir%/foreign_connections.cc \
	%reldir%/foreign_connections.h
%canon_reldir%_libmccports_la_CPPFLAGS = $(AM_CPPFLAGS) $(LIBFABRIC_CFLAGS) $(FMT_CFLAGS)
# libmunge is loaded at run time: only its header is needed here.
if HAVE_MUNGE
%canon_reldir%_libmccports_la_SOURCES += %reldir%/munge_library.cc
else
%canon_reldir%_libmccports_la_SOURCES += %reldir%/munge_absent.cc
endif
if ONE_FILE
nodist_%canon_reldir%_libmccports_la_SOURCES = %reldir%/all.cc
else
%canon_reldir%_libmccports_la_SOURCES += $(%canon_reldir%_parts)
endif
EXTRA_DIST += %reldir%/README.md
