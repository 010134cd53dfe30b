// Numbers on a GPU and elsewhere: the hash, the grids, and the eight lanes in which sums are taken.
#pragma once

#if defined(__CUDACC__)
#define DC2_FUNCTION __device__ __forceinline__
#define DC2_PRAGMA(text) _Pragma(#text)
#define DC2_UNROLL(times) DC2_PRAGMA(unroll times)
#else
#include <cmath>
#include <cstring>
#define DC2_FUNCTION inline
#define DC2_UNROLL(times)
#endif

namespace dc2 {
namespace device {

typedef long long Index;
typedef int Id;
typedef unsigned long long Hash;

constexpr int kLanes = 8;
constexpr int kGroup = 4;                  // chunks of eight columns, read at once
constexpr int kFours = kLanes * kGroup;    // columns of such a group

// --- numbers -------------------------------------------------------------------------------------------------------

DC2_FUNCTION Hash hash_row(Hash seed, Hash row) {
    Hash z = seed + (row + 1) * 0x9E3779B97F4A7C15ull;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return z ^ (z >> 31);
}

// The nearest multiple of a grid's step: `magic` is 1.5 * 2^52 steps, so the last bit of a sum with it is one step.
DC2_FUNCTION double on_grid(double value, double magic) { return (value + magic) - magic; }

template <class T>
DC2_FUNCTION bool is_finite(T value) {
    return value - value == T(0);
}

#if defined(__CUDACC__)
DC2_FUNCTION float root(float value) { return sqrtf(value); }
DC2_FUNCTION double root(double value) { return sqrt(value); }
DC2_FUNCTION float times_power(float value, int power) { return ldexpf(value, power); }
DC2_FUNCTION double times_power(double value, int power) { return ldexp(value, power); }
DC2_FUNCTION void add_to(double* total, double term) { atomicAdd(total, term); }
DC2_FUNCTION void add_to(Hash* total, Hash term) { atomicAdd(total, term); }
DC2_FUNCTION int add_and_return_before(int* total, int term) { return atomicAdd(total, term); }
DC2_FUNCTION void lower_to(Hash* value, Hash other) { atomicMin(value, other); }
DC2_FUNCTION void raise_to(Hash* value, Hash other) { atomicMax(value, other); }
DC2_FUNCTION Hash bits_of(double value) { return __double_as_longlong(value); }
#else
DC2_FUNCTION float root(float value) { return std::sqrt(value); }
DC2_FUNCTION double root(double value) { return std::sqrt(value); }
DC2_FUNCTION float times_power(float value, int power) { return std::ldexp(value, power); }
DC2_FUNCTION double times_power(double value, int power) { return std::ldexp(value, power); }
DC2_FUNCTION void add_to(double* total, double term) { *total += term; }
DC2_FUNCTION void add_to(Hash* total, Hash term) { *total += term; }
DC2_FUNCTION int add_and_return_before(int* total, int term) {
    const int before = *total;
    *total += term;
    return before;
}
DC2_FUNCTION void lower_to(Hash* value, Hash other) { *value = other < *value ? other : *value; }
DC2_FUNCTION void raise_to(Hash* value, Hash other) { *value = other > *value ? other : *value; }
DC2_FUNCTION Hash bits_of(double value) {
    Hash bits;
    std::memcpy(&bits, &value, sizeof bits);
    return bits;
}
#endif

// --- eight lanes ---------------------------------------------------------------------------------------------------

#if defined(__CUDACC__)

constexpr int kHeldLanes = 1;  // of a row, by one thread
DC2_FUNCTION int own_lane(int) { return threadIdx.x % kLanes; }
DC2_FUNCTION bool is_first_lane() { return threadIdx.x % kLanes == 0; }
DC2_FUNCTION unsigned lanes_of_row() { return 0xffu << (threadIdx.x & 24u); }

#else

constexpr int kHeldLanes = kLanes;
inline int own_lane(int i) { return i; }
inline bool is_first_lane() { return true; }

#endif

template <class T>
struct Lanes {
    T value[kHeldLanes];
};

template <class T>
DC2_FUNCTION Lanes<T> zeros() {
    Lanes<T> lanes;
    for (int i = 0; i < kHeldLanes; ++i) lanes.value[i] = T(0);
    return lanes;
}

template <class T>
DC2_FUNCTION void add_product(Lanes<T>& sum, const Lanes<T>& a, const Lanes<T>& b) {
    for (int i = 0; i < kHeldLanes; ++i) sum.value[i] = sum.value[i] + a.value[i] * b.value[i];
}

template <class T>
DC2_FUNCTION void add_square_of_difference(Lanes<T>& sum, const Lanes<T>& a, const Lanes<T>& b) {
    for (int i = 0; i < kHeldLanes; ++i) {
        const T off = a.value[i] - b.value[i];
        sum.value[i] = sum.value[i] + off * off;
    }
}

// The lanes added pairwise: ((0+4)+(2+6))+((1+5)+(3+7)).
template <class T>
DC2_FUNCTION T fold(const Lanes<T>& lanes) {
#if defined(__CUDACC__)
    T sum = lanes.value[0];
    for (int apart = kLanes / 2; apart > 0; apart /= 2) sum = sum + __shfl_xor_sync(lanes_of_row(), sum, apart);
    return sum;
#else
    const T* l = lanes.value;
    return ((l[0] + l[4]) + (l[2] + l[6])) + ((l[1] + l[5]) + (l[3] + l[7]));
#endif
}

template <class T>
DC2_FUNCTION T largest(const Lanes<T>& lanes) {
    T most = lanes.value[0];
#if defined(__CUDACC__)
    for (int apart = kLanes / 2; apart > 0; apart /= 2) {
        const T other = __shfl_xor_sync(lanes_of_row(), most, apart);
        most = other > most ? other : most;
    }
#else
    for (int i = 1; i < kLanes; ++i) most = lanes.value[i] > most ? lanes.value[i] : most;
#endif
    return most;
}

// Four folded sums. On a GPU each thread of a row ends up with one of them, which takes half as many shuffles as if each
// held all four: threads 0, 1 hold sum 0; 2, 3 sum 1; 4, 5 sum 2; 6, 7 sum 3.
#if defined(__CUDACC__)
template <class T>
struct FourSums {
    T own;
};

template <class T>
DC2_FUNCTION FourSums<T> fold_four(const Lanes<T> (&sums)[kGroup]) {
    const unsigned mask = lanes_of_row();
    const int lane = threadIdx.x % kLanes;
    const bool upper = lane & 4, second = lane & 2;
    T pair[2];
    for (int i = 0; i < 2; ++i) {  // sums i and i + 2
        const T kept = upper ? sums[i + 2].value[0] : sums[i].value[0];
        const T given = upper ? sums[i].value[0] : sums[i + 2].value[0];
        pair[i] = kept + __shfl_xor_sync(mask, given, 4);
    }
    const T sum = (second ? pair[1] : pair[0]) + __shfl_xor_sync(mask, second ? pair[0] : pair[1], 2);
    return {sum + __shfl_xor_sync(mask, sum, 1)};
}

// Which of the four are at most a bound, as bits 0, 2, 4, 6.
template <class T>
DC2_FUNCTION unsigned which_within(const FourSums<T>& four, T bound) {
    const unsigned mask = lanes_of_row();
    return ((__ballot_sync(mask, four.own <= bound) & mask) >> (threadIdx.x & 24u)) & 0x55u;
}

template <class T>
DC2_FUNCTION T sum_at(const FourSums<T>& four, int bit) {
    return __shfl_sync(lanes_of_row(), four.own, bit, kLanes);
}
DC2_FUNCTION int first_of(unsigned bits) { return __ffs(bits) - 1; }
DC2_FUNCTION void lanes_meet() { __syncwarp(lanes_of_row()); }
#else
template <class T>
struct FourSums {
    T sum[kGroup];
};

template <class T>
DC2_FUNCTION FourSums<T> fold_four(const Lanes<T> (&sums)[kGroup]) {
    FourSums<T> four;
    for (int i = 0; i < kGroup; ++i) four.sum[i] = fold(sums[i]);
    return four;
}

template <class T>
DC2_FUNCTION unsigned which_within(const FourSums<T>& four, T bound) {
    unsigned bits = 0;
    for (int i = 0; i < kGroup; ++i) bits |= unsigned(four.sum[i] <= bound) << (2 * i);
    return bits;
}

template <class T>
DC2_FUNCTION T sum_at(const FourSums<T>& four, int bit) {
    return four.sum[bit / 2];
}
inline int first_of(unsigned bits) {
    int first = 0;
    while (!(bits >> first & 1u)) ++first;
    return first;
}
inline void lanes_meet() {}
#endif

}  // namespace device
}  // namespace dc2
