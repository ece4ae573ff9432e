// The map from addresses to sizes against std::map, over any sequence of calls.
#include "observe/shim/gpu/size_map.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <map>
#include <memory>
#include <thread>
#include <vector>

namespace assay::gpu {
namespace {

RC_GTEST_PROP(GpuSizeMap, IsAMap, ()) {
  const auto map = std::make_unique<SizeMap>();
  std::map<std::uint64_t, std::uint64_t> model;
  std::uint64_t inserted = 0;
  const auto steps = *rc::gen::container<std::vector<std::pair<int, std::uint64_t>>>(
      rc::gen::pair(rc::gen::inRange(0, 3), rc::gen::inRange<std::uint64_t>(1, 400)));
  for (const auto& [what, key] : steps) {
    SizeMapValue known;
    if (what == 0) {
      const std::uint64_t size = ++inserted;
      map->insert(key * 512, {size, 3, 4});
      model[key] = size;
    } else if (what == 1) {
      RC_ASSERT(map->find(key * 512, known) == model.contains(key));
      if (model.contains(key)) RC_ASSERT(known.size == model[key]);
    } else {
      RC_ASSERT(map->take(key * 512, known) == model.contains(key));
      if (model.contains(key)) RC_ASSERT(known.size == model[key]);
      model.erase(key);
    }
  }
  for (const auto& [key, size] : model) {
    SizeMapValue known;
    RC_ASSERT(map->take(key * 512, known));
    RC_ASSERT(known.size == size);
  }
}

TEST(GpuSizeMap, GrowsAndShrinksUnderThreads) {
  const auto map = std::make_unique<SizeMap>();
  std::vector<std::thread> threads;
  for (std::uint64_t thread = 1; thread <= 4; ++thread) {
    threads.emplace_back([&, thread] {
      for (std::uint64_t i = 1; i <= 20000; ++i) map->insert((thread << 40U) + i * 512, {i, 0, 0});
      for (std::uint64_t i = 1; i <= 20000; ++i) {
        SizeMapValue known;
        EXPECT_TRUE(map->take((thread << 40U) + i * 512, known));
        EXPECT_EQ(known.size, i);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  SizeMapValue known;
  EXPECT_FALSE(map->find((std::uint64_t{1} << 40U) + 512, known));
}

TEST(GpuSizeMap, NullIsNoAddress) {
  SizeMap map;
  SizeMapValue known;
  map.insert(0, {1, 1, 1});
  EXPECT_FALSE(map.find(0, known));
  EXPECT_FALSE(map.take(0, known));
}

}  // namespace
}  // namespace assay::gpu
