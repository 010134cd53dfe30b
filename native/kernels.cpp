// One file, several instruction sets: DC2_ARCH names the namespace, the build sets the flags. It uses nothing from the
// standard library that could be instantiated here and then linked into another variant.
#include "bounds.hpp"
#include "lanes.hpp"
#include "neighbours.hpp"
#include "search.hpp"
#include "turns.hpp"

#include <cmath>
#include <cstring>
#include <limits>

namespace dc2 {
namespace DC2_ARCH {

constexpr int64_t kManyLeaves = 2048, kManyBytes = 5 << 20;  // of centres, lists and sums: they do not fit into the cache

template <class T>
static inline void copy_row(const Matrix<T>& X, int64_t row, T* to) {
    const T* from = X.data + row * X.row_step;
    if (X.column_step == 1) {
        std::memcpy(to, from, X.width * sizeof(T));
    } else {
        for (int64_t j = 0; j < X.width; ++j) to[j] = from[j * X.column_step];
    }
}

// Copies a run of rows into a padded buffer; column by column if columns are contiguous.
template <class T>
static void copy_run(const Matrix<T>& X, int64_t first, int64_t count, int64_t padded, T* to) {
    if (X.column_step == 1) {
        for (int64_t r = 0; r < count; ++r) copy_row(X, first + r, to + r * padded);
        return;
    }
    for (int64_t j = 0; j < X.width; ++j) {
        const T* from = X.data + first * X.row_step + j * X.column_step;
        for (int64_t r = 0; r < count; ++r) to[r * padded + j] = from[r * X.row_step];
    }
}

// Exact sums: each term is rounded to a grid so coarse that no addition rounds, and its rest to a finer one. A term is
// one number or eight side by side.
template <bool Weighted, class V>
static inline void add_on_grid(const V& term, double weight, const double* coarse_magic, const double* fine_magic,
                               double* coarse_total, double* fine_total) {
    const V coarse_step = load<V>(coarse_magic), fine_step = load<V>(fine_magic);
    const V coarse = (term + coarse_step) - coarse_step;
    const V fine = ((term - coarse) + fine_step) - fine_step;
    store(load<V>(coarse_total) + (Weighted ? coarse * weight : coarse), coarse_total);
    store(load<V>(fine_total) + (Weighted ? fine * weight : fine), fine_total);
}

template <class T, int Chunks, bool Weighted>
static inline void add_up(const ScanJob<T>& job, const T* x, double weight, int32_t id, double own, int64_t padded) {
    const int64_t width = job.X.width, columns = width + 2, chunks = Chunks > 0 ? Chunks : padded / kLanes;
    const T* centre = job.centres + id * padded;
    double* coarse = job.totals + id * columns;
    double* fine = job.totals + (job.signatures + id) * columns;
    const int64_t count = take_count(job.counts + id);
    if (own > job.reach[id]) job.reach[id] = own;
    double last[kLanes];  // the last chunk, if it is not full
    EightDoubles squares = {};
    for (int64_t c = 0; c < chunks; ++c) {
        const int64_t j = c * kLanes;
        const EightDoubles off = load_double(x + j) - load_double(centre + j);
        squares = squares + off * off;
        if (j + kLanes <= width) {
            add_on_grid<Weighted>(off, weight, job.magic + j, job.magic + columns + j, coarse + j, fine + j);
        } else {
            store(off, last);
        }
    }
    const auto add = [&](double term, int64_t j) {
        add_on_grid<Weighted>(term, weight, job.magic + j, job.magic + columns + j, coarse + j, fine + j);
    };
    for (int64_t j = width / kLanes * kLanes; j < width; ++j) add(last[j % kLanes], j);
    add(fold<double>(squares), width);
    add(1.0, width + 1);
    give_count(job.counts + id, count + (!Weighted || weight > 0));
}

template <class T, int Chunks>
static inline void finish_row(const ScanJob<T>& job, Search<T, Chunks>& search, const T* x, int64_t row, int32_t leaf,
                              int64_t padded) {
    int32_t id = leaf;
    double own = 0.0;
    if (job.neighbor_lists != nullptr) {
        id = search.nearest(x, leaf);
        own = search.own_distance();
    }
    if (job.near_ids != nullptr)
        search.write_few(x, id, job.near_ids + row * job.few, job.near_distances + row * job.few);
    if (job.ids != nullptr) job.ids[row] = id;
    if (job.totals == nullptr) return;
    if (job.weights != nullptr) {
        add_up<T, Chunks, true>(job, x, job.weights[row], id, own, padded);
    } else {
        add_up<T, Chunks, false>(job, x, 1.0, id, own, padded);
    }
}

// Rows in the order of their leaves: not all signatures fit into the cache, but those of neighbouring leaves do.
template <class T, int Chunks>
static void finish_leaf_by_leaf(const ScanJob<T>& job, Search<T, Chunks>& search, const int32_t* leaves,
                                int64_t padded) {
    constexpr int64_t kAhead = 4;
    LineBuffer<int64_t> starts(job.nodes + 2);
    LineBuffer<int32_t> order(job.X.rows);
    LineBuffer<T> buffer(padded);
    for (int64_t row = 0; row < job.X.rows; ++row) ++starts.data()[leaves[row] + 1];
    for (int64_t leaf = 0; leaf <= job.nodes; ++leaf) starts.data()[leaf + 1] += starts.data()[leaf];
    for (int64_t row = 0; row < job.X.rows; ++row) order.data()[starts.data()[leaves[row]]++] = int32_t(row);
    for (int64_t i = 0; i < job.X.rows; ++i) {
        const int64_t row = order.data()[i];
        if (job.X.column_step == 1 && i + kAhead < job.X.rows)
            prefetch(job.X.data + order.data()[i + kAhead] * job.X.row_step, job.X.width < 64 ? job.X.width : 64);
        const T* x = job.X.data + row * job.X.row_step;
        if (!job.X.in_lanes) {
            copy_row(job.X, row, buffer.data());
            x = buffer.data();
        }
        finish_row<T, Chunks>(job, search, x, row, leaves[row], padded);
    }
}

template <class T, int Chunks>
static int64_t scan_rows(const ScanJob<T>& job) {
    constexpr int64_t kRun = 32;  // rows descend the tree side by side: their latencies overlap
    const int64_t padded = padded_width(job.X.width), chunks = padded / kLanes;
    const int64_t sum_bytes = job.totals == nullptr ? 0 : 2 * (job.X.width + 2) * int64_t(sizeof(double));
    const int64_t leaf_bytes = padded * sizeof(T) + job.candidate_step * (sizeof(T) + sizeof(int32_t)) + sum_bytes;
    // Weighted rows are added in their own order.
    const bool by_leaf = job.neighbor_lists != nullptr && job.weights == nullptr && job.nodes >= kManyLeaves && job.nodes * leaf_bytes >= kManyBytes &&
                         job.X.rows >= job.nodes / 4 && job.X.rows < (int64_t(1) << 31);
    Search<T, Chunks> search(job);
    LineBuffer<int32_t> leaves(by_leaf ? job.X.rows : 0);
    LineBuffer<T> buffer((job.X.in_lanes ? 0 : kRun) * padded), zeros(padded);
    int32_t at[kRun];
    int64_t bad = 0;
    for (int64_t first = 0; first < job.X.rows; first += kRun) {
        const int64_t count = job.X.rows - first < kRun ? job.X.rows - first : kRun;
        const T* run = buffer.data();
        int64_t step = padded;
        if (job.X.in_lanes) {
            run = job.X.data + first * job.X.row_step;
            step = job.X.row_step;
        } else {
            copy_run(job.X, first, count, padded, buffer.data());
        }
        // The root's projection is finite unless the row is not, or is too large to be worked with.
        bool active = false;
        for (int64_t r = 0; r < count; ++r) {
            if (job.nodes == 0) {
                bad += !(dot<T, Chunks>(run + r * step, zeros.data(), chunks) == 0);
                at[r] = ~0;
                continue;
            }
            const T p = dot<T, Chunks>(run + r * step, job.directions, chunks);
            bad += !std::isfinite(p);
            at[r] = job.children[p <= job.thresholds[0] ? 0 : 1];
            active |= at[r] >= 0;
        }
        while (active) {
            active = false;
            for (int64_t r = 0; r < count; ++r) {
                const int32_t node = at[r];
                if (node < 0) continue;
                const T p = dot<T, Chunks>(run + r * step, job.directions + node * padded, chunks);
                at[r] = job.children[2 * node + (p <= job.thresholds[node] ? 0 : 1)];
                active |= at[r] >= 0;
            }
        }
        for (int64_t r = 0; r < count; ++r) {
            if (by_leaf) {
                leaves.data()[first + r] = ~at[r];
            } else {
                finish_row<T, Chunks>(job, search, run + r * step, first + r, ~at[r], padded);
            }
        }
    }
    if (by_leaf) finish_leaf_by_leaf<T, Chunks>(job, search, leaves.data(), padded);
    return bad;
}

template <class T, int Chunks>
static void project_rows(const Matrix<T>& X, const uint32_t* rows, int64_t count, const T* v, T* out) {
    const int64_t padded = padded_width(X.width), chunks = padded / kLanes;
    LineBuffer<T> buffer(padded);
    for (int64_t i = 0; i < count; ++i) {
        const T* x = X.data + rows[i] * X.row_step;
        if (!X.in_lanes) {
            copy_row(X, rows[i], buffer.data());
            x = buffer.data();
        }
        out[i] = dot<T, Chunks>(x, v, chunks);
    }
}

// Narrow rows, up to 32 columns, get loops of known length.
#define DC2_BY_CHUNKS(call, width, ...)                        \
    switch (padded_width(width) / kLanes) {                    \
        case 1: return call<T, 1>(__VA_ARGS__);                \
        case 2: return call<T, 2>(__VA_ARGS__);                \
        case 3: return call<T, 3>(__VA_ARGS__);                \
        case 4: return call<T, 4>(__VA_ARGS__);                \
        default: return call<T, 0>(__VA_ARGS__);               \
    }

template <class T>
static int64_t scan(const ScanJob<T>& job) {
    DC2_BY_CHUNKS(scan_rows, job.X.width, job)
}

template <class T>
static void project(const Matrix<T>& X, const uint32_t* rows, int64_t count, const T* v, T* out) {
    DC2_BY_CHUNKS(project_rows, X.width, X, rows, count, v, out)
}

template <class T>
static void offer_links(const NeighbourLists<T>& lists, const Links& links, const int32_t* queries, int64_t count) {
    DC2_BY_CHUNKS(offer_links_of, lists.points.width, lists, links, queries, count)
}

template <class T>
static void pull(const Matrix<T>& X, const uint32_t* rows, int64_t count, const double* factor, double* pull) {
    T* first = new T[X.width];
    T* buffer = new T[X.width];
    copy_row(X, rows[0], first);
    for (int64_t j = 0; j < X.width; ++j) pull[j] = 0;
    for (int64_t i = 0; i < count; ++i) {
        const T* row = X.data + rows[i] * X.row_step;
        if (X.column_step != 1) {
            copy_row(X, rows[i], buffer);
            row = buffer;
        }
        for (int64_t j = 0; j < X.width; ++j) pull[j] += factor[i] * (double(row[j]) - double(first[j]));
    }
    delete[] first;
    delete[] buffer;
}

template <class T>
struct BitsOf;
template <>
struct BitsOf<float> {
    typedef uint32_t Type;
};
template <>
struct BitsOf<double> {
    typedef uint64_t Type;
};

// Eight rows side by side: each waits for its own multiplications only.
template <class T>
static void hash_contents(const Matrix<T>& X, uint64_t* out) {
    constexpr int64_t kRows = 8;
    for (int64_t first = 0; first < X.rows; first += kRows) {
        const int64_t count = X.rows - first < kRows ? X.rows - first : kRows;
        const T* rows[kRows];
        uint64_t hash[kRows] = {0};
        for (int64_t r = 0; r < kRows; ++r) rows[r] = X.data + (first + (r < count ? r : 0)) * X.row_step;
        for (int64_t j = 0; j < X.width; ++j) {
            for (int64_t r = 0; r < kRows; ++r) {
                const T value = rows[r][j * X.column_step] + T(0);
                typename BitsOf<T>::Type bits;
                std::memcpy(&bits, &value, sizeof(bits));
                hash[r] = (hash[r] + bits) * 0x9E3779B97F4A7C15ull;
                hash[r] ^= hash[r] >> 29;
            }
        }
        for (int64_t r = 0; r < count; ++r) out[first + r] = hash[r];
    }
}

// Minima, maxima and sums of whole numbers are the same in any order, so each of eight lanes takes every eighth value.
template <class T>
static void range(const T* values, int64_t count, T* low, T* high) {
    T least[kLanes], most[kLanes];
    for (int64_t l = 0; l < kLanes; ++l) least[l] = most[l] = values[0];
    int64_t i = 0;
    for (; i + kLanes <= count; i += kLanes) {
        for (int64_t l = 0; l < kLanes; ++l) least[l] = values[i + l] < least[l] ? values[i + l] : least[l];
        for (int64_t l = 0; l < kLanes; ++l) most[l] = values[i + l] > most[l] ? values[i + l] : most[l];
    }
    for (; i < count; ++i) {
        least[0] = values[i] < least[0] ? values[i] : least[0];
        most[0] = values[i] > most[0] ? values[i] : most[0];
    }
    *low = least[0];
    *high = most[0];
    for (int64_t l = 1; l < kLanes; ++l) {
        *low = least[l] < *low ? least[l] : *low;
        *high = most[l] > *high ? most[l] : *high;
    }
}

template <class T>
static void around(const T* values, int64_t count, T place, T* below, T* above) {
    const T infinity = std::numeric_limits<T>::infinity();
    T most[kLanes], least[kLanes];
    for (int64_t l = 0; l < kLanes; ++l) {
        most[l] = -infinity;
        least[l] = infinity;
    }
    const auto take = [&](T value, int64_t l) {
        const T at_or_below = value <= place ? value : -infinity, beyond = value <= place ? infinity : value;
        most[l] = at_or_below > most[l] ? at_or_below : most[l];
        least[l] = beyond < least[l] ? beyond : least[l];
    };
    int64_t i = 0;
    for (; i + kLanes <= count; i += kLanes)
        for (int64_t l = 0; l < kLanes; ++l) take(values[i + l], l);
    for (; i < count; ++i) take(values[i], 0);
    T highest = -infinity, lowest = infinity;
    for (int64_t l = 0; l < kLanes; ++l) {
        highest = most[l] > highest ? most[l] : highest;
        lowest = least[l] < lowest ? least[l] : lowest;
    }
    if (highest > -infinity) *below = highest;
    if (lowest < infinity) *above = lowest;
}

template <class T>
static double sum_steps(const T* values, int64_t count, T low, double step) {
    constexpr double kRound = 0x1.8p52;  // added and subtracted, it rounds to the nearest whole number
    const double per_step = 1.0 / step;
    double lane[kLanes] = {0};
    const auto steps = [&](T value) { return ((double(value) - double(low)) * per_step + kRound) - kRound; };
    int64_t i = 0;
    for (; i + kLanes <= count; i += kLanes)
        for (int64_t l = 0; l < kLanes; ++l) lane[l] += steps(values[i + l]);
    for (; i < count; ++i) lane[0] += steps(values[i]);
    double total = 0;
    for (int64_t l = 0; l < kLanes; ++l) total += lane[l];
    return total;
}

template <class T>
static void pair_squares(const T* a, const int32_t* in_a, const T* b, const int32_t* in_b, int64_t count, int64_t width,
                         double* out) {
    const int64_t full = width / kLanes * kLanes;
    for (int64_t i = 0; i < count; ++i) {
        const T* x = a + int64_t(in_a[i]) * width;
        const T* y = b + int64_t(in_b[i]) * width;
        EightDoubles sum = {};
        for (int64_t j = 0; j < full; j += kLanes) {
            const EightDoubles off = load_double(x + j) - load_double(y + j);
            sum = sum + off * off;
        }
        if (full < width) {
            double rest[kLanes] = {0};
            for (int64_t j = full; j < width; ++j) rest[j - full] = double(x[j]) - double(y[j]);
            const EightDoubles off = load_double(rest);
            sum = sum + off * off;
        }
        out[i] = fold<double>(sum);
    }
}

extern const Kernels<float> kernels_float;
extern const Kernels<double> kernels_double;
const Kernels<float> kernels_float = {scan<float>,      project<float>,      pull<float>,     hash_contents<float>,
                                      range<float>,     around<float>,       sum_steps<float>,
                                      offer_groups<float>, offer_links<float>, pair_squares<float>, round_row<float>};
const Kernels<double> kernels_double = {scan<double>,      project<double>,      pull<double>,     hash_contents<double>,
                                        range<double>,     around<double>,       sum_steps<double>,
                                        offer_groups<double>, offer_links<double>, pair_squares<double>, round_row<double>};

}  // namespace DC2_ARCH
}  // namespace dc2
