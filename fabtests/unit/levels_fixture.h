// Whole groups in one process, whose hosts and segments are levels without loss or latency, and whose sites
// and exchanges speak through the real levels, with messages that overtake each other. Who runs next is drawn
// from a seed; MCC_SEED=... runs only that one.
#pragma once

#include <criterion/criterion.h>
#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <map>
#include <numeric>
#include <optional>
#include <random>

#include "levels/exchange_level.h"
#include "levels/planner.h"
#include "levels/site_level.h"
#include "meeting_level.h"
#include "reduce/slices.h"

namespace mcastcoll::levels {

// What one member of the test does with one operation.
struct Work {
    Kind kind = Kind::broadcast;
    std::uint32_t root = 0;
    std::size_t elements = 0;
    bool in_place = false;
};

inline void add_doubles(void* inout, const void* in, std::size_t elements) {
    for (std::size_t i = 0; i < elements; ++i)
        static_cast<double*>(inout)[i] += static_cast<const double*>(in)[i];
}
inline constexpr Combiner kSum{&add_doubles, sizeof(double)};

inline double value_of(std::size_t operation, std::uint32_t rank, std::size_t i) {
    return 1.0 / static_cast<double>(1 + operation * 7 + rank * 131 + i);
}

struct Member final : Owner {
    std::unique_ptr<Placement> placement;
    std::unique_ptr<MeetingLevel> host, segment;
    std::unique_ptr<SiteLevel> site;
    std::unique_ptr<ExchangeLevel> exchange;
    std::unique_ptr<Planner> planner;
    std::vector<std::vector<double>> inputs, buffers;
    std::size_t submitted = 0, completed = 0;
    std::vector<int> errors;
    std::vector<std::uint64_t> cookies;  // in the order in which they ended

    void on_complete(std::uint64_t cookie, int error, Nanoseconds) override {
        ++completed;
        errors.push_back(error);
        cookies.push_back(cookie);
    }
};

class Group {
  public:
    Group(const std::vector<MemberPlace>& places, std::uint64_t seed, const char* algorithm = "flat",
          std::uint32_t message_bytes = 4096, const char* selection = "", const char* within = nullptr)
        : random_(seed), members_(places.size()) {
        std::uint32_t hosts = 0, segments = 0;
        for (const MemberPlace& place : places) {
            hosts = std::max(hosts, place.host + 1);
            segments = std::max(segments, place.segment + 1);
        }
        std::vector<std::size_t> in_host(hosts), in_segment(segments);
        for (std::uint32_t rank = 0; rank < places.size(); ++rank)
            members_[rank].placement = std::make_unique<Placement>(rank, places);
        for (const Member& member : members_) {
            ++in_host[places[member.placement->self()].host];
            in_segment[places[member.placement->self()].segment] += member.placement->leads_host();
        }
        for (const std::size_t count : in_host) hosts_.emplace_back(count);
        for (const std::size_t count : in_segment) segments_.emplace_back(count);
        SiteConfig config;
        config.message_bytes = message_bytes;
        config.window_bytes = 4 * message_bytes;
        config.algorithm = *topology::algorithm_named(algorithm);
        config.within_algorithm = *topology::algorithm_named(within == nullptr ? algorithm : within);
        const auto rows = parse_selection(selection);
        cr_assert(rows.ok(), "%s", rows.ok() ? "" : rows.error().message.c_str());
        for (std::uint32_t rank = 0; rank < places.size(); ++rank) {
            Member& member = members_[rank];
            const Placement& placement = *member.placement;
            member.host =
                std::make_unique<MeetingLevel>(hosts_[places[rank].host], placement.host_self(), random_);
            if (placement.leads_host())
                member.segment = std::make_unique<MeetingLevel>(segments_[places[rank].segment],
                                                                placement.segment_self(), random_);
            member.site = std::make_unique<SiteLevel>(placement, config);
            ExchangeConfig exchange;
            exchange.self = rank;
            exchange.members = placement.members();
            exchange.message_bytes = message_bytes;
            exchange.least_window_bytes = exchange.most_window_bytes = 4 * message_bytes;
            if (placement.hosts() > 1) member.exchange = std::make_unique<ExchangeLevel>(exchange);
            member.planner = std::make_unique<Planner>(
                placement,
                std::array<Level*, kLevels>{member.host.get(), member.segment.get(), member.site.get(),
                                            member.exchange.get()},
                64, member, Selection(rows.value(), placement.members(), placement.hosts()));
        }
    }

    Member& member(std::size_t rank) { return members_[rank]; }
    std::uint64_t bytes_between_segments() const {
        std::uint64_t sum = 0;
        for (const Member& one : members_) sum += one.site->counters().bytes_sent;
        return sum;
    }

    std::uint64_t bytes_between_sites() const { return bytes_between_sites_; }

    // By whom a rank was sent a message last, if anybody did; by its place in its host, or among its
    // segment's hosts: who broadcast there last.
    std::optional<std::uint32_t> sender_to(std::uint32_t rank) const {
        const auto found = senders_.find(rank);
        return found == senders_.end() ? std::nullopt : std::optional(found->second);
    }
    std::uint32_t broadcaster_in_host(std::uint32_t host) const { return hosts_[host].broadcaster; }
    std::uint32_t broadcaster_in_segment(std::uint32_t segment) const {
        return segments_[segment].broadcaster;
    }

    // Everybody posts all of it, in order, at moments drawn at random. Empty, or what was wrong.
    std::string run(const std::vector<Work>& script) {
        for (Member& one : members_) {
            prepare(one, script);
            one.site->start(now_);
        }
        const std::size_t most_turns = 20000 * (script.size() + 1) * members_.size();
        for (std::size_t turn = 0; turn < most_turns; ++turn) {
            Member& one = members_[random_() % members_.size()];
            now_ = now_ + Nanoseconds::from_us(1);
            if (one.submitted < script.size() && all_greeted() && random_() % 4 == 0)
                if (const std::string wrong = submit(one, script); !wrong.empty()) return wrong;
            one.planner->progress(now_);
            carry(one);
            if (!mail_.empty() && random_() % 2 == 0) deliver();
            if (all_completed(script.size())) return check(script);
        }
        return "does not end";
    }

    // Ends the group on one member, as if it had seen somebody die.
    void fail(std::size_t rank, int error) { members_[rank].planner->fail(error, now_); }

  private:
    struct Letter {
        std::uint32_t to = 0;
        std::vector<std::byte> bytes;
    };

    void prepare(Member& one, const std::vector<Work>& script) {
        const std::uint32_t rank = one.placement->self();
        one.inputs.resize(script.size());
        one.buffers.resize(script.size());
        for (std::size_t i = 0; i < script.size(); ++i) {
            const Work& work = script[i];
            const bool to_all = work.kind == Kind::scatter || work.kind == Kind::alltoall;
            const bool gathers = work.kind == Kind::allgather;
            const bool from_all = gathers || work.kind == Kind::gather || work.kind == Kind::alltoall;
            const auto count = static_cast<std::uint32_t>(members_.size());
            one.inputs[i].resize(to_all ? work.elements * count : work.elements);
            for (std::size_t j = 0; j < one.inputs[i].size(); ++j) one.inputs[i][j] = value_of(i, rank, j);
            one.buffers[i].assign(work.elements * (from_all ? count : 1), -1);
            if (work.kind == Kind::reduce_scatter)
                one.buffers[i].resize(slice_of(rank, count, work.elements, 1).bytes);
            if (work.kind == Kind::broadcast ? work.root == rank : work.in_place)
                std::copy(
                    one.inputs[i].begin(), one.inputs[i].end(),
                    one.buffers[i].begin() + static_cast<std::ptrdiff_t>(gathers ? rank * work.elements : 0));
        }
    }

    std::string submit(Member& one, const std::vector<Work>& script) {
        const std::size_t i = one.submitted;
        const Work& work = script[i];
        Request request;
        request.kind = work.kind;
        request.root = rank_of(work.root);
        request.bytes = work.elements * sizeof(double);
        request.buffer = reinterpret_cast<std::byte*>(one.buffers[i].data());
        request.input = work.in_place ? request.buffer : reinterpret_cast<std::byte*>(one.inputs[i].data());
        if (work.in_place && work.kind == Kind::allgather)
            request.input += one.placement->self() * request.bytes;
        request.combiner = kSum;
        request.cookie = i;
        const int error = one.planner->submit(request, now_);
        if (error == EAGAIN) return {};
        ++one.submitted;
        return error == 0 ? std::string() : fmt::format("submit says {}", error);
    }

    void carry(Member& one) {
        for (Outgoing out;
             one.site->poll_outgoing(out) || (one.exchange != nullptr && one.exchange->poll_outgoing(out));) {
            Letter letter{out.to, {out.header.begin(), out.header.end()}};
            const Placement& placement = *one.placement;
            if (!out.payload.empty()) senders_[out.to] = placement.self();
            if (placement.site_of(out.to) != placement.site_of(placement.self()))
                bytes_between_sites_ += out.payload.size();
            letter.bytes.insert(letter.bytes.end(), out.payload.begin(), out.payload.end());
            mail_.push_back(std::move(letter));
        }
    }

    void deliver() {
        std::swap(mail_[random_() % mail_.size()], mail_.back());
        Member& to = members_[mail_.back().to];
        if (to.exchange != nullptr && to.exchange->takes(wire::peek_kind(mail_.back().bytes)))
            to.exchange->on_message(mail_.back().bytes, now_);
        else
            to.site->on_message(mail_.back().bytes, now_);
        mail_.pop_back();
    }

    bool all_greeted() const {
        return std::all_of(members_.begin(), members_.end(),
                           [](const Member& one) { return one.site->greeted(); });
    }

    bool all_completed(std::size_t count) const {
        return std::all_of(members_.begin(), members_.end(),
                           [&](const Member& one) { return one.completed == count; });
    }

    double block_value(const Work& work, std::size_t i, std::uint32_t rank, std::size_t j) const {
        const auto block = static_cast<std::uint32_t>(j / work.elements);
        const std::size_t within = j % work.elements;
        if (work.kind == Kind::scatter) return value_of(i, work.root, rank * work.elements + j);
        if (work.kind == Kind::alltoall) return value_of(i, block, rank * work.elements + within);
        if (work.kind != Kind::reduce_scatter) return value_of(i, block, within);
        const std::size_t at = slice_of(rank, members_.size(), work.elements, 1).offset + j;
        double sum = value_of(i, 0, at);
        for (std::uint32_t from = 1; from < members_.size(); ++from) sum += value_of(i, from, at);
        return sum;
    }

    std::string check(const std::vector<Work>& script) const {
        for (std::size_t i = 0; i < script.size(); ++i) {
            const Work& work = script[i];
            for (const Member& one : members_) {
                if (one.errors[i] != 0) return fmt::format("operation {} ends with {}", i, one.errors[i]);
                const std::uint32_t rank = one.placement->self();
                const bool to_root = work.kind == Kind::reduce || work.kind == Kind::gather;
                if (work.kind == Kind::barrier || (to_root && rank != work.root)) continue;
                for (std::size_t j = 0; j < one.buffers[i].size(); ++j) {
                    double expected = 0;
                    if (moves_blocks(work.kind)) {
                        expected = block_value(work, i, rank, j);
                    } else if (work.kind == Kind::broadcast) {
                        expected = value_of(i, work.root, j);
                    } else {
                        for (std::uint32_t r = 0; r < members_.size(); ++r) expected += value_of(i, r, j);
                        if (std::abs(one.buffers[i][j] - expected) < 1e-9) continue;
                    }
                    if (one.buffers[i][j] != expected)
                        return fmt::format(
                            "operation {} (kind {}, root {}, {} elements{}): rank {} has {} at {}, "
                            "not {}",
                            i, static_cast<int>(work.kind), work.root, work.elements,
                            work.in_place ? ", in place" : "", rank, one.buffers[i][j], j, expected);
                }
            }
        }
        return {};
    }

    Random random_;
    Nanoseconds now_{};
    std::uint64_t bytes_between_sites_ = 0;
    std::map<std::uint32_t, std::uint32_t> senders_;
    std::vector<Member> members_;
    std::vector<Meeting> hosts_, segments_;
    std::vector<Letter> mail_;
};

inline const std::vector<std::vector<MemberPlace>> kShapes = {
    {{0, 0}},
    {{0, 0}, {0, 0}, {0, 0}},
    {{0, 0}, {0, 1}, {0, 2}},
    {{0, 0}, {0, 0}, {0, 1}, {0, 1}},
    {{0, 0}, {0, 1}, {0, 0}, {0, 1}, {0, 2}},
    {{0, 0}, {1, 1}},
    {{0, 0}, {0, 0}, {1, 1}, {1, 1}, {1, 2}},
    {{0, 0}, {1, 1}, {2, 2}, {0, 0}, {1, 1}, {2, 3}, {2, 3}, {0, 4}},
};
// Four segments in two sites: {segment, host, site}.
inline const std::vector<MemberPlace> kTwoSites = {{0, 0, 0}, {1, 1, 1}, {2, 2, 1}, {0, 0, 0},
                                                   {3, 3, 0}, {1, 4, 1}, {3, 5, 0}};

inline std::vector<Work> random_script(Random& random, const std::vector<MemberPlace>& shape) {
    const bool one_host = std::all_of(shape.begin(), shape.end(), [](auto place) { return place.host == 0; });
    constexpr Kind kAll[] = {Kind::broadcast, Kind::barrier,   Kind::reduce,
                             Kind::allreduce, Kind::allgather, Kind::gather,
                             Kind::scatter,   Kind::alltoall,  Kind::reduce_scatter};
    constexpr std::size_t kElements[] = {0, 1, 3, 100, 1000, 5000};
    std::vector<Work> script(12);
    for (Work& work : script) {
        work.kind = kAll[random() % (one_host ? 5 : std::size(kAll))];  // the test's host has no more
        work.root = static_cast<std::uint32_t>(random() % shape.size());
        work.elements = work.kind == Kind::barrier ? 0 : kElements[random() % std::size(kElements)];
        work.in_place = work.kind >= Kind::reduce && work.kind <= Kind::allgather && random() % 2 == 0;
    }
    return script;
}

inline std::vector<std::uint64_t> seeds(std::uint64_t count) {
    if (const char* replay = std::getenv("MCC_SEED")) return {std::strtoull(replay, nullptr, 0)};
    std::vector<std::uint64_t> all(count);
    std::iota(all.begin(), all.end(), 1);
    return all;
}

}  // namespace mcastcoll::levels
