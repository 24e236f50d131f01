// Whole groups of exchange levels in one process, whose messages overtake each other. Who runs next, and
// which message comes next, is drawn from a seed; MCC_SEED=... runs only that one.
#pragma once

#include <criterion/criterion.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "levels/exchange_level.h"
#include "reduce/slices.h"

namespace mcastcoll::levels {

inline void add_floats(void* inout, const void* in, std::size_t elements) {
    for (std::size_t i = 0; i < elements; ++i) {
        float sum = 0, more = 0;
        std::memcpy(&sum, static_cast<std::byte*>(inout) + i * sizeof sum, sizeof sum);
        std::memcpy(&more, static_cast<const std::byte*>(in) + i * sizeof sum, sizeof sum);
        sum += more;
        std::memcpy(static_cast<std::byte*>(inout) + i * sizeof sum, &sum, sizeof sum);
    }
}

struct Exchange {
    Kind kind = Kind::alltoall;
    std::uint32_t root = 0;
    std::size_t elements = 0;  // of a block, or of the vector
    bool in_place = false;
    std::optional<ExchangeAlgorithm> algorithm{};  // or the level's own choice
};

class ExchangeWorld {
  public:
    ExchangeWorld(std::uint32_t members, std::uint64_t seed, std::uint32_t window_bytes = 8192,
                  std::uint32_t message_bytes = 2048)
        : random_(seed), members_(members) {
        for (std::uint32_t rank = 0; rank < members; ++rank) {
            ExchangeConfig config;
            config.self = rank;
            config.members = members;
            config.message_bytes = message_bytes;
            config.least_window_bytes = config.most_window_bytes = window_bytes;
            members_[rank].level = std::make_unique<ExchangeLevel>(config);
        }
    }

    ExchangeLevel& level(std::size_t rank) { return *members_[rank].level; }
    const std::vector<float>& result(std::size_t rank, std::size_t i) const {
        return members_[rank].work[i].buffer;
    }
    std::uint64_t pieces_sent() const {
        std::uint64_t sum = 0;
        for (const Member& one : members_) sum += one.level->counters().pieces_sent;
        return sum;
    }
    std::uint64_t bytes_sent(std::size_t rank) const { return members_[rank].level->counters().bytes_sent; }

    // Everybody posts all of it, in order, each when it likes. Empty, or what was wrong.
    std::string run(const std::vector<Exchange>& script) {
        for (std::uint32_t rank = 0; rank < members_.size(); ++rank) {
            members_[rank].posted = 0;
            members_[rank].work.clear();
            for (std::size_t i = 0; i < script.size(); ++i)
                members_[rank].work.push_back(prepare(script[i], i, rank));
        }
        std::size_t idle = 0;
        while (!all_done()) {
            Member& one = members_[random_() % members_.size()];
            now_ = now_ + Nanoseconds::from_us(1);
            const bool moved = turn(one, script);
            idle = moved ? 0 : idle + 1;
            if (idle > 200 * members_.size()) return "stands still";
        }
        return check(script);
    }

  private:
    struct Work {
        std::vector<float> input, buffer;
        Leg leg;
    };
    struct Member {
        std::unique_ptr<ExchangeLevel> level;
        std::vector<Work> work;
        std::size_t posted = 0;
    };
    struct Letter {
        std::uint32_t to = 0;
        std::vector<std::byte> bytes;
    };

    static float value(std::size_t operation, std::size_t from, std::size_t i) {
        return 1.0F / static_cast<float>(1 + operation * 7 + from * 131 + i);
    }
    std::size_t size() const { return members_.size(); }
    Slice slice(std::size_t rank, std::size_t elements) const {
        return slice_of(rank, size(), elements, 1);  // in elements
    }
    std::size_t input_elements(const Exchange& one, std::size_t rank) const {
        if (one.kind == Kind::alltoall) return one.elements * size();
        if (one.kind == Kind::scatter) return rank == one.root ? one.elements * size() : 0;
        return one.elements;
    }
    std::size_t result_elements(const Exchange& one, std::size_t rank) const {
        if (one.kind == Kind::alltoall || one.kind == Kind::allgather) return one.elements * size();
        if (one.kind == Kind::gather) return rank == one.root ? one.elements * size() : 0;
        if (one.kind == Kind::reduce_scatter) return slice(rank, one.elements).bytes;
        return one.elements;
    }

    Work prepare(const Exchange& one, std::size_t number, std::uint32_t rank) const {
        Work work;
        work.input.resize(input_elements(one, rank));
        for (std::size_t i = 0; i < work.input.size(); ++i) work.input[i] = value(number, rank, i);
        work.buffer.assign(result_elements(one, rank), -1);
        return work;
    }

    // The leg of a member; in place means as an application would say it for this kind.
    void post(Member& member, const Exchange& one, std::size_t number) {
        Work& work = member.work[number];
        const std::size_t rank = static_cast<std::size_t>(&member - members_.data());
        Leg& leg = work.leg;
        leg.kind = one.kind;
        leg.number = 3 * number + 1;  // other levels have the others
        leg.root = rank_of(one.root);
        leg.bytes = one.elements * sizeof(float);
        leg.combiner = {&add_floats, sizeof(float)};
        leg.buffer = work.buffer.empty() ? nullptr : reinterpret_cast<std::byte*>(work.buffer.data());
        leg.input = work.input.empty() ? nullptr : reinterpret_cast<std::byte*>(work.input.data());
        if (one.in_place) in_place(one, rank, work);
        const int refusal =
            one.algorithm ? member.level->post(leg, *one.algorithm, now_) : member.level->post(leg, now_);
        cr_assert_eq(refusal, 0);
        ++member.posted;
    }

    void in_place(const Exchange& one, std::size_t rank, Work& work) const {
        Leg& leg = work.leg;
        const std::size_t own = one.elements * rank;
        if (one.kind == Kind::alltoall || one.kind == Kind::reduce_scatter) {
            work.buffer = work.input;
            leg.buffer = reinterpret_cast<std::byte*>(work.buffer.data());
            leg.input = leg.buffer;
        } else if (one.kind == Kind::allgather || (one.kind == Kind::gather && rank == one.root)) {
            std::copy(work.input.begin(), work.input.end(), work.buffer.begin() + static_cast<long>(own));
            leg.input = leg.buffer + own * sizeof(float);
        } else if (one.kind == Kind::scatter && rank == one.root) {
            work.buffer.assign(work.input.begin() + static_cast<long>(own),
                               work.input.begin() + static_cast<long>(own + one.elements));
            leg.buffer = nullptr;
        }
    }

    bool turn(Member& one, const std::vector<Exchange>& script) {
        bool moved = false;
        if (one.posted < script.size() && random_() % 4 == 0) {
            post(one, script[one.posted], one.posted);
            moved = true;
        }
        moved |= one.level->progress(now_);
        Outgoing out;
        for (std::size_t most = random_() % 20; most > 0 && one.level->poll_outgoing(out); --most) {
            Letter letter{out.to, {out.header.begin(), out.header.end()}};
            letter.bytes.insert(letter.bytes.end(), out.payload.begin(), out.payload.end());
            mail_.push_back(std::move(letter));
            moved = true;
        }
        for (std::size_t most = random_() % 20; most > 0 && !mail_.empty(); --most) {
            std::swap(mail_[random_() % mail_.size()], mail_.back());
            members_[mail_.back().to].level->on_message(mail_.back().bytes, now_);
            mail_.pop_back();
            moved = true;
        }
        return moved;
    }

    bool all_done() const {
        for (const Member& one : members_)
            for (const Work& work : one.work)
                if (!work.leg.done) return false;
        return true;
    }

    float expected(const Exchange& one, std::size_t number, std::size_t rank, std::size_t i) const {
        const std::size_t block = one.elements == 0 ? 0 : i / one.elements;
        const std::size_t within = one.elements == 0 ? 0 : i % one.elements;
        if (one.kind == Kind::alltoall) return value(number, block, rank * one.elements + within);
        if (one.kind == Kind::scatter) return value(number, one.root, rank * one.elements + i);
        if (one.kind != Kind::reduce_scatter) return value(number, block, within);
        const std::size_t at = slice(rank, one.elements).offset + i;
        float sum = value(number, 0, at);
        for (std::size_t from = 1; from < size(); ++from) sum += value(number, from, at);
        return sum;
    }

    std::string check(const std::vector<Exchange>& script) const {
        for (std::size_t number = 0; number < script.size(); ++number)
            for (std::size_t rank = 0; rank < size(); ++rank) {
                const Exchange& one = script[number];
                const Work& work = members_[rank].work[number];
                if (work.leg.error != 0) return "ends with " + std::to_string(work.leg.error);
                for (std::size_t i = 0; i < result_elements(one, rank); ++i)
                    if (work.buffer[i] != expected(one, number, rank, i))
                        return "operation " + std::to_string(number) + " (kind " +
                               std::to_string(static_cast<int>(one.kind)) + ", root " +
                               std::to_string(one.root) + ", " + std::to_string(one.elements) +
                               (one.in_place ? " elements in place, " : " elements, ") +
                               (one.algorithm ? std::to_string(static_cast<int>(*one.algorithm)) : "any") +
                               "): rank " + std::to_string(rank) + " of " + std::to_string(size()) + " has " +
                               std::to_string(work.buffer[i]) + " at " + std::to_string(i);
            }
        return {};
    }

    std::mt19937_64 random_;
    Nanoseconds now_{};
    std::vector<Member> members_;
    std::vector<Letter> mail_;
};

}  // namespace mcastcoll::levels
