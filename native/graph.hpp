#pragma once
#include <cstdint>
#include <vector>

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

// A graph that owns its rows.
struct OwnGraph {
    std::vector<int64_t> begin;
    std::vector<int32_t> to;
    std::vector<double> weight;
};

// The strength of every node.
std::vector<double> strengths(const Graph& graph);

// The graph of communities, labels in 0..communities-1: all entries between two of them add up, those inside one, in
// both directions, on the diagonal. Entries of a row rise.
OwnGraph joined(const Graph& graph, const int32_t* labels, int64_t communities);

// Connects any two nodes by the summed weight of the rows that are near both; no loops, no edges of weight 0, entries of a
// row rise. IN near (rows, m), in 0..nodes-1, none twice in a row.
OwnGraph connected(const int32_t* near, const double* weights, int64_t rows, int64_t m, int64_t nodes);

// IN labels in 0..nodes-1.
double modularity(const Graph& graph, const int32_t* labels, double resolution);

// Whether every entry has a mirror image of the same weight. A symmetric graph always passes; another one passes with a
// chance of about one in 2^60.
bool is_symmetric(const Graph& graph);

}  // namespace dc2
