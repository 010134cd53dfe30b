#include "coleaf.hpp"

#include <algorithm>
#include <vector>

namespace dc2 {

// For each tree, points of b are listed leaf by leaf; each point of a then counts the points that share its leaf.
void coleaf_counts(const int32_t* a, int64_t n, const int32_t* b, int64_t m, int64_t trees, int32_t* counts) {
    std::vector<int32_t> begin, members(m);
    for (int64_t tree = 0; tree < trees; ++tree, a += n, b += m) {
        int32_t leaves = 0;
        for (int64_t i = 0; i < n; ++i) leaves = std::max(leaves, a[i] + 1);
        for (int64_t j = 0; j < m; ++j) leaves = std::max(leaves, b[j] + 1);
        begin.assign(leaves + 2, 0);
        for (int64_t j = 0; j < m; ++j) ++begin[b[j] + 2];
        for (int32_t leaf = 0; leaf < leaves; ++leaf) begin[leaf + 2] += begin[leaf + 1];
        for (int64_t j = 0; j < m; ++j) members[begin[b[j] + 1]++] = int32_t(j);
        for (int64_t i = 0; i < n; ++i) {
            int32_t* row = counts + i * m;
            for (int32_t k = begin[a[i]]; k < begin[a[i] + 1]; ++k) ++row[members[k]];
        }
    }
}

}  // namespace dc2
