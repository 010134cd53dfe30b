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

// Connects any two nodes by the summed weight of the rows that are near both; no edges of weight 0, entries of a row rise.
// A node that comes twice in a row counts twice, and is connected with itself. IN near (rows, m), in 0..nodes-1.
OwnGraph connected(const int32_t* near, const double* weights, int64_t rows, int64_t m, int64_t nodes, int64_t threads);

// What crosses between pairs of communities, first < second, in order of first, then second. Of each edge the closeness is
// its weight over the roots of both strengths (at least 1), and the rise how much sparser its ends are, on average, than
// the inside of the sparser community; closeness adds up, and so do the rises times closeness.
struct Borders {
    std::vector<int32_t> first, second;
    std::vector<double> closeness, rise;
};

// IN labels (nodes) in 0..communities-1, sparsity (nodes), within (communities).
Borders borders(const Graph& graph, const std::vector<double>& strengths, const int32_t* labels, int64_t communities,
                const double* sparsity, const double* within);

// The weight of each node's edges to other communities.
std::vector<double> leaving(const Graph& graph, const int32_t* labels);

// IN labels in 0..nodes-1.
double modularity(const Graph& graph, const int32_t* labels, double resolution);

// Whether every entry has a mirror image of the same weight. A symmetric graph always passes; another one passes with a
// chance of about one in 2^60.
bool is_symmetric(const Graph& graph);

}  // namespace dc2
