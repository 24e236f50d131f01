# Fuzzers. util/fuzz builds them with clang and libFuzzer; a build with the ordinary compiler's sanitizers runs them
# with the main() of mutate.cc. Other builds leave the fuzzers out.
fuzz_programs = \
	%reldir%/fuzz_packets \
	%reldir%/fuzz_joins \
	%reldir%/fuzz_protection \
	%reldir%/fuzz_secrets \
	%reldir%/fuzz_engine \
	%reldir%/fuzz_levels \
	%reldir%/fuzz_group \
	%reldir%/fuzz_host \
	%reldir%/fuzz_reliable \
	%reldir%/fuzz_session \
	%reldir%/fuzz_gateway \
	%reldir%/fuzz_texts \
	%reldir%/fuzz_params \
	%reldir%/fuzz_reports \
	%reldir%/fuzz_members
EXTRA_PROGRAMS = $(fuzz_programs)
.PHONY: fuzzers
fuzzers: $(BUILT_SOURCES)
	$(MAKE) $(AM_MAKEFLAGS) $(fuzz_programs)
fuzz_sources = %reldir%/fuzz.h %reldir%/input.h
if LIBFUZZER
link_fuzzer = $(AM_LDFLAGS) -fsanitize=fuzzer
EXTRA_DIST += %reldir%/mutate.cc
else
link_fuzzer = $(AM_LDFLAGS)
fuzz_sources += %reldir%/mutate.cc
endif
fuzz_host = prov/mcastcoll/host/libmcchost.la prov/mcastcoll/transport/libmcctransport.la prov/mcastcoll/base/libmccbase.la

%canon_reldir%_fuzz_packets_SOURCES = %reldir%/fuzz_packets.cc $(fuzz_sources)
%canon_reldir%_fuzz_packets_LDFLAGS = $(link_fuzzer)
%canon_reldir%_fuzz_packets_LDADD = prov/mcastcoll/wire/libmccwire.la

%canon_reldir%_fuzz_joins_SOURCES = %reldir%/fuzz_joins.cc $(fuzz_sources)
%canon_reldir%_fuzz_joins_LDFLAGS = $(link_fuzzer)
%canon_reldir%_fuzz_joins_LDADD = prov/mcastcoll/wire/libmccwire.la

%canon_reldir%_fuzz_protection_SOURCES = %reldir%/fuzz_protection.cc $(fuzz_sources)
%canon_reldir%_fuzz_protection_LDFLAGS = $(link_fuzzer)
%canon_reldir%_fuzz_protection_LDADD = prov/mcastcoll/wire/libmccwire.la

%canon_reldir%_fuzz_secrets_SOURCES = %reldir%/fuzz_secrets.cc $(fuzz_sources)
%canon_reldir%_fuzz_secrets_LDFLAGS = $(link_fuzzer)
%canon_reldir%_fuzz_secrets_LDADD = prov/mcastcoll/group/libmccgroup.la prov/mcastcoll/topology/libmcctopology.la

%canon_reldir%_fuzz_engine_SOURCES = %reldir%/fuzz_engine.cc $(fuzz_sources)
%canon_reldir%_fuzz_engine_LDFLAGS = $(link_fuzzer)
%canon_reldir%_fuzz_engine_LDADD = prov/mcastcoll/engine/libmccengine.la prov/mcastcoll/wire/libmccwire.la

%canon_reldir%_fuzz_levels_SOURCES = %reldir%/fuzz_levels.cc $(fuzz_sources)
%canon_reldir%_fuzz_levels_LDFLAGS = $(link_fuzzer)
%canon_reldir%_fuzz_levels_LDADD = prov/mcastcoll/levels/libmcclevels.la prov/mcastcoll/topology/libmcctopology.la prov/mcastcoll/wire/libmccwire.la

%canon_reldir%_fuzz_group_SOURCES = %reldir%/fuzz_group.cc %reldir%/group_process.h $(fuzz_sources) prov/mcastcoll/ports/team_level.cc
%canon_reldir%_fuzz_group_LDFLAGS = $(link_fuzzer)
%canon_reldir%_fuzz_group_CPPFLAGS = $(AM_CPPFLAGS) $(FMT_CFLAGS)
%canon_reldir%_fuzz_group_LDADD = prov/mcastcoll/group/libmccgroup.la prov/mcastcoll/topology/libmcctopology.la $(fuzz_host)

%canon_reldir%_fuzz_host_SOURCES = %reldir%/fuzz_host.cc $(fuzz_sources)
%canon_reldir%_fuzz_host_LDFLAGS = $(link_fuzzer)
%canon_reldir%_fuzz_host_LDADD = $(fuzz_host)

%canon_reldir%_fuzz_reliable_SOURCES = %reldir%/fuzz_reliable.cc $(fuzz_sources)
%canon_reldir%_fuzz_reliable_LDFLAGS = $(link_fuzzer)
%canon_reldir%_fuzz_reliable_LDADD = prov/mcastcoll/reliable/libmccreliable.la prov/mcastcoll/wire/libmccwire.la

%canon_reldir%_fuzz_session_SOURCES = %reldir%/fuzz_session.cc $(fuzz_sources)
%canon_reldir%_fuzz_session_LDFLAGS = $(link_fuzzer)
%canon_reldir%_fuzz_session_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/util
%canon_reldir%_fuzz_session_LDADD = util/gateway/session/libmccsession.la prov/mcastcoll/wire/libmccwire.la

%canon_reldir%_fuzz_texts_SOURCES = %reldir%/fuzz_texts.cc $(fuzz_sources)
%canon_reldir%_fuzz_texts_LDFLAGS = $(link_fuzzer)
%canon_reldir%_fuzz_texts_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/util
%canon_reldir%_fuzz_texts_LDADD = prov/mcastcoll/levels/libmcclevels.la prov/mcastcoll/sites/libmccsites.la prov/mcastcoll/topology/libmcctopology.la prov/mcastcoll/wire/libmccwire.la

%canon_reldir%_fuzz_gateway_SOURCES = %reldir%/fuzz_gateway.cc $(fuzz_sources) util/gateway/link.cc util/gateway/loop.cc \
	util/gateway/settings.cc util/gateway/shared.cc util/gateway/sockets.cc util/gateway/stream_room.cc util/gateway/tls.cc \
	util/gateway/tls_context.cc
%canon_reldir%_fuzz_gateway_CPPFLAGS = $(AM_CPPFLAGS) $(OPENSSL_CFLAGS) -I$(top_srcdir)/util
%canon_reldir%_fuzz_gateway_LDFLAGS = $(link_fuzzer)
%canon_reldir%_fuzz_gateway_LDADD = util/gateway/session/libmccsession.la prov/mcastcoll/sites/libmccsites.la prov/mcastcoll/topology/libmccsubnet.la \
	prov/mcastcoll/wire/libmccwire.la prov/mcastcoll/base/libmccbase.la $(OPENSSL_LIBS)

%canon_reldir%_fuzz_params_SOURCES = %reldir%/fuzz_params.cc $(fuzz_sources) prov/mcastcoll/provider/key_file.cc prov/mcastcoll/provider/params.cc \
	prov/mcastcoll/provider/selection_file.cc
%canon_reldir%_fuzz_params_CPPFLAGS = $(AM_CPPFLAGS) $(LIBFABRIC_CFLAGS) $(FMT_CFLAGS)
%canon_reldir%_fuzz_params_LDFLAGS = $(link_fuzzer)
%canon_reldir%_fuzz_params_LDADD = prov/mcastcoll/levels/libmcclevels.la prov/mcastcoll/sites/libmccsites.la prov/mcastcoll/topology/libmccdiscover.la \
	prov/mcastcoll/transport/libmcctransport.la prov/mcastcoll/wire/libmccwire.la prov/mcastcoll/base/libmccbase.la $(LIBFABRIC_LIBS)

%canon_reldir%_fuzz_reports_SOURCES = %reldir%/fuzz_reports.cc $(fuzz_sources) util/topo/members.cc util/topo/show.cc util/topo/svg.cc
%canon_reldir%_fuzz_reports_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/util
%canon_reldir%_fuzz_reports_LDFLAGS = $(link_fuzzer)
%canon_reldir%_fuzz_reports_LDADD = util/topo/libmccjob.a prov/mcastcoll/levels/libmcclevels.la prov/mcastcoll/topology/libmccdiscover.la

%canon_reldir%_fuzz_members_SOURCES = %reldir%/fuzz_members.cc $(fuzz_sources) prov/mcastcoll/group/member_table.cc prov/mcastcoll/levels/placement.cc prov/mcastcoll/levels/places.cc
%canon_reldir%_fuzz_members_LDFLAGS = $(link_fuzzer)
%canon_reldir%_fuzz_members_CPPFLAGS = $(AM_CPPFLAGS)
%canon_reldir%_fuzz_members_LDADD = prov/mcastcoll/wire/libmccwire.la

EXTRA_DIST += \
	%reldir%/corpus/engine/176cefe9cd4b66c70bc1307401432979e23ac4d3 \
	%reldir%/corpus/engine/7c4d33785daa5c2370201ffa236b427aa37c9996 \
	%reldir%/corpus/engine/d3cc706944c3d4a1c6f81804f0ab786968bd70cf \
	%reldir%/corpus/reliable/1c436a5249cb2853b1a86bbc405bd329a37021fc \
	%reldir%/corpus/reliable/3ae1863595306e1660a1f8cc41cdfed0231a2e63 \
	%reldir%/corpus/reliable/702c120f348b9954e9df669ce4a7106205d5737c \
	%reldir%/corpus/reliable/9053cf57f291bb9f135af859f59802d31fcb1824 \
	%reldir%/corpus/reliable/99d937b5c9bc8269f377cd59ce1c01b9c96d58cb \
	%reldir%/corpus/reliable/c4df709595757e1b3c66ed7a519a8d2d54084f42 \
	%reldir%/corpus/reliable/f1e5d2336a48a6c82f00044b5c580e4bd43c858d \
	%reldir%/corpus/reliable/f33251dd866e94eda471e72ab1305d2c33088f1c \
	%reldir%/corpus/group/deep-1 \
	%reldir%/corpus/group/deep-2 \
	%reldir%/corpus/group/deep-3 \
	%reldir%/corpus/group/deep-4 \
	%reldir%/corpus/group/deep-5 \
	%reldir%/corpus/group/deep-6 \
	%reldir%/corpus/group/fail-names-no-member \
	%reldir%/corpus/host/deep-1 \
	%reldir%/corpus/host/deep-2 \
	%reldir%/corpus/host/deep-3 \
	%reldir%/corpus/host/deep-4 \
	%reldir%/corpus/host/deep-5 \
	%reldir%/corpus/host/deep-6 \
	%reldir%/corpus/host/measured-is-no-bool \
	%reldir%/corpus/joins/10f4488d948689b603b51b0c3b27f7421182d57c \
	%reldir%/corpus/joins/a57916628f5c7d22ebdcdf1170466ea42cccc041 \
	%reldir%/corpus/joins/a5ab127bbd42f591c5bd36a56e6e9dbe01c2e2ac \
	%reldir%/corpus/joins/bd2d3324b77c9fa8041d46773e08c2341c677123 \
	%reldir%/corpus/levels/deep-1 \
	%reldir%/corpus/levels/deep-2 \
	%reldir%/corpus/levels/deep-3 \
	%reldir%/corpus/levels/deep-4 \
	%reldir%/corpus/levels/deep-5 \
	%reldir%/corpus/levels/deep-6 \
	%reldir%/corpus/packets/cf80e080b78b039bb79a0e6153fd869a03db7116 \
	%reldir%/corpus/protection/deep-1 \
	%reldir%/corpus/protection/deep-2 \
	%reldir%/corpus/protection/deep-3 \
	%reldir%/corpus/protection/deep-4 \
	%reldir%/corpus/protection/deep-5 \
	%reldir%/corpus/protection/deep-6 \
	%reldir%/corpus/reports/a-number-that-is-none \
	%reldir%/corpus/reports/members \
	%reldir%/corpus/reports/without-groups
