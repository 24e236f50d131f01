# What the gateway, the library that is loaded into programs and the provider share: the preface and the sites
# file.  It needs neither fmt nor libfabric, since it goes into foreign programs.
noinst_LTLIBRARIES += %reldir%/libmccsites.la
mcc_parts += \
	%reldir%/endpoint.cc \
	%reldir%/endpoint.h \
	%reldir%/preface.h \
	%reldir%/reach.cc \
	%reldir%/reach.h \
	%reldir%/sites.cc \
	%reldir%/sites.h
nodist_%canon_reldir%_libmccsites_la_SOURCES = %reldir%/all.cc
mcc_rooms += %reldir%/all.cc
EXTRA_DIST += %reldir%/README.md
