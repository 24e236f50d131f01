#include "datagram/waiter.h"

#include <algorithm>

namespace mcastcoll::datagram {

int open_wait(provider::WaitObject& object, fi_wait_obj& wanted) {
    if (wanted == FI_WAIT_NONE) return 0;
    if (wanted != FI_WAIT_UNSPEC && wanted != FI_WAIT_FD) return -FI_ENOSYS;
    if (!object.open(-1)) return -FI_EMFILE;
    wanted = FI_WAIT_FD;
    return 0;
}

bool Waiter::add(Source& source) {
    if (std::find(sources_.begin(), sources_.end(), &source) != sources_.end()) return false;
    sources_.push_back(&source);
    return true;
}

void Waiter::progress() {
    for (Source* source : sources_) source->receive();
}

void Waiter::prepare() {
    wait_object_.reset();
    wait_object_.arm();
    progress();
    for (Source* source : sources_) source->watch();
}

void Waiter::prepare_wait() {
    const std::lock_guard lock(mutex_);
    prepare();
}

}  // namespace mcastcoll::datagram
