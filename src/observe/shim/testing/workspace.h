// The folder in which tests of the shim run the probe: created with the same contents for every
// run.
#pragma once

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "observe/shim/testing/harness.h"

namespace assay::shim::testing {

class ShimWorkspace {
 public:
  ShimWorkspace() {
    std::string pattern = (std::filesystem::temp_directory_path() / "assay-shim-XXXXXX").string();
    top_ = mkdtemp(pattern.data());
    chmod(top_.c_str(), 0777);
    // Copies that another user can run: a checkout may be where only its owner has access.
    for (const char* file : {ASSAY_PROBE, ASSAY_SHIM}) {
      std::filesystem::copy(file, copy_of(file));
      chmod(copy_of(file).c_str(), 0755);
    }
  }
  ~ShimWorkspace() {
    empty();
    std::error_code ignored;
    std::filesystem::remove_all(top_, ignored);
  }
  ShimWorkspace(const ShimWorkspace&) = delete;
  ShimWorkspace& operator=(const ShimWorkspace&) = delete;

  std::filesystem::path folder() const { return top_ / "work"; }
  std::string path(const std::string& name) const { return (folder() / name).string(); }

  void refill() const {
    namespace fs = std::filesystem;
    empty();
    for (const char* name : {"", "folder", "closed", "sticky"}) {
      fs::create_directory(folder() / name);
      chmod((folder() / name).c_str(), 0777);
    }
    for (const char* name :
         {"file", "readonly", "secret", "folder/file", "closed/file", "sticky/other"}) {
      std::ofstream(folder() / name) << "content";
      chmod((folder() / name).c_str(), 0666);
    }
    chmod((folder() / "readonly").c_str(), 0444);
    chmod((folder() / "secret").c_str(), 0);
    chmod((folder() / "closed").c_str(), 0);
    chmod((folder() / "sticky").c_str(), 01777);
    fs::create_symlink("file", folder() / "link");
    fs::create_symlink("nowhere", folder() / "dangling");
    fs::create_symlink("loop", folder() / "loop");
    mkfifo((folder() / "pipe").c_str(), 0666);
  }

  std::string shim() const { return copy_of(ASSAY_SHIM); }

  // A command that runs the probe here, without the shim.
  Command probe(std::vector<std::string> arguments) const {
    refill();
    arguments.insert(arguments.begin(), copy_of(ASSAY_PROBE));
    Command command;
    command.arguments = std::move(arguments);
    command.directory = folder();
    return command;
  }

  // The same with it, under the gate.
  Command traced_probe(ShimLog& log, std::vector<std::string> arguments) const {
    Command command = probe(std::move(arguments));
    command.log = &log;
    command.library = shim();
    command.gate = Gate::kStop;
    return command;
  }

  std::unique_ptr<ShimLog> new_log(std::uint64_t space = std::uint64_t{64} << 20U) {
    return std::make_unique<ShimLog>(top_ / ("log" + std::to_string(logs_++)), space);
  }

 private:
  std::string copy_of(const std::filesystem::path& file) const {
    return (top_ / file.filename()).string();
  }
  void empty() const {
    chmod(path("closed").c_str(), 0700);  // only root can remove what is in it otherwise
    std::error_code ignored;
    std::filesystem::remove_all(folder(), ignored);
  }

  std::filesystem::path top_;
  int logs_ = 0;
};

}  // namespace assay::shim::testing
