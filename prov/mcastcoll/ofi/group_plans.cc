// Which algorithm carries out an operation of a group: said in the log when it is first taken, and to who
// asks beforehand.
#include <fmt/format.h>

#include "ofi/group.h"
#include "ofi/live_station.h"

namespace mcastcoll::ofi {

void Group::explain_selection() {
    levels::Conductor::News news;
    if (!conductor_->poll_news(news) || placement_->members() == 1) return;
    station_.log(Level::info, "{}: {} of {} bytes over {} members on {} hosts: takes {} ({})", name(),
                 levels::name_of(news.kind), news.bytes, placement_->members(), placement_->hosts(),
                 levels::to_text(news.choice),
                 placement_->hosts() == 1 ? "one host: shared memory" : "rank 0's table of algorithms");
}

// Nothing that this looks at changes any more when a join is over, so there is no lock.
const char* Group::advice(fid_mc* mc, const fi_mcastcoll_request* request) noexcept {
    if (mc == nullptr || request == nullptr) return nullptr;
    const Group& group = *reinterpret_cast<McFid*>(mc)->group;
    if (!group.joined_) return nullptr;
    try {
        fi_mcastcoll_request question = *request;  // without buffers, which may not be there yet
        question.input = question.buffer = &question;
        const auto made = make_request(question, group.token());
        if (!made) return nullptr;
        levels::Request asked;
        asked.kind = made.value().kind;
        asked.bytes = made.value().bytes;
        const auto decision = group.conductor_->decide(asked);
        return decision.aside ? nullptr : levels::name_of(decision.choice.algorithm).data();
    } catch (...) {
        return nullptr;
    }
}

}  // namespace mcastcoll::ofi
