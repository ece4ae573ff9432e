// What bench/trace measures under each tracer; prints nanoseconds per operation.
//   trace_tool opens FOLDER COUNT     distinct files f0…, then one file again and again
//   trace_tool pread FILE SIZE COUNT
//   trace_tool write FILE SIZE COUNT
#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

namespace {

template <class Operation>
double ns_each(int count, Operation operation) {
  const auto begun = std::chrono::steady_clock::now();
  for (int i = 0; i < count; ++i) operation(i);
  const std::chrono::duration<double, std::nano> taken = std::chrono::steady_clock::now() - begun;
  return taken.count() / count;
}

void open_and_close(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDONLY);
  if (file < 0) std::exit(1);
  ::close(file);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view mode = argc > 3 ? argv[1] : "";
  if (mode == "opens") {
    const int count = std::atoi(argv[3]);
    std::vector<std::string> paths;
    for (int i = 0; i < count; ++i)
      paths.push_back(std::string(argv[2]) + "/f" + std::to_string(i));
    const auto distinct =
        ns_each(count, [&](int i) { open_and_close(paths[static_cast<std::size_t>(i)]); });
    const auto repeated = ns_each(count, [&](int) { open_and_close(paths.front()); });
    std::printf("%.1f %.1f\n", distinct, repeated);
    return 0;
  }
  if (argc < 5) return 2;
  const bool writes = mode == "write";
  const int file = ::open(argv[2], writes ? O_WRONLY | O_CREAT : O_RDONLY, 0644);
  std::vector<char> buffer(static_cast<std::size_t>(std::atoi(argv[3])));
  const auto each = ns_each(std::atoi(argv[4]), [&](int) {
    const ssize_t moved = writes ? ::pwrite(file, buffer.data(), buffer.size(), 0)
                                 : ::pread(file, buffer.data(), buffer.size(), 0);
    if (moved < 0) std::exit(1);
  });
  std::printf("%.2f\n", each);
  return 0;
}
