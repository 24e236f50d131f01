# Fuzzers, of which util/fuzz makes a build with clang: nothing else builds them.
fuzz_programs = \
	%reldir%/fuzz_packets \
	%reldir%/fuzz_joins \
	%reldir%/fuzz_engine \
	%reldir%/fuzz_feed \
	%reldir%/fuzz_trunk \
	%reldir%/fuzz_texts \
	%reldir%/fuzz_members
EXTRA_PROGRAMS = $(fuzz_programs)
.PHONY: fuzzers
fuzzers: $(BUILT_SOURCES)
	$(MAKE) $(AM_MAKEFLAGS) $(fuzz_programs)
link_fuzzer = $(AM_LDFLAGS) -fsanitize=fuzzer

%canon_reldir%_fuzz_packets_SOURCES = %reldir%/fuzz_packets.cc %reldir%/fuzz.h
%canon_reldir%_fuzz_packets_LDFLAGS = $(link_fuzzer)
%canon_reldir%_fuzz_packets_LDADD = prov/mcastcoll/wire/libmccwire.la

%canon_reldir%_fuzz_joins_SOURCES = %reldir%/fuzz_joins.cc %reldir%/fuzz.h
%canon_reldir%_fuzz_joins_LDFLAGS = $(link_fuzzer)
%canon_reldir%_fuzz_joins_LDADD = prov/mcastcoll/wire/libmccwire.la

%canon_reldir%_fuzz_engine_SOURCES = %reldir%/fuzz_engine.cc %reldir%/fuzz.h
%canon_reldir%_fuzz_engine_LDFLAGS = $(link_fuzzer)
%canon_reldir%_fuzz_engine_LDADD = prov/mcastcoll/engine/libmccengine.la prov/mcastcoll/wire/libmccwire.la

%canon_reldir%_fuzz_feed_SOURCES = %reldir%/fuzz_feed.cc %reldir%/fuzz.h
%canon_reldir%_fuzz_feed_LDFLAGS = $(link_fuzzer)
%canon_reldir%_fuzz_feed_LDADD = prov/mcastcoll/feed/libmccfeed.la prov/mcastcoll/wire/libmccwire.la

%canon_reldir%_fuzz_trunk_SOURCES = %reldir%/fuzz_trunk.cc %reldir%/fuzz.h
%canon_reldir%_fuzz_trunk_LDFLAGS = $(link_fuzzer)
%canon_reldir%_fuzz_trunk_LDADD = prov/mcastcoll/trunk/libmcctrunk.la prov/mcastcoll/wire/libmccwire.la

%canon_reldir%_fuzz_texts_SOURCES = %reldir%/fuzz_texts.cc %reldir%/fuzz.h \
	prov/mcastcoll/levels/selection.cc prov/mcastcoll/relay/endpoint.cc prov/mcastcoll/relay/reach.cc prov/mcastcoll/relay/sites.cc \
	prov/mcastcoll/topology/override.cc prov/mcastcoll/topology/place.cc prov/mcastcoll/topology/policy.cc \
	prov/mcastcoll/topology/subnet.cc
%canon_reldir%_fuzz_texts_LDFLAGS = $(link_fuzzer)
%canon_reldir%_fuzz_texts_CPPFLAGS = $(AM_CPPFLAGS)
%canon_reldir%_fuzz_texts_LDADD = prov/mcastcoll/wire/libmccwire.la

%canon_reldir%_fuzz_members_SOURCES = %reldir%/fuzz_members.cc %reldir%/fuzz.h prov/mcastcoll/group/member_table.cc prov/mcastcoll/levels/placement.cc
%canon_reldir%_fuzz_members_LDFLAGS = $(link_fuzzer)
%canon_reldir%_fuzz_members_CPPFLAGS = $(AM_CPPFLAGS)
%canon_reldir%_fuzz_members_LDADD =

EXTRA_DIST += \
	%reldir%/corpus/engine/176cefe9cd4b66c70bc1307401432979e23ac4d3 \
	%reldir%/corpus/engine/7c4d33785daa5c2370201ffa236b427aa37c9996 \
	%reldir%/corpus/engine/d3cc706944c3d4a1c6f81804f0ab786968bd70cf \
	%reldir%/corpus/feed/1c436a5249cb2853b1a86bbc405bd329a37021fc \
	%reldir%/corpus/feed/3ae1863595306e1660a1f8cc41cdfed0231a2e63 \
	%reldir%/corpus/feed/702c120f348b9954e9df669ce4a7106205d5737c \
	%reldir%/corpus/feed/9053cf57f291bb9f135af859f59802d31fcb1824 \
	%reldir%/corpus/feed/99d937b5c9bc8269f377cd59ce1c01b9c96d58cb \
	%reldir%/corpus/feed/c4df709595757e1b3c66ed7a519a8d2d54084f42 \
	%reldir%/corpus/feed/f1e5d2336a48a6c82f00044b5c580e4bd43c858d \
	%reldir%/corpus/feed/f33251dd866e94eda471e72ab1305d2c33088f1c \
	%reldir%/corpus/joins/10f4488d948689b603b51b0c3b27f7421182d57c \
	%reldir%/corpus/joins/a57916628f5c7d22ebdcdf1170466ea42cccc041 \
	%reldir%/corpus/joins/a5ab127bbd42f591c5bd36a56e6e9dbe01c2e2ac \
	%reldir%/corpus/joins/bd2d3324b77c9fa8041d46773e08c2341c677123 \
	%reldir%/corpus/packets/cf80e080b78b039bb79a0e6153fd869a03db7116
