// Eight lanes side by side: sums in a fixed order, the same bits on every instruction set. Part of kernels.cpp, and
// compiled with it once per instruction set.
#pragma once
#include <cstring>
#if defined(__AVX__)
#include <immintrin.h>
#endif

#include "kernels.hpp"

namespace dc2 {
namespace DC2_ARCH {

#if defined(__clang__) || (defined(__GNUC__) && __GNUC__ >= 12)
#define DC2_SHUFFLES
#endif

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
    friend Lanes operator-(const Lanes& a, T b) {
        Lanes c;
        for (int i = 0; i < N; ++i) c.lane[i] = a.lane[i] - b;
        return c;
    }
};
template <class T>
struct LaneTypes {
    typedef Lanes<T, 8> Eight;
};
#endif

// Prefetches the cache lines of some values.
template <class T>
static inline void prefetch(const T* from, int64_t count) {
#if defined(__GNUC__)
    const char* byte = reinterpret_cast<const char*>(from);
    for (int64_t at = 0; at < count * int64_t(sizeof(T)); at += 64) __builtin_prefetch(byte + at);
#else
    (void)from, (void)count;
#endif
}

template <class V, class T>
static inline V load(const T* from) {
    V v;
    std::memcpy(&v, from, sizeof(V));
    return v;
}

template <class V, class T>
static inline void store(const V& v, T* to) {
    std::memcpy(to, &v, sizeof(V));
}

template <class T>
static inline T fold(const typename LaneTypes<T>::Eight& lanes) {
#if defined(DC2_SHUFFLES)
    const auto half = __builtin_shufflevector(lanes, lanes, 0, 1, 2, 3) + __builtin_shufflevector(lanes, lanes, 4, 5, 6, 7);
    const auto quarter = __builtin_shufflevector(half, half, 0, 1) + __builtin_shufflevector(half, half, 2, 3);
    return quarter[0] + quarter[1];
#else
    return ((lanes[0] + lanes[4]) + (lanes[2] + lanes[6])) + ((lanes[1] + lanes[5]) + (lanes[3] + lanes[7]));
#endif
}

#if defined(__AVX__)
static inline int movemask_at_most(const LaneTypes<float>::Eight& values, float bound) {
    return _mm256_movemask_ps(_mm256_cmp_ps(load<__m256>(&values), _mm256_set1_ps(bound), _CMP_LE_OQ));
}
static inline int movemask_at_most(const LaneTypes<double>::Eight& values, double bound) {
    const double* four = reinterpret_cast<const double*>(&values);
    const __m256d at = _mm256_set1_pd(bound);
    return _mm256_movemask_pd(_mm256_or_pd(_mm256_cmp_pd(load<__m256d>(four), at, _CMP_LE_OQ),
                                           _mm256_cmp_pd(load<__m256d>(four + 4), at, _CMP_LE_OQ)));
}
#endif

template <class V>
static inline V zeros() {
    V v;
    std::memset(&v, 0, sizeof(V));
    return v;
}

// Whether any of eight values is at most `bound`.
template <class T>
static inline bool any_at_most(const typename LaneTypes<T>::Eight& values, T bound) {
#if defined(__AVX__)
    return movemask_at_most(values, bound) != 0;
#else
    bool any = false;
    for (int i = 0; i < kLanes; ++i) any |= values[i] <= bound;
    return any;
#endif
}

typedef LaneTypes<double>::Eight EightDoubles;

static inline EightDoubles load_double(const double* from) { return load<EightDoubles>(from); }
static inline EightDoubles load_double(const float* from) {
#if defined(__GNUC__)
    return __builtin_convertvector(load<LaneTypes<float>::Eight>(from), EightDoubles);
#else
    EightDoubles wide;
    for (int i = 0; i < kLanes; ++i) wide.lane[i] = from[i];
    return wide;
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

// Distances to four points: the row is read once, and the four sums are folded side by side.
template <class T, int Chunks>
static inline void four_squared_distances(const T* x, const T* const (&points)[4], int64_t chunks, T* out) {
    typedef typename LaneTypes<T>::Eight Eight;
    Eight sum[4];
    const Eight start = load<Eight>(x);
    for (int i = 0; i < 4; ++i) {
        const Eight off = start - load<Eight>(points[i]);
        sum[i] = off * off;
    }
    const int64_t stop = Chunks > 0 ? Chunks : chunks;
    for (int64_t c = 1; c < stop; ++c) {
        const Eight part = load<Eight>(x + c * kLanes);
        for (int i = 0; i < 4; ++i) {
            const Eight off = part - load<Eight>(points[i] + c * kLanes);
            sum[i] = sum[i] + off * off;
        }
    }
#if defined(DC2_SHUFFLES)
    const auto quarters = [](const Eight& a, const Eight& b) {
        const auto halves = __builtin_shufflevector(a, b, 0, 1, 2, 3, 8, 9, 10, 11) +
                            __builtin_shufflevector(a, b, 4, 5, 6, 7, 12, 13, 14, 15);
        return __builtin_shufflevector(halves, halves, 0, 1, 4, 5) + __builtin_shufflevector(halves, halves, 2, 3, 6, 7);
    };
    const auto first = quarters(sum[0], sum[1]), second = quarters(sum[2], sum[3]);
    store(__builtin_shufflevector(first, second, 0, 2, 4, 6) + __builtin_shufflevector(first, second, 1, 3, 5, 7), out);
#else
    for (int i = 0; i < 4; ++i) out[i] = fold<T>(sum[i]);
#endif
}

constexpr int64_t kPieceChunks = 16;  // summed of a long distance before checking whether it is already too far

// Four distances; stops early and returns false if all are beyond `worst`.
template <class T, int Chunks>
static inline bool four_within(const T* x, const T* const (&points)[4], int64_t chunks, T worst, T* out) {
    if (Chunks > 0 || chunks <= kPieceChunks) {
        four_squared_distances<T, Chunks>(x, points, chunks, out);
        return true;
    }
    typedef typename LaneTypes<T>::Eight Eight;
    Eight sum[4];
    for (int i = 0; i < 4; ++i) sum[i] = zeros<Eight>();
    for (int64_t c = 0; c < chunks;) {
        const int64_t stop = c + kPieceChunks < chunks ? c + kPieceChunks : chunks;
        for (; c < stop; ++c) {
            const Eight part = load<Eight>(x + c * kLanes);
            for (int i = 0; i < 4; ++i) {
                const Eight off = part - load<Eight>(points[i] + c * kLanes);
                sum[i] = sum[i] + off * off;
            }
        }
        for (int i = 0; i < 4; ++i) out[i] = fold<T>(sum[i]);
        if ((out[0] > worst) & (out[1] > worst) & (out[2] > worst) & (out[3] > worst)) return false;
    }
    return true;
}

}  // namespace DC2_ARCH
}  // namespace dc2
