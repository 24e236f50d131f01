# The library that is preloaded into unmodified programs and routes their connections to other sites through
# gateways.
noinst_LTLIBRARIES += %reldir%/libmccsplit.la
%canon_reldir%_parts = \
	%reldir%/call.cc \
	%reldir%/call.h \
	%reldir%/connections.h \
	%reldir%/interpose.cc \
	%reldir%/keep_errno.h \
	%reldir%/ledger.cc \
	%reldir%/locked.h \
	%reldir%/prefaces.cc \
	%reldir%/real.h
mcc_parts += $(%canon_reldir%_parts)
mcc_rooms += %reldir%/all.cc
if ONE_FILE
nodist_%canon_reldir%_libmccsplit_la_SOURCES = %reldir%/all.cc
else
%canon_reldir%_libmccsplit_la_SOURCES = $(%canon_reldir%_parts)
endif
%canon_reldir%_libmccsplit_la_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/util
%canon_reldir%_libmccsplit_la_LIBADD = prov/mcastcoll/sites/libmccsites.la prov/mcastcoll/topology/libmccsubnet.la
lib_LTLIBRARIES += libmcastcoll-split.la
module_links += lib/split/libmcastcoll-split.so
lib/split/libmcastcoll-split.so: | libmcastcoll-split.la
libmcastcoll_split_la_SOURCES =
# Makes automake link with C++, although the library has no sources of its own.
nodist_EXTRA_libmcastcoll_split_la_SOURCES = dummy.cc
# Without libfabric, fmt and similar libraries: programs should not load libraries that they do not need.
libmcastcoll_split_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -shared -Wl,-z,nodelete \
	-Wl,--version-script=$(srcdir)/%reldir%/libmcastcoll-split.map -Wl,--no-undefined
libmcastcoll_split_la_LIBADD = %reldir%/libmccsplit.la -ldl -lpthread
EXTRA_DIST += %reldir%/libmcastcoll-split.map
dist_man_MANS += man/libmcastcoll-split.7
EXTRA_DIST += %reldir%/README.md
