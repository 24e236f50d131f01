// Before rank 0 welcomes anybody it finds out which networks are one site: see topology/site_survey.h. All of
// it goes by datagrams between the members' service addresses, which everybody knows from the application's
// list: what a stranger sends can neither name an address nor make anybody connect to one.
#include <algorithm>

#include "ofi/group.h"
#include "ofi/live_station.h"
#include "ofi/placing.h"

namespace mcastcoll::ofi {
namespace {

// Longer than a member's patience, so that what it could measure counts.
constexpr Nanoseconds kSurveyPatience = Surveyor::kPatience + Nanoseconds::from_ms(500);
// Who has been asked, or has told, may not have been heard: rank 0 asks again.
constexpr Nanoseconds kAskAgain = Nanoseconds::from_ms(100);

}  // namespace

// Everybody has greeted.
void Group::welcome_all(Nanoseconds now) {
    std::vector<topology::Place> places;
    for (const auto& hello : hellos_) places.push_back(decode_place(hello->peer.place));
    survey_.emplace(places);
    if (!ask_for_round_trips(now)) return send_welcome(now);
    survey_until_ = std::min(now + kSurveyPatience, plan_.deadline - Nanoseconds::from_ms(1));
}

// False: all that can be known is known.
bool Group::ask_for_round_trips(Nanoseconds now) {
    const std::size_t networks = survey_->networks();
    const auto sequence_of = [&](Rank rank) { return hellos_[index_of(rank)]->id.sequence; };
    for (std::size_t one = 0; one < networks; ++one) {
        const Rank whom = survey_->representative(one);
        wire::Survey ask{{{plan_.id.list_hash, sequence_of(whom)}, plan_.id.sequence, plan_.self}, {}};
        for (std::size_t other = one + 1; other < networks; ++other) {
            const Rank target = survey_->representative(other);
            if (const auto known = station_.round_trip(survey_->identity(one), survey_->identity(other)))
                survey_->learn(one, other, *known);
            else
                ask.targets.push_back({target, sequence_of(target)});
        }
        if (!ask.targets.empty()) asks_.push_back({one, std::move(ask)});
    }
    ask(now);
    return surveying();
}

void Group::ask(Nanoseconds now) {
    ask_again_at_ = surveying() ? now + kAskAgain : kNever;
    for (const Ask& ask : asks_) {
        const Rank whom = survey_->representative(ask.network);
        if (whom != plan_.self)
            send_datagram(whom, ask_attempt_, wire::encode(ask.survey));
        else if (!surveyor_)
            measure(ask.survey, now);
    }
    ++ask_attempt_;
}

void Group::measure(const wire::Survey& survey, Nanoseconds now) {
    surveyor_ = std::make_unique<Surveyor>(
        plan_.id, plan_.self, survey,
        [this](Rank to, std::uint32_t attempt, Bytes message) { send_datagram(to, attempt, message); });
    surveyor_->start(now);
}

// What rank 0 asks again it did not hear the answer to.
void Group::on_survey(const wire::Survey& survey, Nanoseconds now) {
    if (leads() || survey.head.from != rank_of(0)) return;
    for (const wire::Survey::Target& target : survey.targets)
        if (index_of(target.rank) >= size() || target.rank == plan_.self) return;
    if (!surveyor_) measure(survey, now);
    tell_surveyed(now);
}

void Group::on_echo(const wire::Echo& echo, Nanoseconds now) {
    if (echo.back) {
        if (surveyor_) surveyor_->on_echo(echo, now);
        return tell_surveyed(now);
    }
    if (echoes_answered_ >= kMostEchoes) return;
    ++echoes_answered_;
    const wire::SurveyHead head{{plan_.id.list_hash, echo.head.sequence}, plan_.id.sequence, plan_.self};
    send_datagram(echo.head.from, 0, wire::encode(wire::Echo{head, echo.stamp, true}));
}

void Group::tell_surveyed(Nanoseconds now) {
    if (!surveyor_ || !surveyor_->over()) return;
    if (leads()) return on_surveyed(surveyor_->result(), now);
    send_datagram(rank_of(0), 0, wire::encode(surveyor_->result()));
}

void Group::pump_survey(Nanoseconds now) {
    if (ask_again_at_ <= now) ask(now);
    if (!surveyor_ || surveyor_->next_deadline() > now) return;
    surveyor_->pump(now);
    tell_surveyed(now);
}

Nanoseconds Group::survey_deadline() const {
    const Nanoseconds next = std::min(survey_until_, ask_again_at_);
    return surveyor_ ? std::min(next, surveyor_->next_deadline()) : next;
}

void Group::on_surveyed(const wire::Surveyed& surveyed, Nanoseconds now) {
    const auto ask = std::find_if(asks_.begin(), asks_.end(), [&](const Ask& one) {
        return survey_->representative(one.network) == surveyed.head.from;
    });
    if (ask == asks_.end()) return;  // told before, or not asked
    const std::size_t networks = survey_->networks(), one = ask->network;
    std::size_t next = 0;
    for (std::size_t other = one + 1; other < networks && next < surveyed.round_trips_ns.size(); ++other) {
        if (survey_->knows(one, other)) continue;
        const std::uint64_t time = surveyed.round_trips_ns[next++];
        // Who did not answer once is far away, and not asked again for every group.
        const bool measured = time < static_cast<std::uint64_t>(topology::SiteSurvey::kFar.value);
        const Nanoseconds round_trip =
            measured ? Nanoseconds{static_cast<std::int64_t>(time)} : topology::SiteSurvey::kFar;
        survey_->learn(one, other, round_trip);
        station_.keep_round_trip(survey_->identity(one), survey_->identity(other), round_trip);
    }
    asks_.erase(ask);
    if (!surveying()) send_welcome(now);
}

// What each member says of its place, after the survey.
std::vector<wire::ByteString> Group::settle_sites() {
    std::vector<topology::Place> places;
    for (const auto& hello : hellos_) places.push_back(decode_place(hello->peer.place));
    std::vector<wire::ByteString> result;
    if (survey_) {
        survey_->apply(places);
        for (const std::string& line : survey_->explain()) station_.log(Level::info, "{}: {}", name(), line);
    }
    for (std::size_t rank = 0; rank < places.size(); ++rank)
        result.push_back(hellos_[rank]->peer.place.empty() ? wire::ByteString{} : encode_place(places[rank]));
    asks_.clear();
    survey_until_ = ask_again_at_ = kNever;
    survey_.reset();
    return result;
}

}  // namespace mcastcoll::ofi
