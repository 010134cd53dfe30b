// One file, several instruction sets: DC2_ARCH names the namespace, the build sets the flags. Nothing from the standard
// library that could be instantiated here and then linked into another variant.
#include "kernels.hpp"

#include <cmath>
#include <cstring>

namespace dc2 {
namespace DC2_ARCH {

#if defined(__GNUC__)
template <class T>
struct LaneTypes;
template <>
struct LaneTypes<float> {
    typedef float Eight __attribute__((vector_size(32)));
};
template <>
struct LaneTypes<double> {
    typedef double Eight __attribute__((vector_size(64)));
};
#else
template <class T, int N>
struct Lanes {
    T lane[N];
    T operator[](int i) const { return lane[i]; }
#define DC2_LANEWISE(op)                                                    \
    friend Lanes operator op(const Lanes& a, const Lanes& b) {              \
        Lanes c;                                                            \
        for (int i = 0; i < N; ++i) c.lane[i] = a.lane[i] op b.lane[i];     \
        return c;                                                           \
    }
    DC2_LANEWISE(+) DC2_LANEWISE(-) DC2_LANEWISE(*)
#undef DC2_LANEWISE
};
template <class T>
struct LaneTypes {
    typedef Lanes<T, 8> Eight;
};
#endif

template <class V, class T>
static inline V load(const T* from) {
    V v;
    std::memcpy(&v, from, sizeof(V));
    return v;
}

template <class T>
static inline T fold(const typename LaneTypes<T>::Eight& lanes) {
#if defined(__clang__) || __GNUC__ >= 12
    const auto half = __builtin_shufflevector(lanes, lanes, 0, 1, 2, 3) + __builtin_shufflevector(lanes, lanes, 4, 5, 6, 7);
    const auto quarter = __builtin_shufflevector(half, half, 0, 1) + __builtin_shufflevector(half, half, 2, 3);
    return quarter[0] + quarter[1];
#else
    return ((lanes[0] + lanes[4]) + (lanes[2] + lanes[6])) + ((lanes[1] + lanes[5]) + (lanes[3] + lanes[7]));
#endif
}

// Chunks > 0 fixes the number of eight-lane chunks at compile time; 0 takes it from `chunks`.
template <class T, int Chunks>
static inline T dot(const T* a, const T* b, int64_t chunks) {
    typedef typename LaneTypes<T>::Eight Eight;
    Eight sum = load<Eight>(a) * load<Eight>(b);
    const int64_t stop = Chunks > 0 ? Chunks : chunks;
    for (int64_t c = 1; c < stop; ++c) sum = sum + load<Eight>(a + c * kLanes) * load<Eight>(b + c * kLanes);
    return fold<T>(sum);
}

template <class T, int Chunks>
static inline T squared_distance(const T* a, const T* b, int64_t chunks) {
    typedef typename LaneTypes<T>::Eight Eight;
    Eight off = load<Eight>(a) - load<Eight>(b);
    Eight sum = off * off;
    const int64_t stop = Chunks > 0 ? Chunks : chunks;
    for (int64_t c = 1; c < stop; ++c) {
        off = load<Eight>(a + c * kLanes) - load<Eight>(b + c * kLanes);
        sum = sum + off * off;
    }
    return fold<T>(sum);
}

template <class T>
static inline void copy_row(const Matrix<T>& X, int64_t row, T* to) {
    const T* from = X.data + row * X.row_step;
    if (X.column_step == 1) {
        std::memcpy(to, from, X.width * sizeof(T));
    } else {
        for (int64_t j = 0; j < X.width; ++j) to[j] = from[j * X.column_step];
    }
}

// Copies a run of rows into a padded buffer; column by column where columns are what lies together.
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

// Inserts a candidate into a short sorted list; among equals the earlier one stays in front.
template <class T>
static inline void insert(T distance, int32_t id, int64_t few, int64_t& held, T* distances, int32_t* ids) {
    int64_t at = held < few ? held++ : few - 1;
    while (at > 0 && distance < distances[at - 1]) {
        distances[at] = distances[at - 1];
        ids[at] = ids[at - 1];
        --at;
    }
    distances[at] = distance;
    ids[at] = id;
}

// The `few` nearest of the shortlist of centre `at`, whose first is the centre itself. By the triangle inequality no
// candidate farther from it than |x - centre| + |x - worst held| can enter, and the shortlist is sorted by that.
template <class T, int Chunks>
static inline void nearest_around(const ScanJob<T>& job, const T* x, int32_t at, int64_t padded, int64_t few,
                                  T* distances, int32_t* ids) {
    const int64_t chunks = padded / kLanes;
    const int32_t* candidates = job.shortlist + at * job.candidates;
    const T* gaps = job.gaps + at * job.candidates;
    int64_t held = 0;
    T reach = 0, first = 0, worst = -1;
    for (int64_t k = 0; k < job.candidates; ++k) {
        if (held == few && gaps[k] > reach) break;
        const T distance = squared_distance<T, Chunks>(x, job.centres + candidates[k] * padded, chunks);
        if (held == few && !(distance < distances[few - 1])) continue;
        insert(distance, candidates[k], few, held, distances, ids);
        if (k == 0) first = std::sqrt(distance);
        if (held == few && distances[few - 1] != worst) {
            worst = distances[few - 1];
            reach = (first + std::sqrt(worst)) * T(1.001);
        }
    }
}

// Walks from the leaf's own centre: tries the shortlist of the centre where it stands, goes to the first that is
// nearer and starts anew, until none is. A candidate twice as far from here as the row cannot be nearer.
template <class T, int Chunks>
static inline int32_t nearest(const ScanJob<T>& job, const T* x, int32_t leaf, int64_t padded) {
    const int64_t chunks = padded / kLanes;
    int32_t at = leaf;
    T distance = squared_distance<T, Chunks>(x, job.centres + at * padded, chunks);
    T reach = T(2.002) * std::sqrt(distance);
    for (int64_t k = 1; k < job.candidates && !(job.gaps[at * job.candidates + k] > reach); ++k) {
        const int32_t candidate = job.shortlist[at * job.candidates + k];
        const T found = squared_distance<T, Chunks>(x, job.centres + candidate * padded, chunks);
        if (found < distance) {
            at = candidate;
            distance = found;
            reach = T(2.002) * std::sqrt(distance);
            k = 0;
        }
    }
    return at;
}

// Exact sums: each term is rounded to a grid so coarse that no addition rounds, the rest to a finer one.
template <bool Weighted>
static inline void add_on_grid(const double* __restrict terms, double weight, int64_t columns,
                               const double* __restrict coarse_magic, const double* __restrict fine_magic,
                               double* __restrict coarse_total, double* __restrict fine_total) {
    for (int64_t j = 0; j < columns; ++j) {
        const double coarse = (terms[j] + coarse_magic[j]) - coarse_magic[j];
        const double fine = ((terms[j] - coarse) + fine_magic[j]) - fine_magic[j];
        coarse_total[j] += Weighted ? weight * coarse : coarse;
        fine_total[j] += Weighted ? weight * fine : fine;
    }
}

template <class T, int Chunks, bool Weighted>
static inline void add_up(const ScanJob<T>& job, const T* x, double weight, int32_t id, int64_t padded, double* off) {
    const int64_t width = job.X.width, columns = width + 2;
    const T* centre = job.centres + id * padded;
    for (int64_t j = 0; j < padded; ++j) off[j] = double(x[j]) - double(centre[j]);
    const double square = dot<double, Chunks>(off, off, padded / kLanes);
    off[width] = square;
    off[width + 1] = 1.0;
    add_on_grid<Weighted>(off, weight, columns, job.magic, job.magic + columns, job.totals + id * columns,
                          job.totals + (job.signatures + id) * columns);
    job.counts[id] += !Weighted || weight > 0;
}

template <class T, int Chunks>
static int64_t scan_rows(const ScanJob<T>& job) {
    constexpr int64_t kRun = 32;  // rows walk the tree side by side: their latencies overlap
    const int64_t padded = padded_width(job.X.width), chunks = padded / kLanes;
    const bool in_place = job.X.column_step == 1 && padded == job.X.width;
    T* buffer = new T[(in_place ? 1 : kRun) * padded]();
    T* zeros = new T[padded]();
    double* off = new double[padded + 2];
    int32_t at[kRun];
    int64_t bad = 0;
    for (int64_t first = 0; first < job.X.rows; first += kRun) {
        const int64_t count = job.X.rows - first < kRun ? job.X.rows - first : kRun;
        const T* run = buffer;
        int64_t step = padded;
        if (in_place) {
            run = job.X.data + first * job.X.row_step;
            step = job.X.row_step;
        } else {
            copy_run(job.X, first, count, padded, buffer);
        }
        // The root's projection is not finite exactly where the row is not, or is too large to be worked with.
        bool walking = false;
        for (int64_t r = 0; r < count; ++r) {
            if (job.nodes == 0) {
                bad += !(dot<T, Chunks>(run + r * step, zeros, chunks) == 0);
                at[r] = ~0;
                continue;
            }
            const T p = dot<T, Chunks>(run + r * step, job.directions, chunks);
            bad += !std::isfinite(p);
            at[r] = job.children[p <= job.thresholds[0] ? 0 : 1];
            walking |= at[r] >= 0;
        }
        while (walking) {
            walking = false;
            for (int64_t r = 0; r < count; ++r) {
                const int32_t node = at[r];
                if (node < 0) continue;
                const T p = dot<T, Chunks>(run + r * step, job.directions + node * padded, chunks);
                at[r] = job.children[2 * node + (p <= job.thresholds[node] ? 0 : 1)];
                walking |= at[r] >= 0;
            }
        }
        for (int64_t r = 0; r < count; ++r) {
            const T* x = run + r * step;
            int32_t id = ~at[r];
            if (job.shortlist != nullptr) {
                id = nearest<T, Chunks>(job, x, id, padded);
                if (job.near_ids != nullptr)
                    nearest_around<T, Chunks>(job, x, id, padded, job.few, job.near_distances + (first + r) * job.few,
                                              job.near_ids + (first + r) * job.few);
            }
            if (job.ids != nullptr) job.ids[first + r] = id;
            if (job.totals != nullptr) {
                // The tail of an in-place row is exact: its width is the padded width.
                if (job.weights != nullptr) {
                    add_up<T, Chunks, true>(job, x, job.weights[first + r], id, padded, off);
                } else {
                    add_up<T, Chunks, false>(job, x, 1.0, id, padded, off);
                }
            }
        }
    }
    delete[] buffer;
    delete[] zeros;
    delete[] off;
    return bad;
}

template <class T, int Chunks>
static void project_rows(const Matrix<T>& X, const uint32_t* rows, int64_t count, const T* v, T* out) {
    const int64_t padded = padded_width(X.width), chunks = padded / kLanes;
    const bool in_place = X.column_step == 1 && padded == X.width;
    T* buffer = new T[padded]();
    for (int64_t i = 0; i < count; ++i) {
        const T* x = X.data + rows[i] * X.row_step;
        if (!in_place) {
            copy_row(X, rows[i], buffer);
            x = buffer;
        }
        out[i] = dot<T, Chunks>(x, v, chunks);
    }
    delete[] buffer;
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
static void pull(const Matrix<T>& X, const uint32_t* rows, int64_t count, const double* factor, double* pull) {
    T* first = new T[X.width];
    T* row = new T[X.width];
    copy_row(X, rows[0], first);
    for (int64_t j = 0; j < X.width; ++j) pull[j] = 0;
    for (int64_t i = 0; i < count; ++i) {
        copy_row(X, rows[i], row);
        for (int64_t j = 0; j < X.width; ++j) pull[j] += factor[i] * (double(row[j]) - double(first[j]));
    }
    delete[] first;
    delete[] row;
}

extern const Kernels<float> kernels_float;
extern const Kernels<double> kernels_double;
const Kernels<float> kernels_float = {scan<float>, project<float>, pull<float>};
const Kernels<double> kernels_double = {scan<double>, project<double>, pull<double>};

}  // namespace DC2_ARCH
}  // namespace dc2
