# mcastcoll-gateway: connects a site with other sites.
%canon_reldir%_parts = \
	%reldir%/connection.cc \
	%reldir%/connection.h \
	%reldir%/gateway.cc \
	%reldir%/gateway.h \
	%reldir%/link.cc \
	%reldir%/link.h \
	%reldir%/link_owner.h \
	%reldir%/loop.cc \
	%reldir%/loop.h \
	%reldir%/main.cc \
	%reldir%/peer.cc \
	%reldir%/peer.h \
	%reldir%/peer_writing.cc \
	%reldir%/pending_connection.cc \
	%reldir%/pending_connection.h \
	%reldir%/preface.h \
	%reldir%/settings.cc \
	%reldir%/settings.h \
	%reldir%/shared.cc \
	%reldir%/shared.h \
	%reldir%/sockets.cc \
	%reldir%/sockets.h \
	%reldir%/stream_room.cc \
	%reldir%/stream_room.h \
	%reldir%/tls.cc \
	%reldir%/tls.h \
	%reldir%/tls_context.cc \
	%reldir%/tls_context.h \
	%reldir%/watched.h
mcc_parts += $(%canon_reldir%_parts)
bin_PROGRAMS += %reldir%/mcastcoll-gateway
%canon_reldir%_mcastcoll_gateway_SOURCES = %reldir%/status.cc
if ONE_FILE
nodist_%canon_reldir%_mcastcoll_gateway_SOURCES = %reldir%/all.cc
else
%canon_reldir%_mcastcoll_gateway_SOURCES += $(%canon_reldir%_parts)
endif
mcc_rooms += %reldir%/all.cc
%canon_reldir%_mcastcoll_gateway_CPPFLAGS = $(AM_CPPFLAGS) $(OPENSSL_CFLAGS) -I$(top_srcdir)/util -DMCC_VERSION='"$(PACKAGE_VERSION)"'
%canon_reldir%_mcastcoll_gateway_LDADD = $(MCC_ARGUMENTS) util/gateway/session/libmccsession.la prov/mcastcoll/sites/libmccsites.la prov/mcastcoll/wire/libmccwire.la \
	prov/mcastcoll/topology/libmccsubnet.la prov/mcastcoll/base/libmccbase.la $(OPENSSL_LIBS)
dist_man_MANS += man/mcastcoll-gateway.1
EXTRA_DIST += %reldir%/README.md

# systemd's unit, and the user named in it.
systemdunitdir = $(prefix)/lib/systemd/system
nodist_systemdunit_DATA = %reldir%/mcastcoll-gateway@.service
%reldir%/mcastcoll-gateway@.service: $(srcdir)/%reldir%/mcastcoll-gateway@.service.in Makefile
	$(AM_V_GEN)$(MKDIR_P) $(@D) && sed 's|@bindir[@]|$(bindir)|' $(srcdir)/%reldir%/mcastcoll-gateway@.service.in >$@.tmp && mv $@.tmp $@
sysusersdir = $(prefix)/lib/sysusers.d
dist_sysusers_DATA = %reldir%/mcastcoll-gateway.conf
CLEANFILES += %reldir%/mcastcoll-gateway@.service
EXTRA_DIST += %reldir%/mcastcoll-gateway@.service.in
