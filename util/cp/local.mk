# mcastcoll-cp: copies files to the disks of many hosts.
bin_PROGRAMS += %reldir%/mcastcoll-cp
%canon_reldir%_parts = \
	%reldir%/channel.cc \
	%reldir%/channel.h \
	%reldir%/copy.cc \
	%reldir%/copy.h \
	%reldir%/main.cc \
	%reldir%/progress.cc \
	%reldir%/progress.h \
	%reldir%/stream.cc \
	%reldir%/stream.h \
	%reldir%/summary.h
mcc_parts += $(%canon_reldir%_parts)
mcc_rooms += %reldir%/all.cc
%canon_reldir%_mcastcoll_cp_SOURCES = %reldir%/summary.cc
if ONE_FILE
nodist_%canon_reldir%_mcastcoll_cp_SOURCES = %reldir%/all.cc
else
%canon_reldir%_mcastcoll_cp_SOURCES += $(%canon_reldir%_parts)
endif
%canon_reldir%_mcastcoll_cp_CPPFLAGS = $(AM_CPPFLAGS) $(LIBFABRIC_CFLAGS) $(OPENSSL_CFLAGS) -I$(top_srcdir)/util -DMCC_VERSION='"$(PACKAGE_VERSION)"'
%canon_reldir%_mcastcoll_cp_LDADD = %reldir%/libmcccopy.a $(MCC_HOST_SET) $(LIBFABRIC_LIBS) $(OPENSSL_LIBS)

# The reading and writing of files, for the program and for the test.
noinst_LIBRARIES += %reldir%/libmcccopy.a
%canon_reldir%_libmcccopy_a_SOURCES = \
	%reldir%/catalogue.cc \
	%reldir%/catalogue.h \
	%reldir%/chunk.cc \
	%reldir%/chunk.h \
	%reldir%/chunker.cc \
	%reldir%/chunker.h \
	%reldir%/digest.h \
	%reldir%/packer.cc \
	%reldir%/packer.h \
	%reldir%/pool.cc \
	%reldir%/pool.h \
	%reldir%/queue.cc \
	%reldir%/queue.h \
	%reldir%/sink.cc \
	%reldir%/sink.h \
	%reldir%/source.cc \
	%reldir%/source.h \
	%reldir%/target.cc \
	%reldir%/target.h \
	%reldir%/unpacker.cc \
	%reldir%/unpacker.h
%canon_reldir%_libmcccopy_a_CPPFLAGS = $(AM_CPPFLAGS) $(OPENSSL_CFLAGS) -I$(top_srcdir)/util
EXTRA_DIST += %reldir%/README.md
if HAVE_CRITERION
check_PROGRAMS += %reldir%/test_copy
TESTS += %reldir%/test_copy
endif
%canon_reldir%_test_copy_SOURCES = %reldir%/test_copy.cc
%canon_reldir%_test_copy_CPPFLAGS = $(MCC_UNIT_CPPFLAGS) $(OPENSSL_CFLAGS) -I$(top_srcdir)/util
%canon_reldir%_test_copy_CXXFLAGS = $(MCC_UNIT_CXXFLAGS)
%canon_reldir%_test_copy_LDADD = %reldir%/libmcccopy.a $(MCC_HOST_SET) $(OPENSSL_LIBS) $(CRITERION_LIBS)
dist_man_MANS += man/mcastcoll-cp.1
