# The provider: a module for libfabric's own loader, with one exported symbol, never unloaded.
provexecdir = $(provdir)
provexec_LTLIBRARIES = %reldir%/libmcastcoll-fi.la
%canon_reldir%_libmcastcoll_fi_la_SOURCES = \
	%reldir%/av.cc \
	%reldir%/av.h \
	%reldir%/av_set.cc \
	%reldir%/av_set.h \
	%reldir%/collective.cc \
	%reldir%/collective.h \
	%reldir%/cq.cc \
	%reldir%/cq.h \
	%reldir%/datagram/absent.cc \
	%reldir%/datagram/absent.h \
	%reldir%/datagram/address_vector.cc \
	%reldir%/datagram/address_vector.h \
	%reldir%/datagram/completion_queue.cc \
	%reldir%/datagram/completion_queue.h \
	%reldir%/datagram/counter.cc \
	%reldir%/datagram/counter.h \
	%reldir%/datagram/domain.cc \
	%reldir%/datagram/domain.h \
	%reldir%/datagram/endpoint.cc \
	%reldir%/datagram/endpoint.h \
	%reldir%/datagram/event_queue.cc \
	%reldir%/datagram/event_queue.h \
	%reldir%/datagram/fabric.cc \
	%reldir%/datagram/fabric.h \
	%reldir%/datagram/info.cc \
	%reldir%/datagram/info.h \
	%reldir%/datagram/membership.cc \
	%reldir%/datagram/membership.h \
	%reldir%/datagram/memory.cc \
	%reldir%/datagram/memory.h \
	%reldir%/datagram/object.h \
	%reldir%/datagram/packet_socket.cc \
	%reldir%/datagram/packet_socket.h \
	%reldir%/datagram/receiver.cc \
	%reldir%/datagram/receiver.h \
	%reldir%/datagram/refusal.h \
	%reldir%/datagram/reliable.cc \
	%reldir%/datagram/reliable.h \
	%reldir%/datagram/sockets.cc \
	%reldir%/datagram/sockets.h \
	%reldir%/datagram/transfer.cc \
	%reldir%/datagram/verbs_lane.cc \
	%reldir%/datagram/verbs_lane.h \
	%reldir%/datagram/waiter.cc \
	%reldir%/datagram/waiter.h \
	%reldir%/domain.cc \
	%reldir%/domain.h \
	%reldir%/endpoint.cc \
	%reldir%/endpoint.h \
	%reldir%/engine_news.cc \
	%reldir%/engine_news.h \
	%reldir%/eq.cc \
	%reldir%/eq.h \
	%reldir%/fabric.cc \
	%reldir%/fabric.h \
	%reldir%/fid_owner.h \
	%reldir%/graft.h \
	%reldir%/guard.h \
	%reldir%/info.h \
	%reldir%/inner.cc \
	%reldir%/inner.h \
	%reldir%/log.cc \
	%reldir%/log.h \
	%reldir%/messenger.cc \
	%reldir%/messenger.h \
	%reldir%/message_form.cc \
	%reldir%/message_form.h \
	%reldir%/params.cc \
	%reldir%/params.h \
	%reldir%/progress_thread.cc \
	%reldir%/progress_thread.h \
	%reldir%/provider.cc \
	%reldir%/provider.h \
	%reldir%/request.cc \
	%reldir%/request.h \
	%reldir%/selection_file.cc \
	%reldir%/selection_file.h \
	%reldir%/settings.h \
	%reldir%/station.h \
	%reldir%/group.cc \
	%reldir%/group.h \
	%reldir%/group_address.cc \
	%reldir%/group_join.cc \
	%reldir%/group_levels.cc \
	%reldir%/group_plans.cc \
	%reldir%/group_run.cc \
	%reldir%/host_level.cc \
	%reldir%/host_level.h \
	%reldir%/job_report.cc \
	%reldir%/job_report.h \
	%reldir%/level_counters.h \
	%reldir%/placing.cc \
	%reldir%/placing.h \
	%reldir%/live_station.cc \
	%reldir%/live_station.h \
	%reldir%/station_open.cc \
	%reldir%/station_report.cc \
	%reldir%/station_verbs.cc \
	%reldir%/wait_nest.cc \
	%reldir%/wait_nest.h
%canon_reldir%_libmcastcoll_fi_la_CPPFLAGS = $(AM_CPPFLAGS) $(LIBFABRIC_CFLAGS) $(FMT_CFLAGS)
%canon_reldir%_libmcastcoll_fi_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -shared -Wl,-z,nodelete \
	-Wl,--version-script=$(srcdir)/%reldir%/libmcastcoll-fi.map -Wl,--no-undefined
%canon_reldir%_libmcastcoll_fi_la_LIBADD = \
	prov/mcastcoll/feed/libmccfeed.la \
	prov/mcastcoll/group/libmccgroup.la \
	prov/mcastcoll/host/libmcchost.la \
	prov/mcastcoll/relay/libmccsites.la \
	prov/mcastcoll/topology/libmccdiscover.la \
	prov/mcastcoll/reduce/libmccreduce.la \
	$(LIBFABRIC_LIBS)
EXTRA_DIST += %reldir%/libmcastcoll-fi.map
dist_man_MANS += man/fi_mcastcoll.7
EXTRA_DIST += %reldir%/README.md %reldir%/datagram/README.md
