# Connections between sites by programs with the split library.
check_PROGRAMS += %reldir%/split_check
TESTS += %reldir%/split_check
%canon_reldir%_split_check_SOURCES = \
	%reldir%/split_cases.cc \
	%reldir%/split_cases.h \
	%reldir%/split_check.cc \
	%reldir%/split_cross.cc \
	%reldir%/split_net.cc \
	%reldir%/split_net.h \
	%reldir%/split_relay.cc
%canon_reldir%_split_check_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/util -DMCC_VERSION='"$(PACKAGE_VERSION)"'
%canon_reldir%_split_check_LDADD = util/split/libmccsplit.la -ldl -lpthread
