# mcastcoll-gateway: joins a site with others.
if HAVE_SODIUM
bin_PROGRAMS += %reldir%/mcastcoll-gateway
%canon_reldir%_mcastcoll_gateway_SOURCES = \
	%reldir%/connection.cc \
	%reldir%/connection.h \
	%reldir%/gateway.cc \
	%reldir%/gateway.h \
	%reldir%/link.cc \
	%reldir%/link.h \
	%reldir%/link_greeting.cc \
	%reldir%/loop.cc \
	%reldir%/loop.h \
	%reldir%/main.cc \
	%reldir%/newcomer.cc \
	%reldir%/newcomer.h \
	%reldir%/peer.cc \
	%reldir%/peer.h \
	%reldir%/peer_channels.cc \
	%reldir%/peer_writing.cc \
	%reldir%/secure.cc \
	%reldir%/secure.h \
	%reldir%/settings.h \
	%reldir%/sockets.cc \
	%reldir%/sockets.h \
	%reldir%/status.cc \
	%reldir%/status.h
%canon_reldir%_mcastcoll_gateway_CPPFLAGS = $(AM_CPPFLAGS) $(SODIUM_CFLAGS) -I$(top_srcdir)/util -DMCC_VERSION='"$(PACKAGE_VERSION)"'
%canon_reldir%_mcastcoll_gateway_LDADD = prov/mcastcoll/trunk/libmcctrunk.la prov/mcastcoll/relay/libmccsites.la \
	prov/mcastcoll/topology/libmccsubnet.la $(SODIUM_LIBS)
dist_man_MANS += man/mcastcoll-gateway.1

# What moving bytes costs, in the gateway's way and in others; not installed.
noinst_PROGRAMS += %reldir%/ways/relay_ways
%canon_reldir%_ways_relay_ways_SOURCES = \
	%reldir%/secure.cc \
	%reldir%/secure.h \
	%reldir%/ways/all_ways.cc \
	%reldir%/ways/kept_frames.h \
	%reldir%/ways/main.cc \
	%reldir%/ways/plain.cc \
	%reldir%/ways/polled.cc \
	%reldir%/ways/polled.h \
	%reldir%/ways/splice.cc \
	%reldir%/ways/traffic.cc \
	%reldir%/ways/traffic.h \
	%reldir%/ways/way.h
%canon_reldir%_ways_relay_ways_CPPFLAGS = $(AM_CPPFLAGS) $(SODIUM_CFLAGS) -I$(top_srcdir)/util
%canon_reldir%_ways_relay_ways_LDADD = prov/mcastcoll/trunk/libmcctrunk.la $(SODIUM_LIBS)
if HAVE_URING
%canon_reldir%_ways_relay_ways_SOURCES += %reldir%/ways/uring.cc
%canon_reldir%_ways_relay_ways_CPPFLAGS += $(URING_CFLAGS) -DMCC_HAVE_URING
%canon_reldir%_ways_relay_ways_LDADD += $(URING_LIBS)
endif
endif
EXTRA_DIST += %reldir%/ways/on_hosts
