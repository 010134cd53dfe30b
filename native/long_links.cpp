// Long links, without which a graph search would end in a local minimum. Follows find_long_links of src/dc2/core/neighbours_reference.py.
#include "long_links.hpp"

#include <algorithm>
#include <vector>

namespace dc2 {

namespace {

constexpr int64_t kTogether = 64;  // columns compared at a time, until a neighbour leads to each

// Puts into `left` the columns that are nearer to `here` than to any of its neighbours.
void keep_unreached(const ToSome& to, const double* here, const int32_t* near, int64_t k, std::vector<int32_t>& left) {
    left.clear();
    uint8_t stays[kTogether];
    for (int64_t begin = 0; begin < to.count; begin += kTogether) {
        const int64_t size = std::min(kTogether, to.count - begin);
        uint8_t any = 0;
        for (int64_t c = 0; c < size; ++c) any |= stays[c] = here[begin + c] > 0;
        for (int64_t j = 1; j < k && any; ++j) {
            const double* there = to.distances + near[j] * to.count + begin;
            any = 0;
            for (int64_t c = 0; c < size; ++c) any |= stays[c] &= there[c] >= here[begin + c];
        }
        for (int64_t c = 0; c < size && any; ++c)
            if (stays[c]) left.push_back(int32_t(begin + c));
    }
}

}  // namespace

void find_long_links(const ToSome& to, const int32_t* near, int64_t rows, int64_t k, int64_t first, int64_t most,
                     int32_t* long_links) {
    std::vector<int32_t> left;
    for (int64_t r = 0; r < rows; ++r) {
        const double* here = to.distances + (first + r) * to.count;
        keep_unreached(to, here, near + r * k, k, left);
        for (int64_t i = 0; i < most; ++i) {
            long_links[r * most + i] = -1;
            if (left.empty()) continue;
            const auto nearest = std::min_element(left.begin(), left.end(),
                                                  [&](int32_t a, int32_t b) { return here[a] < here[b]; });
            long_links[r * most + i] = *nearest;
            const double* there = to.distances + to.some[*nearest] * to.count;  // what this link leads to needs no other
            left.erase(std::remove_if(left.begin(), left.end(), [&](int32_t c) { return !(there[c] >= here[c]); }),
                       left.end());
        }
    }
}

}  // namespace dc2
