// Frames in the order in which they are sent: those that were sent and are kept, then those that wait.
#pragma once

#include <sys/uio.h>

#include <array>
#include <cstring>
#include <deque>
#include <memory>

#include "gateway/ways/way.h"

namespace mcastcoll::ways {

class KeptFrames {
  public:
    explicit KeptFrames(const Settings& settings) : settings_(settings) {}

    // Where the next piece is read to.
    MutableBytes space() {
        if (scratch_ == nullptr) scratch_ = std::make_unique<trunk::Frame>(settings_.piece);
        return scratch_->space();
    }
    // So much was read there.
    void add(trunk::FrameHeader header) {
        trunk::FramePointer frame;
        if (header.length > kWorthCopying) {
            frame = std::move(scratch_);
        } else {
            frame = std::make_unique<trunk::Frame>(header.length);
            std::memcpy(frame->space().data(), scratch_->space().data(), header.length);
        }
        frame->header = header;
        frame->seal();
        waiting_bytes_ += frame->bytes().size();
        frames_.push_back({std::move(frame), 0});
    }

    bool has_room() const { return waiting_bytes_ < kBatch && frames_.size() - sent_ < kBatchFrames; }
    bool waiting() const { return sent_ < frames_.size(); }
    std::size_t waiting_bytes() const { return waiting_bytes_; }
    // What waits, as pieces for one call; gives their number.
    std::size_t batch(std::array<iovec, kBatchFrames>& pieces) const {
        std::size_t count = 0, offset = offset_;
        for (std::size_t i = sent_; i < frames_.size() && count < kBatchFrames; ++i) {
            const Bytes bytes = frames_[i].frame->bytes().subspan(offset);
            pieces[count++] = {const_cast<std::byte*>(bytes.data()), bytes.size()};
            offset = 0;
        }
        return count;
    }
    // So many bytes of it went, by the call with this number.
    void sent(std::size_t bytes, std::uint32_t call = 0) {
        waiting_bytes_ -= bytes;
        std::size_t left = bytes + offset_;
        while (waiting()) {
            const std::size_t size = frames_[sent_].frame->bytes().size();
            if (left > 0) frames_[sent_].call = call;
            if (left < size) break;
            left -= size;
            kept_bytes_ += size;
            ++sent_;
        }
        offset_ = left;
    }
    // Frees what is acknowledged by now, as long as may_free(number of the last call that sent it).
    template <typename MayFree>
    void forget(MayFree may_free) {
        while (sent_ > 0 && kept_bytes_ > settings_.kept && may_free(frames_.front().call)) {
            kept_bytes_ -= frames_.front().frame->bytes().size();
            frames_.pop_front();
            --sent_;
        }
    }

  private:
    struct Sent {
        trunk::FramePointer frame;
        std::uint32_t call;
    };
    const Settings settings_;
    trunk::FramePointer scratch_;
    std::deque<Sent> frames_;
    std::size_t sent_ = 0, offset_ = 0, kept_bytes_ = 0, waiting_bytes_ = 0;
};

}  // namespace mcastcoll::ways
