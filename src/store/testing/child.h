// Runs a piece of a test in a separate process, so that it can be killed or drop its privileges.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace assay::store::testing {

struct ChildResult {
  bool killed = false;   // by SIGKILL
  int exit_code = -1;    // when it was not killed
  std::string reported;  // everything it passed to Report
};

class Child {
 public:
  using Report = std::function<void(std::string_view)>;

  // Starts `body` in a fork. What it passes to Report is kept even if the child dies right after.
  // The child exits with 0, without destructors or sanitizer reports at exit, when `body` returns.
  explicit Child(const std::function<void(const Report&)>& body);
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child();

  [[nodiscard]] int pid() const { return pid_; }
  void kill();
  // Waits for its end.
  ChildResult wait();

 private:
  int pid_ = -1;
  int pipe_ = -1;
};

inline ChildResult in_child(const std::function<void(const Child::Report&)>& body) {
  return Child(body).wait();
}

// Drops root's privileges, so that file modes take effect. Only in a child.
void become_nobody();
constexpr int kNobody = 65534;

}  // namespace assay::store::testing
