// Grows one tree, largest node first. Follows src/dc2/core/reference.py step by step, bit for bit.
#include "grow.hpp"

#include "device.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <queue>

namespace dc2 {

uint64_t hash_row(uint64_t seed, uint64_t row) { return device::hash_row(seed, row); }

namespace {

constexpr int64_t kSharpenRows = 512;
constexpr int64_t kPaddedBytes = 64 << 20;  // rows that need no more are copied to where loops can read them in place
constexpr double kDirectionGrid = 1048576.0;  // 2^20
constexpr double kClearlyMore = 1.0 + 0x1p-20;
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

template <class T>
class Grower {
public:
    Grower(const Matrix<T>& X, const double* weights, const GrowOptions& options)
        : X_(X), weights_(weights), options_(options), loops_(kernels<T>()), padded_(padded_width(X.width)),
          order_(X.rows), projection_(X.rows), best_projection_(X.rows), moved_(X.rows) {
        std::iota(order_.begin(), order_.end(), 0u);
        if (!X.in_lanes && X.rows * padded_ * int64_t(sizeof(T)) <= kPaddedBytes) pad();
    }

    Tree<T> grow() {
        std::priority_queue<Node, std::vector<Node>, Smaller> queue;
        std::vector<Node> leaves;
        int64_t created = 0;
        queue.push({size(0, X_.rows), created++, 0, X_.rows, -1, 0});
        while (!queue.empty()) {
            const Node node = queue.top();
            queue.pop();
            const bool full = int64_t(queue.size() + leaves.size()) + 1 >= options_.max_leaves;
            if (full || node.size < options_.leaf_size || node.end - node.begin < 2 || !place_cut(node)) {
                leaves.push_back(node);
                continue;
            }
            const int32_t id = int32_t(tree_.thresholds.size());
            tree_.directions.insert(tree_.directions.end(), direction_.begin(), direction_.begin() + X_.width);
            tree_.thresholds.push_back(threshold_);
            tree_.children.insert(tree_.children.end(), {0, 0});
            if (node.parent >= 0) tree_.children[2 * node.parent + node.side] = id;
            const int64_t middle = part(node);
            queue.push({size(node.begin, middle), created++, node.begin, middle, id, 0});
            queue.push({size(middle, node.end), created++, middle, node.end, id, 1});
        }
        std::sort(leaves.begin(), leaves.end(), [](const Node& a, const Node& b) { return a.begin < b.begin; });
        tree_.leaf_of_row.resize(X_.rows);
        for (size_t leaf = 0; leaf < leaves.size(); ++leaf) {
            const Node& node = leaves[leaf];
            for (int64_t i = node.begin; i < node.end; ++i) tree_.leaf_of_row[order_[i]] = int32_t(leaf);
            if (node.parent >= 0) tree_.children[2 * node.parent + node.side] = ~int32_t(leaf);
        }
        return std::move(tree_);
    }

private:
    void pad() {
        store_ = LineBuffer<T>(X_.rows * padded_);
        T* rows = store_.data();
        for (int64_t i = 0; i < X_.rows; ++i)
            for (int64_t j = 0; j < X_.width; ++j)
                rows[i * padded_ + j] = X_.data[i * X_.row_step + j * X_.column_step];
        X_ = {rows, X_.rows, X_.width, padded_, 1, true};
    }

    double weight(int64_t i) const { return weights_ == nullptr ? 1.0 : weights_[order_[i]]; }

    double size(int64_t begin, int64_t end) const {
        if (weights_ == nullptr) return double(end - begin);
        double total = 0;
        for (int64_t i = begin; i < end; ++i) total += weight(i);
        return total;
    }

    // Sets direction_, projection_[0..count) and threshold_; false where the node's rows are all the same.
    bool place_cut(const Node& node) {
        const int64_t count = node.end - node.begin;
        double best_spread = 0;
        std::vector<T> best;
        for (int64_t candidate = 0; candidate < options_.candidates; ++candidate) {
            draw_direction(nodes() * options_.candidates + candidate);
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

    void project(const Node& node) {
        loops_.project(X_, order_.data() + node.begin, node.end - node.begin, direction_.data(), projection_.data());
    }

    int64_t nodes() const { return int64_t(tree_.thresholds.size()); }

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
            best_projection_.resize(X_.rows);
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
        return from + draw_uniform(options_.seed, nodes()) * (to - from);
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

    // Moves the rows at or below the threshold to the front, keeping their order; returns where the others begin.
    int64_t part(const Node& node) {
        int64_t front = node.begin, behind = 0;
        for (int64_t i = node.begin; i < node.end; ++i) {
            // Written to both, kept in one: which of them cannot be guessed, and guessing wrong costs more.
            const bool left = projection_[i - node.begin] <= threshold_;
            const uint32_t row = order_[i];
            order_[front] = row;
            moved_[behind] = row;
            front += left;
            behind += !left;
        }
        std::copy_n(moved_.begin(), behind, order_.begin() + front);
        return front;
    }

    Matrix<T> X_;
    LineBuffer<T> store_;
    const double* weights_;
    const GrowOptions& options_;
    const Kernels<T>& loops_;
    const int64_t padded_;
    std::vector<uint32_t> order_;
    std::vector<T> projection_, best_projection_;
    std::vector<uint32_t> moved_;
    std::vector<T> direction_;
    T threshold_ = 0;
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
