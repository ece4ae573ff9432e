// Everything that can be at a path: files, pipes, sockets, devices, nothing.
#include "base/file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <span>
#include <thread>

#include "base/unique_fd.h"

namespace assay::base {
namespace {

constexpr Bytes kLimit(1 << 20);

class ReadFile : public ::testing::Test {
 protected:
  ReadFile() {
    std::string pattern = ::testing::TempDir() + "read_file_XXXXXX";
    folder_ = ::mkdtemp(pattern.data());
  }
  ~ReadFile() override { std::filesystem::remove_all(folder_); }

  std::filesystem::path write(const std::string& name, const std::string& contents) {
    const auto path = folder_ / name;
    std::ofstream(path, std::ios::binary) << contents;
    return path;
  }
  // The error's line with the folder taken out.
  std::string error_line(const std::filesystem::path& path, Bytes limit = kLimit) {
    const auto read = read_file(path, limit);
    if (read) return "no error";
    std::string line = read.error().line();
    const std::string prefix = folder_.string() + "/";
    for (auto at = line.find(prefix); at != std::string::npos; at = line.find(prefix)) {
      line.erase(at, prefix.size());
    }
    return line;
  }

  std::filesystem::path folder_;
};

TEST_F(ReadFile, ReadsEverythingAsItIs) {
  const std::string contents("a\0b\r\n\xff", 6);
  EXPECT_EQ(read_file(write("a", contents), kLimit), contents);
  EXPECT_EQ(read_file(write("empty", ""), kLimit), "");
  std::string large(300'000, 'x');
  large.back() = 'y';
  EXPECT_EQ(read_file(write("large", large), kLimit), large);
}

TEST_F(ReadFile, ReadsAPartFromAnOffset) {
  const auto path = write("part", "0123456789");
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  const auto read = [&](int fd, std::uint64_t offset, std::size_t size) -> std::string {
    std::string text(size, '?');
    const auto got = read_at(fd, "the file", offset, std::as_writable_bytes(std::span(text)));
    return got ? text.substr(0, *got) : got.error().line();
  };
  EXPECT_EQ(read(file.get(), 3, 4), "3456");
  EXPECT_EQ(read(file.get(), 0, 10), "0123456789") << "its position has not moved";
  EXPECT_EQ(read(file.get(), 7, 10), "789");
  EXPECT_EQ(read(file.get(), 10, 4), "");
  EXPECT_EQ(read(file.get(), 0, 0), "");
  EXPECT_EQ(read(-1, 0, 4), "the file: cannot read: Bad file descriptor");
}

TEST_F(ReadFile, FollowsLinks) {
  write("target", "here");
  std::filesystem::create_symlink("target", folder_ / "link");
  EXPECT_EQ(read_file(folder_ / "link", kLimit), "here");
}

TEST_F(ReadFile, TheLimitIsTheMostThatIsRead) {
  const auto path = write("four", "1234");
  EXPECT_EQ(read_file(path, Bytes(4)), "1234");
  EXPECT_EQ(error_line(path, Bytes(3)), "four: is larger than 3 B, the limit for this file");
  EXPECT_EQ(error_line(path, Bytes(0)), "four: is larger than 0 B, the limit for this file");
  EXPECT_EQ(read_file(write("empty", ""), Bytes(0)), "");
  EXPECT_EQ(read_file(path, Bytes(3)).error().code, ExitCode::kUsage);
}

TEST_F(ReadFile, ReadsPastTheSizeTheSystemGives) {
  // The kernel reports size 0 for files that it generates when they are read.
  const auto read = read_file("/proc/self/status", kLimit);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->substr(0, 6), "Name:\t");
  EXPECT_FALSE(read_file("/proc/self/status", Bytes(10)));
}

TEST_F(ReadFile, RefusesWhatIsNoFileWithoutWaiting) {
  const auto fifo = folder_ / "fifo";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  EXPECT_EQ(error_line(fifo), "fifo: is a pipe; expected a file");
  EXPECT_EQ(error_line("/dev/zero"), "/dev/zero: is a device; expected a file");
  std::filesystem::create_directory(folder_ / "dir");
  EXPECT_EQ(error_line(folder_ / "dir"), "dir: is a directory; expected a file");
  EXPECT_EQ(read_file(folder_, kLimit).error().code, ExitCode::kUsage);
}

TEST_F(ReadFile, ReadsAPipeWhenAskedTo) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const UniqueFd reader(ends[0]);
  UniqueFd writer(ends[1]);
  std::thread slow([&] {
    for (const char* piece : {"one ", "two"}) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      EXPECT_EQ(::write(writer.get(), piece, std::strlen(piece)),
                static_cast<ssize_t>(std::strlen(piece)));
    }
    writer.reset();
  });
  // What a shell passes for <(command).
  const std::string path = "/dev/fd/" + std::to_string(reader.get());
  EXPECT_EQ(read_file(path, kLimit, Pipes::kRead), "one two");
  slow.join();
}

TEST_F(ReadFile, APipeWithoutAWriterIsEmpty) {
  const auto fifo = folder_ / "fifo";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  EXPECT_EQ(read_file(fifo, kLimit, Pipes::kRead), "");
  EXPECT_FALSE(read_file("/dev/zero", kLimit, Pipes::kRead)) << "a device is still no file";
}

TEST_F(ReadFile, RefusesASocket) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string path = (folder_ / "socket").string();
  ASSERT_LT(path.size(), sizeof address.sun_path);
  std::memcpy(address.sun_path, path.c_str(), path.size());
  const UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ASSERT_EQ(::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  EXPECT_EQ(error_line(path), "socket: is not a regular file");
}

TEST_F(ReadFile, NamesTheFileThatWasProbablyMeant) {
  write("job.toml", "");
  EXPECT_EQ(error_line(folder_ / "jbo.toml"), "jbo.toml: no such file; did you mean 'job.toml'?");
  EXPECT_EQ(error_line(folder_ / "other"), "other: no such file");
  std::filesystem::create_symlink("nothing", folder_ / "dangling");
  EXPECT_EQ(error_line(folder_ / "dangling"), "dangling: no such file") << "not itself";
  EXPECT_EQ(error_line(folder_ / "none" / "job.toml"), "none/job.toml: no such file");
  EXPECT_EQ(error_line(""), "the path is empty; expected a file");
  EXPECT_EQ(error_line(folder_ / "job.toml" / "x"),
            "job.toml/x: a part of this path is not a directory");
  EXPECT_EQ(read_file(folder_ / "other", kLimit).error().code, ExitCode::kUsage);
}

TEST_F(ReadFile, PermissionErrorsNameTheReason) {
  // Root may read everything, so it becomes user nobody for a moment.
  const uid_t user = ::geteuid();
  if (user == 0 && ::seteuid(65534) != 0) GTEST_SKIP() << "root, and cannot be anyone else";
  ASSERT_EQ(::seteuid(user), 0);
  const auto path = write("secret", "x");
  ASSERT_EQ(::chmod(path.c_str(), 0), 0);
  const uid_t reader = user == 0 ? 65534 : user;
  ASSERT_EQ(::seteuid(reader), 0);
  EXPECT_EQ(error_line(path), "secret: cannot open: Permission denied");
  EXPECT_EQ(read_file(path, kLimit).error().code, ExitCode::kUnfit);
  ASSERT_EQ(::seteuid(user), 0);
}

TEST_F(ReadFile, LeavesNoDescriptorOpen) {
  const auto path = write("a", "x");
  const UniqueFd before(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  for (int i = 0; i < 10; ++i) {
    EXPECT_TRUE(read_file(path, kLimit));
    EXPECT_FALSE(read_file(folder_, kLimit));
  }
  const UniqueFd after(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  EXPECT_EQ(after.get(), before.get() + 1);
}

// Replaces standard input by a pipe while it exists.
class StandardInput {
 public:
  explicit StandardInput(int flags) : saved_(::dup(STDIN_FILENO)) {
    int ends[2];
    EXPECT_EQ(::pipe2(ends, flags), 0);
    ::dup2(ends[0], STDIN_FILENO);
    ::close(ends[0]);
    writer_.reset(ends[1]);
  }
  ~StandardInput() { ::dup2(saved_.get(), STDIN_FILENO); }
  UniqueFd writer_;

 private:
  UniqueFd saved_;
};

TEST_F(ReadFile, DashIsStandardInputHoweverSlowly) {
  for (const int flags : {0, O_NONBLOCK}) {
    StandardInput input(flags);
    std::thread writer([&] {
      for (const char* piece : {"one ", "two ", "three"}) {
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
        EXPECT_EQ(::write(input.writer_.get(), piece, std::strlen(piece)),
                  static_cast<ssize_t>(std::strlen(piece)));
      }
      input.writer_.reset();
    });
    EXPECT_EQ(read_file("-", kLimit), "one two three");
    writer.join();
  }
}

TEST_F(ReadFile, StandardInputHasTheSameLimit) {
  StandardInput input(0);
  ASSERT_EQ(::write(input.writer_.get(), "12345", 5), 5);
  EXPECT_EQ(error_line("-", Bytes(4)),
            "standard input: is larger than 4 B, the limit for this file");
}

}  // namespace
}  // namespace assay::base
