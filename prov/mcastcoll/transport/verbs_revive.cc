// A queue pair that has gone into its error state, as one does for a single failed request, is taken through
// its states anew. It keeps its number, its groups and its memory; everything that was posted is gone.
#include "transport/verbs_queue.h"

namespace mcastcoll {
namespace {

// What fails again and again has a reason that does not go away.
constexpr unsigned kMostRevivals = 8;

void forget(ibv_cq& queue, std::size_t most) {
    ibv_wc completion;
    for (std::size_t i = 0; i < most && ibv_poll_cq(&queue, 1, &completion) > 0; ++i) continue;
}

}  // namespace

bool VerbsQueue::revive() {
    if (!broken_) return true;
    if (revivals_ == kMostRevivals) return false;
    ++revivals_;
    if (!restart()) return false;
    // Nothing of before comes any more: a reset queue pair has no requests.
    forget(*received_, receives_);
    forget(*sent_, sends_);
    done_ = posted_;
    waiting_ = 0;
    to_post_.forget();
    broken_ = false;
    return post_first_receives().ok();
}

bool VerbsQueue::restart() {
    ibv_qp_attr known{};
    ibv_qp_init_attr unused{};
    if (ibv_query_qp(id_.qp, &known, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY, &unused) != 0)
        return false;
    struct Step {
        ibv_qp_state state;
        int attributes;
    };
    constexpr Step kSteps[] = {{IBV_QPS_RESET, IBV_QP_STATE},
                               {IBV_QPS_INIT, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY},
                               {IBV_QPS_RTR, IBV_QP_STATE},
                               {IBV_QPS_RTS, IBV_QP_STATE | IBV_QP_SQ_PSN}};
    for (const Step& step : kSteps) {
        ibv_qp_attr next{};
        next.qp_state = step.state;
        next.pkey_index = known.pkey_index;
        next.port_num = known.port_num;
        next.qkey = known.qkey;
        if (ibv_modify_qp(id_.qp, &next, step.attributes) != 0) return false;
    }
    return true;
}

}  // namespace mcastcoll
