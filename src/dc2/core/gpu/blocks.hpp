// The work of a block of threads. On a GPU these are real threads; elsewhere they run one after the other, phase by
// phase, to test the kernels without a GPU.
#pragma once
#include "device.hpp"

namespace dc2 {
namespace device {

// The number of a block, how many blocks there are, and how many threads each has.
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

constexpr int kWarp = 32;  // threads that run in step

// A row and the id it belongs to.
struct alignas(8) Entry {
    Id row, id;
};

}  // namespace device
}  // namespace dc2
