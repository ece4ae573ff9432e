#include "cli/program.h"

#include <fmt/format.h>

#include <cstdio>
#include <exception>

#include "base/file_size_limit.h"
#include "base/log.h"
#include "base/terminal.h"
#include "base/version.h"
#include "cli/command_line.h"

namespace assay::cli {
namespace {

int report(const base::Error& error) {
  base::write_stderr("assay: " + error.line() + "\n");
  return static_cast<int>(error.code);
}

void print_version(const Session& session) {
  const base::Version& v = base::version();
  session.print_json(base::Json{{"release", v.release},
                                {"commit", v.commit},
                                {"compiler", v.compiler},
                                {"build_type", v.build_type},
                                {"flags", v.flags},
                                {"sanitizers", v.sanitizers}});
  session.print(fmt::format("assay {} (commit {})\nbuilt {} by {}: {}; sanitizers: {}\n", v.release,
                            v.commit, v.build_type, v.compiler, v.flags, v.sanitizers));
}

int run(int argc, char** argv, const std::function<void(const Session&, Verb& root)>& describe) {
  Session session;
  Verb root;
  describe(session, root);

  const auto request = parse_command_line(root, session, argc, argv);
  if (!request) return report(request.error());
  if (const auto* help = std::get_if<ShowHelp>(&*request)) {
    write_stdout(help->text);
    return 0;
  }
  if (std::holds_alternative<ShowVersion>(*request)) {
    print_version(session);
    return 0;
  }
  // Errors are still printed, by report().
  if (session.quiet) base::set_log_settings({base::LogLevel::kOff, base::log_settings().format});
  const auto outcome = std::get<RunVerb>(*request).verb->action();
  return outcome ? static_cast<int>(*outcome) : report(outcome.error());
}

// Output that could not be written is a failure, whatever the verb returned.
int flush_stdout(int code) {
  const int problem = finish_stdout();
  if (problem == 0) return code;
  return report(base::system_error("standard output", "cannot write", problem));
}

}  // namespace

int run_program(int argc, char** argv,
                const std::function<void(const Session&, Verb& root)>& describe) {
  base::survive_file_size_limit();
  // Readers of a pipe or a followed file see each line when it is printed.
  std::setvbuf(stdout, nullptr, _IOLBF, BUFSIZ);
  // Our code does not throw; the standard library may, when memory runs out.
  try {
    return flush_stdout(run(argc, argv, describe));
  } catch (const std::exception& error) {
    return report(base::failed_error("", error.what()));
  }
}

}  // namespace assay::cli
