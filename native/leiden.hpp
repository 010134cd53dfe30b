#pragma once
#include <cstdint>
#include <vector>

#include "graph.hpp"

namespace dc2 {

struct LeidenOptions {
    double resolution;
    uint64_t seed;
    int64_t iterations;  // at most so many; 0: nodes move and that is all; -1: until nothing better is found
};

// Communities of large modularity, each connected. IN strengths of the nodes; start (nodes), labels in 0..nodes-1, or
// null: every node alone.
std::vector<int32_t> leiden(const Graph& graph, const std::vector<double>& strengths, const int32_t* start,
                            const LeidenOptions& options);

}  // namespace dc2
