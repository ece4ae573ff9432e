// Fake trees for the package managers, and this machine's dpkg-query as an oracle.
#include "lineage/packages/packages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lineage/packages/cuda_libraries.h"
#include "lineage/packages/dpkg.h"
#include "lineage/packages/python.h"
#include "lineage/testing/checkout.h"

namespace assay::lineage {
namespace {

using testing::content_of;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
namespace fs = std::filesystem;

class Packages : public ::testing::Test {
 protected:
  void write(const std::string& name, const std::string& text) {
    const fs::path path = folder_.path() / "root" / name;
    fs::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << text;
  }
  // "dpkg bash 5.2" for each.
  std::vector<std::string> found_for(const std::vector<std::string>& paths) {
    PackageFinder finder({.root = folder_.path() / "root", .cache = folder_.path() / "cache"});
    for (const std::string& path : paths) finder.add(path);
    std::vector<std::string> texts;
    for (const store::Package& p : finder.packages()) {
      texts.push_back(p.manager + " " + p.name + " " + p.version);
    }
    return texts;
  }
  void debian() {
    write("var/lib/dpkg/status",
          "Package: dpkg\nStatus: install ok installed\nArchitecture: amd64\nVersion: 1.21\n\n"
          "Package: bash\nArchitecture: amd64\nVersion: 5.2-2+b2\nDescription: x\n y\n\n"
          "Package: libc6\nArchitecture: amd64\nVersion: 2.36\n\n"
          "Package: libc6\nArchitecture: i386\nVersion: 2.35\n\n"
          "Package: diverter\nArchitecture: all\nVersion: 1:1.0\n");
    write("var/lib/dpkg/info/bash.list",
          "/.\n/bin\n/bin/bash\n/usr\n/usr/share\n/usr/share/bash\n");
    write("var/lib/dpkg/info/libc6:amd64.list",
          "/.\n/lib\n/lib/x\n/lib/x/libc.so.6\n/usr/share/both\n");
    write("var/lib/dpkg/info/libc6:i386.list",
          "/.\n/lib/i386\n/lib/i386/libc.so.6\n/usr/share/both\n");
    write("var/lib/dpkg/info/diverter.list", "/.\n/usr/bin/tool\n");
    write("var/lib/dpkg/info/dpkg.list", "/.\n/usr/bin/tool\n/usr/bin/dpkg\n");
    write("var/lib/dpkg/info/dpkg.md5sums", "x  usr/bin/md5\n");
    write("var/lib/dpkg/diversions", "/usr/bin/tool\n/usr/bin/tool.real\ndiverter\n");
  }

  base::testing::TempDir folder_;
};

TEST_F(Packages, CudaLibrariesByTheirNames) {
  EXPECT_THAT(
      found_for({"/opt/cuda/lib64/libcublas.so.12.4.5.8", "/x/libcudnn.so.9.1.0", "/x/libcudart.so",
                 "/x/libcublas.so.12.4.5.8.bak", "/x/libcublasx.so.1", "/x/libnccl.so.",
                 "/venv/lib/python3.11/site-packages/nvidia/nccl/lib/libnccl.so.2"}),
      ElementsAre("cuda libcublas 12.4.5.8", "cuda libcudnn 9.1.0", "cuda libnccl 2"));
}

TEST_F(Packages, ACudaLibraryOfAPackageIsThatPackage) {
  const std::string site = "venv/lib/python3.11/site-packages/";
  write(site + "nvidia_nccl_cu12-2.21.5.dist-info/METADATA",
        "Name: nvidia-nccl-cu12\nVersion: 2.21.5\n");
  write(site + "nvidia_nccl_cu12-2.21.5.dist-info/RECORD", "nvidia/nccl/lib/libnccl.so.2,,\n");
  write("var/lib/dpkg/status",
        "Package: dpkg\nArchitecture: amd64\nVersion: 1.21\n\n"
        "Package: libcudart12\nArchitecture: amd64\nVersion: 12.4.127\n");
  write("var/lib/dpkg/info/libcudart12.list", "/.\n/usr/lib/x/libcudart.so.12.4.127\n");
  write("opt/conda/conda-meta/libcublas-12.4.5.8-0.json", R"({"files":["lib/libcublas.so.12"]})");
  EXPECT_THAT(
      found_for({"/" + site + "nvidia/nccl/lib/libnccl.so.2", "/usr/lib/x/libcudart.so.12.4.127",
                 "/opt/conda/lib/libcublas.so.12", "/usr/lib/x/libcuda.so.550.54"}),
      ElementsAre("conda libcublas 12.4.5.8", "cuda libcuda 550.54", "dpkg libcudart12 12.4.127",
                  "pip nvidia-nccl-cu12 2.21.5"));
}

TEST(CudaLibraries, AreLookedForWhereTheRunHadThem) {
  const base::testing::TempDir folder;
  fs::create_directories(folder.path() / "lib");
  for (const char* name : {"libnvinfer.so.8", "libnvinfer.so.8.6.1", "libnvinfer.so"}) {
    std::ofstream(folder.path() / "lib" / name) << "";
  }
  EXPECT_EQ(installed_cuda_library("libnvinfer", {folder.path()}), "8.6.1");
  EXPECT_TRUE(versions_agree("8", "8.6.1"));
  EXPECT_TRUE(versions_agree("8.6.1", "8.6.1"));
  EXPECT_TRUE(versions_agree("8.6.1", "8.6"));
  EXPECT_FALSE(versions_agree("8.6.1", "8.6.2"));
  EXPECT_FALSE(versions_agree("1", "12.4"));
  EXPECT_FALSE(versions_agree("12", "not installed"));
}

TEST_F(Packages, NothingInstalledNothingFound) {
  EXPECT_THAT(found_for({"/usr/bin/x", "/home/u/x", "relative", "", "/", "/usr/"}), IsEmpty());
}

TEST_F(Packages, DpkgByFile) {
  debian();
  EXPECT_THAT(found_for({"/bin/bash"}), ElementsAre("dpkg bash 5.2-2+b2"));
  EXPECT_THAT(found_for({"/usr/bin/bash", "/usr/bin/bash"}), ElementsAre("dpkg bash 5.2-2+b2"));
  EXPECT_THAT(found_for({"/usr/lib/x/libc.so.6"}), ElementsAre("dpkg libc6 2.36"));
  EXPECT_THAT(found_for({"/usr/lib/../lib//i386/./libc.so.6"}),
              ElementsAre("dpkg libc6:i386 2.35"));
  EXPECT_THAT(found_for({"/usr/share/both"}), ElementsAre("dpkg libc6 2.36"));
  EXPECT_THAT(found_for({"/usr/local/bin/bash", "/home/bin/bash", "/usr/share", "/bin"}),
              IsEmpty());
}

TEST_F(Packages, DpkgDiversions) {
  debian();
  EXPECT_THAT(found_for({"/usr/bin/tool"}), ElementsAre("dpkg diverter 1:1.0"));
  EXPECT_THAT(found_for({"/usr/bin/tool.real"}), ElementsAre("dpkg dpkg 1.21"));
}

TEST_F(Packages, DpkgIndexFollowsChanges) {
  debian();
  ASSERT_THAT(found_for({"/bin/bash"}), ElementsAre("dpkg bash 5.2-2+b2"));
  ASSERT_FALSE(fs::is_empty(folder_.path() / "cache"));
  write("var/lib/dpkg/info/new.list", "/usr/bin/new\n");
  EXPECT_THAT(found_for({"/usr/bin/new"}), ElementsAre("dpkg new "));
  write("var/lib/dpkg/status", "Package: bash\nArchitecture: all\nVersion: 6\n");
  EXPECT_THAT(found_for({"/bin/bash"}), ElementsAre("dpkg bash 6"));
}

TEST_F(Packages, DpkgIndexIsUsedAndMayBeDamaged) {
  debian();
  ASSERT_THAT(found_for({"/bin/bash"}), ElementsAre("dpkg bash 5.2-2+b2"));
  const fs::path index = fs::directory_iterator(folder_.path() / "cache")->path();
  const std::string whole = content_of(index);
  // Proof of use: a version that only the index has.
  std::string marked = whole;
  marked.replace(marked.find("5.2-2+b2"), 8, "9.9-9+b9");
  std::ofstream(index) << marked;
  EXPECT_THAT(found_for({"/bin/bash"}), ElementsAre("dpkg bash 9.9-9+b9"));
  const auto replace = [&](const std::string& bytes) {
    fs::remove(index);  // quicker than writing over it on a journalling file system
    std::ofstream(index) << bytes;
  };
  for (std::size_t size = 0; size < whole.size(); size += 7) {
    replace(whole.substr(0, size));
    ASSERT_THAT(found_for({"/bin/bash"}), ElementsAre("dpkg bash 5.2-2+b2")) << size;
  }
  for (std::size_t at = 0; at < whole.size(); ++at) {  // any byte: another answer, no crash
    std::string damaged = whole;
    damaged[at] = static_cast<char>(~damaged[at]);
    replace(damaged);
    found_for({"/bin/bash", "/usr/bin/dpkg"});
  }
  fs::remove_all(folder_.path() / "cache");
  write("../cache", "a file where the folder should be");
  EXPECT_THAT(found_for({"/bin/bash"}), ElementsAre("dpkg bash 5.2-2+b2"));
}

TEST_F(Packages, PipByRecord) {
  const std::string site = "venv/lib/python3.11/site-packages/";
  write(site + "numpy-1.26.4.dist-info/METADATA",
        "Metadata-Version: 2.1\nName: numpy\nVersion: 1.26.4\n\nName: x\n");
  write(site + "numpy-1.26.4.dist-info/RECORD",
        "numpy/__init__.py,sha256=x,1\nnumpy/core/a.py,,\n../../../bin/f2py,,\n");
  write(site + "PyYAML-6.0.dist-info/METADATA", "Name: PyYAML\nVersion: 6.0\n");
  write(site + "PyYAML-6.0.dist-info/RECORD", "yaml/__init__.py,,\n_yaml/__init__.py,,\n");
  write(site + "google_auth-2.0.dist-info/METADATA", "Name: google-auth\nVersion: 2.0\n");
  write(site + "google_auth-2.0.dist-info/RECORD", "google/auth/__init__.py,,\n");
  write(site + "protobuf-5.0.dist-info/METADATA", "Name: protobuf\r\nVersion: 5.0\r\n");
  write(site + "protobuf-5.0.dist-info/RECORD", "\"google/protobuf/a,b.py\",,\n");
  write(site + "six-1.16.dist-info/METADATA", "Name: six\nVersion: 1.16\n");
  write(site + "six-1.16.dist-info/RECORD", "six.py,,\n__pycache__/six.cpython-311.pyc,,\n");
  write(site + "old-1.0.egg-info/PKG-INFO", "Name: old\nVersion: 1.0\n");
  write(site + "old-1.0.egg-info/top_level.txt", "oldmodule\n");
  write(site + "bare-3.1-py3.11.egg-info", "Name: bare\nVersion: 3.1\n");
  write(site + "fromconda-1.dist-info/INSTALLER", "conda\n");
  write(site + "fromconda-1.dist-info/RECORD", "fromconda/__init__.py,,\n");
  const std::string in = "/" + site;
  EXPECT_THAT(found_for({in + "numpy/core/deep/er.so"}), ElementsAre("pip numpy 1.26.4"));
  EXPECT_THAT(found_for({in + "numpy/made/later.py"}), ElementsAre("pip numpy 1.26.4"));
  EXPECT_THAT(found_for({in + "_yaml/__init__.py"}), ElementsAre("pip PyYAML 6.0"));
  EXPECT_THAT(found_for({in + "google/protobuf/x.py"}), ElementsAre("pip protobuf 5.0"));
  EXPECT_THAT(found_for({in + "google/auth/x.py"}), ElementsAre("pip google-auth 2.0"));
  EXPECT_THAT(found_for({in + "google/other/x.py"}), IsEmpty());
  EXPECT_THAT(found_for({in + "__pycache__/six.cpython-311.pyc"}), ElementsAre("pip six 1.16"));
  EXPECT_THAT(found_for({in + "numpy/__pycache__/__init__.cpython-311.pyc", in + "six.py"}),
              ElementsAre("pip numpy 1.26.4", "pip six 1.16"));
  EXPECT_THAT(found_for({in + "oldmodule/x.py"}), ElementsAre("pip old 1.0"));
  EXPECT_THAT(found_for({in + "bare/x.py"}), ElementsAre("pip bare 3.1"));
  EXPECT_THAT(found_for({in + "fromconda/__init__.py"}), IsEmpty());
  // Searching for plugins reads all metadata and loads no package.
  EXPECT_THAT(found_for({in + "numpy-1.26.4.dist-info/METADATA", in + "x.pth", in + "unknown/x.py",
                         "/usr/lib/python3/dist-packages/numpy/x.py"}),
              IsEmpty());
}

TEST_F(Packages, PipEditable) {
  const std::string site = "venv/lib/python3.11/site-packages/";
  write(site + "mine-0.1.dist-info/METADATA", "Name: mine\nVersion: 0.1\n");
  write(site + "mine-0.1.dist-info/RECORD", "__editable__.mine-0.1.pth,,\n");
  write(site + "mine-0.1.dist-info/direct_url.json",
        R"({"dir_info": {"editable": true}, "url": "file:///home/u/my%20code"})");
  const std::string pth = "/" + site + "__editable__.mine-0.1.pth";
  EXPECT_THAT(found_for({pth, "/home/u/my code/src/mine/a.py"}), ElementsAre("pip mine 0.1"));
  EXPECT_THAT(found_for({pth, "/home/u/my code-2/src/a.py", "/home/u/my code/data.bin"}),
              IsEmpty());
  for (const char* text :
       {"", "{", "[]", "{\"dir_info\": 1, \"url\": 2}", "{\"dir_info\":{}, \"url\":\"\"}"}) {
    write(site + "mine-0.1.dist-info/direct_url.json", text);
    EXPECT_THAT(found_for({pth, "/home/u/my code/src/mine/a.py"}), IsEmpty());
  }
}

TEST_F(Packages, Conda) {
  const std::string meta = "opt/conda/envs/e/conda-meta/";
  write(
      meta + "python-3.11.7-h2628c8c_0_cpython.json",
      R"({"depends": ["x"], "files": ["bin/[", "bin/python3.11", "lib/libpython3.11.so"], "name": "python"})");
  write(meta + "ca-certificates-2024.2.2-hbcca054_0.json", R"({"files":["ssl/cacert.pem"]})");
  write(meta + "broken.json", "{\"files\": [\"a");
  write(meta + "history", "");
  const std::string in = "/opt/conda/envs/e/";
  EXPECT_THAT(found_for({in + "bin/python3.11", in + "lib/libpython3.11.so"}),
              ElementsAre("conda python 3.11.7"));
  EXPECT_THAT(found_for({in + "ssl/cacert.pem"}), ElementsAre("conda ca-certificates 2024.2.2"));
  EXPECT_THAT(found_for({in + "bin/other", "/opt/conda/bin/python3.11", "/data/lib/x"}), IsEmpty());
}

// What dpkg-query says of programs and libraries of this machine.
TEST(PackagesHere, AgreeWithDpkgQuery) {
  if (!fs::exists("/var/lib/dpkg/info")) GTEST_SKIP() << "not a Debian";
  const base::testing::TempDir cache;
  std::set<std::string> asked;
  for (const char* folder : {"/usr/bin", "/usr/lib/x86_64-linux-gnu", "/usr/share/doc/bash"}) {
    std::error_code error;
    for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
      if (asked.size() % 200 == 199) break;
      if (!at->is_directory()) asked.insert(at->path().string());
    }
  }
  std::vector<std::string> arguments = {"dpkg-query", "-S"};
  for (const std::string& path : asked) arguments.push_back(path);
  const auto owners = base::run_captured(
      {.arguments = arguments, .environment = base::Environment::from_current()});
  ASSERT_TRUE(owners);
  std::istringstream lines(owners->output);  // "name:arch: /path"; unknown ones are on stderr
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("diversion by ") || line.find(", ") != line.npos) continue;
    const std::string path = line.substr(line.find(": ") + 2);
    DpkgPackages dpkg("/", cache.path());
    dpkg.add(path);
    const auto found = dpkg.packages();
    if (found.empty()) {
      ADD_FAILURE() << line;
      continue;
    }
    EXPECT_EQ(found[0].name.substr(0, found[0].name.find(':')), line.substr(0, line.find(':')))
        << path;
    EXPECT_NE(found[0].version, "");
  }
}

}  // namespace
}  // namespace assay::lineage
