#include "train/cuda/tuning.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <fstream>

#include "base/testing/temp_dir.h"

namespace assay::train::cuda {
namespace {

cublasLtMatmulAlgo_t algorithm(std::uint64_t word) {
  cublasLtMatmulAlgo_t one{};
  one.data[0] = 0x123456789abcdef0U;
  one.data[7] = word;
  return one;
}

class TuningFile : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(saved("card", key_, 42).has_value()); }
  base::Result<void> saved(const std::string& machine, const ProductKey& key, std::uint64_t word) {
    Tuning tuning;
    tuning.open(file_, machine);
    tuning.add(key, algorithm(word));
    return tuning.save();
  }
  // The word that identifies the algorithm found by a fresh process; 0: none.
  std::uint64_t found(const std::string& machine, const ProductKey& key) {
    Tuning tuning;
    tuning.open(file_, machine);
    const cublasLtMatmulAlgo_t* one = tuning.find(key);
    return one == nullptr ? 0 : one->data[7];
  }

  base::testing::TempDir directory_;
  std::string file_ = (directory_.path() / "matrix-products").string();
  ProductKey key_{4096, 14336, 128, 2, 0, 1, -5};
};

TEST_F(TuningFile, IsReadBack) {
  Tuning tuning;
  tuning.open(file_, "card");
  const cublasLtMatmulAlgo_t* one = tuning.find(key_);
  ASSERT_NE(one, nullptr);
  const cublasLtMatmulAlgo_t written = algorithm(42);
  EXPECT_EQ(std::memcmp(one, &written, sizeof written), 0);
  EXPECT_EQ(tuning.find(ProductKey{}), nullptr);
}

TEST_F(TuningFile, HasMachinesBesideEachOther) {
  EXPECT_EQ(found("another card", key_), 0U);
  ASSERT_TRUE(saved("another card", key_, 43).has_value());
  EXPECT_EQ(found("another card", key_), 43U);
  EXPECT_EQ(found("card", key_), 42U);
}

TEST_F(TuningFile, ThatIsDamagedIsNotUsed) {
  for (const char* line : {"1 2 3\n", "1 2 3 4 5 6 7 8 9 10 11 12 13 a b c d e f 0 1 2\n"}) {
    std::filesystem::remove(file_);
    ASSERT_TRUE(saved("card", key_, 42).has_value());
    std::ofstream(file_, std::ios::app) << line;
    EXPECT_EQ(found("card", key_), 0U);
    // The next one that saves repairs it.
    ASSERT_TRUE(saved("card", ProductKey{7}, 44).has_value());
    EXPECT_EQ(found("card", ProductKey{7}), 44U);
  }
  std::ofstream(file_) << "assay-products-3 card\n1 2 3\n";  // of an earlier version
  EXPECT_EQ(found("card", key_), 0U);
}

TEST_F(TuningFile, ThatCannotBeWrittenIsAnError) {
  Tuning tuning;
  tuning.open("/nowhere/tuning", "card");
  tuning.add(key_, algorithm(1));
  EXPECT_FALSE(tuning.save().has_value());
  EXPECT_NE(tuning.find(key_), nullptr);
  EXPECT_TRUE(
      tuning.save().has_value());  // as it is called after every step, it does not try again
}

// Each of them has read the file before any other has written.
TEST_F(TuningFile, LosesNothingOfProcessesThatSaveAtTheSameTime) {
  constexpr int kProcesses = 8;
  constexpr int kEach = 10;
  std::vector<pid_t> children;
  for (int process = 0; process < kProcesses; ++process) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      Tuning tuning;
      tuning.open(file_, process % 2 == 0 ? "card" : "another card");
      bool good = true;
      for (int i = 0; i < kEach; ++i) {
        tuning.add(ProductKey{process, i}, algorithm(static_cast<std::uint64_t>(process + 1)));
        good = good && tuning.save().has_value();
      }
      ::_exit(good ? 0 : 1);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  for (int process = 0; process < kProcesses; ++process) {
    for (int i = 0; i < kEach; ++i) {
      EXPECT_EQ(found(process % 2 == 0 ? "card" : "another card", ProductKey{process, i}),
                static_cast<std::uint64_t>(process + 1));
    }
  }
  EXPECT_EQ(found("card", key_), 42U);
}

// The first product of Llama 3 8B's MLP, with 16,384 tokens: a damaged table would count as empty,
// which nobody would notice except by a slower start.
TEST(TuningTables, KnowTheProductsOfPresets) {
  Tuning tuning;
  tuning.open("", "NVIDIA H200, cuBLASLt 130100");
  const ProductKey gate_up{16384, 28672, 4096, 2, 0, 0, 0, 0, 4096, 4096, 28672, 28672, 134744072};
  EXPECT_NE(tuning.find(gate_up), nullptr);
  Tuning another;
  another.open("", "NVIDIA H200, cuBLASLt 130200");
  EXPECT_EQ(another.find(gate_up), nullptr);
}

TEST_F(TuningFile, GivesWayToTheTextOfACheckpoint) {
  Tuning then;
  then.open("", "card");
  const std::string text = then.text_of({{key_, algorithm(7)}});
  Tuning now;
  now.open(file_, "card");
  ASSERT_TRUE(now.adopt(text));
  now.read_again();
  EXPECT_EQ(now.find(key_)->data[7], 7U);
  EXPECT_EQ(now.text_of({{key_, *now.find(key_)}}), text);
  Tuning elsewhere;
  elsewhere.open(file_, "another card");
  EXPECT_FALSE(elsewhere.adopt(text));
  EXPECT_FALSE(now.adopt(text + "1 2\n"));
  EXPECT_FALSE(now.adopt(""));
}

}  // namespace
}  // namespace assay::train::cuda
