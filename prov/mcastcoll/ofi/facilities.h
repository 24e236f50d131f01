// Resources of an endpoint, shared by its groups.
#pragma once

#include <memory>

#include "group/joins.h"
#include "group/round_trips.h"
#include "group/secret_exchanges.h"
#include "ofi/bound_endpoint.h"
#include "ports/group_multicast.h"
#include "ports/messenger.h"
#include "ports/multicast_sockets.h"
#include "ports/process_watch.h"
#include "ports/sealed_secret.h"
#include "ports/service_socket.h"
#include "provider/fid_owner.h"
#include "provider/settings.h"
#include "transport/wait_set.h"
#include "wire/peer.h"

namespace mcastcoll::ofi {

struct Facilities {
    explicit Facilities(BoundEndpoint& its_endpoint) : endpoint(its_endpoint) {}

    BoundEndpoint& endpoint;
    const provider::Settings settings = provider::provider_settings();
    ports::MulticastSockets multicast{settings};
    ports::ServiceSocket service_socket;
    provider::FidOwner<fid_fabric> fabric;
    std::unique_ptr<ports::Messenger> messenger;
    ports::ProcessWatch watch;
    transport::WaitSet wait_set;
    group::Joins joins{service_socket};
    // For joins with a secret that MUNGE carries.
    group::SecretExchanges secrets;
    std::shared_ptr<ports::SealedSecret> own_secret;  // The secret of the joins that this endpoint leads.
    group::RoundTrips round_trips;
    wire::ByteString place;   // this process's place, as its hellos carry it
    bool report_due = false;  // data shown by mcastcoll-topo has changed
};

}  // namespace mcastcoll::ofi
