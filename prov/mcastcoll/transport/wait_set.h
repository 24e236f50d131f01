// What a thread sleeps on until there is something to do: descriptors, and an alarm at the next deadline.
#pragma once

#include "base/file_descriptor.h"
#include "base/result.h"
#include "base/types.h"

namespace mcastcoll {

class WaitSet {
  public:
    Result<void> open();
    // Who slept without one of them would not wake. Negative ones are none.
    Result<void> add(int descriptor);
    // Whether what comes there, which was added, ends a sleep.
    void heed(int descriptor, bool heeds) const;
    // False: nobody may sleep.
    bool set_alarm(Nanoseconds time);
    // An earlier one than is set.
    void bring_forward(Nanoseconds time) {
        if (time < alarm_at_) set_alarm(time);
    }
    int descriptor() const { return descriptors_.get(); }
    void sleep(int milliseconds) const;

  private:
    FileDescriptor descriptors_, timer_;
    Nanoseconds alarm_at_ = kNever;  // what the timer is set to
};

}  // namespace mcastcoll
