// Whole groups in one process. Hosts and segments are levels without loss or latency; sites and exchanges use
// the real levels, with reordered messages. A seed determines which member runs next; MCC_SEED=... runs only
// that seed.
#pragma once

#include <criterion/criterion.h>
#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <random>

#include "host_shapes.h"
#include "levels/exchange_level.h"
#include "levels/planner.h"
#include "levels/site_level.h"
#include "meeting_level.h"

namespace mcastcoll::levels {

// An operation as performed by one member of the test.
struct Work {
    Kind kind = Kind::broadcast;
    std::uint32_t root = 0;
    std::size_t elements = 0;  // number of elements of a block, or of the vector
    bool in_place = false;
    std::optional<ExchangeAlgorithm> algorithm{};  // of Group::exchange(); empty: the level's own choice
};

inline void add_doubles(void* out, const void* one, const void* other, std::size_t elements) {
    const auto *first = static_cast<const double*>(one), *second = static_cast<const double*>(other);
    for (std::size_t i = 0; i < elements; ++i) static_cast<double*>(out)[i] = first[i] + second[i];
}
inline constexpr Combiner kSum{&add_doubles, sizeof(double)};

inline double value_of(std::size_t operation, std::uint32_t rank, std::size_t i) {
    return 1.0 / static_cast<double>(1 + operation * 7 + rank * 131 + i);
}

struct Member final : Hierarchy::Owner {
    std::unique_ptr<Placement> placement;
    std::unique_ptr<MeetingLevel> host, segment;
    std::unique_ptr<SiteLevel> site;
    std::unique_ptr<ExchangeLevel> exchange;
    std::unique_ptr<Planner> planner;
    std::vector<test::Material<double>> works;
    std::vector<LevelOperation> level_operations;  // of Group::exchange()
    std::size_t submitted = 0, completed = 0;
    std::vector<int> errors;
    std::vector<std::uint64_t> cookies;  // in the order in which they completed

    void on_complete(std::uint64_t cookie, int error, Nanoseconds) override {
        ++completed;
        errors.push_back(error);
        cookies.push_back(cookie);
    }
};

class Group {
  public:
    Group(const std::vector<MemberPlace>& places, std::uint64_t seed, const char* algorithm = "flat",
          std::uint32_t message_bytes = 4096, const char* selection = "", const char* within = nullptr,
          std::uint32_t exchange_window = 0)
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
            exchange.long_window_bytes = 4 * message_bytes;
            exchange.borrowed_credit_bytes = 2 * exchange.long_window_bytes;
            exchange.min_window_bytes = exchange.max_window_bytes =
                exchange_window == 0 ? exchange.long_window_bytes : exchange_window;
            member.exchange = std::make_unique<ExchangeLevel>(exchange);
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
    std::uint64_t pieces_exchanged() const {
        std::uint64_t sum = 0;
        for (const Member& one : members_) sum += one.exchange->counters().pieces_sent;
        return sum;
    }

    // The sender of the last message to a rank, if any.
    std::optional<std::uint32_t> sender_to(std::uint32_t rank) const {
        const auto found = senders_.find(rank);
        return found == senders_.end() ? std::nullopt : std::optional(found->second);
    }
    // The position, among the members of a host, of the last broadcast's root.
    std::uint32_t broadcaster_in_host(std::uint32_t host) const { return hosts_[host].broadcaster; }
    // The position, among the hosts of a segment, of the last broadcast's root.
    std::uint32_t broadcaster_in_segment(std::uint32_t segment) const {
        return segments_[segment].broadcaster;
    }

    // All members post the whole script, in order, at random times. Returns "", or the first error.
    std::string run(const std::vector<Work>& script) {
        for (Member& one : members_) {
            prepare(one, script);
            one.site->start(now_);
        }
        const std::size_t max_turns = 20000 * (script.size() + 1) * members_.size();
        for (std::size_t turn = 0; turn < max_turns; ++turn) {
            Member& one = members_[random_() % members_.size()];
            now_ = now_ + Nanoseconds::from_us(1);
            if (one.submitted < script.size() && all_connected() && random_() % 4 == 0)
                if (const std::string wrong = submit(one, script); !wrong.empty()) return wrong;
            one.planner->progress(now_);
            end_level_operations(one);
            carry(one);
            for (std::size_t max = random_() % 4; max > 0 && !mail_.empty(); --max) deliver();
            if (all_completed(script.size())) return check(script);
        }
        return "does not end";
    }
    // Runs the script without the planner, directly on the exchange level (messages between all members).
    std::string exchange(const std::vector<Work>& script) {
        for (Member& one : members_) one.level_operations.resize(script.size());
        return run(script);
    }

    // Fails the group on one member, as if this member had detected a death.
    void fail(std::size_t rank, int error) { members_[rank].planner->fail(error, now_); }

  private:
    struct Letter {
        std::uint32_t to = 0;
        std::vector<std::byte> bytes;
    };

    // Returns the function that gives a member's value at a place in this operation.
    static auto has(std::size_t operation) {
        return [=](std::uint32_t rank, std::size_t place) { return value_of(operation, rank, place); };
    }

    void prepare(Member& one, const std::vector<Work>& script) {
        one.works.resize(script.size());
        for (std::size_t i = 0; i < script.size(); ++i) {
            const Work& work = script[i];
            const auto size = static_cast<std::uint32_t>(members_.size());
            one.works[i].lay_out({work.kind, work.root, work.elements, one.placement->self(), size},
                                 work.in_place, has(i));
        }
    }

    static void put_into(Member& one, const Work& work, Collective& collective) {
        one.works[one.submitted].put_into(collective);
        collective.root = rank_of(work.root);
        collective.combiner = kSum;
    }

    std::string submit(Member& one, const std::vector<Work>& script) {
        const Work& work = script[one.submitted];
        int error = 0;
        if (!one.level_operations.empty()) {
            LevelOperation& level_operation = one.level_operations[one.submitted];
            put_into(one, work, level_operation);
            level_operation.number = 3 * one.submitted + 1;  // the remaining numbers belong to other levels
            error = work.algorithm ? one.exchange->post(level_operation, *work.algorithm, now_)
                                   : one.exchange->post(level_operation, now_);
        } else {
            Request request;
            put_into(one, work, request);
            request.cookie = one.submitted;
            error = one.planner->submit(request, now_);
            if (error == EAGAIN) return {};
        }
        ++one.submitted;
        return error == 0 ? std::string() : fmt::format("submit says {}", error);
    }

    void end_level_operations(Member& one) {
        for (LevelOperation& level_operation : one.level_operations)
            if (level_operation.done) {
                one.on_complete(level_operation.number, level_operation.error, now_);
                level_operation.done = false;
            }
    }

    void carry(Member& one) {
        for (Outgoing out; one.site->poll_outgoing(out) || one.exchange->poll_outgoing(out);) {
            const Placement& placement = *one.placement;
            if (!out.payload.empty()) senders_[out.to] = placement.self();
            if (placement.site_of(out.to) != placement.site_of(placement.self()))
                bytes_between_sites_ += out.payload.size();
            mail_.push_back({out.to, letter(out)});
        }
    }

    void deliver() {
        std::swap(mail_[random_() % mail_.size()], mail_.back());
        Member& to = members_[mail_.back().to];
        if (to.exchange->takes(wire::peek_kind(mail_.back().bytes)))
            to.exchange->on_message(mail_.back().bytes, now_);
        else
            to.site->on_message(mail_.back().bytes, now_);
        mail_.pop_back();
    }

    bool all_connected() const {
        return std::all_of(members_.begin(), members_.end(),
                           [](const Member& one) { return one.site->connected(); });
    }

    bool all_completed(std::size_t count) const {
        return std::all_of(members_.begin(), members_.end(),
                           [&](const Member& one) { return one.completed == count; });
    }

    // Compares all results with the expected ones. Sums along a tree have a different order.
    std::string check(const std::vector<Work>& script) const {
        for (std::size_t i = 0; i < script.size(); ++i) {
            const Work& work = script[i];
            const bool exact = work.kind != Kind::reduce && work.kind != Kind::allreduce;
            for (const Member& one : members_) {
                if (one.errors[i] != 0) return fmt::format("operation {} ends with {}", i, one.errors[i]);
                for (std::size_t j = 0; j < one.works[i].shape.output; ++j) {
                    const double found = one.works[i].found(j);
                    const double wanted = one.works[i].expected(j, has(i), std::plus<double>());
                    if (found == wanted || (!exact && std::abs(found - wanted) < 1e-9)) continue;
                    return fmt::format(
                        "operation {} (kind {}, root {}, {} elements{}): rank {} has {} at {}, not {}", i,
                        name_of(work.kind), work.root, work.elements, work.in_place ? ", in place" : "",
                        one.placement->self(), found, j, wanted);
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

// Returns places on hosts of one segment; members are assigned to the hosts round robin.
inline std::vector<MemberPlace> on_hosts(std::uint32_t hosts, std::uint32_t members_each) {
    std::vector<MemberPlace> places;
    for (std::uint32_t rank = 0; rank < hosts * members_each; ++rank) places.push_back({0, rank % hosts});
    return places;
}

inline std::vector<Work> random_script(Random& random, const std::vector<MemberPlace>& shape) {
    const bool one_host = std::all_of(shape.begin(), shape.end(), [](auto place) { return place.host == 0; });
    constexpr std::size_t kElements[] = {0, 1, 3, 100, 1000, 5000};
    std::vector<Work> script(12);
    for (Work& work : script) {
        // The test's host level has 5 kinds.
        work.kind = static_cast<Kind>(random() % (one_host ? 5 : kCollectiveKinds));
        work.root = static_cast<std::uint32_t>(random() % shape.size());
        work.elements = work.kind == Kind::barrier ? 0 : kElements[random() % std::size(kElements)];
        work.in_place = work.kind >= Kind::reduce && random() % 2 == 0;
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
