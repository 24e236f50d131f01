#include "message_tree.h"

#include <fmt/format.h>

#include <algorithm>

namespace mcastcoll::sim {
namespace {

// A message of an MPI library carries a header, too; one as long as ours keeps the comparison fair.
constexpr wire::HeaderBytes kHeader{};

}  // namespace

MessageTree::MessageTree(std::uint32_t ranks, std::vector<Step> script, const Model& model,
                         const Faults& faults, std::uint64_t seed, const Arrival& arrival, Nanoseconds settle,
                         TreeOf tree_of)
    : ranks_(ranks),
      script_(std::move(script)),
      arrival_(arrival),
      settle_(settle),
      tree_of_(std::move(tree_of)),
      random_(seed),
      times_(script_.size()) {
    network_ = std::make_unique<Network>(model, faults, ranks, first_numbers(ranks),
                                         std::vector<std::uint32_t>(ranks, 0), random_.next(), *this);
}

void MessageTree::begin_step() {
    if (step_over) step_over(step_);
    if (step_ == script_.size()) return;
    const Step& step = script_[step_];
    tree_ = tree_of_(ranks_, index_of(step.root));
    content_ = content_of(0, step_, step.bytes);
    entered_.assign(ranks_, false);
    has_.assign(ranks_, false);
    times_[step_].resize(ranks_);
    has_[index_of(step.root)] = true;
    unfinished_ = ranks_;
    began_at_ = network_->now() + settle_;
    arrival_.wake(*network_, 0, ranks_, step, began_at_, 0, random_);
}

void MessageTree::forward(std::uint32_t rank) {
    if (!entered_[rank] || !has_[rank]) return;
    for (const std::uint32_t child : tree_[rank]) network_->send_message(rank, child, kHeader, content_);
    times_[step_][rank] = network_->busy_until(rank) - began_at_;
    if (--unfinished_ > 0) return;
    ++step_;
    begin_step();
}

void MessageTree::on_message(std::uint32_t rank, std::uint32_t, Bytes message) {
    const Bytes payload = message.subspan(kHeader.size());
    if (!std::equal(payload.begin(), payload.end(), content_.begin(), content_.end()))
        trouble_ = fmt::format("rank {} got wrong bytes in step {}", rank, step_);
    has_[rank] = true;
    forward(rank);
}

void MessageTree::on_wake(std::uint32_t rank, std::uint32_t) {
    entered_[rank] = true;
    forward(rank);
}

std::string MessageTree::run() {
    begin_step();
    while (trouble_.empty() && network_->step()) {
    }
    if (trouble_.empty() && step_ < script_.size()) return fmt::format("step {} never ended", step_);
    return trouble_;
}

}  // namespace mcastcoll::sim
