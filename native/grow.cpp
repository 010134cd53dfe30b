// Grows one tree, largest node first. Follows src/dc2/core/reference.py step by step, bit for bit.
#include "grow.hpp"

#include "device.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <exception>
#include <limits>
#include <mutex>
#include <numeric>
#include <queue>
#include <thread>

namespace dc2 {

uint64_t hash_row(uint64_t seed, uint64_t row) { return device::hash_row(seed, row); }

namespace {

constexpr int64_t kSharpenRows = 512;
constexpr int64_t kPaddedBytes = 64 << 20;  // rows that need no more are copied to where loops can read them in place
constexpr double kDirectionGrid = 1048576.0;  // 2^20
constexpr double kClearlyMore = 1.0 + 0x1p-20;
constexpr int64_t kAhead = 16;         // nodes for each thread to work ahead on
constexpr double kLikely = 0.75;       // of the largest node: children are hardly ever larger
constexpr int64_t kManyNumbers = 1 << 20;  // to be worth several threads for one node
constexpr uint64_t kCutStream = 0xD1B54A32D192ED03ull;

double draw_uniform(uint64_t seed, int64_t draw) {
    return double(hash_row(seed ^ kCutStream, uint64_t(draw)) >> 11) * 0x1p-53;
}

struct Node {
    double size;
    int64_t created, begin, end;  // its rows are order[begin..end)
    int32_t parent;
    int side;
};

struct Smaller {
    bool operator()(const Node& a, const Node& b) const {
        return a.size != b.size ? a.size < b.size : a.created > b.created;
    }
};

// What all who place cuts look at: rows, their weights, and the order in which nodes hold them.
template <class T>
struct Held {
    Matrix<T> X;
    const double* weights;
    const GrowOptions& options;
    const Kernels<T>& loops;
    int64_t padded;
    std::vector<uint32_t> order;

    double weight(int64_t i) const { return weights == nullptr ? 1.0 : weights[order[i]]; }
};

// Does work(0), work(1), ... in some threads; which of them does what is left to chance.
template <class Work>
void in_threads(int64_t threads, int64_t count, const Work& work) {
    std::atomic<int64_t> next(0);
    std::exception_ptr broken;
    std::mutex breaking;
    const auto run = [&] {
        try {
            for (int64_t i = next++; i < count; i = next++) work(i);
        } catch (...) {
            std::lock_guard<std::mutex> lock(breaking);
            broken = std::current_exception();
        }
    };
    std::vector<std::thread> others;
    for (int64_t t = 1; t < std::min(threads, count); ++t) others.emplace_back(run);
    run();
    for (std::thread& other : others) other.join();
    if (broken) std::rethrow_exception(broken);
}

// Places the cut of one node; several may do so at once, for different nodes.
template <class T>
class Cutter {
public:
    Cutter(const Held<T>& held, int64_t split, int64_t threads)
        : held_(held), X_(held.X), weights_(held.weights), options_(held.options), loops_(held.loops),
          padded_(held.padded), order_(held.order), split_(split), threads_(threads) {}

    std::vector<T> take_direction() { return std::move(direction_); }
    std::vector<T> take_projection() { return std::move(projection_); }
    T threshold() const { return threshold_; }

    // Sets direction_, projection_[0..count) and threshold_; false where the node's rows are all the same.
    bool place_cut(const Node& node) {
        const int64_t count = node.end - node.begin;
        projection_.resize(count);
        best_projection_.resize(count);
        double best_spread = 0;
        std::vector<T> best;
        for (int64_t candidate = 0; candidate < options_.candidates; ++candidate) {
            draw_direction(split_ * options_.candidates + candidate);
            sharpen(node);
            project(node);
            const double spread = options_.candidates > 1 ? spread_of(node) : 0.0;
            if (best.empty() || spread > best_spread * kClearlyMore) {
                best = direction_;
                best_spread = spread;
                if (options_.candidates > 1)
                    std::copy_n(projection_.begin(), count, best_projection_.begin());
            }
        }
        if (options_.candidates > 1) {
            direction_ = best;
            std::copy_n(best_projection_.begin(), count, projection_.begin());
        }
        T low, high;
        loops_.range(projection_.data(), count, &low, &high);
        if (!(low < high)) {
            if (!take_widest_axis(node)) return false;
            project(node);
            loops_.range(projection_.data(), count, &low, &high);
        }
        set_threshold(count, low, high, cut_place(node, low, high));
        return true;
    }

private:
    double weight(int64_t i) const { return held_.weight(i); }

    void project(const Node& node) {
        const int64_t count = node.end - node.begin, pieces = count * X_.width < kManyNumbers ? 1 : threads_;
        in_threads(threads_, pieces, [&](int64_t piece) {
            const int64_t begin = count * piece / pieces, end = count * (piece + 1) / pieces;
            loops_.project(X_, order_.data() + node.begin + begin, end - begin, direction_.data(),
                           projection_.data() + begin);
        });
    }

    // Draws are numbered by splits, so a node that turns out to hold equal rows uses none up.
    void draw_direction(int64_t draw) {
        const int64_t width = X_.width, words = (width + 3) / 4;
        std::vector<double> v(width);
        uint64_t bits = 0;
        for (int64_t j = 0; j < width; ++j) {
            if (j % 4 == 0) bits = hash_row(options_.seed, uint64_t(draw * words + j / 4));
            v[j] = options_.normal_table[(bits >> (4 + 16 * (j % 4))) & 4095];
        }
        double square = 0;
        for (double entry : v) square += entry * entry;
        const double norm = std::sqrt(square);
        direction_.assign(padded_, T(0));
        for (int64_t j = 0; j < width; ++j) direction_[j] = T(v[j] / norm);
    }

    // v <- C v, normalised, with C the covariance of up to kSharpenRows of the node's rows.
    void sharpen(const Node& node) {
        if (options_.sharpen == 0) return;
        std::vector<uint32_t> rows(order_.begin() + node.begin,
                                   node.size > kSharpenRows ? order_.begin() + node.begin : order_.begin() + node.end);
        std::vector<double> weights;
        if (node.size > kSharpenRows) {
            systematic_rows(node, rows);
            weights.assign(rows.size(), 1.0);
        } else {
            for (int64_t i = node.begin; i < node.end; ++i) weights.push_back(weight(i));
        }
        const int64_t count = int64_t(rows.size());
        std::vector<T> p(count);
        std::vector<double> factor(count), pull(X_.width);
        for (int64_t step = 0; step < options_.sharpen; ++step) {
            loops_.project(X_, rows.data(), count, direction_.data(), p.data());
            double sum = 0, total = 0;
            for (int64_t i = 0; i < count; ++i) {
                factor[i] = double(p[i]) - double(p[0]);
                sum += weights[i] * factor[i];
                total += weights[i];
            }
            const double mean = sum / total;
            for (int64_t i = 0; i < count; ++i) factor[i] = weights[i] * (factor[i] - mean);
            loops_.pull(X_, rows.data(), count, factor.data(), pull.data());
            double square = 0;
            for (double entry : pull) square += entry * entry;
            const double norm = std::sqrt(square);
            if (!(norm > 0 && norm < std::numeric_limits<double>::infinity())) return;
            for (int64_t j = 0; j < X_.width; ++j)
                direction_[j] = T(std::nearbyint(pull[j] / norm * kDirectionGrid) / kDirectionGrid);
        }
    }

    // kSharpenRows rows, evenly spaced in cumulative weight.
    void systematic_rows(const Node& node, std::vector<uint32_t>& rows) const {
        rows.clear();
        const double gap = node.size / kSharpenRows;
        double cumulative = weight(node.begin);
        int64_t i = node.begin;
        for (int64_t k = 0; k < kSharpenRows; ++k) {
            const double target = (double(k) + 0.5) * gap;
            while (cumulative < target && i < node.end - 1) cumulative += weight(++i);
            rows.push_back(order_[i]);
        }
    }

    // Projections in whole steps above their minimum: their sums are exact.
    double grid_step(T low, T high) const {
        int exponent;
        std::frexp(double(high) - double(low), &exponent);
        return std::ldexp(1.0, std::max(exponent - 27, -1022));
    }

    double mean_steps(const Node& node, T low, double step) const {
        const int64_t count = node.end - node.begin;
        if (weights_ == nullptr) return loops_.sum_steps(projection_.data(), count, low, step) / double(count);
        double sum = 0, total = 0;
        for (int64_t i = 0; i < count; ++i) {
            const double w = weight(node.begin + i);
            sum += w * std::nearbyint((double(projection_[i]) - double(low)) / step);
            total += w;
        }
        return sum / total;
    }

    double spread_of(const Node& node) const {
        const int64_t count = node.end - node.begin;
        T low, high;
        loops_.range(projection_.data(), count, &low, &high);
        if (!(low < high)) return 0.0;
        const double step = grid_step(low, high), mean = mean_steps(node, low, step);
        double sum = 0;
        for (int64_t i = 0; i < count; ++i) {
            const double off = std::nearbyint((double(projection_[i]) - double(low)) / step) - mean;
            sum += weight(node.begin + i) * (off * off);
        }
        return sum * step * step;
    }

    // The smallest projection at which the cumulative weight reaches a share of the total.
    double quantile(const Node& node, double share) {
        const int64_t count = node.end - node.begin;
        if (weights_ == nullptr) {
            const int64_t at = std::min(int64_t(std::ceil(share * double(count))) - 1, count - 1);
            best_projection_.assign(projection_.begin(), projection_.begin() + count);
            std::nth_element(best_projection_.begin(), best_projection_.begin() + at, best_projection_.begin() + count);
            const double found = double(best_projection_[at]);
            return found;
        }
        std::vector<int64_t> sorted(count);
        std::iota(sorted.begin(), sorted.end(), int64_t(0));
        std::stable_sort(sorted.begin(), sorted.end(),
                         [&](int64_t a, int64_t b) { return projection_[a] < projection_[b]; });
        double total = 0;
        for (int64_t i : sorted) total += weight(node.begin + i);
        double cumulative = 0;
        for (int64_t i : sorted) {
            cumulative += weight(node.begin + i);
            if (cumulative >= share * total) return double(projection_[i]);
        }
        return double(projection_[sorted.back()]);
    }

    double cut_place(const Node& node, T low, T high) {
        if (options_.cut == Cut::median) return quantile(node, 0.5);
        if (options_.cut == Cut::mean) {
            const double step = grid_step(low, high);
            return double(low) + mean_steps(node, low, step) * step;
        }
        double from = double(low), to = double(high);
        if (options_.cut == Cut::quantile) {
            from = quantile(node, 0.25);
            to = quantile(node, 0.75);
        }
        return from + draw_uniform(options_.seed, split_) * (to - from);
    }

    // The middle of the gap between projections at the wanted place; both sides get rows.
    void set_threshold(int64_t count, T minimum, T maximum, double place) {
        const T infinity = std::numeric_limits<T>::infinity();
        T at = T(place);
        if (double(at) > place) at = std::nextafter(at, -infinity);
        at = std::min(std::max(at, minimum), std::nextafter(maximum, -infinity));
        T low = minimum, high = maximum;
        loops_.around(projection_.data(), count, at, &low, &high);
        const T middle = low + (high - low) * T(0.5);
        threshold_ = middle < high ? middle : low;
    }

    bool take_widest_axis(const Node& node) {
        T widest = 0;
        int64_t axis = -1;
        for (int64_t j = 0; j < X_.width; ++j) {
            const T* column = X_.data + j * X_.column_step;
            T low = column[order_[node.begin] * X_.row_step], high = low;
            for (int64_t i = node.begin; i < node.end; ++i) {
                const T x = column[order_[i] * X_.row_step];
                low = std::min(low, x);
                high = std::max(high, x);
            }
            if (high - low > widest) {
                widest = high - low;
                axis = j;
            }
        }
        if (axis < 0) return false;
        direction_.assign(padded_, T(0));
        direction_[axis] = 1;
        return true;
    }

    const Held<T>& held_;
    const Matrix<T>& X_;
    const double* weights_;
    const GrowOptions& options_;
    const Kernels<T>& loops_;
    const int64_t padded_;
    const std::vector<uint32_t>& order_;
    const int64_t split_;  // the number of the split: draws go by it
    const int64_t threads_;
    std::vector<T> projection_, best_projection_, direction_;
    T threshold_ = 0;
};

// Grows a tree. Nodes are split largest first, and draws go by the number of the split; so threads work ahead: on the
// nodes that come next if no child of an earlier one comes before them. Where one does, the work is done again.
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

    // Takes the nodes off the queue that are split next, unless a child of one comes before another; a leaf where the
    // next one is not split.
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
                goes_on = false;  // it used no draw up, so those of the others were not theirs
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
            // Written to both, kept in one: which of them cannot be guessed, and guessing wrong costs more.
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
