#include "train/cuda/tuning.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>

namespace assay::train::cuda {
namespace {

class TuningFile : public ::testing::Test {
 protected:
  void SetUp() override {
    file_ = (std::filesystem::temp_directory_path() /
             ("assay-tuning-test-" + std::to_string(::getpid())))
                .string();
    algorithm_.data[0] = 0x123456789abcdef0U;
    algorithm_.data[7] = 42;
    Tuning tuning;
    ASSERT_TRUE(tuning.open(file_, "card, driver 1").has_value());
    tuning.add(key_, algorithm_);
    ASSERT_TRUE(tuning.save().has_value());
  }
  void TearDown() override { std::filesystem::remove(file_); }

  std::string file_;
  ProductKey key_{4096, 14336, 128, 2, 0, 1, -5};
  cublasLtMatmulAlgo_t algorithm_{};
};

TEST_F(TuningFile, IsReadBack) {
  Tuning tuning;
  ASSERT_TRUE(tuning.open(file_, "card, driver 1").has_value());
  const cublasLtMatmulAlgo_t* found = tuning.find(key_);
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(std::memcmp(found, &algorithm_, sizeof algorithm_), 0);
  EXPECT_EQ(tuning.find(ProductKey{}), nullptr);
}

TEST_F(TuningFile, OfAnotherMachineIsNotUsed) {
  Tuning tuning;
  ASSERT_TRUE(tuning.open(file_, "card, driver 2").has_value());
  EXPECT_EQ(tuning.find(key_), nullptr);
}

TEST_F(TuningFile, ThatIsDamagedIsNotUsed) {
  std::ofstream(file_, std::ios::app) << "1 2 3\n";
  Tuning tuning;
  ASSERT_TRUE(tuning.open(file_, "card, driver 1").has_value());
  EXPECT_EQ(tuning.find(key_), nullptr);
}

TEST_F(TuningFile, ThatCannotBeWrittenIsAnError) {
  Tuning tuning;
  ASSERT_TRUE(tuning.open("/nowhere/tuning", "card, driver 1").has_value());
  tuning.add(key_, algorithm_);
  EXPECT_FALSE(tuning.save().has_value());
}

}  // namespace
}  // namespace assay::train::cuda
