# Common to the collectives and the datagram endpoints: log, settings, wait objects.
noinst_LTLIBRARIES += %reldir%/libmccprovider.la
%canon_reldir%_parts = \
	%reldir%/completions.cc \
	%reldir%/completions.h \
	%reldir%/fid_owner.h \
	%reldir%/guard.h \
	%reldir%/info_owner.h \
	%reldir%/key_file.cc \
	%reldir%/key_file.h \
	%reldir%/log.cc \
	%reldir%/log.h \
	%reldir%/params.cc \
	%reldir%/provider.h \
	%reldir%/selection_file.cc \
	%reldir%/selection_file.h \
	%reldir%/settings.h \
	%reldir%/uncancelled.h \
	%reldir%/wait_object.cc \
	%reldir%/wait_object.h
mcc_parts += $(%canon_reldir%_parts)
mcc_rooms += %reldir%/all.cc
if ONE_FILE
nodist_%canon_reldir%_libmccprovider_la_SOURCES = %reldir%/all.cc
else
%canon_reldir%_libmccprovider_la_SOURCES = $(%canon_reldir%_parts)
endif
%canon_reldir%_libmccprovider_la_CPPFLAGS = $(AM_CPPFLAGS) $(LIBFABRIC_CFLAGS) $(FMT_CFLAGS) $(MCC_FAULTS)
%canon_reldir%_libmccprovider_la_LIBADD = prov/mcastcoll/sites/libmccsites.la
EXTRA_DIST += %reldir%/README.md
