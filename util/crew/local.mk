# Host sets: the processes of a tool on many hosts.
MCC_CREW = util/crew/libmcccrew.a $(MCC_ARGUMENTS) prov/mcastcoll/topology/libmccdiscover.la prov/mcastcoll/relay/libmccsites.la \
	prov/mcastcoll/topology/libmccsubnet.la prov/mcastcoll/wire/libmccwire.la prov/mcastcoll/base/libmccbase.la $(PMIX_LIBS) -lpthread
noinst_LIBRARIES += util/crew/libmcccrew.a
mcc_parts += \
	%reldir%/agents.cc \
	%reldir%/agents.h \
	%reldir%/crew.cc \
	%reldir%/crew.h \
	%reldir%/form.cc \
	%reldir%/head.cc \
	%reldir%/head.h \
	%reldir%/launcher.h \
	%reldir%/link.cc \
	%reldir%/link.h \
	%reldir%/speech.h \
	%reldir%/words.cc \
	%reldir%/words.h
mcc_rooms += %reldir%/all.cc
nodist_%canon_reldir%_libmcccrew_a_SOURCES = %reldir%/all.cc
%canon_reldir%_libmcccrew_a_SOURCES = util/gateway/sockets.cc
%canon_reldir%_libmcccrew_a_CPPFLAGS = $(AM_CPPFLAGS) $(PMIX_CFLAGS) -I$(top_srcdir)/util
if HAVE_PMIX
%canon_reldir%_libmcccrew_a_SOURCES += %reldir%/launcher_pmix.cc
else
%canon_reldir%_libmcccrew_a_SOURCES += %reldir%/launcher_absent.cc
endif

# A program that forms a host set and exchanges, for the test.
check_PROGRAMS += %reldir%/crew_check
%canon_reldir%_crew_check_SOURCES = %reldir%/crew_check.cc
%canon_reldir%_crew_check_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/util -DMCC_VERSION='"$(PACKAGE_VERSION)"'
%canon_reldir%_crew_check_LDADD = $(MCC_CREW)
TESTS += %reldir%/test_crew.sh
EXTRA_DIST += %reldir%/README.md %reldir%/test_crew.sh %reldir%/launcher_absent.cc %reldir%/launcher_pmix.cc
if HAVE_CRITERION
check_PROGRAMS += %reldir%/test_words
TESTS += %reldir%/test_words
endif
%canon_reldir%_test_words_SOURCES = %reldir%/test_words.cc
%canon_reldir%_test_words_CPPFLAGS = $(MCC_UNIT_CPPFLAGS) -I$(top_srcdir)/util
%canon_reldir%_test_words_CXXFLAGS = $(MCC_UNIT_CXXFLAGS)
%canon_reldir%_test_words_LDADD = $(MCC_CREW) $(CRITERION_LIBS)
