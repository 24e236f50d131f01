// Pending hellos: hellos for joins that the application has not called yet. Any host can send such hellos, so
// storing one takes constant time, and the memory is bounded in total and the number per source.
#pragma once

#include <list>
#include <string>
#include <unordered_map>

#include "wire/bytes.h"
#include "wire/join.h"

namespace mcastcoll::group {

// The source of a datagram, encoded by the code that receives datagrams.
using Source = wire::ByteString;

struct PendingHello {
    wire::Hello hello;
    wire::ByteString datagram;  // the received bytes with the authentication tag:
    Source source;              // both are verified when the join is called

    // Estimated memory of one hello, including its entries in the two indexes.
    std::size_t bytes() const {
        constexpr std::size_t kIndex = 256;
        const wire::Peer& peer = hello.peer;
        return sizeof *this + kIndex + datagram.size() + 3 * source.size() + hello.verbs.source.size() +
               peer.private_address.size() + peer.multicast_source.size() + peer.watch_point.size() +
               peer.place.size();
    }
};

class PendingHellos {
  public:
    // Room for some 4,000 hellos: for dozens of joins in which this member gathers hellos, or for thousands
    // of joins that are never called.
    static constexpr std::size_t kMaxBytes = std::size_t{2} << 20;
    static constexpr std::size_t kMaxOfSource = 512;

    // Replaces an earlier hello for the same join, rank and source, because the later process is the living
    // one. Without room the oldest hello is removed.
    void keep(PendingHello one) {
        const std::string name = name_of(one);
        if (const auto before = by_name_.find(name); before != by_name_.end()) forget(before->second);
        const std::size_t bytes = one.bytes();
        const auto from = of_source_.find(text_of(one.source));
        if (from != of_source_.end() && from->second.size() == kMaxOfSource) forget(from->second.front());
        while (!entries_.empty() && bytes_ + bytes > kMaxBytes) forget(entries_.begin());
        std::list<Place>& places = of_source_[text_of(one.source)];
        entries_.push_back({std::move(one), {}});
        const Place place = std::prev(entries_.end());
        place->in_source = places.insert(places.end(), place);
        by_name_[name] = place;
        bytes_ += bytes;
    }
    void forget(const wire::JoinId& id) {
        for (auto one = entries_.begin(); one != entries_.end();) {
            const Place place = one++;
            if (place->pending.hello.id == id) forget(place);
        }
    }
    // Returns the latest hello for which the predicate holds, or null.
    template <typename Predicate>
    const PendingHello* latest(Predicate&& predicate) const {
        for (auto one = entries_.rbegin(); one != entries_.rend(); ++one)
            if (predicate(one->pending)) return &one->pending;
        return nullptr;
    }
    // Visits from the latest to the oldest.
    template <typename Visit>
    void visit(Visit&& visit) const {
        for (auto one = entries_.rbegin(); one != entries_.rend(); ++one) visit(one->pending);
    }
    std::size_t size() const { return entries_.size(); }

  private:
    struct Entry;
    using Place = std::list<Entry>::iterator;
    struct Entry {
        PendingHello pending;
        std::list<Place>::iterator in_source;
    };

    static std::string text_of(const Source& source) {
        return {reinterpret_cast<const char*>(source.data()), source.size()};
    }
    static std::string name_of(const PendingHello& one) {
        std::byte head[sizeof(std::uint64_t) + 2 * sizeof(std::uint32_t)];
        wire::put(head, one.hello.id.list_hash);
        wire::put(head + sizeof(std::uint64_t), one.hello.id.sequence);
        wire::put(head + sizeof(std::uint64_t) + sizeof(std::uint32_t), index_of(one.hello.rank));
        return std::string(reinterpret_cast<const char*>(head), sizeof head) + text_of(one.source);
    }
    void forget(Place place) {
        bytes_ -= place->pending.bytes();
        by_name_.erase(name_of(place->pending));
        const auto from = of_source_.find(text_of(place->pending.source));
        from->second.erase(place->in_source);
        if (from->second.empty()) of_source_.erase(from);
        entries_.erase(place);
    }

    std::list<Entry> entries_;  // the oldest first
    std::unordered_map<std::string, Place> by_name_;
    std::unordered_map<std::string, std::list<Place>> of_source_;  // by source, the oldest first
    std::size_t bytes_ = 0;
};

}  // namespace mcastcoll::group
