// What an endpoint remembers of joins for those who come too early or too late: greetings for joins that were
// not called here yet, and how joins and groups that are gone have ended. The oldest are forgotten.
#pragma once

#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "group/roster.h"
#include "wire/join.h"

namespace mcastcoll::group {

// The latest of something, at most so many: who has no room for another forgets the oldest.
template <typename T, std::size_t kMost>
class Recent {
  public:
    void keep(T one) {
        if (entries_.size() == kMost) entries_.erase(entries_.begin());
        entries_.push_back(std::move(one));
    }
    template <typename Predicate>
    void forget_if(Predicate&& predicate) {
        std::erase_if(entries_, predicate);
    }
    // The latest for which this holds, or null.
    template <typename Predicate>
    const T* latest(Predicate&& predicate) const {
        for (auto one = entries_.rbegin(); one != entries_.rend(); ++one)
            if (predicate(*one)) return &*one;
        return nullptr;
    }
    template <typename Predicate>
    T* latest(Predicate&& predicate) {
        return const_cast<T*>(std::as_const(*this).latest(predicate));
    }
    // From the latest to the oldest.
    auto begin() const { return entries_.rbegin(); }
    auto end() const { return entries_.rend(); }

  private:
    std::vector<T> entries_;
};

// Where a datagram came from, in the words of whoever receives datagrams.
using Source = wire::ByteString;

class JoinMemory {
  public:
    struct EarlyHello {
        wire::Hello hello;
        Source source;  // who it may be is known when the join is called
    };
    // The latest from a place is from the process that lives.
    void keep_early(const wire::Hello& hello, const Source& source);
    void forget_early(const wire::JoinId& id) {
        early_.forget_if([&](const EarlyHello& one) { return one.hello.id == id; });
    }
    const auto& early() const { return early_; }

    // A join that this member led has failed: for who greets it still.
    void keep_failed(const wire::JoinId& id, int error) {
        failed_.keep({wire::JoinKind::abort, id, static_cast<std::uint32_t>(error)});
    }
    // Null: none that is remembered.
    const wire::Answer* failed(const wire::JoinId& id) const {
        return failed_.latest([&](const wire::Answer& one) { return one.id == id; });
    }

    // A join that this member has given up, whose leader has not been told; and where the leader is.
    void keep_given_up(const wire::JoinId& id, const wire::ByteString& leader) {
        given_up_.keep({id, leader});
    }
    // Once.
    std::optional<wire::ByteString> take_given_up(const wire::JoinId& id);

    // A group that has failed and is closed here: somebody may still wait for this member.
    struct FailedGroup {
        wire::Ended word;
        std::vector<wire::ByteString> members;  // inner addresses, by rank
        Roster roster;
    };
    void keep_failed_group(FailedGroup group) { failed_groups_.keep(std::move(group)); }
    // Null: none that is remembered.
    FailedGroup* failed_group(const wire::JoinId& id) {
        return failed_groups_.latest([&](const FailedGroup& one) { return one.word.id == id; });
    }

  private:
    struct GivenUp {
        wire::JoinId id;
        wire::ByteString leader;
    };
    Recent<EarlyHello, 1024> early_;
    Recent<wire::Answer, 64> failed_;
    Recent<GivenUp, 64> given_up_;
    Recent<FailedGroup, 64> failed_groups_;
};

inline void JoinMemory::keep_early(const wire::Hello& hello, const Source& source) {
    early_.forget_if([&](const EarlyHello& one) {
        return one.hello.id == hello.id && one.hello.rank == hello.rank && one.source == source;
    });
    early_.keep({hello, source});
}

inline std::optional<wire::ByteString> JoinMemory::take_given_up(const wire::JoinId& id) {
    const auto of_this = [&](const GivenUp& one) { return one.id == id; };
    const GivenUp* found = given_up_.latest(of_this);
    if (found == nullptr) return {};
    std::optional<wire::ByteString> leader = found->leader;
    given_up_.forget_if(of_this);
    return leader;
}

}  // namespace mcastcoll::group
