// Hopper's own instructions (sm_90a), as functions: the tensor copy engine (TMA), barriers in
// shared memory that its copies complete, and matrix products of a warpgroup (wgmma).
#pragma once

#include <cuda.h>

#include <cstdint>

namespace assay::train::cuda::hopper {

__device__ inline std::uint32_t shared_address(const void* at) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(at));
}

// --- Barriers -------------------------------------------------------------------------------

__device__ inline void init_barrier(std::uint32_t barrier, std::uint32_t arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals));
}

// Makes initialised barriers visible to the cluster and to the copy engine.
__device__ inline void fence_barrier_init() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

// Arrives, and announces how many bytes copies will deliver.
__device__ inline void arrive_expecting(std::uint32_t barrier, std::uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
               : "memory");
}

// Arrives at the same barrier in block `rank` of the cluster. Relaxed ordering is enough, because
// TMA and wgmma order their own accesses: a release to the whole cluster would be a fence of device
// memory, which takes longer than the products of a stage.
__device__ inline void arrive_at(std::uint32_t barrier, std::uint32_t rank) {
  asm volatile(
      "{\n"
      ".reg .b32 there;\n"
      "mapa.shared::cluster.u32 there, %0, %1;\n"
      "mbarrier.arrive.shared::cluster.b64 _, [there];\n"
      "}\n" ::"r"(barrier),
      "r"(rank)
      : "memory");
}

// Waits until the phase with this parity is over.
__device__ inline void wait_for(std::uint32_t barrier, std::uint32_t parity) {
  asm volatile(
      "{\n"
      ".reg .pred done;\n"
      "again:\n"
      "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
      "@done bra over;\n"
      "bra again;\n"
      "over:\n"
      "}\n" ::"r"(barrier),
      "r"(parity)
      : "memory");
}

__device__ inline void sync_cluster() {
  asm volatile(
      "barrier.cluster.arrive.release.aligned;\n"
      "barrier.cluster.wait.acquire.aligned;" ::
          : "memory");
}

__device__ inline std::uint32_t rank_in_cluster() {
  std::uint32_t rank = 0;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}

// Synchronises `threads` threads of the block at its named barrier `id`.
__device__ inline void sync_some(int id, int threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

// Call it before TMA or the tensor cores read shared memory that this thread has written, or
// overwrite it.
__device__ inline void fence_shared_writes() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

// --- The tensor copy engine -----------------------------------------------------------------

__device__ inline void prefetch_map(const CUtensorMap& map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(reinterpret_cast<std::uint64_t>(&map)) : "memory");
}

// Copies a three-dimensional box of a tensor, starting at (x, y, z); elements outside the tensor
// are zero.
__device__ inline void copy_box(std::uint32_t to, const CUtensorMap& map, std::uint32_t barrier,
                                int x, int y, int z) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes "
      "[%0], [%1, {%3, %4, %5}], [%2];" ::"r"(to),
      "l"(reinterpret_cast<std::uint64_t>(&map)), "r"(barrier), "r"(x), "r"(y), "r"(z)
      : "memory");
}

// The same, multicast to the same address in every block of the mask `blocks`; each block's barrier
// counts the bytes.
__device__ inline void copy_box_to(std::uint32_t to, const CUtensorMap& map, std::uint32_t barrier,
                                   int x, int y, int z, std::uint16_t blocks) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes"
      ".multicast::cluster [%0], [%1, {%3, %4, %5}], [%2], %6;" ::"r"(to),
      "l"(reinterpret_cast<std::uint64_t>(&map)), "r"(barrier), "r"(x), "r"(y), "r"(z), "h"(blocks)
      : "memory");
}

// --- Products of a warpgroup ----------------------------------------------------------------

template <int kRegisters>
__device__ inline void take_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kRegisters));
}

template <int kRegisters>
__device__ inline void give_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kRegisters));
}

// Matrix descriptor of an operand in shared memory: rows of 128 bytes, swizzled as by TMA; groups
// of eight rows are `group` bytes apart. If rows run across the summed dimension, the next 64
// elements across are `next` bytes further on.
__device__ inline std::uint64_t operand(std::uint32_t group, std::uint32_t next) {
  constexpr std::uint64_t kSwizzle128 = std::uint64_t{1} << 62U;
  return kSwizzle128 | (static_cast<std::uint64_t>(group >> 4U) << 32U) |
         (static_cast<std::uint64_t>(next >> 4U) << 16U);
}

__device__ inline std::uint64_t at_address(std::uint64_t operand, std::uint32_t address) {
  return operand | ((address & 0x3ffffU) >> 4U);
}

// Added to a descriptor, moves its start by `bytes`.
__device__ constexpr std::uint64_t further_by(std::uint32_t bytes) {
  return bytes >> 4U;
}

// Required before the first product whose accumulators or operands were written by ordinary
// instructions.
__device__ inline void begin_products() {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

__device__ inline void commit_products() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

// Waits until at most kGroups groups of products are in flight.
template <int kGroups>
__device__ inline void wait_for_products() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kGroups) : "memory");
}

// clang-format off
#define ASSAY_SUMS_8(i) "+f"(sums[i]), "+f"(sums[i + 1]), "+f"(sums[i + 2]), "+f"(sums[i + 3]), \
    "+f"(sums[i + 4]), "+f"(sums[i + 5]), "+f"(sums[i + 6]), "+f"(sums[i + 7])
#define ASSAY_SUMS_64(i) ASSAY_SUMS_8(i), ASSAY_SUMS_8(i + 8), ASSAY_SUMS_8(i + 16), \
    ASSAY_SUMS_8(i + 24), ASSAY_SUMS_8(i + 32), ASSAY_SUMS_8(i + 40), ASSAY_SUMS_8(i + 48), \
    ASSAY_SUMS_8(i + 56)
// clang-format on

// sums (64 x kWidth) += a (64 x 16) times b (16 x kWidth). kAcrossA, kAcrossB: the
// operand's rows run across the summed dimension.
template <int kWidth, bool kAcrossA, bool kAcrossB>
__device__ __forceinline__ void multiply(float (&sums)[kWidth / 2], std::uint64_t a,
                                         std::uint64_t b) {
  static_assert(kWidth == 256 || kWidth == 128);
  if constexpr (kWidth == 256) {
    asm volatile(
        "{\n"
        ".reg .pred adds;\n"
        "setp.ne.b32 adds, 1, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 "
        "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, "
        "%17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
        "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, "
        "%47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, "
        "%62, %63, %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, "
        "%77, %78, %79, %80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, "
        "%92, %93, %94, %95, %96, %97, %98, %99, %100, %101, %102, %103, %104, %105, "
        "%106, %107, %108, %109, %110, %111, %112, %113, %114, %115, %116, %117, %118, "
        "%119, %120, %121, %122, %123, %124, %125, %126, %127}, "
        "%128, %129, adds, 1, 1, %130, %131;\n"
        "}\n"
        : ASSAY_SUMS_64(0), ASSAY_SUMS_64(64)
        : "l"(a), "l"(b), "n"(int{kAcrossA}), "n"(int{kAcrossB}));
  } else {
    asm volatile(
        "{\n"
        ".reg .pred adds;\n"
        "setp.ne.b32 adds, 1, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 "
        "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, "
        "%17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
        "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, "
        "%47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, "
        "%62, %63}, "
        "%64, %65, adds, 1, 1, %66, %67;\n"
        "}\n"
        : ASSAY_SUMS_64(0)
        : "l"(a), "l"(b), "n"(int{kAcrossA}), "n"(int{kAcrossB}));
  }
}

#undef ASSAY_SUMS_64
#undef ASSAY_SUMS_8

}  // namespace assay::train::cuda::hopper
