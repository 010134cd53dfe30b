// What a GPU computes for a row, in C++ that any compiler accepts: the way through a tree and the search for
// the nearest centres. On a GPU eight threads hold the eight lanes of a row; elsewhere one thread holds all of them. Both
// do the same additions in the same order: truth is src/dc2/core/reference.py.
#pragma once
#include "numbers.hpp"

namespace dc2 {
namespace device {

// --- rows and points -----------------------------------------------------------------------------------------------

// Points (directions, centres) are stored in groups of four chunks, each group lane by lane: a thread reads its part of
// four chunks at once. Zeros follow the last column.
DC2_FUNCTION Index place_in_point(Index column) {
    const Index chunk = column / kLanes, lane = column % kLanes;
    return chunk / kGroup * kFours + lane * kGroup + chunk % kGroup;
}

template <class T>
struct FourChunks {
    Lanes<T> chunk[kGroup];
};

template <class T>
DC2_FUNCTION FourChunks<T> four_chunks(const T* point, int group) {
    FourChunks<T> four;
#if defined(__CUDACC__)
    struct alignas(16) Sixteen {
        T part[16 / sizeof(T)];
    };
    constexpr int kParts = 16 / sizeof(T);
    const Sixteen* from = reinterpret_cast<const Sixteen*>(point + group * kFours + own_lane(0) * kGroup);
    for (int i = 0; i < kGroup / kParts; ++i) {
        const Sixteen read = from[i];
        for (int j = 0; j < kParts; ++j) four.chunk[i * kParts + j].value[0] = read.part[j];
    }
#else
    for (int c = 0; c < kGroup; ++c)
        for (int l = 0; l < kLanes; ++l) four.chunk[c].value[l] = point[group * kFours + l * kGroup + c];
#endif
    return four;
}

// A matrix of any layout, steps in elements.
template <class T>
struct Rows {
    const T* data;
    Index row_step, column_step;
    Index width;
};

// How many chunks of eight columns there are. Code for a GPU is compiled for one width: loops are unrolled, and a row
// is held in registers. A row too wide for that is read from memory each time.
#if defined(DC2_WIDTH)
constexpr int kWidth = DC2_WIDTH;
constexpr int kChunks = (kWidth + kLanes - 1) / kLanes;
constexpr int kGroups = (kChunks + kGroup - 1) / kGroup;
constexpr bool kHeld = kChunks * sizeof(DC2_REAL) <= 96 * 4;
constexpr int kUnrolled = kHeld ? kGroups : 1;
template <class T>
DC2_FUNCTION int width_of(const Rows<T>&) { return kWidth; }
DC2_FUNCTION constexpr int chunks_of(int) { return kChunks; }
#else
constexpr int kGroups = 1, kUnrolled = 1;
constexpr bool kHeld = false;
template <class T>
DC2_FUNCTION int width_of(const Rows<T>& rows) { return int(rows.width); }
DC2_FUNCTION int chunks_of(int width) { return (width + kLanes - 1) / kLanes; }
#endif

template <class T>
DC2_FUNCTION Lanes<T> chunk_of_row(const Rows<T>& rows, Index row, int chunk) {
    Lanes<T> lanes;
    const T* from = rows.data + row * rows.row_step;
    for (int i = 0; i < kHeldLanes; ++i) {
        const int column = chunk * kLanes + own_lane(i);
        lanes.value[i] = column < width_of(rows) ? from[column * rows.column_step] : T(0);
    }
    return lanes;
}

template <class T>
class Row {
public:
    DC2_FUNCTION Row(const Rows<T>& rows, Index row) : rows_(rows), row_(row) {
        if (kHeld) {
            DC2_UNROLL(kGroups * kGroup)
            for (int c = 0; c < kGroups * kGroup; ++c)
                if (c < chunks_of(width_of(rows))) held_[c] = chunk_of_row(rows, row, c);
        }
    }
    DC2_FUNCTION Lanes<T> chunk(int c) const { return kHeld ? held_[c] : chunk_of_row(rows_, row_, c); }
    DC2_FUNCTION int chunks() const { return chunks_of(width_of(rows_)); }

private:
    const Rows<T>& rows_;
    const Index row_;
    Lanes<T> held_[kHeld ? kGroups * kGroup : 1];
};

#define DC2_FOR_CHUNKS(row, g, c)                                       \
    DC2_UNROLL(kUnrolled) for (int g = 0; g * kGroup < (row).chunks(); ++g) \
        DC2_UNROLL(kGroup) for (int c = 0; c < kGroup; ++c) if (g * kGroup + c < (row).chunks())

template <class T>
DC2_FUNCTION T dot(const Row<T>& x, const T* point) {
    Lanes<T> sum = zeros<T>();
    FourChunks<T> four;
    DC2_FOR_CHUNKS(x, g, c) {
        if (c == 0) four = four_chunks(point, g);
        add_product(sum, x.chunk(g * kGroup + c), four.chunk[c]);
    }
    return fold(sum);
}

template <class T>
DC2_FUNCTION T squared_distance(const Row<T>& x, const T* point) {
    Lanes<T> sum = zeros<T>();
    FourChunks<T> four;
    DC2_FOR_CHUNKS(x, g, c) {
        if (c == 0) four = four_chunks(point, g);
        add_square_of_difference(sum, x.chunk(g * kGroup + c), four.chunk[c]);
    }
    return fold(sum);
}

template <class T>
DC2_FUNCTION T squared_length(const Row<T>& x) {
    Lanes<T> sum = zeros<T>();
    DC2_FOR_CHUNKS(x, g, c) add_product(sum, x.chunk(g * kGroup + c), x.chunk(g * kGroup + c));
    return fold(sum);
}

// The same in float64, whatever the type of the row; this is what is added up.
template <class T>
DC2_FUNCTION double wide_squared_distance(const Row<T>& x, const T* point) {
    Lanes<double> sum = zeros<double>();
    FourChunks<T> four;
    DC2_FOR_CHUNKS(x, g, c) {
        if (c == 0) four = four_chunks(point, g);
        const Lanes<T> chunk = x.chunk(g * kGroup + c);
        for (int i = 0; i < kHeldLanes; ++i) {
            const double off = double(chunk.value[i]) - double(four.chunk[c].value[i]);
            sum.value[i] = sum.value[i] + off * off;
        }
    }
    return fold(sum);
}

// --- where a row goes ----------------------------------------------------------------------------------------------

template <class T>
struct Tree {
    const T* directions;    // (nodes, step), or one point of zeros where there are no nodes
    const T* thresholds;    // (nodes)
    const Id* children;     // (nodes, 2), ~leaf where negative
    Index nodes;
    Index step;             // from point to point
};

// The leaf of a row, and whether the row is finite: the root's projection is finite exactly if the row is.
template <class T>
DC2_FUNCTION Id route(const Row<T>& x, const Tree<T>& tree, bool& finite) {
    T projection = dot(x, tree.directions);
    if (tree.nodes == 0) {
        finite = projection == T(0);
        return 0;
    }
    finite = is_finite(projection);
    Id node = tree.children[projection <= tree.thresholds[0] ? 0 : 1];
    while (node >= 0) {
        projection = dot(x, tree.directions + node * tree.step);
        node = tree.children[2 * Index(node) + (projection <= tree.thresholds[node] ? 0 : 1)];
    }
    return ~node;
}

template <class T>
struct Centres {
    const T* points;        // (signatures, step)
    const Id* neighbor_lists;  // (signatures, candidate_step) or null: candidates, the first again to fill up fours
    const T* gaps;          // (signatures, candidate_step): distance from the first candidate to each
    Index candidates, candidate_step;
    Index step;
    Index beam;             // candidates that a row keeps while it searches
};

// Rough products of rows with centres, from a matrix product that may round in any way, and the bounds that they prove.
// With c' = c - middle, the squared distance of x and c is |x - middle|^2 + |c'|^2 + 2 middle.c' - 2 x.c'.
template <class T>
struct Bounds {
    const T* products;    // (rows, signatures) or null: x.c', each off by 2^-8 |x| |c'| at most
    const T* middle;      // a point
    const T* facts;       // (3, signatures): |c'|^2 + 2 middle.c'; 2^-7 |c'|; 2^-15 (|c'|^2 + 2 |middle| |c'|)
    Index signatures;
};

// Whether a centre may be as near as some distance. False only if the distance, as `squared_distance` rounds it, is
// certainly larger. `about`: |x - middle|^2 less 2^-15 of it, `length`: |x|. Extreme numbers give true.
template <class T>
DC2_FUNCTION bool may_be_nearer(const Bounds<T>& bounds, const T* products, Id centre, T about, T length, T distance) {
    const T* facts = bounds.facts + centre;
    const T least = about + facts[0] - T(2) * products[centre] - facts[bounds.signatures] * length -
                    facts[2 * bounds.signatures];
    return !(least > T(1e-30) && least < T(1e38) && least * T(1 - 0x1p-16) > distance);
}

#if defined(__CUDACC__)
// The numbers for which a test holds, as bits: each thread of a row tests one of eight.
template <class Test>
DC2_FUNCTION unsigned which_of_eight(Test&& test) {
    const bool holds = test(int(threadIdx.x % kLanes));
    return (__ballot_sync(lanes_of_row(), holds) & lanes_of_row()) >> (threadIdx.x & 24u);
}
#else
template <class Test>
DC2_FUNCTION unsigned which_of_eight(Test&& test) {
    unsigned bits = 0;
    for (int i = 0; i < kLanes; ++i) bits |= unsigned(test(i)) << i;
    return bits;
}
#endif

// What a row holds while it searches: the nearest centres tried so far, by distance and then by number. Numbers of those
// whose lists were tried are stored as ~number. The first of a row's threads writes, all of them read.
template <class T>
struct Held {
    T* distances;    // (width)
    Id* ids;         // (width)
    Index width;

    DC2_FUNCTION Id number(Index place) const { return ids[place] < 0 ? ~ids[place] : ids[place]; }
    DC2_FUNCTION bool holds(Id id, Index count) const {
        for (Index place = 0; place < count; ++place)
            if (number(place) == id) return true;
        return false;
    }
};

// Inserts a centre in order unless it is held already or comes after all; returns the first index that has changed.
template <class T>
DC2_FUNCTION Index offer(const Held<T>& held, Index& count, T distance, Id id) {
    Index place = count;
    while (place > 0 && (distance < held.distances[place - 1] ||
                         (distance == held.distances[place - 1] && id < held.number(place - 1))))
        --place;
    if (place == held.width || (place > 0 && held.number(place - 1) == id)) return held.width;
    if (count < held.width) ++count;
    lanes_meet();  // all have read
    if (is_first_lane()) {
        for (Index i = count - 1; i > place; --i) {
            held.distances[i] = held.distances[i - 1];
            held.ids[i] = held.ids[i - 1];
        }
        held.distances[place] = distance;
        held.ids[place] = id;
    }
    lanes_meet();  // it is written
    return place;
}

// The nearest centres that a row finds: it tries the list of the nearest one held whose list was not tried yet, until
// there is none. Returns how many it holds. A centre p on the list of c is at least as far from x as |p - c| - |x - c|,
// and lists are sorted by |p - c|. By bounds, a distance is computed only if the centre may be near enough.
template <bool by_bounds, class T>
DC2_FUNCTION Index search(const Row<T>& x, Id start, const Centres<T>& centres, const Bounds<T>& bounds,
                          const T* products, const Held<T>& held) {
    T about = T(0), length = T(0);
    if (by_bounds) {
        about = squared_distance(x, bounds.middle) * T(1 - 0x1p-15);
        length = root(squared_length(x));
    }
    const T infinity = T(1) / T(0);
    Index count = 0, next = 0;
    const T to_start = squared_distance(x, centres.points + start * centres.step);
    offer(held, count, to_start, start);
    T worst = held.width == 1 ? to_start : infinity;
    while (next < count) {
        const Index place = next++;
        const Id at = held.ids[place];
        if (at < 0) continue;
        const T distance = held.distances[place];
        lanes_meet();
        if (is_first_lane()) held.ids[place] = ~at;
        lanes_meet();
        T reach = (root(distance) + root(worst)) * T(1.001);
        const auto try_one = [&](T found, Id id) {
            const Index changed = offer(held, count, found, id);
            next = changed < next ? changed : next;
            if (count == held.width) worst = held.distances[held.width - 1];
            reach = (root(distance) + root(worst)) * T(1.001);
        };
        const Id* list = centres.neighbor_lists + at * centres.candidate_step;
        const T* gaps = centres.gaps + at * centres.candidate_step;
        if (by_bounds) {
            for (Index k = 0; k < centres.candidates && !(gaps[k] > reach); k += kLanes) {
                const bool are_eight = k + kGroup < centres.candidates && !(gaps[k + kGroup] > reach);
                unsigned left = which_of_eight([&](int i) {
                    return (i < kGroup || are_eight) &&
                           may_be_nearer(bounds, products, list[k + i], about, length, worst) &&
                           !held.holds(list[k + i], count);  // lists of neighbours have many members in common
                });
                for (; left != 0; left &= left - 1) {
                    const Id id = list[k + first_of(left)];
                    const T found = squared_distance(x, centres.points + id * centres.step);
                    if (found <= worst) try_one(found, id);
                }
                if (!are_eight) break;
            }
            continue;
        }
        for (Index k = 0; k < centres.candidates && !(gaps[k] > reach); k += kGroup) {
            Lanes<T> sums[kGroup];
            const T* points[kGroup];
            for (int i = 0; i < kGroup; ++i) {
                sums[i] = zeros<T>();
                points[i] = centres.points + list[k + i] * centres.step;
            }
            FourChunks<T> parts[kGroup];
            DC2_FOR_CHUNKS(x, g, c) {
                if (c == 0)
                    for (int i = 0; i < kGroup; ++i) parts[i] = four_chunks(points[i], g);
                const Lanes<T> chunk = x.chunk(g * kGroup + c);
                for (int i = 0; i < kGroup; ++i) add_square_of_difference(sums[i], chunk, parts[i].chunk[c]);
            }
            const FourSums<T> four = fold_four(sums);
            for (unsigned left = which_within(four, worst); left != 0; left &= left - 1) {
                const int bit = first_of(left);
                const T found = sum_at(four, bit);
                if (found <= worst) try_one(found, list[k + bit / 2]);
            }
        }
    }
    return count;
}

}  // namespace device
}  // namespace dc2
