# Command lines: the only user of CLI11, for the tools and for the tests' programs.
MCC_ARGUMENTS = util/arguments/libmccarguments.a
noinst_LIBRARIES += util/arguments/libmccarguments.a
%canon_reldir%_libmccarguments_a_SOURCES = %reldir%/arguments.cc %reldir%/arguments.h
%canon_reldir%_libmccarguments_a_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/util
