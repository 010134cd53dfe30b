// The work of a block of threads. On a card a block is real; elsewhere its threads run one after the other, phase by
// phase, which is how these kernels are tested where there is no card.
#pragma once
#include "device.hpp"

namespace dc2 {
namespace device {

// Which block of how many, and how many threads it has.
struct Block {
    Index number, blocks;
    int threads;
};

#if defined(__CUDACC__)
#define DC2_THREADS(block, t) for (int t = threadIdx.x, once = 1; once; once = 0)
#define DC2_ROW_THREADS(block, t) for (int t = threadIdx.x / kLanes, once = 1; once; once = 0)
#define DC2_BARRIER() __syncthreads()
#define DC2_WARP_BARRIER() __syncwarp()
#else
#define DC2_THREADS(block, t) for (int t = 0; t < (block).threads; ++t)
#define DC2_ROW_THREADS(block, t) for (int t = 0; t < (block).threads / kLanes; ++t)
#define DC2_BARRIER()
#define DC2_WARP_BARRIER()
#endif

constexpr int kWarp = 32;  // threads that go in step

// A row and the id it belongs to.
struct alignas(8) Entry {
    Id row, id;
};

}  // namespace device
}  // namespace dc2
