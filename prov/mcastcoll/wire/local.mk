noinst_LTLIBRARIES += %reldir%/libmccwire.la
%canon_reldir%_parts = \
	%reldir%/bytes.h \
	%reldir%/crypto.cc \
	%reldir%/crypto.h \
	%reldir%/gcm.cc \
	%reldir%/gcm.h \
	%reldir%/join.cc \
	%reldir%/join.h \
	%reldir%/mac.cc \
	%reldir%/mac.h \
	%reldir%/packet.cc \
	%reldir%/packet.h \
	%reldir%/peer.h \
	%reldir%/peer_table.cc \
	%reldir%/peer_table.h \
	%reldir%/protection.cc \
	%reldir%/protection.h \
	%reldir%/taken_numbers.cc \
	%reldir%/taken_numbers.h
mcc_parts += $(%canon_reldir%_parts)
mcc_rooms += %reldir%/all.cc
if HAVE_IPSEC_MB
%canon_reldir%_libmccwire_la_SOURCES = %reldir%/gcm_multi_buffer.cc
else
%canon_reldir%_libmccwire_la_SOURCES = %reldir%/gcm_without_multi_buffer.cc
endif
if ONE_FILE
nodist_%canon_reldir%_libmccwire_la_SOURCES = %reldir%/all.cc
else
%canon_reldir%_libmccwire_la_SOURCES += $(%canon_reldir%_parts)
endif
%canon_reldir%_libmccwire_la_CPPFLAGS = $(AM_CPPFLAGS) $(ISAL_CFLAGS) $(NETTLE_CFLAGS) $(ZSTD_CFLAGS)
%canon_reldir%_libmccwire_la_LIBADD = $(IPSEC_MB_LIBS) $(ISAL_LIBS) $(NETTLE_LIBS) $(ZSTD_LIBS)
EXTRA_DIST += %reldir%/FORMAT.md %reldir%/README.md
