// Leiden's algorithm (Traag, Waltman, van Eck 2019). Follows src/dc2/core/graph_reference.py step by step, bit for bit.
#include "leiden.hpp"

#include <algorithm>
#include <deque>
#include <limits>
#include <numeric>

#include "grow.hpp"

namespace dc2 {

namespace {

constexpr int kRounds = 3;          // on graphs of parts, which are small: rounds are cheap there and gain much
constexpr int kShakes = 2;          // so many shakes in a row without a gain end the search
constexpr double kSlack = 0x1p-40;  // gains that differ by less than this share of their terms are equal
constexpr double kUntouched = -1.0;

// Prefetches the cache lines of some values.
template <class T>
void prefetch(const T* from, const T* to) {
#if defined(__GNUC__)
    for (; from < to; from += 64 / sizeof(T)) __builtin_prefetch(from);
#else
    (void)from, (void)to;
#endif
}

// A graph, its communities, and their parts, which are the nodes of the next level.
struct Level {
    Graph graph;
    std::vector<double> strength;
    std::vector<int32_t> community, part;
    std::vector<int64_t> begin;  // what `graph` points to, except on the first level
    std::vector<int32_t> to;
    std::vector<double> weight;
};

// The weights from one node, or part, to communities: a dense array, and a list of those that are touched.
class EdgeWeights {
public:
    explicit EdgeWeights(int64_t n) : weight_(n, kUntouched), touched_(n + 1), count_(0) {}
    void add(int32_t community, double weight) {
        const double before = weight_[community];
        touched_[count_] = community;  // without a branch: always written, kept only if new
        count_ += before < 0;
        weight_[community] = std::max(before, 0.0) + weight;
    }
    double to(int32_t community) const { return std::max(weight_[community], 0.0); }
    const int32_t* begin() const { return touched_.data(); }
    const int32_t* end() const { return touched_.data() + count_; }
    void clear() {
        for (const int32_t community : *this) weight_[community] = kUntouched;
        count_ = 0;
    }

private:
    std::vector<double> weight_;
    std::vector<int32_t> touched_;
    int64_t count_;
};

class Leiden {
public:
    Leiden(const Graph& graph, const std::vector<double>& strengths, const int32_t* start, double resolution,
           uint64_t seed)
        : resolution_(resolution), seed_(seed), step_(0), edge_weights_(graph.nodes), order_(graph.nodes),
          number_(graph.nodes), size_(graph.nodes), waiting_(graph.nodes), volume_(graph.nodes),
          part_volume_(graph.nodes), cut_(graph.nodes) {
        Level& base = level(0);
        base.graph = graph;
        base.strength = strengths;
        total_ = std::accumulate(base.strength.begin(), base.strength.end(), 0.0);
        if (total_ == 0) total_ = 1.0;
        base.community.resize(graph.nodes);
        if (start != nullptr)
            std::copy_n(start, graph.nodes, base.community.begin());
        else
            std::iota(base.community.begin(), base.community.end(), 0);
        renumber(base.community);
    }

    // Iterates; when nothing changes any more, shakes the communities and goes on from there. The best are kept.
    std::vector<int32_t> run(int64_t iterations) {
        int in_vain = -1;  // the first search is no shake
        for (int64_t i = 0; i != iterations && in_vain < kShakes; ++i) {
            const bool improved = improve(0, 1);
            if (split() || improved) continue;
            in_vain = keep_better() ? 0 : in_vain + 1;
            shake();
        }
        if (in_vain < kShakes) {  // the last parts have moved, and nodes have not followed yet
            move_nodes(level(0));
            split();
            if (best_.empty()) return level(0).community;
            keep_better();
        }
        return best_;
    }

private:
    // Moves nodes, turns the parts of communities into nodes, and improves these in turn. Returns whether anything
    // changed.
    bool improve(size_t depth, int rounds) {
        Level& here = level(depth);
        Level& next = level(depth + 1);
        bool changed = false, again = true;
        for (int round = 0; again && round < rounds; ++round) {
            const bool moved = move_nodes(here);
            changed |= moved;
            const int64_t communities = renumber(here.community);
            if (communities == here.graph.nodes) break;
            refine(here);
            int64_t parts = renumber(here.part);
            if (parts == here.graph.nodes) {  // refinement found nothing to join
                here.part = here.community;
                parts = communities;
            }
            aggregate(here, parts, next);
            const bool improved = improve(depth + 1, kRounds);
            for (int64_t i = 0; i < here.graph.nodes; ++i) here.community[i] = next.community[here.part[i]];
            changed |= improved;
            again = moved || improved;
        }
        return changed;
    }

    // Moves nodes, in random order, to the community of largest gain, until none has a better one.
    bool move_nodes(Level& here) {
        const Graph& graph = here.graph;
        const int64_t n = graph.nodes;
        std::vector<int32_t>& community = here.community;
        std::fill_n(volume_.begin(), n, 0.0);
        std::fill_n(size_.begin(), n, 0);
        for (int64_t i = 0; i < n; ++i) {
            volume_[community[i]] += here.strength[i];
            ++size_[community[i]];
        }
        empty_.clear();
        for (int64_t c = n; c-- > 0;)
            if (size_[c] == 0) empty_.push_back(int32_t(c));
        shuffle(n);
        std::fill_n(waiting_.begin(), n, 1);
        bool moved = false;
        int64_t head = 0;
        for (int64_t length = n; length > 0;) {
            const int32_t i = order_[head];
            if (++head == n) head = 0;
            if (--length > 0) {
                const int64_t soon = graph.begin[order_[head]], stop = graph.begin[order_[head] + 1];
                prefetch(graph.to + soon, graph.to + stop);
                prefetch(graph.weight + soon, graph.weight + stop);
            }
            waiting_[i] = 0;
            const int32_t from = community[i], to = best_community(here, i);
            if (to == from) continue;
            moved = true;
            volume_[from] -= here.strength[i];
            volume_[to] += here.strength[i];
            if (size_[to]++ == 0) empty_.pop_back();
            if (--size_[from] == 0) empty_.push_back(from);
            community[i] = to;
            for (int64_t e = graph.begin[i]; e < graph.begin[i + 1]; ++e) {
                const int32_t j = graph.to[e];
                if (waiting_[j] || community[j] == to) continue;
                waiting_[j] = 1;
                int64_t tail = head + length++;
                if (tail >= n) tail -= n;
                order_[tail] = j;
            }
        }
        return moved;
    }

    // The community in which a node gains most; an empty one if it is best off alone.
    int32_t best_community(const Level& here, int32_t i) {
        const Graph& graph = here.graph;
        for (int64_t e = graph.begin[i]; e < graph.begin[i + 1]; ++e)
            if (graph.to[e] != i) edge_weights_.add(here.community[graph.to[e]], graph.weight[e]);
        const int32_t own = here.community[i];
        const double strength = here.strength[i];
        const double pull = resolution_ * strength / total_;
        const double stay = edge_weights_.to(own) - pull * (volume_[own] - strength);
        int32_t best = -1;
        double best_gain = 0.0;  // alone
        for (const int32_t c : edge_weights_) {
            if (c == own) continue;
            const double gain = edge_weights_.to(c) - pull * volume_[c];
            if (gain > best_gain || (gain == best_gain && c < best)) {
                best_gain = gain;
                best = c;
            }
        }
        edge_weights_.clear();
        if (!(best_gain > stay + strength * (1.0 + resolution_) * kSlack)) return own;
        return best >= 0 ? best : empty_.back();
    }

    // Divides communities into well connected parts: in random order, each node that is still alone joins a part of its
    // community, more likely one with a large gain. A part is named after the node that it began with.
    void refine(Level& here) {
        const Graph& graph = here.graph;
        const int64_t n = graph.nodes;
        const std::vector<int32_t>& community = here.community;
        std::vector<int32_t>& part = here.part;
        part.resize(n);
        std::iota(part.begin(), part.end(), 0);
        std::fill_n(volume_.begin(), n, 0.0);
        std::fill_n(size_.begin(), n, 1);
        for (int64_t i = 0; i < n; ++i) {
            volume_[community[i]] += here.strength[i];
            part_volume_[i] = here.strength[i];
            double inner = 0.0;
            for (int64_t e = graph.begin[i]; e < graph.begin[i + 1]; ++e) {
                const int32_t j = graph.to[e];
                inner += community[j] == community[i] && j != i ? graph.weight[e] : 0.0;
            }
            cut_[i] = inner;
        }
        const uint64_t stream = shuffle(n);
        for (int64_t at = 0; at < n; ++at) {
            const int32_t i = order_[at];
            if (part[i] != i || size_[i] != 1 || !well_connected(i, community[i])) continue;
            for (int64_t e = graph.begin[i]; e < graph.begin[i + 1]; ++e) {
                const int32_t j = graph.to[e];
                if (community[j] == community[i] && j != i) edge_weights_.add(part[j], graph.weight[e]);
            }
            const int32_t to = drawn_part(here, i, hash_row(stream, uint64_t(i)));
            if (to != i) {
                part[i] = to;
                part_volume_[to] += here.strength[i];
                cut_[to] += cut_[i] - 2 * edge_weights_.to(to);
                ++size_[to];
            }
            edge_weights_.clear();
        }
    }

    // The part that a node joins: the one with the largest gain times a random number between 1 and 2, or itself if
    // none gains.
    int32_t drawn_part(const Level& here, int32_t i, uint64_t stream) const {
        const double pull = resolution_ * here.strength[i] / total_;
        int32_t best = i;
        double best_key = 0.0;
        for (const int32_t p : edge_weights_) {
            const double gain = edge_weights_.to(p) - pull * part_volume_[p];
            if (!(gain > 0) || !well_connected(p, here.community[i])) continue;
            const double key = gain * (1.0 + double(hash_row(stream, uint64_t(p)) >> 11) * 0x1p-53);
            if (key > best_key || (key == best_key && p < best)) {
                best_key = key;
                best = p;
            }
        }
        return best;
    }

    // Whether the weight between a part and the rest of its community is at least what the null model expects.
    bool well_connected(int32_t part, int32_t community) const {
        const double volume = part_volume_[part];
        return cut_[part] >= resolution_ * volume / total_ * (volume_[community] - volume);
    }

    // Turns every part into one node; entries inside a part, in both directions, add up on the diagonal.
    void aggregate(const Level& here, int64_t parts, Level& next) {
        const Graph& graph = here.graph;
        std::vector<int32_t>& end = size_;  // where a part's members end in `order_`
        std::fill_n(end.begin(), parts, 0);
        for (const int32_t p : here.part) ++end[p];
        std::exclusive_scan(end.begin(), end.begin() + parts, end.begin(), 0);
        for (int64_t i = 0; i < graph.nodes; ++i) order_[end[here.part[i]]++] = int32_t(i);
        next.begin.assign(1, 0);
        next.to.clear();
        next.weight.clear();
        next.strength.assign(parts, 0.0);
        next.community.resize(parts);
        for (int64_t p = 0, at = 0; p < parts; ++p) {
            next.community[p] = here.community[order_[at]];
            for (; at < end[p]; ++at) {
                const int32_t i = order_[at];
                next.strength[p] += here.strength[i];
                for (int64_t e = graph.begin[i]; e < graph.begin[i + 1]; ++e)
                    edge_weights_.add(here.part[graph.to[e]], graph.weight[e]);
            }
            for (const int32_t q : edge_weights_) {
                next.to.push_back(q);
                next.weight.push_back(edge_weights_.to(q));
            }
            edge_weights_.clear();
            next.begin.push_back(int64_t(next.to.size()));
        }
        next.graph = {parts, next.begin.data(), next.to.data(), next.weight.data()};
    }

    // Splits disconnected communities of the first level, and numbers all communities. Returns whether it split any.
    bool split() {
        const Graph& graph = level(0).graph;
        std::vector<int32_t>& community = level(0).community;
        const int64_t before = renumber(community);
        std::fill(number_.begin(), number_.end(), -1);
        int32_t count = 0;
        for (int64_t root = 0; root < graph.nodes; ++root) {
            if (number_[root] >= 0) continue;
            number_[root] = count;
            order_[0] = int32_t(root);
            for (int64_t at = 0, reached = 1; at < reached; ++at) {
                const int32_t i = order_[at];
                for (int64_t e = graph.begin[i]; e < graph.begin[i + 1]; ++e) {
                    const int32_t j = graph.to[e];
                    if (number_[j] >= 0 || community[j] != community[i] || !(graph.weight[e] > 0)) continue;
                    number_[j] = count;
                    order_[reached++] = j;
                }
            }
            ++count;
        }
        community = number_;
        return count > before;
    }

    // Numbers labels by first appearance and returns how many there are.
    int64_t renumber(std::vector<int32_t>& labels) {
        std::fill_n(number_.begin(), labels.size(), -1);
        int32_t count = 0;
        for (int32_t& label : labels) {
            if (number_[label] < 0) number_[label] = count++;
            label = number_[label];
        }
        return count;
    }

    bool keep_better() {
        const Level& base = level(0);
        const double quality = modularity(base.graph, base.community.data(), resolution_);
        const bool better = quality > best_quality_ + (1.0 + resolution_) * kSlack;
        if (better) {
            best_ = base.community;
            best_quality_ = quality;
        }
        return better;
    }

    // Takes the best communities and, in about half of them, chosen at random, makes every node a community of its own.
    void shake() {
        std::vector<int32_t>& community = level(0).community;
        const uint64_t stream = hash_row(seed_, step_++);
        community = best_;
        std::fill(number_.begin(), number_.end(), -1);
        int32_t count = 0;
        for (int32_t& c : community) {
            const bool alone = hash_row(stream, uint64_t(c)) >> 63;
            const int32_t number = alone || number_[c] < 0 ? count++ : number_[c];
            if (!alone) number_[c] = number;
            c = number;
        }
    }

    // Puts 0..n-1 into `order_`, in random order. Returns the stream of random numbers that belongs to this step.
    uint64_t shuffle(int64_t n) {
        const uint64_t stream = hash_row(seed_, step_++);
        std::iota(order_.begin(), order_.begin() + n, 0);
        for (int64_t i = n - 1; i > 0; --i)
            std::swap(order_[i], order_[((hash_row(stream, uint64_t(i)) >> 32) * uint64_t(i + 1)) >> 32]);
        return stream;
    }

    Level& level(size_t depth) {
        while (levels_.size() <= depth) levels_.emplace_back();
        return levels_[depth];
    }

    const double resolution_;
    const uint64_t seed_;
    uint64_t step_;
    double total_;
    std::vector<int32_t> best_;
    double best_quality_ = -std::numeric_limits<double>::infinity();
    std::deque<Level> levels_;  // grows without moving
    EdgeWeights edge_weights_;
    std::vector<int32_t> order_, number_, size_, empty_;
    std::vector<uint8_t> waiting_;
    std::vector<double> volume_, part_volume_;
    std::vector<double> cut_;  // of a part: the weight between it and the rest of its community
};

}  // namespace

std::vector<int32_t> leiden(const Graph& graph, const std::vector<double>& strengths, const int32_t* start,
                            const LeidenOptions& options) {
    return Leiden(graph, strengths, start, options.resolution, options.seed).run(options.iterations);
}

}  // namespace dc2
