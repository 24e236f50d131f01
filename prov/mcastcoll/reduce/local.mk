# Combines vectors element by element.
noinst_LTLIBRARIES += %reldir%/libmccreduce.la
%canon_reldir%_libmccreduce_la_SOURCES = \
	%reldir%/kernels.cc \
	%reldir%/kernels.h \
	%reldir%/slices.h
%canon_reldir%_libmccreduce_la_CPPFLAGS = $(AM_CPPFLAGS) $(LIBFABRIC_CFLAGS)
# Vectorised at every optimisation level above 0; no fused multiply-add, which rounds differently on processors
# that have it. -flto would drop these flags.
%canon_reldir%_libmccreduce_la_CXXFLAGS = $(AM_CXXFLAGS) -ftree-vectorize -ffp-contract=off -fno-lto
EXTRA_DIST += %reldir%/README.md
