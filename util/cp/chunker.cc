#include "cp/chunker.h"

#include <memory>
#include <utility>

namespace mcastcoll::cp {

Chunker::Chunker(std::shared_ptr<Pool> pool, Queue& out) : pool_(std::move(pool)), out_(out) {}

Packer& Chunker::packer() {
    if (packer_ != nullptr && packer_->room() == 0) complete();
    if (packer_ == nullptr) packer_ = std::make_unique<Packer>(pool_->take(), number_++);
    return *packer_;
}

void Chunker::complete() {
    held_.push_back(packer_->chunk());
    packer_.reset();
    if (held_.size() <= kAhead) return;
    set_size_ahead(*held_.front(), held_.back()->size());
    out_.put(std::move(held_.front()));
    held_.pop_front();
}

void Chunker::finish() {
    packer();  // at least one chunk
    complete();
    for (Chunk& chunk : held_) out_.put(std::move(chunk));
    held_.clear();
    out_.close();
}

}  // namespace mcastcoll::cp
