// Hashes of rows, and rows scaled.
#pragma once
#include "blocks.hpp"

namespace dc2 {
namespace device {

struct HashJob {
    Hash seed, start, count, limit;
    unsigned char* is_sampled;  // OUT (count) or null: whether the hash is at most the limit
    Hash* hashes;               // OUT (count) or null
};

DC2_FUNCTION void hash_rows(const HashJob& job, const Block& block) {
    DC2_THREADS(block, t) {
        for (Hash i = block.number * block.threads + t; i < job.count; i += block.blocks * block.threads) {
            const Hash hash = hash_row(job.seed, job.start + i);
            if (job.is_sampled != nullptr) job.is_sampled[i] = hash <= job.limit;
            if (job.hashes != nullptr) job.hashes[i] = hash;
        }
    }
}

template <class T>
struct ScaleJob {
    Rows<T> X;
    Index rows;
    const Index* exponents;   // IN (width) or null: values are divided by these powers of two
    const T* shift;           // IN (width) or null: then they become (x - shift) * factor
    const T* factor;          // IN (width)
    Index unit;               // whether rows are then scaled to length 1
    T* out;                   // OUT (rows, width)
    Hash* zeros;              // OUT (2): how many rows hold only zeros, and so have no direction; the first of them
};

template <class T>
DC2_FUNCTION void scale_rows(const ScaleJob<T>& job, const Block& block) {
    const Index per_block = block.threads / kLanes;
    const int width = width_of(job.X), chunks = chunks_of(width);
    DC2_ROW_THREADS(block, t) {
        for (Index row = block.number * per_block + t; row < job.rows; row += block.blocks * per_block) {
            const T* from = job.X.data + row * job.X.row_step;
            T* out = job.out + row * width;
            Lanes<T> most = zeros<T>(), squares = zeros<T>();
            const auto for_columns = [&](auto&& work) {
                for (int chunk = 0; chunk < chunks; ++chunk)
                    for (int i = 0; i < kHeldLanes; ++i) {
                        const int column = chunk * kLanes + own_lane(i);
                        if (column < width) work(column, i);
                    }
            };
            for_columns([&](int column, int i) {
                T x = from[column * job.X.column_step];
                if (job.exponents != nullptr) x = times_power(x, -int(job.exponents[column]));
                if (job.shift != nullptr) x = (x - job.shift[column]) * job.factor[column];
                const T size = x < 0 ? -x : x;
                most.value[i] = size > most.value[i] ? size : most.value[i];
                out[column] = x;
            });
            if (!job.unit) continue;
            const T size = largest(most);
            if (size == 0) {
                if (is_first_lane()) {
                    add_to(job.zeros, Hash(1));
                    lower_to(job.zeros + 1, Hash(row));
                }
                continue;
            }
            for_columns([&](int column, int i) {
                out[column] = out[column] / size;
                squares.value[i] = squares.value[i] + out[column] * out[column];
            });
            const T length = root(fold(squares));
            for_columns([&](int column, int) { out[column] = out[column] / length; });
        }
    }
}

}  // namespace device
}  // namespace dc2
