// Graphs as Python sees them.
#include "graphs.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>

#include <cmath>

#include "arrays.hpp"
#include "graph.hpp"
#include "leiden.hpp"

namespace dc2 {

namespace {

// A checked graph: its arrays are validated once, before the first search.
class CheckedGraph {
public:
    CheckedGraph(In1<int64_t> indptr, In1<int32_t> indices, In1<double> weights)
        : indptr_(std::move(indptr)), indices_(std::move(indices)), weights_(std::move(weights)) {
        nb::gil_scoped_release released;
        check();
        strengths_ = strengths(graph_);
    }

    Array<int32_t, 1> leiden(double resolution, uint64_t seed, const optional<In1<int32_t>>& start,
                             int64_t iterations) const {
        require(resolution >= 0 && std::isfinite(resolution), "resolution: a finite number from 0");
        require(iterations >= -1, "iterations: a number from 0, or -1 for no limit");
        std::vector<int32_t> labels;
        {
            nb::gil_scoped_release released;
            if (start) require_labels(*start, graph_.nodes, graph_.nodes);
            labels = dc2::leiden(graph_, strengths_, pointer(start), {resolution, seed, iterations});
        }
        const size_t count = labels.size();
        return give<int32_t, 1>(std::move(labels), {count});
    }

    double modularity(const In1<int32_t>& labels, double resolution) const {
        nb::gil_scoped_release released;
        require_labels(labels, graph_.nodes, graph_.nodes);
        return dc2::modularity(graph_, labels.data(), resolution);
    }

    Array<double, 1> leaving(const In1<int32_t>& labels) const {
        std::vector<double> found;
        {
            nb::gil_scoped_release released;
            require_labels(labels, graph_.nodes, graph_.nodes);
            found = dc2::leaving(graph_, labels.data());
        }
        const size_t count = found.size();
        return give<double, 1>(std::move(found), {count});
    }

    Borders borders(const In1<int32_t>& labels, int64_t communities, const In1<double>& sparsity,
                    const In1<double>& within) const {
        require(communities >= 0 && communities <= graph_.nodes, "communities: no more than nodes");
        require(int64_t(within.shape(0)) == communities, "within: one for each community");
        require(int64_t(sparsity.shape(0)) == graph_.nodes, "sparsity: one for each node");
        require_labels(labels, graph_.nodes, communities);
        return dc2::borders(graph_, strengths_, labels.data(), communities, sparsity.data(), within.data());
    }

    OwnGraph joined(const In1<int32_t>& labels, int64_t communities) const {
        require(communities >= 0 && communities <= graph_.nodes, "communities: no more than nodes");
        require_labels(labels, graph_.nodes, communities);
        return dc2::joined(graph_, labels.data(), communities);
    }

private:
    // Labels of nodes, which stand for communities.
    static void require_labels(const In1<int32_t>& labels, int64_t nodes, int64_t communities) {
        require(int64_t(labels.shape(0)) == nodes, "labels: one for each node");
        require(all_within(labels.data(), nodes, 0, communities), "labels: between 0 and the number of communities");
    }

    void check() {
        require(indptr_.shape(0) > 0 && indptr_.shape(0) <= (size_t(1) << 31), "indptr: between 0 and 2^31 - 1 nodes");
        require(indices_.shape(0) == weights_.shape(0), "indices and weights: as many");
        const int64_t nodes = int64_t(indptr_.shape(0)) - 1, entries = int64_t(indices_.shape(0));
        graph_ = {nodes, indptr_.data(), indices_.data(), weights_.data()};
        require(graph_.begin[0] == 0 && graph_.begin[nodes] == entries, "indptr: from 0 to the number of entries");
        for (int64_t i = 0; i < nodes; ++i) require(graph_.begin[i] <= graph_.begin[i + 1], "indptr: ascending");
        require(all_within(graph_.to, entries, 0, nodes), "indices: between 0 and the number of nodes");
        double total = 0.0;
        for (int64_t e = 0; e < entries; ++e) {
            require(graph_.weight[e] >= 0 && graph_.weight[e] == std::floor(graph_.weight[e]),
                    "weights: whole numbers from 0");
            total += graph_.weight[e];
        }
        require(total < 0x1p53, "weights: a total below 2^53");
        require(is_symmetric(graph_), "weights: the same in both directions");
    }

    In1<int64_t> indptr_;
    In1<int32_t> indices_;
    In1<double> weights_;
    Graph graph_;
    std::vector<double> strengths_;
};

using Csr = std::tuple<Array<int64_t, 1>, Array<int32_t, 1>, Array<double, 1>>;

Csr give_graph(OwnGraph&& graph) {
    const size_t starts = graph.begin.size(), entries = graph.to.size();
    return {give<int64_t, 1>(std::move(graph.begin), {starts}), give<int32_t, 1>(std::move(graph.to), {entries}),
            give<double, 1>(std::move(graph.weight), {entries})};
}

Csr join_nodes(const CheckedGraph& graph, const In1<int32_t>& labels, int64_t communities) {
    OwnGraph found;
    {
        nb::gil_scoped_release released;
        found = graph.joined(labels, communities);
    }
    return give_graph(std::move(found));
}

std::tuple<Array<int32_t, 1>, Array<int32_t, 1>, Array<double, 1>, Array<double, 1>> give_borders(
    const CheckedGraph& graph, const In1<int32_t>& labels, int64_t communities, const In1<double>& sparsity,
    const In1<double>& within) {
    Borders found;
    {
        nb::gil_scoped_release released;
        found = graph.borders(labels, communities, sparsity, within);
    }
    const size_t count = found.first.size();
    return {give<int32_t, 1>(std::move(found.first), {count}), give<int32_t, 1>(std::move(found.second), {count}),
            give<double, 1>(std::move(found.closeness), {count}), give<double, 1>(std::move(found.rise), {count})};
}

Csr count_shared_rows(const In2<int32_t>& near, const In1<double>& weights, int64_t nodes, int64_t threads) {
    OwnGraph found;
    {
        nb::gil_scoped_release released;
        const int64_t rows = int64_t(near.shape(0)), m = int64_t(near.shape(1));
        require(nodes >= 0 && nodes < (int64_t(1) << 31), "n_nodes: fewer than 2^31");
        require(m > 0, "near: at least one node for each row");
        require(weights.shape(0) == near.shape(0), "weights: one for each row");
        require(all_within(near.data(), near.size(), 0, nodes), "near: between 0 and the number of nodes");
        found = connected(near.data(), weights.data(), rows, m, nodes, threads);
    }
    return give_graph(std::move(found));
}

}  // namespace

void define_graphs(nb::module_& module) {
    nb::class_<CheckedGraph>(module, "Graph")
        .def(nb::init<In1<int64_t>, In1<int32_t>, In1<double>>(), nb::arg("indptr"), nb::arg("indices"),
             nb::arg("weights"));
    module.def("leiden", &CheckedGraph::leiden, nb::arg("graph"), nb::arg("resolution"), nb::arg("seed"),
               nb::arg("start").none(), nb::arg("iterations"));
    module.def("modularity", &CheckedGraph::modularity, nb::arg("graph"), nb::arg("labels"), nb::arg("resolution"));
    module.def("join_nodes", &join_nodes, nb::arg("graph"), nb::arg("labels"), nb::arg("n_communities"));
    module.def("count_shared_rows", &count_shared_rows, nb::arg("near"), nb::arg("weights"), nb::arg("n_nodes"),
               nb::arg("n_threads") = 1);
    module.def("leaving_edges", &CheckedGraph::leaving, nb::arg("graph"), nb::arg("labels"));
    module.def("borders", &give_borders, nb::arg("graph"), nb::arg("labels"), nb::arg("n_communities"), nb::arg("sparsity"),
               nb::arg("within"));
}

}  // namespace dc2
