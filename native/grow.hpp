#pragma once
#include <cstdint>
#include <vector>

#include "kernels.hpp"

namespace dc2 {

enum class Cut { median, mean, uniform, quantile };

struct GrowOptions {
    uint64_t seed;
    double leaf_size;
    int64_t max_leaves;
    Cut cut;
    int64_t sharpen, candidates;
    const float* normal_table;  // 4096 quantiles
    int64_t threads;            // the tree is the same for any number
};

template <class T>
struct Tree {
    std::vector<T> directions, thresholds;  // (nodes, width), (nodes)
    std::vector<int32_t> children;          // (nodes, 2)
    std::vector<int32_t> leaf_of_row;       // (rows)
};

template <class T>
Tree<T> grow_tree(const Matrix<T>& X, const double* weights, const GrowOptions& options);

uint64_t hash_row(uint64_t seed, uint64_t row);

}  // namespace dc2
