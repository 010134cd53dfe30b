// Grows one tree, largest node first. Follows src/dc2/core/reference.py step by step, bit for bit.
#include "grow.hpp"

#include <algorithm>
#include <numeric>
#include <queue>

#include "cut.hpp"
#include "numbers.hpp"
#include "threads.hpp"

namespace dc2 {

uint64_t hash_row(uint64_t seed, uint64_t row) { return device::hash_row(seed, row); }

namespace {

constexpr int64_t kPaddedBytes = 64 << 20;  // up to this size, rows are copied to a layout that loops read in place
constexpr int64_t kAhead = 16;              // nodes for each thread to work ahead on
constexpr double kLikely = 0.75;            // share of the largest node; children are hardly ever larger

struct Smaller {
    bool operator()(const Node& a, const Node& b) const {
        return a.size != b.size ? a.size < b.size : a.created > b.created;
    }
};

// Grows a tree. Nodes are split largest first, and draws are numbered by splits. Threads work ahead on the nodes that
// come next unless a child of an earlier one comes before them; if one does, the work is done again.
template <class T>
class Grower {
public:
    Grower(const Matrix<T>& X, const double* weights, const GrowOptions& options)
        : held_{X, weights, options, kernels<T>(), padded_width(X.width), std::vector<uint32_t>(X.rows)},
          options_(options), moved_(X.rows) {
        std::iota(held_.order.begin(), held_.order.end(), 0u);
        if (!X.in_lanes && X.rows * held_.padded * int64_t(sizeof(T)) <= kPaddedBytes) pad();
    }

    Tree<T> grow() {
        queue_.push({size(0, held_.X.rows), created_++, 0, held_.X.rows, -1, 0});
        while (!queue_.empty()) {
            std::vector<Placed> batch = next_nodes();
            place_cuts(batch);
            split(batch);
        }
        std::sort(leaves_.begin(), leaves_.end(), [](const Node& a, const Node& b) { return a.begin < b.begin; });
        tree_.leaf_of_row.resize(held_.X.rows);
        for (size_t leaf = 0; leaf < leaves_.size(); ++leaf) {
            const Node& node = leaves_[leaf];
            for (int64_t i = node.begin; i < node.end; ++i) tree_.leaf_of_row[held_.order[i]] = int32_t(leaf);
            if (node.parent >= 0) tree_.children[2 * node.parent + node.side] = ~int32_t(leaf);
        }
        return std::move(tree_);
    }

private:
    struct Placed {
        Node node;
        bool splits;
        std::vector<T> direction, projection;
        T threshold;
    };

    void pad() {
        const Matrix<T> X = held_.X;
        store_ = LineBuffer<T>(X.rows * held_.padded);
        T* rows = store_.data();
        for (int64_t i = 0; i < X.rows; ++i)
            for (int64_t j = 0; j < X.width; ++j)
                rows[i * held_.padded + j] = X.data[i * X.row_step + j * X.column_step];
        held_.X = {rows, X.rows, X.width, held_.padded, 1, true};
    }

    double size(int64_t begin, int64_t end) const {
        if (held_.weights == nullptr) return double(end - begin);
        double total = 0;
        for (int64_t i = begin; i < end; ++i) total += held_.weight(i);
        return total;
    }

    bool may_split(const Node& node) const {
        return !(node.size < options_.leaf_size) && node.end - node.begin >= 2;
    }

    // Takes the nodes off the queue that are split next, unless a child of one comes before another; makes a leaf of
    // the next one if it is not split.
    std::vector<Placed> next_nodes() {
        std::vector<Placed> batch;
        const double first_size = queue_.top().size;
        const size_t most = size_t(options_.threads > 1 ? kAhead * options_.threads : 1);
        while (!queue_.empty() && batch.size() < most) {
            const Node node = queue_.top();
            // By then each node of the batch has become two.
            const bool full = int64_t(queue_.size() + leaves_.size() + 2 * batch.size()) >= options_.max_leaves;
            const bool splits = !full && may_split(node);
            if (!batch.empty() && (!splits || node.size < kLikely * first_size)) break;
            queue_.pop();
            if (!splits) {
                leaves_.push_back(node);
                break;
            }
            batch.push_back({node, false, {}, {}, T(0)});
        }
        return batch;
    }

    void place_cuts(std::vector<Placed>& batch) const {
        const int64_t count = int64_t(batch.size()), first = int64_t(tree_.thresholds.size());
        in_threads(options_.threads, count, [&](int64_t i) {
            Placed& placed = batch[i];
            Cutter<T> cutter(held_, first + i, std::max<int64_t>(1, options_.threads / count));
            placed.splits = cutter.place_cut(placed.node);
            placed.direction = cutter.take_direction();
            placed.projection = cutter.take_projection();
            placed.threshold = cutter.threshold();
        });
    }

    // Splits the nodes of a batch as long as they come in the order in which the queue would have given them.
    void split(const std::vector<Placed>& batch) {
        size_t i = 0;
        for (bool goes_on = true; i < batch.size() && goes_on; ++i) {
            if (i > 0 && !queue_.empty() && Smaller()(batch[i].node, queue_.top())) break;
            if (batch[i].splits) {
                split(batch[i]);
            } else {
                leaves_.push_back(batch[i].node);
                goes_on = false;  // it used up no draw, so the others had the wrong draws
            }
        }
        for (; i < batch.size(); ++i) queue_.push(batch[i].node);
    }

    void split(const Placed& placed) {
        const Node& node = placed.node;
        const int32_t id = int32_t(tree_.thresholds.size());
        const auto direction = placed.direction.begin();
        tree_.directions.insert(tree_.directions.end(), direction, direction + held_.X.width);
        tree_.thresholds.push_back(placed.threshold);
        tree_.children.insert(tree_.children.end(), {0, 0});
        if (node.parent >= 0) tree_.children[2 * node.parent + node.side] = id;
        const int64_t middle = part(node, placed.projection, placed.threshold);
        queue_.push({size(node.begin, middle), created_++, node.begin, middle, id, 0});
        queue_.push({size(middle, node.end), created_++, middle, node.end, id, 1});
    }

    // Moves the rows at or below the threshold to the front, keeping their order; returns where the others begin.
    int64_t part(const Node& node, const std::vector<T>& projection, T threshold) {
        std::vector<uint32_t>& order = held_.order;
        int64_t front = node.begin, behind = 0;
        for (int64_t i = node.begin; i < node.end; ++i) {
            // Written to both sides, kept on one: a branch here could not be predicted, and would cost more.
            const bool left = projection[i - node.begin] <= threshold;
            const uint32_t row = order[i];
            order[front] = row;
            moved_[behind] = row;
            front += left;
            behind += !left;
        }
        std::copy_n(moved_.begin(), behind, order.begin() + front);
        return front;
    }

    Held<T> held_;
    LineBuffer<T> store_;
    const GrowOptions& options_;
    std::vector<uint32_t> moved_;
    std::priority_queue<Node, std::vector<Node>, Smaller> queue_;
    std::vector<Node> leaves_;
    int64_t created_ = 0;
    Tree<T> tree_;
};

}  // namespace

template <class T>
Tree<T> grow_tree(const Matrix<T>& X, const double* weights, const GrowOptions& options) {
    return Grower<T>(X, weights, options).grow();
}

template Tree<float> grow_tree(const Matrix<float>&, const double*, const GrowOptions&);
template Tree<double> grow_tree(const Matrix<double>&, const double*, const GrowOptions&);

}  // namespace dc2
