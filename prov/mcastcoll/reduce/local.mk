# Vectors combined element by element.
noinst_LTLIBRARIES += %reldir%/libmccreduce.la
%canon_reldir%_libmccreduce_la_SOURCES = \
	%reldir%/kernels.cc \
	%reldir%/kernels.h \
	%reldir%/slices.h
%canon_reldir%_libmccreduce_la_CPPFLAGS = $(AM_CPPFLAGS) $(LIBFABRIC_CFLAGS)
# Vectorised whatever the level of optimisation is above 0; no fused multiply-add, which would round otherwise
# on processors that have it. -flto would forget that.
%canon_reldir%_libmccreduce_la_CXXFLAGS = $(AM_CXXFLAGS) -ftree-vectorize -ffp-contract=off -fno-lto
EXTRA_DIST += %reldir%/README.md
