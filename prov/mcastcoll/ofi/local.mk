# The provider: a module for libfabric's loader with one exported symbol. Never unloaded.
provexecdir = $(provdir)
provexec_LTLIBRARIES = %reldir%/libmcastcoll-fi.la
module_links += lib/libmcastcoll-fi.so
lib/libmcastcoll-fi.so: | %reldir%/libmcastcoll-fi.la
%canon_reldir%_parts = \
	%reldir%/av.cc \
	%reldir%/av.h \
	%reldir%/av_set.cc \
	%reldir%/av_set.h \
	%reldir%/bound_endpoint.h \
	%reldir%/collective_completions.h \
	%reldir%/collective_endpoint.cc \
	%reldir%/collective_endpoint.h \
	%reldir%/collective_endpoint_open.cc \
	%reldir%/cq.cc \
	%reldir%/cq.h \
	%reldir%/domain.h \
	%reldir%/endpoint.cc \
	%reldir%/endpoint.h \
	%reldir%/eq.cc \
	%reldir%/eq.h \
	%reldir%/fabric.cc \
	%reldir%/fabric.h \
	%reldir%/fabric_open.cc \
	%reldir%/facilities.h \
	%reldir%/graft.h \
	%reldir%/grafted.h \
	%reldir%/group.cc \
	%reldir%/group.h \
	%reldir%/group_calls.cc \
	%reldir%/group_table.cc \
	%reldir%/group_table.h \
	%reldir%/info_order.cc \
	%reldir%/info_order.h \
	%reldir%/inner.cc \
	%reldir%/inner.h \
	%reldir%/join_request.cc \
	%reldir%/join_request.h \
	%reldir%/member_list.cc \
	%reldir%/member_list.h \
	%reldir%/open_operations.h \
	%reldir%/progress_thread.cc \
	%reldir%/progress_thread.h \
	%reldir%/provider.cc \
	%reldir%/queue.h \
	%reldir%/request.cc \
	%reldir%/request.h
mcc_parts += $(%canon_reldir%_parts)
mcc_rooms += %reldir%/all.cc
if ONE_FILE
nodist_%canon_reldir%_libmcastcoll_fi_la_SOURCES = %reldir%/all.cc
else
%canon_reldir%_libmcastcoll_fi_la_SOURCES = $(%canon_reldir%_parts)
endif
%canon_reldir%_libmcastcoll_fi_la_CPPFLAGS = $(AM_CPPFLAGS) $(LIBFABRIC_CFLAGS) $(FMT_CFLAGS)
%canon_reldir%_libmcastcoll_fi_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -shared -Wl,-z,nodelete \
	-Wl,--version-script=$(srcdir)/%reldir%/libmcastcoll-fi.map -Wl,--no-undefined
%canon_reldir%_libmcastcoll_fi_la_LIBADD = \
	prov/mcastcoll/datagram/libmccdatagram.la \
	prov/mcastcoll/group/libmccgroup.la \
	prov/mcastcoll/host/libmcchost.la \
	prov/mcastcoll/ports/libmccports.la \
	prov/mcastcoll/provider/libmccprovider.la \
	prov/mcastcoll/topology/libmccdiscover.la \
	prov/mcastcoll/reduce/libmccreduce.la \
	$(LIBFABRIC_LIBS)
EXTRA_DIST += %reldir%/libmcastcoll-fi.map
dist_man_MANS += man/fi_mcastcoll.7
EXTRA_DIST += %reldir%/README.md
