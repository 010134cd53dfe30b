#pragma once
#include <cstdint>

namespace dc2 {

// Distances of all signatures to some of them.
struct ToSome {
    const double* distances;  // IN (signatures, count)
    const int32_t* some;      // IN (count): which those are
    int64_t count;
};

// Of signatures from `first` on, those among `some` that none of their neighbours leads to, nearest first, then -1.
// IN near (rows, k), each row its own signature first; OUT long_links (rows, most), indices of `some`.
void find_long_links(const ToSome& to, const int32_t* near, int64_t rows, int64_t k, int64_t first, int64_t most,
                     int32_t* long_links);

}  // namespace dc2
