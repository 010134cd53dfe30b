// Adds rows up: first puts them in the order of their ids, so rows with the same id are added together.
#pragma once
#include "blocks.hpp"

namespace dc2 {
namespace device {

// --- the order of rows -----------------------------------------------------------------------------------------------

struct SortJob {
    const Id* ids;       // IN (rows)
    Index rows, tile;    // a tile has at most 2^16 rows
    Index bins;          // ids are below
    Entry* order;        // OUT (rows): rows of each tile, by id
    Hash* counts;        // OUT (bins) or null: the number of rows of each id is added to it
    double* weights;     // OUT (2, bins, columns): the same, added as sums on the grids of weights
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

// One block per tile of rows: puts them in the order of their ids. Chance decides which of equal ids comes first, so
// only exact sums may follow. `bins`, `sums` and `places`: shared memory for job.bins, 2 * threads and job.tile numbers.
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
    DC2_THREADS(block, t) {  // neighbours are written together
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
    Index columns;           // how many `add_up` adds: all, or all and the squares as one more
};

// What is added up: a column of a row, or its squared distance, which follows the last column.
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

// A number in whole steps of its grid, read from the last bits of its sum with the grid's magic number. Adding whole
// numbers is faster than rounding and adding.
struct Steps {
    const double magic;
    Hash sum;
    unsigned wild;  // bits set only in numbers too large for this
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

// Sums of one column over a run of rows; they are exact, so it does not matter which thread adds first.
template <class T>
DC2_FUNCTION void add_up_column(const SumJob<T>& job, Index run, int column) {
    constexpr int kAtOnce = 8;  // rows read before the first is added
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

// Thirty-two threads take as many neighbouring columns, or as many as there are: what they read is contiguous.
template <class T>
DC2_FUNCTION void add_up(const SumJob<T>& job, const Block& block) {
    const Index columns = job.columns, runs = (job.rows + job.run - 1) / job.run;
    DC2_THREADS(block, t) {
        for (Index at = block.number * block.threads + t; at < runs * columns; at += block.blocks * block.threads)
            add_up_column(job, at / columns, int(at % columns));
    }
}

// Sums of squared distances and weights, and the number of rows, over a run of rows.
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

// One thread per run of rows.
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
    Hash* bad;               // OUT (1): the number of sums that are not finite is added to it
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

}  // namespace device
}  // namespace dc2
