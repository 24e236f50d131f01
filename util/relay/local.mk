# What the gateway and the library that is loaded into programs share: the preface and the sites file.  It needs neither fmt nor
# libfabric, since it goes into foreign programs.
noinst_LTLIBRARIES += %reldir%/libmccsites.la
%canon_reldir%_libmccsites_la_SOURCES = \
	%reldir%/endpoint.cc \
	%reldir%/endpoint.h \
	%reldir%/preface.h \
	%reldir%/sites.cc \
	%reldir%/sites.h
%canon_reldir%_libmccsites_la_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/util
