#pragma once
#include <cstdint>

namespace dc2 {

// Adds to OUT counts (n, m) the number of trees in which point i of IN a (trees, n) and point j of IN b (trees, m)
// share a leaf.
void coleaf_counts(const int32_t* a, int64_t n, const int32_t* b, int64_t m, int64_t trees, int32_t* counts);

}  // namespace dc2
