# Command lines: the one face of CLI11, for the tools and for the tests' programs.
MCC_ARGUMENTS = util/arguments/libmccarguments.la
noinst_LTLIBRARIES += util/arguments/libmccarguments.la
%canon_reldir%_libmccarguments_la_SOURCES = %reldir%/arguments.cc %reldir%/arguments.h
%canon_reldir%_libmccarguments_la_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/util
