// Before rank 0 welcomes anybody it finds out which networks are one site: see topology/site_survey.h.
#include <algorithm>

#include "ofi/group.h"
#include "ofi/live_station.h"
#include "ofi/placing.h"

namespace mcastcoll::ofi {
namespace {

// Longer than a member's patience, so that what it could measure counts.
constexpr Nanoseconds kSurveyPatience = Surveyor::kPatience + Nanoseconds::from_ms(500);

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
    for (std::size_t one = 0; one < networks; ++one) {
        wire::Survey ask{plan_.id, station_.messenger().address(), {}};
        for (std::size_t other = one + 1; other < networks; ++other) {
            if (const auto known = station_.round_trip(survey_->identity(one), survey_->identity(other)))
                survey_->learn(one, other, *known);
            else
                ask.targets.push_back(address_of(survey_->representative(other)));
        }
        if (ask.targets.empty()) continue;
        // The id is the one this member knows the join by.
        ask.id = hellos_[index_of(survey_->representative(one))]->id;
        if (station_.ask_survey(address_of(survey_->representative(one)), ask, now)) ++surveys_open_;
    }
    return surveys_open_ > 0;
}

const wire::ByteString& Group::address_of(Rank rank) const {
    return hellos_[index_of(rank)]->peer.private_address;
}

void Group::on_surveyed(const wire::Surveyed& surveyed, Nanoseconds now) {
    if (!surveying()) return;
    const std::size_t networks = survey_->networks();
    for (std::size_t one = 0; one < networks; ++one) {
        if (address_of(survey_->representative(one)) != surveyed.from) continue;
        std::size_t next = 0;
        for (std::size_t other = one + 1; other < networks && next < surveyed.round_trips_ns.size();
             ++other) {
            if (survey_->knows(one, other)) continue;
            const std::uint64_t time = surveyed.round_trips_ns[next++];
            // Who did not answer once is far away, and not asked again for every group.
            const bool measured = time < static_cast<std::uint64_t>(topology::SiteSurvey::kFar.value);
            const Nanoseconds round_trip =
                measured ? Nanoseconds{static_cast<std::int64_t>(time)} : topology::SiteSurvey::kFar;
            survey_->learn(one, other, round_trip);
            station_.keep_round_trip(survey_->identity(one), survey_->identity(other), round_trip);
        }
        if (--surveys_open_ == 0) send_welcome(now);
        return;
    }
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
    surveys_open_ = 0;
    survey_until_ = kNever;
    survey_.reset();
    return result;
}

}  // namespace mcastcoll::ofi
