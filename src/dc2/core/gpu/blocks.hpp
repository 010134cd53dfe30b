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
#else
#define DC2_THREADS(block, t) for (int t = 0; t < (block).threads; ++t)
#define DC2_ROW_THREADS(block, t) for (int t = 0; t < (block).threads / kLanes; ++t)
#define DC2_BARRIER()
#endif

// Every field has eight bytes, and Python writes them in this order.
template <class T>
struct ScanJob {
    Rows<T> X;
    Index rows;
    Tree<T> tree;
    Centres<T> centres;
    const Id* order;      // IN (rows) or null: the order in which rows are taken
    const Id* leaves;     // IN (rows) or null: where rows start, if they were routed before
    Id* ids;              // OUT (rows)
    double* squares;      // OUT (rows) or null: squared distances to the centres, in float64
    Id* near_ids;         // OUT (rows, few) or null
    T* near_distances;    // OUT (rows, few)
    Index few;
    Hash* bad;            // OUT (1): rows that are not finite, added to it
};

// Eight threads to a row: route it, walk, write what is asked for.
template <class T>
DC2_FUNCTION void scan_rows(const ScanJob<T>& job, const Block& block) {
    const Index per_block = block.threads / kLanes;
    DC2_ROW_THREADS(block, t) {
        for (Index at = block.number * per_block + t; at < job.rows; at += block.blocks * per_block) {
            const Index row = job.order == nullptr ? at : job.order[at];
            const Row<T> x(job.X, row);
            bool finite = true;
            Id id = job.leaves == nullptr ? route(x, job.tree, finite) : job.leaves[row];
            if (job.centres.shortlist != nullptr) id = walk(x, id, job.centres);
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

struct SortJob {
    const Id* ids;       // IN (rows)
    Index rows, tile;
    Index bins;          // ids are below
    Id* order;           // OUT (rows): rows of each tile, by id
    Id* keys;            // OUT (rows): their ids
};

// One block to a tile of rows: puts them in the order of their ids. Which of equal ids comes first is left to chance,
// so only sums that are exact may follow. `bins` and `sums`: shared memory for job.bins and 2 * threads numbers.
DC2_FUNCTION void sort_tile(const SortJob& job, const Block& block, int* bins, int* sums) {
    const Index first = block.number * job.tile;
    const Index last = first + job.tile < job.rows ? first + job.tile : job.rows;
    const Index threads = block.threads, share = (job.bins + threads - 1) / threads;
    DC2_THREADS(block, t) {
        for (Index bin = t; bin < job.bins; bin += threads) bins[bin] = 0;
    }
    DC2_BARRIER();
    DC2_THREADS(block, t) {
        for (Index row = first + t; row < last; row += threads) add_and_return_before(bins + job.ids[row], 1);
    }
    DC2_BARRIER();
    DC2_THREADS(block, t) {
        int sum = 0;
        for (Index bin = t * share; bin < (t + 1) * share && bin < job.bins; ++bin) sum += bins[bin];
        sums[t] = sum;
    }
    DC2_BARRIER();
    int* before = sums;
    int* after = sums + threads;
    for (Index apart = 1; apart < threads; apart *= 2) {  // running sums, in steps that double
        DC2_THREADS(block, t) { after[t] = before[t] + (t >= apart ? before[t - apart] : 0); }
        DC2_BARRIER();
        int* swapped = before;
        before = after;
        after = swapped;
    }
    DC2_THREADS(block, t) {
        int begin = t == 0 ? 0 : before[t - 1];
        for (Index bin = t * share; bin < (t + 1) * share && bin < job.bins; ++bin) {
            const int count = bins[bin];
            bins[bin] = begin;
            begin += count;
        }
    }
    DC2_BARRIER();
    DC2_THREADS(block, t) {
        for (Index row = first + t; row < last; row += threads) {
            const Id id = job.ids[row];
            const Index place = first + add_and_return_before(bins + id, 1);
            job.order[place] = Id(row);
            job.keys[place] = id;
        }
    }
}

template <class T>
struct SumJob {
    Rows<T> X;
    Index rows, run;         // run: how many rows a thread takes
    const T* centres;        // IN (signatures, step)
    Index step;
    const Id* order;         // IN (rows) or null
    const Id* keys;          // IN (rows): ids in that order
    const double* squares;   // IN (rows)
    const double* weights;   // IN (rows) or null
    const double* magic;     // IN (2, width + 2)
    Hash* counts;            // OUT (signatures), added to
    double* totals;          // OUT (2, signatures, width + 2), added to
    Index signatures;
};

// Sums of one column over a run of rows: exact, so that it does not matter who adds first.
template <class T>
DC2_FUNCTION void add_up_run(const SumJob<T>& job, Index run, Index column) {
    constexpr int kAtOnce = 8;  // rows that are read before the first is added
    const Index width = width_of(job.X), columns = width + 2;
    const double coarse_magic = job.magic[column], fine_magic = job.magic[columns + column];
    const Index begin = run * job.run, end = begin + job.run < job.rows ? begin + job.run : job.rows;
    Id held = -1;
    double coarse_sum = 0, fine_sum = 0, centre = 0;
    Hash count = 0;
    for (Index k = begin; k <= end; k += kAtOnce) {
        Id id[kAtOnce];
        double term[kAtOnce], weight[kAtOnce];
        DC2_UNROLL(kAtOnce)
        for (int i = 0; i < kAtOnce; ++i) {
            if (k + i >= end) {
                id[i] = -1;
                continue;
            }
            const Index row = job.order == nullptr ? k + i : job.order[k + i];
            id[i] = job.keys[k + i];
            weight[i] = job.weights == nullptr ? 1.0 : job.weights[row];
            term[i] = column < width    ? double(job.X.data[row * job.X.row_step + column * job.X.column_step])
                      : column == width ? job.squares[row]
                                        : 1.0;
        }
        DC2_UNROLL(kAtOnce)
        for (int i = 0; i < kAtOnce; ++i) {
            if (id[i] != held) {
                if (held >= 0) {
                    double* total = job.totals + held * columns + column;
                    if (coarse_sum != 0) add_to(total, coarse_sum);
                    if (fine_sum != 0) add_to(total + job.signatures * columns, fine_sum);
                    if (column == width + 1 && count != 0) add_to(job.counts + held, count);
                }
                held = id[i];
                if (held < 0) return;
                coarse_sum = fine_sum = 0;
                count = 0;
                centre = column < width ? double(job.centres[held * job.step + place_in_point(column)]) : 0.0;
            }
            const double off = term[i] - centre;
            const double coarse = on_grid(off, coarse_magic);
            const double fine = on_grid(off - coarse, fine_magic);
            coarse_sum += job.weights == nullptr ? coarse : weight[i] * coarse;
            fine_sum += job.weights == nullptr ? fine : weight[i] * fine;
            count += weight[i] > 0;
        }
    }
}

// Thirty-two threads to a run of rows and as many columns: what they read lies together.
template <class T>
DC2_FUNCTION void add_up(const SumJob<T>& job, const Block& block) {
    constexpr Index kTogether = 32;
    const Index columns = width_of(job.X) + 2, wide = (columns + kTogether - 1) / kTogether * kTogether;
    const Index runs = (job.rows + job.run - 1) / job.run;
    DC2_THREADS(block, t) {
        for (Index at = block.number * block.threads + t; at < runs * wide; at += block.blocks * block.threads)
            if (at % wide < columns) add_up_run(job, at / wide, at % wide);
    }
}

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

extern "C" __global__ void __launch_bounds__(256) scan_rows_kernel(const ScanJob<DC2_REAL>* job) {
    scan_rows(*job, own_block());
}
extern "C" __global__ void sort_tile_kernel(const SortJob* job) {
    extern __shared__ int memory[];
    sort_tile(*job, own_block(), memory, memory + job->bins);
}
extern "C" __global__ void add_up_kernel(const SumJob<DC2_REAL>* job) { add_up(*job, own_block()); }
extern "C" __global__ void hash_rows_kernel(const HashJob* job) { hash_rows(*job, own_block()); }
extern "C" __global__ void scale_rows_kernel(const ScaleJob<DC2_REAL>* job) { scale_rows(*job, own_block()); }

#endif
