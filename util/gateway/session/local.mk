# The protocol of gateway sessions; makes no system calls. Its files are not in mcc_parts, where util/gateway/all.cc would include
# them, too: they are compiled as a library, which the tests link without the program.
noinst_LTLIBRARIES += %reldir%/libmccsession.la
gateway_session_parts = \
	%reldir%/channel.h \
	%reldir%/channels.h \
	%reldir%/config.h \
	%reldir%/frame.cc \
	%reldir%/frame.h \
	%reldir%/hello.cc \
	%reldir%/hello.h \
	%reldir%/host.h \
	%reldir%/inbound.cc \
	%reldir%/outbound.cc \
	%reldir%/outbound.h \
	%reldir%/receive_window.h \
	%reldir%/sequence_window.h \
	%reldir%/session.cc \
	%reldir%/session.h \
	%reldir%/stream.cc \
	%reldir%/stream.h \
	%reldir%/token_bucket.h
if ONE_FILE
nodist_%canon_reldir%_libmccsession_la_SOURCES = %reldir%/all.cc
else
%canon_reldir%_libmccsession_la_SOURCES = $(gateway_session_parts)
endif
%canon_reldir%_libmccsession_la_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/util
%reldir%/all.cc: parts = $(gateway_session_parts)
mcc_rooms += %reldir%/all.cc
EXTRA_DIST += $(gateway_session_parts) %reldir%/README.md
