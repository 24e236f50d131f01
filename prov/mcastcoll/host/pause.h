// Between two looks at the same word.
#pragma once

namespace mcastcoll::host {

inline void pause() {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
}

}  // namespace mcastcoll::host
