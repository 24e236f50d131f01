# Trunks between sites' gateways: the protocol, pure.
noinst_LTLIBRARIES += %reldir%/libmcctrunk.la
%canon_reldir%_libmcctrunk_la_SOURCES = \
	%reldir%/channel.h \
	%reldir%/frame.cc \
	%reldir%/frame.h \
	%reldir%/hello.cc \
	%reldir%/hello.h \
	%reldir%/sequence_window.h \
	%reldir%/token_bucket.h \
	%reldir%/trunk.cc \
	%reldir%/trunk.h \
	%reldir%/trunk_receive.cc \
	%reldir%/trunk_send.cc
