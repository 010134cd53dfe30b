#pragma once
#include <cstdint>

namespace dc2 {

// A symmetric graph in rows: the entries of node i are begin[i]..begin[i + 1). Weights are whole numbers whose total is
// below 2^53, so every sum of them is exact in any order. A node's strength is the plain sum of its row; an entry on
// the diagonal counts once.
struct Graph {
    int64_t nodes;
    const int64_t* begin;    // (nodes + 1)
    const int32_t* to;       // (entries)
    const double* weight;    // (entries)
};

// IN labels in 0..nodes-1.
double modularity(const Graph& graph, const int32_t* labels, double resolution);

// Whether every entry has a mirror image of the same weight. A symmetric graph always passes; another one passes with a
// chance of about one in 2^60.
bool is_symmetric(const Graph& graph);

}  // namespace dc2
