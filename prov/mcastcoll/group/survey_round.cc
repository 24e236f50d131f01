#include "group/survey_round.h"

#include "group/welcome.h"

namespace mcastcoll::group {
namespace {

// Longer than a member's kTimeout, so that partial results still count.
constexpr Nanoseconds kSurveyTimeout = Surveyor::kTimeout + Nanoseconds::from_ms(500);
// A request or an answer may be lost: rank 0 repeats the request.
constexpr Nanoseconds kRequestAgain = Nanoseconds::from_ms(100);

std::vector<topology::Place> places_of(const Hellos& hellos) {
    std::vector<topology::Place> places;
    places.reserve(hellos.size());
    for (const auto& hello : hellos) places.push_back(decode_place(hello.peer.place));
    return places;
}

}  // namespace

SurveyRound::SurveyRound(const wire::JoinId& id, Rank self, std::size_t members, JoinPort& port)
    : id_(id), self_(self), members_(members), port_(port) {}

void SurveyRound::lead(const Hellos& hellos, Nanoseconds until, Nanoseconds now) {
    sites_.emplace(places_of(hellos));
    const auto sequence_of = [&](Rank rank) { return hellos[index_of(rank)].id.sequence; };
    for (std::size_t one = 0; one < sites_->networks(); ++one) {
        const Rank whom = sites_->representative(one);
        wire::Survey request{{{id_.list_hash, sequence_of(whom)}, id_.sequence, self_}, {}};
        for (std::size_t other = one + 1; other < sites_->networks(); ++other) {
            const Rank target = sites_->representative(other);
            if (const auto known = port_.round_trips().find(sites_->identity(one), sites_->identity(other)))
                sites_->learn(one, other, *known);
            else
                request.targets.push_back({target, sequence_of(target)});
        }
        if (!request.targets.empty()) requests_.push_back({one, std::move(request)});
    }
    if (requests_.empty()) return;
    until_ = std::min(now + kSurveyTimeout, until);
    send_requests(now);
}

void SurveyRound::send_requests(Nanoseconds now) {
    request_again_at_ = now + kRequestAgain;
    for (const Request& request : requests_) {
        const Rank whom = sites_->representative(request.network);
        if (whom != self_)
            port_.send(whom, request_attempt_, wire::encode(request.survey));
        else if (!surveyor_)
            surveyor_.emplace(id_, self_, request.survey, port_, now);
    }
    ++request_attempt_;
}

// A repeated request of rank 0 means that the answer was lost.
void SurveyRound::on_survey(const wire::Survey& survey, Nanoseconds now) {
    if (leads() || survey.head.from != rank_of(0)) return;
    for (const wire::Survey::Target& target : survey.targets)
        if (index_of(target.rank) >= members_ || target.rank == self_) return;
    if (!surveyor_) surveyor_.emplace(id_, self_, survey, port_, now);
    report();
}

void SurveyRound::on_echo(const wire::Echo& echo, Nanoseconds now) {
    if (echo.back) {
        if (surveyor_) surveyor_->on_echo(echo, now);
        return report();
    }
    if (echoes_answered_ >= kMaxEchoes) return;
    ++echoes_answered_;
    const wire::SurveyHead head{{id_.list_hash, echo.head.sequence}, id_.sequence, self_};
    port_.send(echo.head.from, 0, wire::encode(wire::Echo{head, echo.stamp, true}));
}

void SurveyRound::report() {
    if (!surveyor_ || !surveyor_->over()) return;
    if (leads()) return on_surveyed(surveyor_->result());
    port_.send(rank_of(0), 0, wire::encode(surveyor_->result()));
}

void SurveyRound::on_surveyed(const wire::Surveyed& surveyed) {
    const auto request = std::find_if(requests_.begin(), requests_.end(), [&](const Request& one) {
        return sites_->representative(one.network) == surveyed.head.from;
    });
    if (request == requests_.end()) return;  // already answered, or not requested
    const std::size_t one = request->network;
    std::size_t next = 0;
    for (std::size_t other = one + 1; other < sites_->networks() && next < surveyed.round_trips_ns.size();
         ++other) {
        if (sites_->knows(one, other)) continue;
        // An unmeasured network counts as far, and is not measured again for every group.
        constexpr auto kFar = static_cast<std::uint64_t>(topology::SiteSurvey::kFar.value);
        const std::uint64_t time = std::min(surveyed.round_trips_ns[next++], kFar);
        const Nanoseconds round_trip{static_cast<std::int64_t>(time)};
        sites_->learn(one, other, round_trip);
        port_.round_trips().keep(sites_->identity(one), sites_->identity(other), round_trip);
    }
    requests_.erase(request);
}

void SurveyRound::on_timeout(Nanoseconds now) {
    if (until_ <= now) requests_.clear();
    if (requests_.empty()) request_again_at_ = until_ = kNever;
    if (request_again_at_ <= now) send_requests(now);
    if (!surveyor_ || surveyor_->next_deadline() > now) return;
    surveyor_->pump(now);
    report();
}

Nanoseconds SurveyRound::next_deadline() const {
    const Nanoseconds next = requests_.empty() ? kNever : std::min(until_, request_again_at_);
    return surveyor_ ? std::min(next, surveyor_->next_deadline()) : next;
}

Hellos SurveyRound::settle(Hellos hellos) const {
    std::vector<topology::Place> places = places_of(hellos);
    sites_->apply(places);
    for (const std::string& line : sites_->explain()) port_.explain(line);
    for (std::size_t rank = 0; rank < places.size(); ++rank)
        if (wire::ByteString& place = hellos[rank].peer.place; !place.empty())
            place = topology::encode(places[rank]);
    return hellos;
}

}  // namespace mcastcoll::group
