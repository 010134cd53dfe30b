#include "turns.hpp"

#include <atomic>
#include <limits>
#include <thread>

namespace dc2 {

// A count is never negative, so its sign tells that it is taken.
constexpr int64_t kTaken = std::numeric_limits<int64_t>::min();
constexpr int kSpins = 64;  // adding a row takes well under a microsecond, unless its thread is not running

static std::atomic<int64_t>& shared(int64_t* count) {
    static_assert(sizeof(std::atomic<int64_t>) == sizeof(int64_t), "a count and an atomic one are stored alike");
    return *reinterpret_cast<std::atomic<int64_t>*>(count);
}

int64_t take_count(int64_t* count) {
    std::atomic<int64_t>& at = shared(count);
    for (;;) {
        const int64_t value = at.exchange(kTaken, std::memory_order_acquire);
        if (value >= 0) return value;
        for (int spin = 0; at.load(std::memory_order_relaxed) < 0; ++spin)
            if (spin >= kSpins) std::this_thread::yield();
    }
}

void give_count(int64_t* count, int64_t value) { shared(count).store(value, std::memory_order_release); }

}  // namespace dc2
