// The work of a block of threads. On a card a block is real; elsewhere its threads run one after the other, phase by
// phase, which is how these kernels are tested where there is no card.
#pragma once
#include "device.hpp"

namespace dc2 {
namespace device {

// Which block of how many, and how many threads it has.
struct Block {
    Index number, blocks;
    int threads;
};

#if defined(__CUDACC__)
#define DC2_THREADS(block, t) for (int t = threadIdx.x, once = 1; once; once = 0)
#define DC2_ROW_THREADS(block, t) for (int t = threadIdx.x / kLanes, once = 1; once; once = 0)
#define DC2_BARRIER() __syncthreads()
#define DC2_WARP_BARRIER() __syncwarp()
#else
#define DC2_THREADS(block, t) for (int t = 0; t < (block).threads; ++t)
#define DC2_ROW_THREADS(block, t) for (int t = 0; t < (block).threads / kLanes; ++t)
#define DC2_BARRIER()
#define DC2_WARP_BARRIER()
#endif

constexpr int kWarp = 32;  // threads that go in step

// A row and the id it belongs to.
struct alignas(8) Entry {
    Id row, id;
};

// Every field of a job has eight bytes, and Python writes them in this order.
template <class T>
struct ScanJob {
    Rows<T> X;
    Index rows;
    Tree<T> tree;
    Centres<T> centres;
    const Entry* order;   // IN (rows) or null: the order in which rows are taken
    const Id* leaves;     // IN (rows) or null: where rows start, if they were routed before
    Id* ids;              // OUT (rows)
    double* squares;      // OUT (rows) or null: squared distances to the centres, in float64
    Id* near_ids;         // OUT (rows, few) or null
    T* near_distances;    // OUT (rows, few)
    Index few;
    Hash* bad;            // OUT (1): rows that are not finite, added to it
    Bounds<T> bounds;
};

// Eight threads to a row: route it, walk, write what is asked for. `by_bounds`: whether there are rough products.
template <class T, bool by_bounds = false>
DC2_FUNCTION void scan_rows(const ScanJob<T>& job, const Block& block) {
    const Index per_block = block.threads / kLanes;
    DC2_ROW_THREADS(block, t) {
        for (Index at = block.number * per_block + t; at < job.rows; at += block.blocks * per_block) {
            const Index row = job.order == nullptr ? at : job.order[at].row;
            const Row<T> x(job.X, row);
            bool finite = true;
            Id id = job.leaves == nullptr ? route(x, job.tree, finite) : job.leaves[row];
            if (by_bounds)
                id = walk_by_bounds(x, id, job.centres, job.bounds, job.bounds.products + row * job.bounds.signatures);
            else if (job.centres.shortlist != nullptr)
                id = walk(x, id, job.centres);
            if (job.near_ids != nullptr)
                nearest_few(x, id, job.centres, job.few, job.near_ids + row * job.few,
                            job.near_distances + row * job.few);
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

// --- the way through the tree, one thread to a row -------------------------------------------------------------------

// Narrow rows are held by one thread: eight threads would spend most of their time on talking to each other.
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
    Index near_nodes;         // so many of the first nodes stand in shared memory
    const T* centres;         // IN (leaves, step), or null where no squares are asked for
    Id* ids;                  // OUT (rows)
    double* squares;          // OUT (rows) or null
    Hash* bad;                // OUT (1), added to
};

template <class T>
struct alignas(16) Sixteen {
    T part[16 / sizeof(T)];
};

// Calls work(column, value) for the columns of a point, sixteen bytes of which are read at once.
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

// `memory`: shared, for the directions, thresholds and children of job.near_nodes nodes and a row of each thread.
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
    // Each thirty-two threads fetch their own rows and wait for nobody else: while some read, others compute.
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

// --- the order of rows -----------------------------------------------------------------------------------------------

struct SortJob {
    const Id* ids;       // IN (rows)
    Index rows, tile;    // a tile has at most 2^16 rows
    Index bins;          // ids are below
    Entry* order;        // OUT (rows): rows of each tile, by id
    Hash* counts;        // OUT (bins) or null: rows of each id, added to
    double* weights;     // OUT (2, bins, columns): the same as sums on the grids of weights, added to
    const double* magic; // IN (2, columns): of these grids
    Index columns;       // from id to id, and from the coarse grid's number to the fine one's
};

// Counts rows of a tile that weigh 1 each.
DC2_FUNCTION void count_rows(const SortJob& job, Index id, int count) {
    const double unit = on_grid(1.0, job.magic[0]), rest = on_grid(1.0 - unit, job.magic[job.columns]);
    double* weight = job.weights + id * job.columns;
    add_to(job.counts + id, Hash(count));
    add_to(weight, count * unit);
    if (rest != 0) add_to(weight + job.bins * job.columns, count * rest);
}

// One block to a tile of rows: puts them in the order of their ids. Which of equal ids comes first is left to chance,
// so only sums that are exact may follow. `bins`, `sums` and `places`: shared memory for job.bins, 2 * threads and
// job.tile numbers.
DC2_FUNCTION void sort_tile(const SortJob& job, const Block& block, int* bins, int* sums, unsigned short* places) {
    const Index first = block.number * job.tile;
    const int threads = block.threads, bins_of_all = int(job.bins), share = (bins_of_all + threads - 1) / threads;
    const int rows = int(first + job.tile < job.rows ? job.tile : job.rows - first);
    const Id* ids = job.ids + first;
    DC2_THREADS(block, t) {
        for (int bin = t; bin < bins_of_all; bin += threads) bins[bin] = 0;
    }
    DC2_BARRIER();
    DC2_THREADS(block, t) {
        DC2_UNROLL(4)
        for (int row = t; row < rows; row += threads) add_and_return_before(bins + ids[row], 1);
    }
    DC2_BARRIER();
    DC2_THREADS(block, t) {
        int sum = 0;
        for (int bin = t * share; bin < (t + 1) * share && bin < bins_of_all; ++bin) {
            sum += bins[bin];
            if (job.counts != nullptr && bins[bin] > 0) count_rows(job, bin, bins[bin]);
        }
        sums[t] = sum;
    }
    DC2_BARRIER();
    int* before = sums;
    int* after = sums + threads;
    for (int apart = 1; apart < threads; apart *= 2) {  // running sums, in steps that double
        DC2_THREADS(block, t) { after[t] = before[t] + (t >= apart ? before[t - apart] : 0); }
        DC2_BARRIER();
        int* swapped = before;
        before = after;
        after = swapped;
    }
    DC2_THREADS(block, t) {
        int begin = t == 0 ? 0 : before[t - 1];
        for (int bin = t * share; bin < (t + 1) * share && bin < bins_of_all; ++bin) {
            const int count = bins[bin];
            bins[bin] = begin;
            begin += count;
        }
    }
    DC2_BARRIER();
    DC2_THREADS(block, t) {
        DC2_UNROLL(4)
        for (int row = t; row < rows; row += threads)
            places[add_and_return_before(bins + ids[row], 1)] = (unsigned short)row;
    }
    DC2_BARRIER();
    DC2_THREADS(block, t) {  // what lies together is written together
        DC2_UNROLL(4)
        for (int place = t; place < rows; place += threads) {
            const int row = places[place];
            job.order[first + place] = {Id(first + row), ids[row]};
        }
    }
}

// --- sums --------------------------------------------------------------------------------------------------------------

template <class T>
struct SumJob {
    Rows<T> X;
    Index rows, run;         // run: how many rows a thread takes, a multiple of eight
    const T* centres;        // IN (signatures, width)
    const Entry* order;      // IN (rows)
    const double* squares;   // IN (rows)
    const double* weights;   // IN (rows) or null
    const double* magic;     // IN (2, width + 2)
    Hash* counts;            // OUT (signatures), added to
    double* totals;          // OUT (2, signatures, width + 2), added to
    Index signatures;
    Index columns;           // that `add_up` adds: all, or all and the squares as one more
};

// What is added up: a column of a row, or its squared distance, which stands behind the last column.
template <class T>
DC2_FUNCTION double addend(const SumJob<T>& job, Index row, int column) {
    if (column == width_of(job.X)) return job.squares[row];
    return double(job.X.data[row * job.X.row_step + column * job.X.column_step]);
}

template <class T>
DC2_FUNCTION double centre_of(const SumJob<T>& job, Id id, int column) {
    const int width = width_of(job.X);
    return column == width ? 0.0 : double(job.centres[Index(id) * width + column]);
}

template <class T>
DC2_FUNCTION void add_to_totals(const SumJob<T>& job, Id id, Index column, double coarse, double fine) {
    const Index columns = width_of(job.X) + 2;
    double* total = job.totals + id * columns + column;
    if (coarse != 0) add_to(total, coarse);
    if (fine != 0) add_to(total + job.signatures * columns, fine);
}

// Adds one column of rows that belong to one id, one after the other.
template <class T>
DC2_FUNCTION void add_in_turn(const SumJob<T>& job, const Entry* order, int count, int column, double centre) {
    const double coarse_magic = job.magic[column], fine_magic = job.magic[width_of(job.X) + 2 + column];
    double coarse_sum = 0, fine_sum = 0;
    for (int k = 0; k < count; ++k) {
        const Index row = order[k].row;
        const double weight = job.weights == nullptr ? 1.0 : job.weights[row];
        const double off = addend(job, row, column) - centre;
        const double coarse = on_grid(off, coarse_magic), fine = on_grid(off - coarse, fine_magic);
        coarse_sum += weight * coarse;
        fine_sum += weight * fine;
    }
    add_to_totals(job, order[0].id, column, coarse_sum, fine_sum);
}

// How many steps of its grid a number is: the sum with the grid's magic number has that in its last bits. Whole numbers
// are added faster than rounded ones.
struct Steps {
    const double magic;
    Hash sum;
    unsigned wild;  // bits that only numbers too large for this have
    DC2_FUNCTION explicit Steps(double magic_of_grid) : magic(magic_of_grid), sum(0), wild(0) {}
    DC2_FUNCTION void add(double with_magic) {
        const Hash bits = bits_of(with_magic);
        sum += bits;
        wild |= unsigned(bits >> 32) ^ unsigned(bits_of(magic) >> 32);
    }
    DC2_FUNCTION bool is_sound() const { return wild >> 20 == 0; }
    DC2_FUNCTION double total(int count) const {
        return double((long long)(sum - Hash(count) * bits_of(magic))) * (magic / 1.5 * 0x1p-52);
    }
    DC2_FUNCTION void clear() {
        sum = 0;
        wild = 0;
    }
};

// Sums of one column over a run of rows: exact, so that it does not matter who adds first.
template <class T>
DC2_FUNCTION void add_up_column(const SumJob<T>& job, Index run, int column) {
    constexpr int kAtOnce = 8;  // rows that are read before the first is added
    const int width = width_of(job.X);
    const Entry* const order = job.order + run * job.run;
    const Index left = job.rows - run * job.run;
    const int count = int(left < job.run ? left : job.run);
    Steps coarse(job.magic[column]), fine(job.magic[width + 2 + column]);
    Id held = order[0].id;
    int first = 0;
    double centre = centre_of(job, held, column);
    for (int k = 0; k < count; k += kAtOnce) {
        Entry entry[kAtOnce];
        double x[kAtOnce];
        DC2_UNROLL(kAtOnce)
        for (int i = 0; i < kAtOnce; ++i) entry[i] = order[k + i < count ? k + i : count - 1];
        DC2_UNROLL(kAtOnce)
        for (int i = 0; i < kAtOnce; ++i) x[i] = addend(job, entry[i].row, column);
        DC2_UNROLL(kAtOnce + 1)
        for (int i = 0; i <= kAtOnce; ++i) {
            const bool is_last = k + i == count;
            if (is_last || (i < kAtOnce && entry[i].id != held)) {
                if (coarse.is_sound() && fine.is_sound() && job.weights == nullptr) {
                    add_to_totals(job, held, column, coarse.total(k + i - first), fine.total(k + i - first));
                } else {
                    add_in_turn(job, order + first, k + i - first, column, centre);
                }
                if (is_last) return;
                coarse.clear();
                fine.clear();
                held = entry[i].id;
                first = k + i;
                centre = centre_of(job, held, column);
            }
            if (i == kAtOnce) break;
            const double off = x[i] - centre;
            const double with_magic = off + coarse.magic;
            coarse.add(with_magic);
            fine.add((off - (with_magic - coarse.magic)) + fine.magic);
        }
    }
}

// Thirty-two threads have as many columns, or as many as there are: what they read lies together.
template <class T>
DC2_FUNCTION void add_up(const SumJob<T>& job, const Block& block) {
    const Index columns = job.columns, runs = (job.rows + job.run - 1) / job.run;
    DC2_THREADS(block, t) {
        for (Index at = block.number * block.threads + t; at < runs * columns; at += block.blocks * block.threads)
            add_up_column(job, at / columns, int(at % columns));
    }
}

// Squared distances, weights and numbers of rows over a run of rows.
template <class T>
DC2_FUNCTION void add_squares_of(const SumJob<T>& job, Index begin, Index end) {
    const Index width = width_of(job.X), columns = width + 2;
    const double coarse_magic = job.magic[width], fine_magic = job.magic[columns + width];
    const double unit = on_grid(1.0, job.magic[width + 1]);
    const double rest = on_grid(1.0 - unit, job.magic[columns + width + 1]);
    double coarse_sum = 0, fine_sum = 0, unit_sum = 0, rest_sum = 0;
    Hash count = 0;
    for (Index k = begin; k < end; ++k) {
        const Entry entry = job.order[k];
        const double weight = job.weights == nullptr ? 1.0 : job.weights[entry.row], value = job.squares[entry.row];
        const double coarse = on_grid(value, coarse_magic), fine = on_grid(value - coarse, fine_magic);
        coarse_sum += weight * coarse;
        fine_sum += weight * fine;
        unit_sum += weight * unit;
        rest_sum += weight * rest;
        count += weight > 0;
        if (k + 1 < end && job.order[k + 1].id == entry.id) continue;
        add_to_totals(job, entry.id, width, coarse_sum, fine_sum);
        add_to_totals(job, entry.id, width + 1, unit_sum, rest_sum);
        add_to(job.counts + entry.id, count);
        coarse_sum = fine_sum = unit_sum = rest_sum = 0;
        count = 0;
    }
}

// One thread to a run of rows.
template <class T>
DC2_FUNCTION void add_squares(const SumJob<T>& job, const Block& block) {
    constexpr Index kRun = 64;
    const Index runs = (job.rows + kRun - 1) / kRun;
    DC2_THREADS(block, t) {
        for (Index run = block.number * block.threads + t; run < runs; run += block.blocks * block.threads)
            add_squares_of(job, run * kRun, (run + 1) * kRun < job.rows ? (run + 1) * kRun : job.rows);
    }
}

// --- means -------------------------------------------------------------------------------------------------------------

template <class T>
struct MeansJob {
    const double* totals;    // IN (2, signatures, width + 2)
    const T* centres;        // IN (signatures, width)
    Index signatures, width;
    T* means;                // OUT (signatures, width)
    Hash* bad;               // OUT (1): sums that are not finite, added to it
};

// The mean of each signature's rows; one without rows keeps its centre.
template <class T>
DC2_FUNCTION void find_means(const MeansJob<T>& job, const Block& block) {
    const Index columns = job.width + 2, all = job.signatures * columns;
    DC2_THREADS(block, t) {
        for (Index at = block.number * block.threads + t; at < all; at += block.blocks * block.threads) {
            const Index id = at / columns, column = at % columns, weight_at = id * columns + job.width + 1;
            const double sum = job.totals[at] + job.totals[all + at];
            if (!is_finite(sum)) add_to(job.bad, Hash(1));
            if (column >= job.width) continue;
            const double weight = job.totals[weight_at] + job.totals[all + weight_at];
            const Index own = id * job.width + column;
            job.means[own] = T(double(job.centres[own]) + sum / (weight > 0 ? weight : 1.0));
        }
    }
}

// --- hashes and scaling ------------------------------------------------------------------------------------------------

struct HashJob {
    Hash seed, start, count, limit;
    unsigned char* is_sampled;  // OUT (count) or null: whether the hash is at most the limit
    Hash* hashes;               // OUT (count) or null
};

DC2_FUNCTION void hash_rows(const HashJob& job, const Block& block) {
    DC2_THREADS(block, t) {
        for (Hash i = block.number * block.threads + t; i < job.count; i += block.blocks * block.threads) {
            const Hash hash = hash_row(job.seed, job.start + i);
            if (job.is_sampled != nullptr) job.is_sampled[i] = hash <= job.limit;
            if (job.hashes != nullptr) job.hashes[i] = hash;
        }
    }
}

template <class T>
struct ScaleJob {
    Rows<T> X;
    Index rows;
    const Index* exponents;   // IN (width) or null: values are divided by these powers of two
    const T* shift;           // IN (width) or null: then they become (x - shift) * factor
    const T* factor;          // IN (width)
    Index unit;               // whether rows are then brought to length 1
    T* out;                   // OUT (rows, width)
    Hash* zeros;              // OUT (2): rows of zeros, which have no direction, are counted; the first of them
};

template <class T>
DC2_FUNCTION void scale_rows(const ScaleJob<T>& job, const Block& block) {
    const Index per_block = block.threads / kLanes;
    const int width = width_of(job.X), chunks = chunks_of(width);
    DC2_ROW_THREADS(block, t) {
        for (Index row = block.number * per_block + t; row < job.rows; row += block.blocks * per_block) {
            const T* from = job.X.data + row * job.X.row_step;
            T* out = job.out + row * width;
            Lanes<T> most = zeros<T>(), squares = zeros<T>();
            const auto for_columns = [&](auto&& work) {
                for (int chunk = 0; chunk < chunks; ++chunk)
                    for (int i = 0; i < kHeldLanes; ++i) {
                        const int column = chunk * kLanes + own_lane(i);
                        if (column < width) work(column, i);
                    }
            };
            for_columns([&](int column, int i) {
                T x = from[column * job.X.column_step];
                if (job.exponents != nullptr) x = times_power(x, -int(job.exponents[column]));
                if (job.shift != nullptr) x = (x - job.shift[column]) * job.factor[column];
                const T size = x < 0 ? -x : x;
                most.value[i] = size > most.value[i] ? size : most.value[i];
                out[column] = x;
            });
            if (!job.unit) continue;
            const T size = largest(most);
            if (size == 0) {
                if (is_first_lane()) {
                    add_to(job.zeros, Hash(1));
                    lower_to(job.zeros + 1, Hash(row));
                }
                continue;
            }
            for_columns([&](int column, int i) {
                out[column] = out[column] / size;
                squares.value[i] = squares.value[i] + out[column] * out[column];
            });
            const T length = root(fold(squares));
            for_columns([&](int column, int) { out[column] = out[column] / length; });
        }
    }
}

}  // namespace device
}  // namespace dc2

#if defined(__CUDACC__)

using namespace dc2::device;

DC2_FUNCTION Block own_block() { return {Index(blockIdx.x), Index(gridDim.x), int(blockDim.x)}; }

extern __shared__ double shared_memory[];

constexpr bool kManyHeld = kHeld && kChunks * sizeof(DC2_REAL) > 64 * 4;  // registers for 384 threads then
extern "C" __global__ void __launch_bounds__(kManyHeld ? 384 : 256) scan_rows_kernel(const ScanJob<DC2_REAL>* job) {
    scan_rows(*job, own_block());
}
extern "C" __global__ void __launch_bounds__(kManyHeld ? 384 : 256) scan_by_bounds_kernel(const ScanJob<DC2_REAL>* job) {
    scan_rows<DC2_REAL, true>(*job, own_block());
}
#if DC2_WIDTH * DC2_REAL_BYTES <= 256
extern "C" __global__ void __launch_bounds__(DC2_WIDTH * DC2_REAL_BYTES <= 80 ? 1024 : 256)
    route_rows_kernel(const RouteJob<DC2_REAL>* job) {
    route_rows(*job, own_block(), reinterpret_cast<DC2_REAL*>(shared_memory));
}
#endif
extern "C" __global__ void sort_tile_kernel(const SortJob* job) {
    int* bins = reinterpret_cast<int*>(shared_memory);
    int* sums = bins + job->bins;
    sort_tile(*job, own_block(), bins, sums, reinterpret_cast<unsigned short*>(sums + 2 * blockDim.x));
}
extern "C" __global__ void __launch_bounds__(256, 2) add_up_kernel(const SumJob<DC2_REAL>* job) { add_up(*job, own_block()); }
extern "C" __global__ void add_squares_kernel(const SumJob<DC2_REAL>* job) { add_squares(*job, own_block()); }
extern "C" __global__ void find_means_kernel(const MeansJob<DC2_REAL>* job) { find_means(*job, own_block()); }
extern "C" __global__ void hash_rows_kernel(const HashJob* job) { hash_rows(*job, own_block()); }
extern "C" __global__ void scale_rows_kernel(const ScaleJob<DC2_REAL>* job) { scale_rows(*job, own_block()); }

#endif
