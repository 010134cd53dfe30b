// The hot loops, compiled once per instruction set. Every variant gives the same bits: eight fixed lanes, no fused
// multiply-add, no reordering. Truth is src/dc2/core/reference.py.
#pragma once
#include <cstdint>
#include <cstdlib>
#include <new>
#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace dc2 {

constexpr int64_t kLanes = 8;

constexpr int64_t kWidestNarrow = 32;  // rows up to here get loops of known length

inline int64_t padded_width(int64_t width) { return (width + kLanes - 1) / kLanes * kLanes; }

// Zeros, aligned to cache lines: a chunk of eight lanes is in one line. Large ones ask for huge pages.
template <class T>
class LineBuffer {
public:
    LineBuffer() : memory_(nullptr) {}
    explicit LineBuffer(int64_t count) : memory_(zeros(count * int64_t(sizeof(T)))) {}
    ~LineBuffer() { std::free(memory_); }
    LineBuffer(const LineBuffer&) = delete;
    LineBuffer& operator=(LineBuffer&& other) noexcept {
        char* mine = memory_;
        memory_ = other.memory_;
        other.memory_ = mine;
        return *this;
    }
    T* data() const { return reinterpret_cast<T*>(memory_ + (kLine - reinterpret_cast<uintptr_t>(memory_) % kLine) % kLine); }

private:
    static constexpr int64_t kLine = 64, kHugePage = int64_t(1) << 21;
    static char* zeros(int64_t bytes) {
        char* memory = static_cast<char*>(std::calloc(bytes + kLine, 1));
        if (memory == nullptr) throw std::bad_alloc();
#if defined(__linux__)
        const uintptr_t first = (reinterpret_cast<uintptr_t>(memory) + 4095) / 4096 * 4096;
        if (bytes >= 2 * kHugePage) madvise(reinterpret_cast<void*>(first), (bytes - 4096) / 4096 * 4096, MADV_HUGEPAGE);
#endif
        return memory;
    }
    char* memory_;
};

// A matrix of any layout: steps are in elements. `in_lanes`: each row is contiguous and followed by zeros up to a whole
// number of lanes, so loops may read it in place.
template <class T>
struct Matrix {
    const T* data;
    int64_t rows, width, row_step, column_step;
    bool in_lanes;
};

struct Rough;
struct RoughGrid;

// Marks of the points that a search has tried, kept from one search to the next.
struct Marks {
    uint8_t* marks;  // (points)
    uint8_t* last;   // the mark of the last search; 0 after all were cleared
};

template <class T>
struct ScanJob {
    Matrix<T> X;
    const double* weights;      // IN (rows) or null
    const T* directions;        // IN (nodes, padded width)
    const T* thresholds;        // IN (nodes)
    const int32_t* children;    // IN (nodes, 2), ~leaf where negative
    int64_t nodes;
    const T* centres;           // IN (signatures, padded width)
    const int32_t* neighbor_lists;  // IN (leaves, candidate_step) or null: candidates, the first again to fill up fours
    const T* gaps;              // IN (leaves, candidate_step): distance from the first candidate to each
    int64_t candidates, candidate_step;
    int64_t beam;               // candidates that a row keeps while it searches
    const double* magic;        // IN (2, width + 2)
    int64_t* counts;            // IN, OUT (signatures) or null; other threads may add to the same counts and totals
    double* totals;             // IN, OUT (2, signatures, width + 2)
    double* reach;              // IN, OUT (signatures): the largest squared distance of a row that searched
    int64_t signatures;
    int32_t* ids;               // OUT (rows) or null
    int32_t* near_ids;          // OUT (rows, few) or null
    T* near_distances;          // OUT (rows, few)
    int64_t few;
    const Rough* rough;         // of the centres
    Marks tried;                // where rows are wide and search
};

// Lists of neighbours: the `k` nearest found so far of each point, itself first.
template <class T>
struct NeighbourLists {
    Matrix<T> points;  // IN (rows, width), each row padded to whole lanes
    int64_t k;
    int32_t* ids;      // IN, OUT (rows, k); the largest number where nothing was found yet
    T* distances;      // IN, OUT (rows, k), squared
};

struct Links {
    const int32_t* ids;    // IN (rows, width), -1 behind the last
    const uint8_t* fresh;  // IN (rows, width)
    int64_t width;
    const float* least;    // IN (rows, rows) or null: lower bounds of squared distances
    const Rough* rough;    // of the points
};

template <class T>
struct Kernels {
    // Returns the number of rows that are not finite.
    int64_t (*scan)(const ScanJob<T>& job);
    // OUT[i] = X[rows[i]] . v, with v padded by zeros.
    void (*project)(const Matrix<T>& X, const uint32_t* rows, int64_t count, const T* v, T* out);
    // OUT pull[j] = sum over i of factor[i] * (X[rows[i], j] - X[rows[0], j]), i ascending.
    void (*pull)(const Matrix<T>& X, const uint32_t* rows, int64_t count, const double* factor, double* pull);
    // OUT[i] = a hash of the values of row i, in which 0 and -0 are the same.
    void (*hash_contents)(const Matrix<T>& X, uint64_t* out);
    // OUT the smallest and the largest value.
    void (*range)(const T* values, int64_t count, T* low, T* high);
    // OUT the largest value at or below a position and the smallest above it; unchanged if there is none.
    void (*around)(const T* values, int64_t count, T place, T* below, T* above);
    // Sum of (value - low) / step, each rounded to a whole number; the step is a power of two.
    double (*sum_steps)(const T* values, int64_t count, T low, double step);
    // Offers the points order[begin..end) all members of their groups, which are order[starts[g]..starts[g + 1]).
    void (*offer_groups)(const NeighbourLists<T>& lists, const int32_t* order, const int64_t* starts, int64_t begin,
                         int64_t end);
    // Offers some points the links of their links.
    void (*offer_links)(const NeighbourLists<T>& lists, const Links& links, const int32_t* queries, int64_t count);
    // OUT[i] = the squared distance of row in_a[i] of a and row in_b[i] of b, in float64.
    void (*pair_squares)(const T* a, const int32_t* in_a, const T* b, const int32_t* in_b, int64_t count, int64_t width,
                         double* out);
    // OUT the rounded row; returns at least the distance that rounding moves it.
    float (*round_row)(const T* x, const RoughGrid& grid, int8_t* out);
};

template <class T>
const Kernels<T>& kernels();  // the best for this processor

const char* simd_level();

}  // namespace dc2
