# Host sets: the processes of a tool on many hosts.
MCC_HOST_SET = util/hostset/libmcchostset.a $(MCC_ARGUMENTS) prov/mcastcoll/topology/libmccdiscover.la prov/mcastcoll/sites/libmccsites.la \
	prov/mcastcoll/topology/libmccsubnet.la prov/mcastcoll/wire/libmccwire.la prov/mcastcoll/base/libmccbase.la $(PMIX_LIBS) -lpthread
noinst_LIBRARIES += util/hostset/libmcchostset.a
%canon_reldir%_parts = \
	%reldir%/agents.cc \
	%reldir%/agents.h \
	%reldir%/encoding.cc \
	%reldir%/encoding.h \
	%reldir%/form.cc \
	%reldir%/head.cc \
	%reldir%/head.h \
	%reldir%/host_set.cc \
	%reldir%/host_set.h \
	%reldir%/invitation.cc \
	%reldir%/invitation.h \
	%reldir%/launcher.h \
	%reldir%/link.cc \
	%reldir%/link.h \
	%reldir%/messages.h \
	%reldir%/opener.cc \
	%reldir%/opener.h \
	%reldir%/options.cc \
	%reldir%/options.h \
	%reldir%/reader.cc \
	%reldir%/reader.h \
	%reldir%/sealer.cc \
	%reldir%/sealer.h \
	%reldir%/writer.cc \
	%reldir%/writer.h
mcc_parts += $(%canon_reldir%_parts)
mcc_rooms += %reldir%/all.cc
%canon_reldir%_libmcchostset_a_SOURCES = util/gateway/sockets.cc
%canon_reldir%_libmcchostset_a_CPPFLAGS = $(AM_CPPFLAGS) $(PMIX_CFLAGS) -I$(top_srcdir)/util
if HAVE_PMIX
%canon_reldir%_libmcchostset_a_SOURCES += %reldir%/launcher_pmix.cc
else
%canon_reldir%_libmcchostset_a_SOURCES += %reldir%/launcher_absent.cc
endif
if ONE_FILE
nodist_%canon_reldir%_libmcchostset_a_SOURCES = %reldir%/all.cc
else
%canon_reldir%_libmcchostset_a_SOURCES += $(%canon_reldir%_parts)
endif

# A program that forms a host set and exchanges, for the test.
check_PROGRAMS += %reldir%/hostset_check
%canon_reldir%_hostset_check_SOURCES = %reldir%/hostset_check.cc
%canon_reldir%_hostset_check_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/util -DMCC_VERSION='"$(PACKAGE_VERSION)"'
%canon_reldir%_hostset_check_LDADD = $(MCC_HOST_SET)
TESTS += %reldir%/test_hostset.sh
EXTRA_DIST += %reldir%/README.md %reldir%/test_hostset.sh %reldir%/launcher_absent.cc %reldir%/launcher_pmix.cc
if HAVE_CRITERION
check_PROGRAMS += %reldir%/test_encoding
TESTS += %reldir%/test_encoding
endif
%canon_reldir%_test_encoding_SOURCES = %reldir%/test_encoding.cc
%canon_reldir%_test_encoding_CPPFLAGS = $(MCC_UNIT_CPPFLAGS) -I$(top_srcdir)/util
%canon_reldir%_test_encoding_CXXFLAGS = $(MCC_UNIT_CXXFLAGS)
%canon_reldir%_test_encoding_LDADD = $(MCC_HOST_SET) $(CRITERION_LIBS)
