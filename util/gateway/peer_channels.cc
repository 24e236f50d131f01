// The connections that cross a trunk.
#include <fmt/format.h>
#include <sys/epoll.h>

#include "gateway/gateway.h"
#include "gateway/peer.h"

namespace mcastcoll::gateway {
namespace {

constexpr std::uint32_t kInterest = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET;

}  // namespace

void Peer::install(std::unique_ptr<Connection> connection, trunk::ChannelId channel) {
    Connection& installed = *connection;
    connections_[channel] = std::move(connection);
    if (installed.deadline() != kNever) waiting_.insert(&installed);
    if (!gateway_.loop().add(installed.descriptor(), installed, kInterest)) {
        trunk_.reset(channel);
        installed.close(true);
    }
}

void Peer::adopt(FileDescriptor socket, const relay::Preface& preface) {
    const Nanoseconds now = gateway_.now();
    if (trunk_.streams_up() == 0 && now - down_since_ >= gateway_.settings().patience) {
        ++gateway_.counters().trunk_down;
        return close_with_reset(socket);
    }
    const auto channel = trunk_.open_channel(relay::encode_preface(preface));
    if (!channel) {
        ++gateway_.counters().over_limit;
        return close_with_reset(socket);
    }
    ++gateway_.counters().connections;
    install(std::make_unique<Connection>(*this, *channel, std::move(socket)), *channel);
    has_work_ = true;
}

void Peer::opened(trunk::ChannelId channel, Bytes bytes) {
    has_work_ = true;
    const auto preface = relay::decode_preface(bytes);
    const relay::Site* where = preface ? gateway_.settings().sites.site_of(preface->target) : nullptr;
    if (where != &gateway_.settings().own_site()) {
        ++gateway_.counters().no_route;
        return trunk_.reset(channel);
    }
    if (gateway_.full()) {
        ++gateway_.counters().over_limit;
        return trunk_.reset(channel);
    }
    auto socket = connect_to(preface->target);
    if (!socket) {
        ++gateway_.counters().targets_failed;
        return trunk_.reset(channel);
    }
    ++gateway_.counters().targets;
    install(std::make_unique<Connection>(*this, channel, std::move(socket.value()), *preface), channel);
}

std::size_t Peer::deliver(trunk::ChannelId channel, Bytes bytes) {
    const auto found = connections_.find(channel);
    return found == connections_.end() ? bytes.size() : found->second->deliver(bytes);
}

void Peer::finished(trunk::ChannelId channel) {
    if (const auto found = connections_.find(channel); found != connections_.end()) found->second->finish();
}

void Peer::was_reset(trunk::ChannelId channel) {
    if (const auto found = connections_.find(channel); found != connections_.end())
        found->second->close(true);
}

void Peer::again_later(trunk::ChannelId channel) {
    again_.push_back(channel);
}

void Peer::remove(trunk::ChannelId channel) {
    const auto found = connections_.find(channel);
    if (found == connections_.end()) return;
    waiting_.erase(found->second.get());
    gateway_.loop().bury(std::move(found->second));
    connections_.erase(found);
}

void Peer::reset_all() {
    std::vector<trunk::ChannelId> channels;
    for (const auto& [channel, connection] : connections_) channels.push_back(channel);
    for (const trunk::ChannelId channel : channels) {
        trunk_.reset(channel);
        was_reset(channel);
    }
}

}  // namespace mcastcoll::gateway
