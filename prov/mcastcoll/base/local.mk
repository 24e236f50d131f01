# Types and helpers that every room may use. Pure rooms may include only the files that unit/purity.sh lists, none that make system calls.
noinst_LTLIBRARIES += %reldir%/libmccbase.la
%canon_reldir%_libmccbase_la_SOURCES = \
	%reldir%/cache.h \
	%reldir%/clock.h \
	%reldir%/collective.h \
	%reldir%/combiner.h \
	%reldir%/deadline.h \
	%reldir%/file_descriptor.h \
	%reldir%/function_ref.h \
	%reldir%/new_file.cc \
	%reldir%/new_file.h \
	%reldir%/own_process.h \
	%reldir%/rank_set.h \
	%reldir%/result.h \
	%reldir%/ring.h \
	%reldir%/rule_line.h \
	%reldir%/secret_file.cc \
	%reldir%/secret_file.h \
	%reldir%/standard.h \
	%reldir%/system.cc \
	%reldir%/system.h \
	%reldir%/types.h \
	%reldir%/undumped.cc \
	%reldir%/undumped.h \
	%reldir%/window_bitmap.h
%canon_reldir%_libmccbase_la_CPPFLAGS = $(AM_CPPFLAGS) $(FMT_CFLAGS)
EXTRA_DIST += %reldir%/README.md
