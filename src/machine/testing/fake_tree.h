// FakeTree: a directory that looks like the /proc, /sys and /etc of some machine, for tests.
#pragma once

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/testing/temp_dir.h"

namespace assay::machine {

class FakeTree {
 public:
  [[nodiscard]] const std::string& root() const { return root_; }

  void write(const std::string& path, const std::string& text) const {
    make_parent(path);
    std::ofstream(root_ + path, std::ios::binary) << text;
  }
  // `target` is a path in the tree; like sysfs, the link is relative.
  void link(const std::string& path, const std::string& target) const {
    make_parent(path);
    const std::filesystem::path parent = std::filesystem::path(root_ + path).parent_path();
    std::filesystem::create_symlink(std::filesystem::relative(root_ + target, parent),
                                    root_ + path);
  }
  [[nodiscard]] std::vector<std::string> files() const {
    std::vector<std::string> paths;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(root_)) {
      if (entry.is_regular_file() && !entry.is_symlink()) {
        paths.push_back(entry.path().string().substr(root_.size()));
      }
    }
    return paths;
  }

  // `bridges`: from the host bridge down, e.g. "pci0000:15/0000:15:01.0".
  std::string add_pci(const std::string& bridges, const std::string& bus_id,
                      const std::string& vendor, const std::string& class_code,
                      int numa_node) const {
    const std::string directory = fmt::format("/sys/devices/{}/{}", bridges, bus_id);
    write(directory + "/vendor", vendor + "\n");
    write(directory + "/class", class_code + "\n");
    write(directory + "/numa_node", fmt::format("{}\n", numa_node));
    write(directory + "/current_link_speed", "16.0 GT/s PCIe\n");
    write(directory + "/current_link_width", "8\n");
    write(directory + "/max_link_speed", "32.0 GT/s PCIe\n");
    write(directory + "/max_link_width", "16\n");
    link("/sys/bus/pci/devices/" + bus_id, directory);
    return directory;
  }

  // One or more sockets of `cores` cores with two threads each: cpu N and N + sockets × cores.
  void add_host(int sockets, int cores) const {
    const int half = sockets * cores;
    write("/proc/sys/kernel/hostname", "node7\n");
    write("/proc/sys/kernel/osrelease", "6.8.0-40-generic\n");
    write("/etc/os-release", "NAME=\"Ubuntu\"\nVERSION_ID=\"24.04\"\nPRETTY_NAME=\"x\"\n");
    write("/proc/meminfo", "MemTotal:       2113421312 kB\nMemFree:  1 kB\n");
    write("/proc/self/status", fmt::format("Name:\tx\nCpus_allowed_list:\t0-{}\n", 2 * half - 1));
    write("/proc/cpuinfo",
          "processor\t: 0\nmodel name\t: Intel(R) Xeon(R) Platinum 8480C CPU @ 2.00GHz\n"
          "flags\t\t: fpu avx avx2 fma avx512f amx_bf16 avx512_bf16\n\nprocessor\t: 1\n");
    write("/sys/devices/system/cpu/online", fmt::format("0-{}\n", 2 * half - 1));
    for (int cpu = 0; cpu < 2 * half; ++cpu) {
      const std::string topology = fmt::format("/sys/devices/system/cpu/cpu{}/topology/", cpu);
      write(topology + "physical_package_id", fmt::format("{}\n", cpu % half / cores));
      write(topology + "core_cpus_list", fmt::format("{},{}\n", cpu % half, cpu % half + half));
    }
    for (int node = 0; node < sockets; ++node) {
      const std::string directory = fmt::format("/sys/devices/system/node/node{}/", node);
      write(directory + "cpulist",
            fmt::format("{}-{},{}-{}\n", node * cores, (node + 1) * cores - 1, half + node * cores,
                        half + (node + 1) * cores - 1));
      write(directory + "meminfo", fmt::format("Node {0} MemTotal: 1056710656 kB\n", node));
      write(directory + "distance", node == 0 ? "10 21\n" : "21 10\n");
    }
  }

  // Two sockets and eight GPUs, four on each. On each socket: the first two behind one switch, the
  // third on another root port of the same host bridge, the fourth on another host bridge.
  void add_hgx() const {
    add_host(2, 4);
    const std::string gpu = "0x10de";
    const std::string type = "0x030200";
    add_pci("pci0000:15/0000:15:01.0/0000:16:00.0/0000:17:00.0", "0000:18:00.0", gpu, type, 0);
    add_pci("pci0000:15/0000:15:01.0/0000:16:00.0/0000:17:01.0", "0000:2a:00.0", gpu, type, 0);
    add_pci("pci0000:15/0000:15:03.0", "0000:3a:00.0", gpu, type, 0);
    add_pci("pci0000:5c/0000:5c:01.0", "0000:5d:00.0", gpu, type, 0);
    add_pci("pci0000:97/0000:97:01.0/0000:98:00.0/0000:99:00.0", "0000:9a:00.0", gpu, type, 1);
    add_pci("pci0000:97/0000:97:01.0/0000:98:00.0/0000:99:01.0", "0000:ab:00.0", gpu, type, 1);
    add_pci("pci0000:97/0000:97:03.0", "0000:ba:00.0", gpu, type, 1);
    add_pci("pci0000:da/0000:da:01.0", "0000:db:00.0", gpu, type, 1);
    add_pci("pci0000:00/0000:00:04.0", "0000:05:00.0", gpu, "0x068000", 0);  // an NVSwitch
    add_pci("pci0000:00/0000:00:05.0", "0000:06:00.0", "0x8086", "0x030000", 0);
  }

 private:
  void make_parent(const std::string& path) const {
    std::filesystem::create_directories(std::filesystem::path(root_ + path).parent_path());
  }

  base::testing::MemoryDir folder_;  // hundreds of tiny files
  std::string root_ = folder_.path().string();
};

}  // namespace assay::machine
