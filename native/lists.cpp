// Work on lists of neighbours that needs no distances. Follows src/dc2/core/neighbours_reference.py.
#include "lists.hpp"

#include <algorithm>

namespace dc2 {

LinkTable link_neighbours(const int32_t* ids, const int32_t* before, int64_t rows, int64_t k, int64_t width) {
    LinkTable table;
    table.ids.assign(rows * width, -1);
    table.fresh.assign(rows * width, 0);
    std::vector<int32_t> held(rows, 0);
    std::vector<uint8_t> fresh(rows * k, 0);
    const auto link = [&](int64_t from, int32_t to, uint8_t is_fresh) {
        table.ids[from * width + held[from]] = to;
        table.fresh[from * width + held[from]++] = is_fresh;
    };
    for (int64_t i = 0; i < rows; ++i) {
        const int32_t* old = before + i * k;
        for (int64_t c = 1; c < k && ids[i * k + c] < rows; ++c) {
            fresh[i * k + c] = std::find(old + 1, old + k, ids[i * k + c]) == old + k;
            if (held[i] < width) link(i, ids[i * k + c], fresh[i * k + c]);
        }
    }
    // If there is room only for some, take those on whose lists the point comes earliest.
    for (int64_t c = 1; c < k; ++c) {
        for (int64_t i = 0; i < rows; ++i) {
            const int32_t to = ids[i * k + c];
            if (to >= rows || held[to] == width) continue;
            const int32_t *begin = ids + to * k + 1, *end = ids + (to + 1) * k;
            if (std::find(begin, end, int32_t(i)) == end) link(to, int32_t(i), fresh[i * k + c]);
        }
    }
    return table;
}

template <class T>
void offer_copies(const Places<T>& places, int64_t k, int32_t* ids, T* distances) {
    for (int64_t place = 0; place < places.count; ++place) {
        for (int64_t at = places.starts[place]; at < places.starts[place + 1]; ++at) {
            const int32_t own = places.rows[at];
            T* far = distances + own * k;
            int32_t* list = ids + own * k;
            for (int64_t c = 0; c < places.near_width; ++c) {
                const T distance = places.distances[place * places.near_width + c];
                if (distance > far[k - 1]) break;
                const int32_t near = places.near[place * places.near_width + c];
                for (int64_t i = places.starts[near]; i < places.starts[near + 1]; ++i) {
                    if (!comes_before(distance, places.rows[i], far[k - 1], list[k - 1])) break;
                    if (places.rows[i] != own) offer(distance, places.rows[i], k, far, list);
                }
            }
        }
    }
}

template void offer_copies(const Places<float>&, int64_t, int32_t*, float*);
template void offer_copies(const Places<double>&, int64_t, int32_t*, double*);

}  // namespace dc2
