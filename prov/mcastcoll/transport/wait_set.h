// The descriptors, and the alarm at the next deadline, on which a thread sleeps until there is work.
#pragma once

#include "base/file_descriptor.h"
#include "base/result.h"
#include "base/types.h"

namespace mcastcoll::transport {

class WaitSet {
  public:
    Result<void> open();
    // Ignores a negative descriptor. After an error, input on this descriptor does not end a sleep.
    Result<void> add(int descriptor);
    // Sets whether input on this descriptor, which was added before, ends a sleep.
    void set_wakes(int descriptor, bool wakes) const;
    // Sets the time at which a sleep ends. False: the alarm could not be set, so no thread may sleep.
    bool set_alarm(Nanoseconds time);
    // Sets the alarm only if `time` is earlier than the present alarm.
    void bring_forward(Nanoseconds time) {
        if (time < alarm_at_) set_alarm(time);
    }
    int descriptor() const { return descriptors_.get(); }
    void sleep(int milliseconds) const;

  private:
    FileDescriptor descriptors_, timer_;
    Nanoseconds alarm_at_ = kNever;  // present setting of the timer
};

}  // namespace mcastcoll::transport
