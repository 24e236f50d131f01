#include "group/gathering.h"

#include <algorithm>

namespace mcastcoll::group {
namespace {

constexpr std::uint64_t kBase = 32;

// The power of kBase at the lowest non-zero digit of this rank. Not for rank 0.
std::uint64_t last_digit(std::uint64_t rank) {
    std::uint64_t power = 1;
    while (rank / power % kBase == 0) power *= kBase;
    return power;
}

}  // namespace

Rank hello_parent(Rank rank) {
    const std::uint64_t number = index_of(rank);
    const std::uint64_t power = last_digit(number) * kBase;
    return rank_of(number / power * power);
}

std::uint32_t hello_span(Rank rank, std::uint32_t members) {
    const std::uint64_t number = index_of(rank);
    const std::uint64_t behind = members - number;
    return static_cast<std::uint32_t>(number == 0 ? behind : std::min(behind, last_digit(number)));
}

Gathering::Gathering(Rank self, std::uint32_t members)
    : self_(self), members_(members), span_(hello_span(self, members)) {}

bool Gathering::expects(Rank rank) const {
    return index_of(rank) > index_of(self_) && index_of(rank) < members_ && hello_parent(rank) == self_;
}

void Gathering::add(const wire::Hello& hello) {
    if (hellos_.emplace(hello.rank, hello).second) ++count_;
}

void Gathering::add_from(Rank from, const std::vector<wire::Hello>& hellos) {
    if (complete() || !expects(from) || of(from) == nullptr) return;
    const std::size_t first = index_of(from), end = first + hello_span(from, members_);
    const auto its_own = [&](const wire::Hello& hello) {
        return index_of(hello.rank) > first && index_of(hello.rank) < end && hello.members == members_;
    };
    if (!std::ranges::all_of(hellos, its_own)) return;
    for (const wire::Hello& hello : hellos) add(hello);
}

const wire::Hello* Gathering::of(Rank rank) const {
    const auto found = hellos_.find(rank);
    return found == hellos_.end() ? nullptr : &found->second;
}

std::vector<Rank> Gathering::missing() const {
    std::vector<Rank> ranks;
    const std::uint64_t end = index_of(self_) + std::uint64_t{span_};
    for (std::uint64_t rank = index_of(self_) + 1; rank < end; rank += hello_span(rank_of(rank), members_))
        if (of(rank_of(rank)) == nullptr) ranks.push_back(rank_of(rank));
    return ranks;
}

std::vector<const wire::Hello*> Gathering::received() const {
    std::vector<const wire::Hello*> received;
    for (const auto& [rank, hello] : hellos_)
        if (expects(rank)) received.push_back(&hello);
    return received;
}

std::vector<wire::Hello> Gathering::hellos() const {
    std::vector<wire::Hello> hellos;
    hellos.reserve(hellos_.size());
    for (const auto& [rank, hello] : hellos_) hellos.push_back(hello);
    return hellos;
}

void Gathering::mark_forwarded() {
    std::erase_if(hellos_, [this](const auto& one) { return one.first != self_ && !expects(one.first); });
}

}  // namespace mcastcoll::group
