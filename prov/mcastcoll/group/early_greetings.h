// Greetings for joins that the application has not called yet. Every host can send such greetings, so keeping
// one takes the same time however many are kept, and their number is bounded, in all and for each source.
#pragma once

#include <list>
#include <string>
#include <unordered_map>

#include "wire/bytes.h"
#include "wire/join.h"

namespace mcastcoll::group {

// Where a datagram came from, in the words of whoever receives datagrams.
using Source = wire::ByteString;

struct EarlyHello {
    wire::Hello hello;
    wire::ByteString word;  // it, with its proof:
    Source source;          // both tell who it is when the join is called

    // The memory that one greeting takes, including its entries in the two indexes (estimated).
    std::size_t bytes() const {
        constexpr std::size_t kIndex = 256;
        const wire::Peer& peer = hello.peer;
        return sizeof *this + kIndex + word.size() + 3 * source.size() + hello.verbs.source.size() +
               peer.private_address.size() + peer.multicast_source.size() + peer.watch_point.size() +
               peer.place.size();
    }
};

class EarlyGreetings {
  public:
    // Some 4,000 greetings: of dozens of joins that this member gathers for, or of thousands that nobody
    // calls.
    static constexpr std::size_t kMostBytes = std::size_t{2} << 20;
    static constexpr std::size_t kMostOfSource = 512;

    // A greeting replaces an earlier one for the same join, rank and source: the later process is the living
    // one. Without room the oldest greeting is removed.
    void keep(EarlyHello one) {
        const std::string name = name_of(one);
        if (const auto before = by_name_.find(name); before != by_name_.end()) forget(before->second);
        const std::size_t bytes = one.bytes();
        const auto from = of_source_.find(text_of(one.source));
        if (from != of_source_.end() && from->second.size() == kMostOfSource) forget(from->second.front());
        while (!entries_.empty() && bytes_ + bytes > kMostBytes) forget(entries_.begin());
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
            if (place->early.hello.id == id) forget(place);
        }
    }
    // The latest for which this holds, or null.
    template <typename Predicate>
    const EarlyHello* latest(Predicate&& predicate) const {
        for (auto one = entries_.rbegin(); one != entries_.rend(); ++one)
            if (predicate(one->early)) return &one->early;
        return nullptr;
    }
    // From the latest to the oldest.
    template <typename Visit>
    void visit(Visit&& visit) const {
        for (auto one = entries_.rbegin(); one != entries_.rend(); ++one) visit(one->early);
    }
    std::size_t size() const { return entries_.size(); }

  private:
    struct Entry;
    using Place = std::list<Entry>::iterator;
    struct Entry {
        EarlyHello early;
        std::list<Place>::iterator in_source;
    };

    static std::string text_of(const Source& source) {
        return {reinterpret_cast<const char*>(source.data()), source.size()};
    }
    static std::string name_of(const EarlyHello& one) {
        std::byte head[sizeof(std::uint64_t) + 2 * sizeof(std::uint32_t)];
        wire::put(head, one.hello.id.list_hash);
        wire::put(head + sizeof(std::uint64_t), one.hello.id.sequence);
        wire::put(head + sizeof(std::uint64_t) + sizeof(std::uint32_t), index_of(one.hello.rank));
        return std::string(reinterpret_cast<const char*>(head), sizeof head) + text_of(one.source);
    }
    void forget(Place place) {
        bytes_ -= place->early.bytes();
        by_name_.erase(name_of(place->early));
        const auto from = of_source_.find(text_of(place->early.source));
        from->second.erase(place->in_source);
        if (from->second.empty()) of_source_.erase(from);
        entries_.erase(place);
    }

    std::list<Entry> entries_;  // the oldest first
    std::unordered_map<std::string, Place> by_name_;
    std::unordered_map<std::string, std::list<Place>> of_source_;  // the same order
    std::size_t bytes_ = 0;
};

}  // namespace mcastcoll::group
