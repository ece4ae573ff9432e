// What the verbs share: how one is added to the command line, and how it speaks.
//
// A verb lives in its own file and exports add_NAME(). While the command line is parsed it only
// notes what to do; main() then runs that one action and turns its Result into an exit code.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <string_view>

#include "base/exit_code.h"
#include "base/json.h"
#include "base/result.h"
#include "base/table.h"

namespace assay::cli {

class Session {
 public:
  using Action = std::function<base::Result<base::ExitCode>()>;

  void set_action(Action action) { action_ = std::move(action); }
  [[nodiscard]] const Action& action() const { return action_; }

  bool json = false;
  bool quiet = false;

  // Facts for people: a table or a sentence. Nothing under --quiet or --json.
  void print(std::string_view text) const;
  void print(const base::Table& table) const;
  // The same facts for programs. Nothing without --json.
  void print_json(const base::Json& document) const;
  // "next: assay …", the command a person most likely wants after this one.
  void next(std::string_view command) const;

 private:
  Action action_;
};

// A verb with the options every verb has (--json, --quiet, --help) and one or more examples that
// work as they stand; tests run them.
CLI::App* add_verb(CLI::App& parent, Session& session, const std::string& name,
                   const std::string& description, const std::string& examples);

void add_init(CLI::App& app, Session& session);
void add_presets(CLI::App& app, Session& session);
void add_completion(CLI::App& app, Session& session);

}  // namespace assay::cli
