# The protocol of gateway sessions; makes no system calls.
noinst_LTLIBRARIES += %reldir%/libmcctrunk.la
mcc_parts += \
	%reldir%/channel.h \
	%reldir%/config.h \
	%reldir%/frame.cc \
	%reldir%/frame.h \
	%reldir%/hello.cc \
	%reldir%/hello.h \
	%reldir%/inbound.cc \
	%reldir%/outbound.cc \
	%reldir%/outbound.h \
	%reldir%/stream.cc \
	%reldir%/stream.h \
	%reldir%/trunk.cc \
	%reldir%/trunk.h
nodist_%canon_reldir%_libmcctrunk_la_SOURCES = %reldir%/all.cc
mcc_rooms += %reldir%/all.cc
EXTRA_DIST += %reldir%/README.md
