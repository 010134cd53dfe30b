#pragma once
#include <cstdint>
#include <vector>

namespace dc2 {

// A symmetric graph in rows: the entries of node i are begin[i]..begin[i + 1). Weights are whole numbers whose total is
// below 2^53, so every sum of them is exact in any order. An entry of the diagonal counts once in its node's strength,
// which is the plain sum of its row.
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

// Ties any two nodes by the summed weight of the rows that are near both; no loops, no ties of weight 0, entries of a
// row rise. IN near (rows, m), in 0..nodes-1, none twice in a row.
OwnGraph ties(const int32_t* near, const double* weights, int64_t rows, int64_t m, int64_t nodes);

// IN labels in 0..nodes-1.
double modularity(const Graph& graph, const int32_t* labels, double resolution);

// Whether every entry has its mirror image of the same weight. Says yes wherever that is so, and else no, but for about
// one chance in 2^60.
bool is_symmetric(const Graph& graph);

}  // namespace dc2
