// Lists of neighbours. A list holds its point first, then the nearest found so far, by distance and then by id, each
// id once. Empty entries hold the largest id, infinitely far. The final list depends on what was offered to it, never on
// the order of offers.
#pragma once
#include <cstdint>
#include <vector>

namespace dc2 {

// static: compiled once per instruction set where kernels.cpp includes it, and never shared between them.
template <class T>
static inline bool comes_before(T distance, int32_t id, T other, int32_t other_id) {
    return distance < other || (distance == other && id < other_id);
}

template <class T>
static inline void offer(T distance, int32_t id, int64_t k, T* distances, int32_t* ids) {
    int64_t at = k;
    while (at > 1 && comes_before(distance, id, distances[at - 1], ids[at - 1])) --at;
    if (at == k || (at > 1 && ids[at - 1] == id)) return;
    for (int64_t i = k - 1; i > at; --i) {
        distances[i] = distances[i - 1];
        ids[i] = ids[i - 1];
    }
    distances[at] = distance;
    ids[at] = id;
}

struct LinkTable {
    std::vector<int32_t> ids;    // (rows, width), -1 behind the last
    std::vector<uint8_t> fresh;  // (rows, width)
};

// Links of each point: its neighbours, then points that have it as a neighbour, `width` at most. A link is fresh if it
// comes from a neighbour that was not on the list `before`.
LinkTable link_neighbours(const int32_t* ids, const int32_t* before, int64_t rows, int64_t k, int64_t width);

// Several rows may be equal: lists are made for distinct points, and rows get theirs from them.
template <class T>
struct Places {
    const int32_t* near;      // IN (points, near_width): lists of distinct points
    const T* distances;       // IN (points, near_width)
    int64_t near_width;
    const int64_t* starts;    // IN (points + 1): the rows equal to point p are rows[starts[p]..starts[p + 1]), ascending
    const int32_t* rows;      // IN (rows)
    int64_t count;
};

// IN, OUT ids and distances (rows, k): on entry each list holds only its own row.
template <class T>
void offer_copies(const Places<T>& places, int64_t k, int32_t* ids, T* distances);

}  // namespace dc2
