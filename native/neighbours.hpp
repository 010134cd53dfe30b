// Nearest neighbours among points. Part of kernels.cpp, and compiled with it once per instruction set.
#pragma once
#include "bounds.hpp"
#include "lanes.hpp"
#include "lists.hpp"

namespace dc2 {
namespace DC2_ARCH {

// Eight members side by side, column by column: the distances of one point to all of them, in the lanes' order.
// False if it stopped early because none of them can be nearer than `worst`.
template <class T, int Tail>
static inline bool eight_squared_distances(const T* x, const T* members, int64_t full, T worst, T* out) {
    typedef typename LaneTypes<T>::Eight Eight;
    Eight sum[kLanes];
    for (int l = 0; l < kLanes; ++l) sum[l] = zeros<Eight>();
    const auto folded = [&] { return ((sum[0] + sum[4]) + (sum[2] + sum[6])) + ((sum[1] + sum[5]) + (sum[3] + sum[7])); };
    int64_t next_look = kPieceChunks;
    for (int64_t c = 0; c < full; ++c) {
        for (int l = 0; l < kLanes; ++l) {
            const Eight off = load<Eight>(members + (c * kLanes + l) * kLanes) - x[c * kLanes + l];
            sum[l] = sum[l] + off * off;
        }
        if (c == next_look) {
            if (!any_at_most<T>(folded(), worst)) return false;
            next_look += kPieceChunks;
        }
    }
    for (int l = 0; l < Tail; ++l) {
        const Eight off = load<Eight>(members + (full * kLanes + l) * kLanes) - x[full * kLanes + l];
        sum[l] = sum[l] + off * off;
    }
    const Eight distance = folded();
    if (!any_at_most<T>(distance, worst)) return false;
    store(distance, out);
    return true;
}

// Offers the members of a group to its points from index `begin` to `end`. Members come in blocks that stay in the cache
// while they are compared with all those points. The block around a point comes first: groups in the order of a tree
// have near points there, so most others are soon seen to be too far.
template <class T, int Tail>
static void offer_group(const NeighbourLists<T>& lists, const int32_t* members, int64_t count, int64_t begin,
                        int64_t end, T* block, int64_t block_eights) {
    const int64_t width = lists.points.width, padded = padded_width(width), full = width / kLanes, k = lists.k;
    const int64_t block_size = block_eights * kLanes, blocks = (count + block_size - 1) / block_size;
    for (int64_t b = 0; b < blocks; ++b) {
        const int64_t first = (begin / block_size + b) % blocks * block_size;
        const int64_t size = count - first < block_size ? count - first : block_size;
        const int64_t eights = (size + kLanes - 1) / kLanes;
        for (int64_t m = 0; m < size; ++m) {
            const T* point = lists.points.data + members[first + m] * padded;
            T* to = block + m / kLanes * kLanes * width + m % kLanes;
            for (int64_t j = 0; j < width; ++j) to[j * kLanes] = point[j];
        }
        for (int64_t q = begin; q < end; ++q) {
            const int32_t own = members[q];
            const T* x = lists.points.data + own * padded;
            T* distances = lists.distances + own * k;
            int32_t* ids = lists.ids + own * k;
            int64_t eight = q >= first && q < first + size ? (q - first) / kLanes : 0;
            for (int64_t e = 0; e < eights; ++e, eight = eight + 1 == eights ? 0 : eight + 1) {
                const int64_t m = eight * kLanes;
                T found[kLanes];
                if (!eight_squared_distances<T, Tail>(x, block + m * width, full, distances[k - 1], found)) continue;
                const int64_t stop = size - m < kLanes ? size - m : kLanes;
                for (int64_t i = 0; i < stop; ++i) {
                    const int32_t id = members[first + m + i];
                    if (found[i] <= distances[k - 1] && id != own) offer(found[i], id, k, distances, ids);
                }
            }
        }
    }
}

template <class T, int Tail>
static void offer_groups_of(const NeighbourLists<T>& lists, const int32_t* order, const int64_t* starts, int64_t begin,
                            int64_t end) {
    constexpr int64_t kBlockBytes = 24 << 10, kQueries = 256;
    const int64_t width = lists.points.width;
    const int64_t fitting = kBlockBytes / (width * kLanes * int64_t(sizeof(T)));
    const int64_t block_eights = fitting < 8 ? 8 : fitting;
    LineBuffer<T> block(block_eights * kLanes * width);
    int64_t group = 0;
    while (begin < end) {
        while (starts[group + 1] <= begin) ++group;
        const int64_t group_end = starts[group + 1] < end ? starts[group + 1] : end;
        const int64_t stop = group_end < begin + kQueries ? group_end : begin + kQueries;
        offer_group<T, Tail>(lists, order + starts[group], starts[group + 1] - starts[group], begin - starts[group],
                             stop - starts[group], block.data(), block_eights);
        begin = stop;
    }
}

template <class T>
static void offer_groups(const NeighbourLists<T>& lists, const int32_t* order, const int64_t* starts, int64_t begin,
                         int64_t end) {
    switch (lists.points.width % kLanes) {
        case 0: return offer_groups_of<T, 0>(lists, order, starts, begin, end);
        case 1: return offer_groups_of<T, 1>(lists, order, starts, begin, end);
        case 2: return offer_groups_of<T, 2>(lists, order, starts, begin, end);
        case 3: return offer_groups_of<T, 3>(lists, order, starts, begin, end);
        case 4: return offer_groups_of<T, 4>(lists, order, starts, begin, end);
        case 5: return offer_groups_of<T, 5>(lists, order, starts, begin, end);
        case 6: return offer_groups_of<T, 6>(lists, order, starts, begin, end);
        default: return offer_groups_of<T, 7>(lists, order, starts, begin, end);
    }
}

// Offers each point the links of its links if at least one of the two links is fresh.
template <class T, int Chunks>
static void offer_links_of(const NeighbourLists<T>& lists, const Links& links, const int32_t* queries, int64_t count) {
    const int64_t padded = padded_width(lists.points.width), chunks = padded / kLanes, k = lists.k, width = links.width;
    LineBuffer<int32_t> seen(lists.points.rows), waiting((width + 1) * width), squares((width + 1) * width);
    const auto prefetch_links = [&](int32_t id) {
        prefetch(links.ids + id * width, width);
        prefetch(links.fresh + id * width, width);
    };
    const auto point = [&](int32_t id) { return lists.points.data + id * padded; };
    Bounds<T> bounds(*links.rough);
    for (int64_t q = 0; q < count; ++q) {
        const int32_t own = queries[q], mark = int32_t(q + 1);
        const T* x = point(own);
        T* distances = lists.distances + own * k;
        int32_t *ids = lists.ids + own * k, *found = waiting.data();
        const float* least = links.least == nullptr ? nullptr : links.least + own * lists.points.rows;
        int64_t held = 0;
        const auto consider = [&](int32_t id) {
            if (seen.data()[id] == mark) return;
            seen.data()[id] = mark;
            if (least == nullptr || !(T(least[id]) > distances[k - 1])) found[held++] = id;
        };
        seen.data()[own] = mark;
        for (int64_t i = 1; i < k && uint32_t(ids[i]) < lists.points.rows; ++i) seen.data()[ids[i]] = mark;
        const int32_t* near = links.ids + own * width;
        const uint8_t* near_fresh = links.fresh + own * width;
        for (int64_t a = 0; a < width && near[a] >= 0; ++a) prefetch_links(near[a]);
        for (int64_t a = 0; a < width && near[a] >= 0; ++a) {
            if (near_fresh[a]) consider(near[a]);
            const int32_t* far = links.ids + near[a] * width;
            const uint8_t* far_fresh = links.fresh + near[a] * width;
            for (int64_t b = 0; b < width && far[b] >= 0; ++b)
                if (near_fresh[a] | far_fresh[b]) consider(far[b]);
        }
        const auto measure = [&](const int32_t* some, int64_t left) {
            int32_t four[4];
            for (int64_t i = 0; i < left; i += 4) {
                for (int64_t j = 0; j < 4; ++j) four[j] = some[i + j < left ? i + j : i];
                const T* const points[4] = {point(four[0]), point(four[1]), point(four[2]), point(four[3])};
                T far[4];
                if (!four_within<T, Chunks>(x, points, chunks, distances[k - 1], far)) continue;
                for (int64_t j = 0; j < 4 && i + j < left; ++j)
                    if (far[j] <= distances[k - 1]) offer(far[j], four[j], k, distances, ids);
            }
        };
        if (bounds.known()) {
            bounds.begin_at(own);
            offer_near(bounds, {found, squares.data(), held}, k, distances[k - 1], measure);
        } else {
            measure(found, held);
        }
    }
}

}  // namespace DC2_ARCH
}  // namespace dc2
