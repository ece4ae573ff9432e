// The store: making one, opening one, and committing to it.
#include <benchmark/benchmark.h>
#include <stdlib.h>

#include <filesystem>
#include <string>

#include "store/store.h"

namespace {

namespace fs = std::filesystem;
using assay::store::Store;
using assay::store::StoreProgram;

// On disk, beside the build: /tmp may be memory.
class Project {
 public:
  Project() {
    std::string pattern = (fs::current_path() / "store-bench-XXXXXX").string();
    path_ = ::mkdtemp(pattern.data());
  }
  ~Project() { fs::remove_all(path_); }
  [[nodiscard]] assay::store::Location location() const { return assay::store::location_in(path_); }

 private:
  fs::path path_;
};

void create_store(benchmark::State& state) {
  for (auto _ : state) {
    const Project project;
    benchmark::DoNotOptimize(Store::create(project.location(), StoreProgram{}));
  }
}
BENCHMARK(create_store)->Unit(benchmark::kMillisecond);

void open_store(benchmark::State& state) {
  const Project project;
  { const auto made = Store::create(project.location(), StoreProgram{}); }
  for (auto _ : state) benchmark::DoNotOptimize(Store::open(project.location(), StoreProgram{}));
}
BENCHMARK(open_store)->Unit(benchmark::kMicrosecond);

void commit_one_row(benchmark::State& state) {
  const Project project;
  auto store = Store::create(project.location(), StoreProgram{});
  auto& database = store->database();
  (void)database.exec("CREATE TABLE bench (id INTEGER PRIMARY KEY, value TEXT) STRICT");
  for (auto _ : state) {
    auto transaction = assay::store::Transaction::begin(database);
    (void)database.exec("INSERT INTO bench (value) VALUES ('a row')");
    (void)transaction->commit();
  }
}
BENCHMARK(commit_one_row)->Unit(benchmark::kMicrosecond);

}  // namespace
