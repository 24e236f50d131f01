# The sites file, shared by the gateway, the library loaded into programs and the provider. Depends on neither fmt
# nor libfabric, because it is loaded into unmodified programs.
noinst_LTLIBRARIES += %reldir%/libmccsites.la
%canon_reldir%_parts = \
	%reldir%/endpoint.cc \
	%reldir%/endpoint.h \
	%reldir%/reach.cc \
	%reldir%/reach.h \
	%reldir%/sites.cc \
	%reldir%/sites.h
mcc_parts += $(%canon_reldir%_parts)
mcc_rooms += %reldir%/all.cc
if ONE_FILE
nodist_%canon_reldir%_libmccsites_la_SOURCES = %reldir%/all.cc
else
%canon_reldir%_libmccsites_la_SOURCES = $(%canon_reldir%_parts)
endif
EXTRA_DIST += %reldir%/README.md
