#include "datagram/verbs_groups.h"

#include <rdma/fi_errno.h>

namespace mcastcoll::ofi::datagram {

Result<std::unique_ptr<VerbsGroups>> VerbsGroups::open(const Interface& interface, const Settings& settings,
                                                       int family) {
    VerbsOptions options;
    options.interface = interface;
    options.family = family == AF_INET ? 4 : 6;
    options.ttl = settings.ttl;
    options.receives = settings.receives;
    options.most_memberships = settings.memberships;
    auto opened = open_verbs(options);
    if (!opened) return opened.error();
    return std::unique_ptr<VerbsGroups>(new VerbsGroups(std::move(opened).value()));
}

std::string VerbsGroups::device() const {
    return verbs_->device().substr(0, verbs_->device().find(','));
}

Result<::mcastcoll::Membership> VerbsGroups::join(const SocketAddress& group, bool receives) {
    auto joined = verbs_->join(group.with_port(0).with_scope(0));
    if (!joined || receives || !verbs_->sends_anywhere()) return joined;
    // Having been a member for a moment tells how groups are reached.
    return ::mcastcoll::Membership();
}

int VerbsGroups::send(const SocketAddress& group, Pieces pieces) {
    const ::mcastcoll::Datagram datagram{gather(pieces, gathered_), {}};
    const auto [accepted, error] =
        verbs_->send(std::span(&datagram, 1), {group.with_port(0).with_scope(0), true});
    if (accepted == 1) return 0;
    return error == 0 ? -FI_EAGAIN : -error;
}

void VerbsGroups::receive(Receiver& receiver, std::size_t most, Receiver::Take take) {
    const std::size_t before = receiver.posted();
    const auto wanted = [&] { return receiver.posted() > 0 && before - receiver.posted() < most; };
    for (; wanted() && !waiting_.empty(); waiting_.pop_front())
        receiver.put(waiting_.front().bytes, waiting_.front().source, take);
    if (!wanted()) return;
    verbs_->receive(Nanoseconds{}, [&](Bytes bytes, const SocketAddress& source) {
        if (wanted())
            receiver.put(bytes, source, take);
        else
            waiting_.push_back({{bytes.begin(), bytes.end()}, source});
    });
}

}  // namespace mcastcoll::ofi::datagram
