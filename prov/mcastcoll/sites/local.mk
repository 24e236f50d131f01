# The sites file, shared by the gateway, the library loaded into programs and the provider. Depends on neither fmt
# nor libfabric, because it is loaded into unmodified programs.
noinst_LTLIBRARIES += %reldir%/libmccsites.la
mcc_parts += \
	%reldir%/endpoint.cc \
	%reldir%/endpoint.h \
	%reldir%/reach.cc \
	%reldir%/reach.h \
	%reldir%/sites.cc \
	%reldir%/sites.h
nodist_%canon_reldir%_libmccsites_la_SOURCES = %reldir%/all.cc
mcc_rooms += %reldir%/all.cc
EXTRA_DIST += %reldir%/README.md
