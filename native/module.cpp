// The native core as a Python module: checks shapes, releases the GIL, calls the loops. It holds no state.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include <algorithm>
#include <cmath>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include "arrays.hpp"
#include "coleaf.hpp"
#include "long_links.hpp"
#include "graphs.hpp"
#include "grow.hpp"
#include "lists.hpp"
#include "rough.hpp"

namespace dc2 {

namespace {

// --- scanning: each argument is a record of src/dc2/core/reference.py ------------------------------------------------

template <class T>
using FlatTree = std::tuple<In2<T>, In1<T>, In2<int32_t>>;
template <class T>
using Centres = std::tuple<In2<T>, optional<In2<int32_t>>, optional<In2<T>>, int64_t>;
using SumsOut = std::tuple<In2<double>, Out1<int64_t>, Out3<double>, Out1<double>>;
template <class T>
using FoundOut = std::tuple<optional<Out1<int32_t>>, optional<Out2<int32_t>>, optional<Out2<T>>>;

// Whether every row reaches a leaf: children come after their parent, and each leaf and each node but the root once.
bool makes_a_tree(const int32_t* children, int64_t nodes) {
    std::vector<bool> met(2 * nodes + 1, false);  // leaves, then nodes
    for (int64_t node = 0; node < nodes; ++node) {
        for (int side = 0; side < 2; ++side) {
            const int64_t child = children[2 * node + side];
            if (child < 0 ? ~child > nodes : child <= node || child >= nodes) return false;
            const int64_t at = child < 0 ? ~child : nodes + 1 + child;
            if (met[at]) return false;
            met[at] = true;
        }
    }
    return true;
}

// A tree with its centres, checked and in the form that loops read: made once, searched often, by any threads.
template <class T>
class Searchable {
public:
    Searchable(const FlatTree<T>& tree, const Centres<T>& centres) : tree_(tree), centres_(centres) {
        const auto& [directions, thresholds, children] = tree_;
        const auto& [points, neighbor_lists, gaps, beam] = centres_;
        const size_t nodes = thresholds.shape(0), width = directions.shape(1);
        require(directions.shape(0) == nodes, "directions: shape");
        require(children.shape(0) == nodes && children.shape(1) == 2, "children: shape");
        require(makes_a_tree(children.data(), int64_t(nodes)), "children: no tree");
        require(points.shape(1) == width, "centres: width");
        require(!neighbor_lists || (neighbor_lists->shape(0) == nodes + 1 && gaps && gaps->shape(0) == nodes + 1 &&
                               gaps->shape(1) == neighbor_lists->shape(1) && neighbor_lists->shape(1) > 0),
                "neighbor_lists and gaps: shape");
        require(!neighbor_lists || points.shape(0) == nodes + 1, "centres: one per leaf");
        require(!neighbor_lists ||
                    all_within(neighbor_lists->data(), neighbor_lists->size(), 0, int64_t(points.shape(0))),
                "neighbor_lists: indices of centres");
        check_beam(beam);
        nb::gil_scoped_release released;
        job_.thresholds = thresholds.data();
        job_.children = children.data();
        job_.nodes = int64_t(nodes);
        job_.candidates = neighbor_lists ? int64_t(neighbor_lists->shape(1)) : 0;
        job_.candidate_step = (job_.candidates + 3) / 4 * 4;
        job_.signatures = int64_t(points.shape(0));
        job_.neighbor_lists = neighbor_lists ? in_fours<int32_t>(*neighbor_lists, lists_in_fours_) : nullptr;
        job_.gaps = neighbor_lists ? in_fours<T>(*gaps, gaps_in_fours_) : nullptr;
        job_.directions = padded<T>(directions, padded_directions_);
        job_.centres = padded<T>(points, padded_centres_);
        if (neighbor_lists) rough_copy_ = RoughCopy(points.data(), job_.signatures, int64_t(width), int64_t(width));
        rough_ = rough_copy_.view();
        job_.rough = &rough_;
    }

    int64_t scan(const Rows<T>& X, const optional<In1<double>>& weights, optional<SumsOut> sums, FoundOut<T> found,
                 optional<int64_t> beam) {
        auto& [ids, near_ids, near_squared] = found;
        const size_t n = X.shape(0), width = X.shape(1), signatures = size_t(job_.signatures);
        require(width == std::get<0>(tree_).shape(1), "X: as many columns as the tree has");
        require(!weights || weights->shape(0) == n, "weights: length");
        require(!sums || job_.signatures == job_.nodes + 1, "centres: one per leaf");
        require(!ids || ids->shape(0) == n, "ids: length");
        require(!near_ids || (job_.candidates && near_ids->shape(0) == n && near_squared &&
                              near_squared->shape(0) == n && near_squared->shape(1) == near_ids->shape(1) &&
                              near_ids->shape(1) > 0 && near_ids->shape(1) <= size_t(job_.candidates)),
                "near_ids and near_squared: shape");
        ScanJob<T> job = job_;
        job.X = matrix<T>(X);
        job.weights = pointer(weights);
        job.beam = check_beam(beam ? *beam : std::get<3>(centres_));
        if (sums) {
            const auto& [magic, counts, totals, reach] = *sums;
            require(totals.shape(0) == 2 && totals.shape(1) == signatures && totals.shape(2) == width + 2 &&
                        counts.shape(0) == signatures && reach.shape(0) == signatures && magic.shape(0) == 2 &&
                        magic.shape(1) == width + 2,
                    "magic, counts, totals and reach: shape");
            job.magic = magic.data();
            job.counts = counts.data();
            job.totals = totals.data();
            job.reach = reach.data();
        }
        job.ids = pointer(ids);
        job.near_ids = pointer(near_ids);
        job.near_distances = pointer(near_squared);
        job.few = near_ids ? int64_t(near_ids->shape(1)) : 1;
        nb::gil_scoped_release released;
        if (!job.candidates || padded_width(int64_t(width)) <= kWidestNarrow) return kernels<T>().scan(job);
        std::vector<uint8_t> marks = taken_marks();
        job.tried = {marks.data(), &marks.back()};
        const int64_t bad = kernels<T>().scan(job);
        std::lock_guard<std::mutex> lock(free_);
        free_marks_.push_back(std::move(marks));
        return bad;
    }

private:
    static int64_t check_beam(int64_t beam) {
        require(beam > 0 && beam <= (int64_t(1) << 20), "beam: between 1 and 2^20");
        return beam;
    }

    // A mark for each centre, and the last mark given: those of a search that has ended, or new ones.
    std::vector<uint8_t> taken_marks() {
        std::lock_guard<std::mutex> lock(free_);
        if (free_marks_.empty()) return std::vector<uint8_t>(size_t(job_.signatures) + 1);
        std::vector<uint8_t> marks = std::move(free_marks_.back());
        free_marks_.pop_back();
        return marks;
    }

    const FlatTree<T> tree_;  // these keep the arrays alive
    const Centres<T> centres_;
    LineBuffer<T> padded_directions_, padded_centres_;
    std::vector<T> gaps_in_fours_;
    std::vector<int32_t> lists_in_fours_;
    RoughCopy rough_copy_;
    Rough rough_;
    ScanJob<T> job_ = {};
    std::mutex free_;
    std::vector<std::vector<uint8_t>> free_marks_;
};

template <class T>
int64_t scan(const Rows<T>& X, const optional<In1<double>>& weights, const FlatTree<T>& tree,
             const Centres<T>& centres, optional<SumsOut> sums, FoundOut<T> found) {
    return Searchable<T>(tree, centres).scan(X, weights, sums, found, std::nullopt);
}

Cut cut_named(const std::string& name) {
    if (name == "median") return Cut::median;
    if (name == "mean") return Cut::mean;
    if (name == "uniform") return Cut::uniform;
    if (name == "quantile") return Cut::quantile;
    throw std::invalid_argument("cut: " + name);
}

// leaf_size, max_leaves, cut, sharpen, n_candidates
using GrowRule = std::tuple<double, int64_t, std::string, int64_t, int64_t>;

template <class T>
std::tuple<Array<T, 2>, Array<T, 1>, Array<int32_t, 2>, Array<int32_t, 1>> grow(
    const Rows<T>& X, const optional<In1<double>>& weights, uint64_t seed, const GrowRule& rule,
    const In1<float>& normal_table, int64_t n_threads) {
    const auto& [leaf_size, max_leaves, cut, sharpen, candidates] = rule;
    const size_t n = X.shape(0), width = X.shape(1);
    require(n > 0 && n < (size_t(1) << 32), "X: between 1 and 2^32 - 1 rows");
    require(width > 0, "X: no columns");
    require(!weights || weights->shape(0) == n, "weights: length");
    require(normal_table.shape(0) == 4096, "normal_table: 4096 quantiles");
    require(candidates > 0 && sharpen >= 0 && max_leaves > 0, "n_candidates, sharpen, max_leaves: range");
    require(n_threads > 0, "n_threads: positive");
    const GrowOptions options = {seed, leaf_size, max_leaves, cut_named(cut), sharpen, candidates,
                                 normal_table.data(), n_threads};
    Tree<T> tree;
    {
        nb::gil_scoped_release released;
        tree = grow_tree<T>(matrix<T>(X), pointer(weights), options);
    }
    const size_t nodes = tree.thresholds.size();
    return {give<T, 2>(std::move(tree.directions), {nodes, width}), give<T, 1>(std::move(tree.thresholds), {nodes}),
            give<int32_t, 2>(std::move(tree.children), {nodes, 2}),
            give<int32_t, 1>(std::move(tree.leaf_of_row), {n})};
}

Array<uint64_t, 1> hash_rows(uint64_t seed, int64_t start, int64_t stop) {
    require(start >= 0, "start: not negative");
    std::vector<uint64_t> hashes(std::max<int64_t>(stop - start, 0));
    {
        nb::gil_scoped_release released;
        for (int64_t i = start; i < stop; ++i) hashes[i - start] = hash_row(seed, uint64_t(i));
    }
    const size_t count = hashes.size();
    return give<uint64_t, 1>(std::move(hashes), {count});
}

template <class T>
Array<uint64_t, 1> hash_contents(const Rows<T>& X) {
    std::vector<uint64_t> hashes(X.shape(0), 0);
    {
        nb::gil_scoped_release released;
        kernels<T>().hash_contents(matrix<T>(X), hashes.data());
    }
    const size_t count = hashes.size();
    return give<uint64_t, 1>(std::move(hashes), {count});
}

Array<int64_t, 1> sample_rows(uint64_t seed, int64_t start, int64_t stop, uint64_t limit) {
    require(start >= 0, "start: not negative");
    std::vector<int64_t> rows;
    {
        nb::gil_scoped_release released;
        for (int64_t i = start; i < stop; ++i)
            if (hash_row(seed, uint64_t(i)) <= limit) rows.push_back(i);
    }
    const size_t count = rows.size();
    return give<int64_t, 1>(std::move(rows), {count});
}

Array<int32_t, 2> count_shared_leaves(const In2<int32_t>& a, const In2<int32_t>& b) {
    require(a.shape(0) == b.shape(0), "a and b: as many trees");
    const int64_t most_leaves = int64_t(1) << 30;
    require(all_within(a.data(), a.size(), 0, most_leaves) && all_within(b.data(), b.size(), 0, most_leaves),
            "a and b: leaves from 0 to 2^30");
    const size_t n = a.shape(1), m = b.shape(1);
    std::vector<int32_t> counts(n * m, 0);
    {
        nb::gil_scoped_release released;
        coleaf_counts(a.data(), int64_t(n), b.data(), int64_t(m), int64_t(a.shape(0)), counts.data());
    }
    return give<int32_t, 2>(std::move(counts), {n, m});
}

// --- nearest neighbours -------------------------------------------------------------------------------------------

template <class T>
using Lists = NeighbourLists<T>;

template <class T>
Lists<T> neighbour_lists(const In2<T>& points, int64_t width, Out2<int32_t>& ids, Out2<T>& distances) {
    const size_t n = points.shape(0), k = ids.shape(1);
    require(n < (size_t(1) << 31), "points: fewer than 2^31");
    require(width > 0 && size_t(padded_width(width)) == points.shape(1), "points: rows of whole lanes");
    require(ids.shape(0) == n && distances.shape(0) == n && distances.shape(1) == k && k > 0, "lists: shape");
    const int64_t step = int64_t(points.shape(1));
    return {{points.data(), int64_t(n), width, step, 1, true}, int64_t(k), ids.data(), distances.data()};
}

template <class T>
void offer_groups(const In2<T>& points, int64_t width, const In1<int32_t>& order, const In1<int64_t>& starts,
                  std::tuple<int64_t, int64_t> span, Out2<int32_t> ids, Out2<T> distances) {
    const Lists<T> lists = neighbour_lists<T>(points, width, ids, distances);
    const auto [begin, end] = span;
    const int64_t n = int64_t(order.shape(0));
    const size_t groups = starts.shape(0);
    require(all_within(order.data(), order.shape(0), 0, lists.points.rows), "order: points");
    require(groups > 1 && starts.data()[0] == 0 && starts.data()[groups - 1] == n &&
                std::is_sorted(starts.data(), starts.data() + groups),
            "starts: from 0 to the number of points, ascending");
    require(0 <= begin && begin <= end && end <= n, "span: indices of order");
    nb::gil_scoped_release released;
    kernels<T>().offer_groups(lists, order.data(), starts.data(), begin, end);
}

template <class T>
void offer_links(const In2<T>& points, int64_t width, const In2<int32_t>& links, const In2<uint8_t>& fresh,
                 const In1<int32_t>& queries, Out2<int32_t> ids, Out2<T> distances, const optional<In2<float>>& least,
                 RoughCopy* rough) {
    const Lists<T> lists = neighbour_lists<T>(points, width, ids, distances);
    require(!least || (least->shape(0) == points.shape(0) && least->shape(1) == points.shape(0)), "least: shape");
    require(links.shape(0) == points.shape(0) && fresh.shape(0) == links.shape(0) && fresh.shape(1) == links.shape(1),
            "links and fresh: shape");
    nb::gil_scoped_release released;  // before links are checked: there are many
    require(all_within(links.data(), links.size(), -1, lists.points.rows), "links: points");
    require(all_within(queries.data(), queries.size(), 0, lists.points.rows), "queries: points");
    const Rough view = rough == nullptr ? Rough{} : rough->view();
    require(rough == nullptr || rough->fits(lists.points.rows, width), "rough: a copy of the points");
    const Links all = {links.data(), fresh.data(), int64_t(links.shape(1)), least ? least->data() : nullptr, &view};
    kernels<T>().offer_links(lists, all, queries.data(), int64_t(queries.shape(0)));
}

std::tuple<Array<int32_t, 2>, Array<uint8_t, 2>> links_of(const In2<int32_t>& ids, const In2<int32_t>& before,
                                                          int64_t width) {
    const size_t n = ids.shape(0), k = ids.shape(1);
    require(before.shape(0) == n && before.shape(1) == k && k > 0, "before: shape of ids");
    require(width > 0, "width: positive");
    require(all_within(ids.data(), ids.size(), 0, int64_t(1) << 31), "ids: not negative");
    LinkTable table;
    {
        nb::gil_scoped_release released;
        table = link_neighbours(ids.data(), before.data(), int64_t(n), int64_t(k), width);
    }
    return {give<int32_t, 2>(std::move(table.ids), {n, size_t(width)}),
            give<uint8_t, 2>(std::move(table.fresh), {n, size_t(width)})};
}

template <class T>
void pair_squares(const In2<T>& A, const In1<int32_t>& in_a, const In2<T>& B, const In1<int32_t>& in_b,
                  Out1<double> out) {
    require(A.shape(1) == B.shape(1), "A and B: as many columns");
    require(in_a.shape(0) == in_b.shape(0) && in_a.shape(0) == out.shape(0), "in_a, in_b and out: length");
    nb::gil_scoped_release released;
    require(all_within(in_a.data(), in_a.size(), 0, int64_t(A.shape(0))), "in_a: rows of A");
    require(all_within(in_b.data(), in_b.size(), 0, int64_t(B.shape(0))), "in_b: rows of B");
    kernels<T>().pair_squares(A.data(), in_a.data(), B.data(), in_b.data(), int64_t(in_a.shape(0)), int64_t(A.shape(1)),
                              out.data());
}

template <class T>
void copies(const In2<int32_t>& near, const In2<T>& near_distances, const In1<int64_t>& starts,
            const In1<int32_t>& rows, Out2<int32_t> ids, Out2<T> distances) {
    const size_t places = near.shape(0), n = ids.shape(0), k = ids.shape(1);
    require(near_distances.shape(0) == places && near_distances.shape(1) == near.shape(1), "near_distances: shape");
    require(distances.shape(0) == n && distances.shape(1) == k && k > 0 && rows.shape(0) == n, "lists: shape");
    require(starts.shape(0) == places + 1 && starts.data()[0] == 0 && starts.data()[places] == int64_t(n) &&
                std::is_sorted(starts.data(), starts.data() + places + 1),
            "starts: from 0 to the number of rows, ascending");
    require(all_within(rows.data(), n, 0, int64_t(n)), "rows: numbers of rows");
    require(all_within(near.data(), near.size(), 0, int64_t(places)), "near: numbers of points");
    nb::gil_scoped_release released;
    offer_copies<T>({near.data(), near_distances.data(), int64_t(near.shape(1)), starts.data(), rows.data(),
                     int64_t(places)},
                    int64_t(k), ids.data(), distances.data());
}

Array<int32_t, 2> long_links_of(const In2<double>& to_some, const In1<int32_t>& some, const In2<int32_t>& near, int64_t first,
                           int64_t most) {
    const int64_t signatures = int64_t(to_some.shape(0));
    const size_t rows = near.shape(0);
    require(to_some.shape(1) == some.shape(0), "some: as many as columns");
    require(all_within(some.data(), some.size(), 0, signatures), "some: signatures");
    require(all_within(near.data(), near.size(), 0, signatures), "near: signatures");
    require(first >= 0 && int64_t(rows) <= signatures && first <= signatures - int64_t(rows), "first: a signature, and as many behind it as rows");
    require(most > 0, "most: at least one");
    std::vector<int32_t> long_links(rows * size_t(most));
    {
        nb::gil_scoped_release released;
        find_long_links({to_some.data(), some.data(), int64_t(some.shape(0))}, near.data(), int64_t(rows),
                   int64_t(near.shape(1)), first, most, long_links.data());
    }
    return give<int32_t, 2>(std::move(long_links), {rows, size_t(most)});
}

template <class T>
void define_neighbours_for(nb::module_& module) {
    module.def("offer_groups", &offer_groups<T>, nb::arg("points").noconvert(), nb::arg("width"), nb::arg("order"),
               nb::arg("starts"), nb::arg("span"), nb::arg("ids").noconvert(), nb::arg("distances").noconvert());
    module.def("offer_links", &offer_links<T>, nb::arg("points").noconvert(), nb::arg("width"), nb::arg("links"),
               nb::arg("fresh"), nb::arg("queries"), nb::arg("ids").noconvert(), nb::arg("distances").noconvert(),
               nb::kw_only(), nb::arg("least").none() = nb::none(), nb::arg("rough").none() = nb::none());
    module.def("pair_squares", &pair_squares<T>, nb::arg("A").noconvert(), nb::arg("in_a"), nb::arg("B").noconvert(),
               nb::arg("in_b"), nb::arg("out").noconvert());
    module.def("offer_copies", &copies<T>, nb::arg("near"), nb::arg("near_distances"), nb::arg("starts"),
               nb::arg("rows"), nb::arg("ids").noconvert(), nb::arg("distances").noconvert());
}

template <class T>
void define_for(nb::module_& module) {
    module.def("scan", &scan<T>, nb::arg("X").noconvert(), nb::arg("weights").none(), nb::arg("tree"),
               nb::arg("centres"), nb::arg("sums").noconvert().none(), nb::arg("found").noconvert());
    nb::class_<Searchable<T>>(module, std::is_same_v<T, float> ? "SearchableFloat" : "SearchableDouble")
        .def("scan", &Searchable<T>::scan, nb::arg("X").noconvert(), nb::arg("weights").none(),
             nb::arg("sums").noconvert().none(), nb::arg("found").noconvert(), nb::arg("beam").none() = nb::none());
    module.def("searchable", [](const FlatTree<T>& tree, const Centres<T>& centres) {
        return new Searchable<T>(tree, centres);
    }, nb::arg("tree").noconvert(), nb::arg("centres"));
    module.def("rough_copy", [](const In2<T>& points) {
        nb::gil_scoped_release released;
        return new RoughCopy(points.data(), int64_t(points.shape(0)), int64_t(points.shape(1)), int64_t(points.shape(1)));
    }, nb::arg("points").noconvert());
    module.def("hash_contents", &hash_contents<T>, nb::arg("X").noconvert());
    module.def("grow_tree", &grow<T>, nb::arg("X").noconvert(), nb::arg("weights").none(), nb::arg("seed"),
               nb::arg("rule"), nb::arg("normal_table"), nb::arg("n_threads") = 1);
}

}  // namespace
}  // namespace dc2

NB_MODULE(_native, module) {
    using namespace dc2;
    nb::class_<RoughCopy>(module, "RoughCopy");
    define_for<float>(module);
    define_for<double>(module);
    define_neighbours_for<float>(module);
    define_neighbours_for<double>(module);
    module.def("find_long_links", &long_links_of, nb::arg("to_some").noconvert(), nb::arg("some"), nb::arg("near"),
               nb::arg("first"), nb::arg("most"));
    module.def("link_neighbours", &links_of, nb::arg("ids"), nb::arg("before"), nb::arg("width"));
    module.def("hash_rows", &hash_rows, nb::arg("seed"), nb::arg("start"), nb::arg("stop"));
    module.def("sample_rows", &sample_rows, nb::arg("seed"), nb::arg("start"), nb::arg("stop"), nb::arg("limit"));
    module.def("coleaf_counts", &count_shared_leaves, nb::arg("a"), nb::arg("b"));
    define_graphs(module);
    module.def("simd_level", &simd_level);
}
