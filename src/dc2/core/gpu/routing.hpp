// Rows are routed through the tree and search for their centres.
#pragma once
#include "blocks.hpp"

namespace dc2 {
namespace device {

// Every field of a job has eight bytes, and Python writes them in this order.
template <class T>
struct ScanJob {
    Rows<T> X;
    Index rows;
    Tree<T> tree;
    Centres<T> centres;
    const Entry* order;   // IN (rows) or null: the order in which rows are worked on
    const Id* leaves;     // IN (rows) or null: where searches start, if rows have been routed already
    Id* ids;              // OUT (rows)
    double* squares;      // OUT (rows) or null: squared distances to the centres, in float64
    Hash* reach;          // OUT (signatures) or null: raised to the largest squared distance of a row that searched
    Id* near_ids;         // OUT (rows, few) or null
    T* near_distances;    // OUT (rows, few)
    Index few;
    T* held_distances;    // (rows worked on at a time, held_width): what each holds while it searches
    Id* held_ids;
    Index held_width;     // the larger of `centres.beam` and `few`
    Hash* bad;            // OUT (1): the number of rows that are not finite is added to it
    Bounds<T> bounds;
};

// Eight threads per row: route it, search, write what is asked for. `by_bounds`: whether there are rough products.
template <class T, bool by_bounds = false>
DC2_FUNCTION void scan_rows(const ScanJob<T>& job, const Block& block) {
    const Index per_block = block.threads / kLanes;
    DC2_ROW_THREADS(block, t) {
        for (Index at = block.number * per_block + t; at < job.rows; at += block.blocks * per_block) {
            const Index row = job.order == nullptr ? at : job.order[at].row;
            const Row<T> x(job.X, row);
            bool finite = true;
            Id id = job.leaves == nullptr ? route(x, job.tree, finite) : job.leaves[row];
            if (job.centres.neighbor_lists != nullptr) {
                const Index slot = (block.number * per_block + t) * job.held_width;
                const T* products = by_bounds ? job.bounds.products + row * job.bounds.signatures : nullptr;
                Held<T> held = {job.held_distances + slot, job.held_ids + slot, job.centres.beam};
                Index count = search<by_bounds>(x, id, job.centres, job.bounds, products, held);
                id = held.number(0);
                // Distances are not negative, so their bits are in the same order.
                if (job.reach != nullptr && is_first_lane() && held.distances[0] > T(0) &&
                    bits_of(double(held.distances[0])) > job.reach[id])
                    raise_to(job.reach + id, bits_of(double(held.distances[0])));
                if (job.near_ids != nullptr && job.few > job.centres.beam) {
                    held.width = job.few;
                    count = search<by_bounds>(x, id, job.centres, job.bounds, products, held);
                }
                if (job.near_ids != nullptr && is_first_lane()) {
                    for (Index i = 0; i < job.few; ++i) {
                        job.near_ids[row * job.few + i] = held.number(i < count ? i : count - 1);
                        job.near_distances[row * job.few + i] = held.distances[i < count ? i : count - 1];
                    }
                }
            }
            const double square =
                job.squares == nullptr ? 0.0 : wide_squared_distance(x, job.centres.points + id * job.centres.step);
            if (is_first_lane()) {
                job.ids[row] = id;
                if (job.squares != nullptr) job.squares[row] = square;
                if (!finite) add_to(job.bad, Hash(1));
            }
        }
    }
}

// --- the way through the tree, one thread per row --------------------------------------------------------------------

// A narrow row is held by one thread: eight would spend most of their time exchanging values.
#if defined(DC2_WIDTH)
constexpr int kMostNarrow = DC2_WIDTH;
#else
constexpr int kMostNarrow = 64;
#endif

template <class T>
struct RouteJob {
    Rows<T> X;
    Index rows;
    const T* directions;      // IN (nodes, step): columns in their order, then zeros
    const T* thresholds;      // IN (nodes)
    const Id* children;       // IN (nodes, 2)
    Index nodes, step;
    Index near_nodes;         // how many of the first nodes are in shared memory
    const T* centres;         // IN (leaves, step), or null where no squares are asked for
    Id* ids;                  // OUT (rows)
    double* squares;          // OUT (rows) or null
    Hash* bad;                // OUT (1), added to
};

template <class T>
struct alignas(16) Sixteen {
    T part[16 / sizeof(T)];
};

// Calls work(column, value) for the columns of a point; reads sixteen bytes at a time.
template <class T, class Work>
DC2_FUNCTION void for_columns(const T* point, int width, Work&& work) {
    constexpr int kParts = 16 / sizeof(T);
    const Sixteen<T>* from = reinterpret_cast<const Sixteen<T>*>(point);
    DC2_UNROLL((kMostNarrow + kParts - 1) / kParts)
    for (int q = 0; q * kParts < width; ++q) {
        const Sixteen<T> read = from[q];
        DC2_UNROLL(kParts)
        for (int i = 0; i < kParts; ++i)
            if (q * kParts + i < width) work(q * kParts + i, read.part[i]);
    }
}

template <class T>
DC2_FUNCTION T folded(const T (&l)[kLanes]) {
    return ((l[0] + l[4]) + (l[2] + l[6])) + ((l[1] + l[5]) + (l[3] + l[7]));
}

template <class T>
DC2_FUNCTION T narrow_dot(const T (&x)[kMostNarrow], const T* point, int width) {
    T lane[kLanes] = {};
    for_columns(point, width, [&](int j, T value) { lane[j % kLanes] = lane[j % kLanes] + x[j] * value; });
    return folded(lane);
}

template <class T>
DC2_FUNCTION double narrow_square(const T (&x)[kMostNarrow], const T* point, int width) {
    double lane[kLanes] = {};
    for_columns(point, width, [&](int j, T value) {
        const double off = double(x[j]) - double(value);
        lane[j % kLanes] = lane[j % kLanes] + off * off;
    });
    return folded(lane);
}

// Nodes in shared memory.
template <class T>
struct NearNodes {
    T* directions;
    T* thresholds;
    Id* children;
    int count;
};

template <class T>
DC2_FUNCTION void route_row(const RouteJob<T>& job, const T (&x)[kMostNarrow], Index row, const NearNodes<T>& near) {
    const int width = width_of(job.X), step = int(job.step);
    bool finite = true;
    Id node = 0;
    if (job.nodes == 0) {
        finite = narrow_dot(x, near.directions, width) == T(0);
        node = ~0;
    }
    while (node >= 0) {
        if (node < near.count) {
            const T projection = narrow_dot(x, near.directions + node * step, width);
            if (node == 0) finite = is_finite(projection);
            node = near.children[2 * node + (projection <= near.thresholds[node] ? 0 : 1)];
        } else {
            const T projection = narrow_dot(x, job.directions + Index(node) * step, width);
            node = job.children[2 * node + (projection <= job.thresholds[node] ? 0 : 1)];
        }
    }
    job.ids[row] = ~node;
    if (job.squares != nullptr) job.squares[row] = narrow_square(x, job.centres + Index(~node) * step, width);
    if (!finite) add_to(job.bad, Hash(1));
}

// `memory`: shared memory for the directions, thresholds and children of job.near_nodes nodes, and one row per thread.
template <class T>
DC2_FUNCTION void route_rows(const RouteJob<T>& job, const Block& block, T* memory) {
    const int width = width_of(job.X), own_step = width | 1;  // odd: threads read from different banks
    const int count_near = int(job.near_nodes);
    T* const thresholds = memory + count_near * job.step;
    T* const rows = thresholds + count_near;
    const NearNodes<T> near = {memory, thresholds, reinterpret_cast<Id*>(rows + block.threads * own_step), count_near};
    const bool together = job.X.column_step == 1 && job.X.row_step == width;
    DC2_THREADS(block, t) {
        for (int i = t; i < count_near * job.step; i += block.threads) near.directions[i] = job.directions[i];
        for (int i = t; i < count_near && i < job.nodes; i += block.threads) near.thresholds[i] = job.thresholds[i];
        for (int i = t; i < 2 * count_near && i < 2 * job.nodes; i += block.threads) near.children[i] = job.children[i];
    }
    DC2_BARRIER();
    // Every thirty-two threads fetch their own rows and wait for no others: while some read, others compute.
    for (Index base = block.number * block.threads; base < job.rows; base += block.blocks * block.threads) {
        const Index left = job.rows - base;
        const int count = int(left < block.threads ? left : block.threads);
        if (together) {
            DC2_THREADS(block, t) {
                const int first = t / kWarp * kWarp, mine = count - first < kWarp ? count - first : kWarp;
                const T* from = job.X.data + (base + first) * width;
                T* own = rows + first * own_step;
                for (int i = t % kWarp; i < mine * width; i += kWarp) own[i / width * own_step + i % width] = from[i];
            }
            DC2_WARP_BARRIER();
        }
        DC2_THREADS(block, t) {
            if (t < count) {
                T x[kMostNarrow];
                const T* from = together ? rows + t * own_step : job.X.data + (base + t) * job.X.row_step;
                const Index column_step = together ? 1 : job.X.column_step;
                DC2_UNROLL(kMostNarrow)
                for (int j = 0; j < width; ++j) x[j] = from[j * column_step];
                route_row(job, x, base + t, near);
            }
        }
        DC2_WARP_BARRIER();
    }
}

}  // namespace device
}  // namespace dc2
