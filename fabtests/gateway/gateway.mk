# Tests of the gateway's parts, and of gateways as processes.
if HAVE_CRITERION
check_PROGRAMS += %reldir%/test_site_file %reldir%/test_tls %reldir%/test_session
TESTS += %reldir%/test_site_file %reldir%/test_tls %reldir%/test_session
endif
%canon_reldir%_test_site_file_SOURCES = %reldir%/test_site_file.cc
%canon_reldir%_test_site_file_CPPFLAGS = $(MCC_UNIT_CPPFLAGS) -I$(top_srcdir)/util
%canon_reldir%_test_site_file_CXXFLAGS = $(MCC_UNIT_CXXFLAGS)
%canon_reldir%_test_site_file_LDADD = prov/mcastcoll/sites/libmccsites.la \
	prov/mcastcoll/topology/libmccsubnet.la $(CRITERION_LIBS)
%canon_reldir%_test_tls_SOURCES = %reldir%/test_tls.cc util/gateway/sockets.cc util/gateway/tls.cc util/gateway/tls_context.cc
%canon_reldir%_test_tls_CPPFLAGS = $(MCC_UNIT_CPPFLAGS) $(OPENSSL_CFLAGS) -I$(top_srcdir)/util
%canon_reldir%_test_tls_CXXFLAGS = $(MCC_UNIT_CXXFLAGS)
%canon_reldir%_test_tls_LDADD = prov/mcastcoll/sites/libmccsites.la prov/mcastcoll/topology/libmccsubnet.la prov/mcastcoll/base/libmccbase.la \
	prov/mcastcoll/wire/libmccwire.la $(OPENSSL_LIBS) $(CRITERION_LIBS)
%canon_reldir%_test_session_SOURCES = %reldir%/test_session.cc %reldir%/test_session_parts.cc
%canon_reldir%_test_session_CPPFLAGS = $(MCC_UNIT_CPPFLAGS) -I$(top_srcdir)/util
%canon_reldir%_test_session_CXXFLAGS = $(MCC_UNIT_CXXFLAGS)
%canon_reldir%_test_session_LDADD = util/gateway/session/libmccsession.la $(CRITERION_LIBS)
TESTS += %reldir%/gateway.sh
EXTRA_DIST += %reldir%/gateway.sh %reldir%/gateway_lab.py %reldir%/test_gateway.py
