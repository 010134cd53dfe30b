#include "graph.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>

#include "grow.hpp"
#include "threads.hpp"

namespace dc2 {

namespace {

// What some members belong to, listed: those of group g are order[begin[g]..begin[g + 1]), ascending.
struct Members {
    std::vector<int64_t> begin, order;

    Members(const int32_t* groups, int64_t count, int64_t n_groups) : begin(n_groups + 1, 0), order(count) {
        for (int64_t i = 0; i < count; ++i) ++begin[groups[i] + 1];
        std::partial_sum(begin.begin(), begin.end(), begin.begin());
        std::vector<int64_t> next(begin.begin(), begin.end() - 1);
        for (int64_t i = 0; i < count; ++i) order[next[groups[i]]++] = i;
    }
};

// Puts the entries of a symmetric graph's rows into order, by turning it over: row after row is dealt to its columns.
OwnGraph in_order(OwnGraph&& graph) {
    OwnGraph turned;
    turned.begin = graph.begin;
    turned.to.resize(graph.to.size());
    turned.weight.resize(graph.to.size());
    std::vector<int64_t> next(graph.begin.begin(), graph.begin.end() - 1);
    for (size_t i = 0; i + 1 < graph.begin.size(); ++i) {
        for (int64_t e = graph.begin[i]; e < graph.begin[i + 1]; ++e) {
            const int64_t at = next[graph.to[e]]++;
            if (at == graph.begin[graph.to[e] + 1]) throw std::invalid_argument("weights: the same in both directions");
            turned.to[at] = int32_t(i);
            turned.weight[at] = graph.weight[e];
        }
    }
    return turned;
}

// One row of a graph that is added up entry by entry: a dense array, and a list of what is touched.
class Row {
public:
    explicit Row(int64_t nodes) : weight_(nodes, -1.0) {}
    void add(int32_t to, double weight) {
        if (weight_[to] < 0) {
            touched_.push_back(to);
            weight_[to] = 0.0;
        }
        weight_[to] += weight;
    }
    void end(OwnGraph& graph) {
        for (const int32_t to : touched_) {
            if (weight_[to] > 0) {
                graph.to.push_back(to);
                graph.weight.push_back(weight_[to]);
            }
            weight_[to] = -1.0;
        }
        touched_.clear();
        graph.begin.push_back(int64_t(graph.to.size()));
    }

private:
    std::vector<double> weight_;
    std::vector<int32_t> touched_;
};

// One graph of the rows of several, in turn.
OwnGraph in_turn(std::vector<OwnGraph>&& parts) {
    OwnGraph whole;
    size_t entries = 0;
    for (const OwnGraph& part : parts) entries += part.to.size();
    whole.to.reserve(entries);
    whole.weight.reserve(entries);
    whole.begin.push_back(0);
    for (OwnGraph& part : parts) {
        const int64_t before = int64_t(whole.to.size());
        for (const int64_t end : part.begin) whole.begin.push_back(before + end);
        whole.to.insert(whole.to.end(), part.to.begin(), part.to.end());
        whole.weight.insert(whole.weight.end(), part.weight.begin(), part.weight.end());
        part = OwnGraph();
    }
    return whole;
}

constexpr int64_t kRange = 1 << 12;  // nodes whose edges one thread counts at a time

}  // namespace

std::vector<double> strengths(const Graph& graph) {
    std::vector<double> found(graph.nodes);
    for (int64_t i = 0; i < graph.nodes; ++i)
        found[i] = std::accumulate(graph.weight + graph.begin[i], graph.weight + graph.begin[i + 1], 0.0);
    return found;
}

OwnGraph joined(const Graph& graph, const int32_t* labels, int64_t communities) {
    const Members members(labels, graph.nodes, communities);
    OwnGraph found;
    found.begin.push_back(0);
    Row row(communities);
    for (int64_t c = 0; c < communities; ++c) {
        for (int64_t at = members.begin[c]; at < members.begin[c + 1]; ++at) {
            const int64_t i = members.order[at];
            for (int64_t e = graph.begin[i]; e < graph.begin[i + 1]; ++e) row.add(labels[graph.to[e]], graph.weight[e]);
        }
        row.end(found);
    }
    return in_order(std::move(found));
}

OwnGraph connected(const int32_t* near, const double* weights, int64_t rows, int64_t m, int64_t nodes,
                   int64_t threads) {
    // Rows that are nearest to the same node stand together, so that what a node's rows hold is found in the cache; rows
    // of weight 0 connect nothing. A node that comes twice in a row is held once, with its count.
    std::vector<int64_t> next(nodes + 1, 0);
    for (int64_t r = 0; r < rows; ++r) next[near[r * m] + 1] += weights[r] > 0;
    std::partial_sum(next.begin(), next.end(), next.begin());
    const int64_t held = next[nodes];
    std::vector<int64_t> row_at(held);
    for (int64_t r = 0; r < rows; ++r)
        if (weights[r] > 0) row_at[next[near[r * m]]++] = r;
    std::vector<int64_t> begin(1, 0);
    std::vector<int32_t> id, of_row;
    std::vector<double> count;
    id.reserve(held * m);
    of_row.reserve(held * m);
    count.reserve(held * m);
    begin.reserve(held + 1);
    for (int64_t at = 0; at < held; ++at) {
        const int32_t* ids = near + row_at[at] * m;
        for (int64_t c = 0; c < m; ++c) {
            const auto first = id.begin() + begin[at];
            const auto same = std::find(first, id.end(), ids[c]);
            if (same != id.end()) {
                count[same - id.begin()] += 1.0;
                continue;
            }
            id.push_back(ids[c]);
            of_row.push_back(int32_t(at));
            count.push_back(1.0);
        }
        begin.push_back(int64_t(id.size()));
    }
    const Members members(id.data(), int64_t(id.size()), nodes);
    const int64_t ranges = (nodes + kRange - 1) / kRange;
    std::vector<OwnGraph> found(ranges);
    in_threads(threads, ranges, [&](int64_t range) {
        OwnGraph& part = found[range];
        Row row(nodes);
        for (int64_t i = range * kRange; i < std::min(nodes, (range + 1) * kRange); ++i) {
            for (int64_t at = members.begin[i]; at < members.begin[i + 1]; ++at) {
                const int64_t own = members.order[at], r = of_row[own];
                const double weight = weights[row_at[r]] * count[own];
                for (int64_t e = begin[r]; e < begin[r + 1]; ++e)
                    row.add(id[e], weight * (e == own ? count[e] - 1.0 : count[e]));
            }
            row.end(part);
        }
    });
    return in_order(in_turn(std::move(found)));
}

Borders borders(const Graph& graph, const std::vector<double>& strengths, const int32_t* labels, int64_t communities,
                const double* sparsity, const double* within) {
    const Members members(labels, graph.nodes, communities);
    std::vector<double> root(graph.nodes), closeness(communities, -1.0), rise(communities);
    for (int64_t i = 0; i < graph.nodes; ++i) root[i] = 1.0 / std::sqrt(std::max(strengths[i], 1.0));
    std::vector<int32_t> touched;
    Borders found;
    for (int64_t a = 0; a < communities; ++a) {
        for (int64_t at = members.begin[a]; at < members.begin[a + 1]; ++at) {
            const int64_t i = members.order[at];
            for (int64_t e = graph.begin[i]; e < graph.begin[i + 1]; ++e) {
                const int32_t j = graph.to[e], b = labels[j];
                if (b <= a || !(graph.weight[e] > 0)) continue;
                if (closeness[b] < 0) {
                    touched.push_back(b);
                    closeness[b] = rise[b] = 0.0;
                }
                const double close = graph.weight[e] * root[i] * root[j];
                closeness[b] += close;
                rise[b] += close * ((sparsity[i] + sparsity[j]) / 2 - std::max(within[a], within[b]));
            }
        }
        std::sort(touched.begin(), touched.end());
        for (const int32_t b : touched) {
            found.first.push_back(int32_t(a));
            found.second.push_back(b);
            found.closeness.push_back(closeness[b]);
            found.rise.push_back(rise[b]);
            closeness[b] = -1.0;
        }
        touched.clear();
    }
    return found;
}

std::vector<double> leaving(const Graph& graph, const int32_t* labels) {
    std::vector<double> found(graph.nodes, 0.0);
    for (int64_t i = 0; i < graph.nodes; ++i)
        for (int64_t e = graph.begin[i]; e < graph.begin[i + 1]; ++e)
            found[i] += labels[graph.to[e]] != labels[i] ? graph.weight[e] : 0.0;
    return found;
}

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
