#pragma once
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace dc2 {

// Does work(0), work(1), ... in several threads; which thread does what is left to chance.
template <class Work>
void in_threads(int64_t threads, int64_t count, const Work& work) {
    std::atomic<int64_t> next(0);
    std::exception_ptr broken;
    std::mutex breaking;
    const auto run = [&] {
        try {
            for (int64_t i = next++; i < count; i = next++) work(i);
        } catch (...) {
            std::lock_guard<std::mutex> lock(breaking);
            broken = std::current_exception();
        }
    };
    std::vector<std::thread> others;
    for (int64_t t = 1; t < std::min(threads, count); ++t) others.emplace_back(run);
    run();
    for (std::thread& other : others) other.join();
    if (broken) std::rethrow_exception(broken);
}

}  // namespace dc2
