#include "graph.hpp"

#include <vector>

#include "grow.hpp"

namespace dc2 {

double modularity(const Graph& graph, const int32_t* labels, double resolution) {
    std::vector<double> inner(graph.nodes, 0.0), volume(graph.nodes, 0.0);
    double total = 0.0;
    for (int64_t i = 0; i < graph.nodes; ++i) {
        for (int64_t e = graph.begin[i]; e < graph.begin[i + 1]; ++e) {
            volume[labels[i]] += graph.weight[e];
            if (labels[graph.to[e]] == labels[i]) inner[labels[i]] += graph.weight[e];
        }
    }
    for (const double v : volume) total += v;
    double sum = 0.0;
    if (total > 0)
        for (int64_t c = 0; c < graph.nodes; ++c)
            sum += inner[c] / total - resolution * (volume[c] / total) * (volume[c] / total);
    return sum;
}

bool is_symmetric(const Graph& graph) {
    std::vector<uint64_t> factor(graph.nodes);  // random and odd: multiplied by two of them, no entry vanishes
    for (int64_t i = 0; i < graph.nodes; ++i) factor[i] = hash_row(0, uint64_t(i)) | 1;
    uint64_t balance = 0;  // entries above the diagonal minus those below it, each times its nodes' factors
    for (int64_t i = 0; i < graph.nodes; ++i) {
        uint64_t above = 0, below = 0;
        for (int64_t e = graph.begin[i]; e < graph.begin[i + 1]; ++e) {
            const uint64_t term = factor[graph.to[e]] * uint64_t(graph.weight[e]);
            above += graph.to[e] > i ? term : 0;
            below += graph.to[e] < i ? term : 0;
        }
        balance += factor[i] * (above - below);
    }
    return balance == 0;
}

}  // namespace dc2
