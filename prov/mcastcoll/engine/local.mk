noinst_LTLIBRARIES += %reldir%/libmccengine.la
%canon_reldir%_libmccengine_la_SOURCES = \
	%reldir%/admission.cc \
	%reldir%/barrier.cc \
	%reldir%/bitmap.h \
	%reldir%/broadcast.cc \
	%reldir%/checkpoint.cc \
	%reldir%/config.h \
	%reldir%/effects.cc \
	%reldir%/effects.h \
	%reldir%/engine.cc \
	%reldir%/engine.h \
	%reldir%/failure.cc \
	%reldir%/repair.cc \
	%reldir%/slot.cc \
	%reldir%/slot.h \
	%reldir%/supply_graph.cc \
	%reldir%/supply_graph.h \
	%reldir%/timing.h
%canon_reldir%_libmccengine_la_LIBADD = prov/mcastcoll/wire/libmccwire.la
