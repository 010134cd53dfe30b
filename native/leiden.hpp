#pragma once
#include <cstdint>
#include <vector>

#include "graph.hpp"

namespace dc2 {

struct LeidenOptions {
    double resolution;
    uint64_t seed;
    int64_t iterations;  // at most; 0: only the nodes move; -1: until nothing better is found
};

// Connected communities of large modularity. IN strengths of the nodes; start (nodes), labels in 0..nodes-1, or null:
// every node alone.
std::vector<int32_t> leiden(const Graph& graph, const std::vector<double>& strengths, const int32_t* start,
                            const LeidenOptions& options);

}  // namespace dc2
