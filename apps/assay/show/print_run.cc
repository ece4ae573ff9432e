#include "assay/show/print_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <cstring>

#include "assay/shared/run_text.h"
#include "assay/shared/usage_text.h"
#include "base/clock.h"
#include "base/text.h"
#include "base/units.h"
#include "lineage/graph/dag_view.h"
#include "lineage/graph/result_variables.h"
#include "lineage/packages/interpreter.h"

namespace assay::cli {
namespace {

using base::grouped;
using base::printable;
using base::Table;

std::string digest_text(const std::optional<hash::Digest>& digest) {
  return digest ? digest->hex().substr(0, 16) : "—";
}

std::string count_text(std::size_t count) {
  return grouped(static_cast<std::int64_t>(count));
}

// "and 900 more; --json has all" under a list that was cut.
void print_more(const Session& session, std::int64_t all, std::size_t shown) {
  const std::int64_t more = all - static_cast<std::int64_t>(shown);
  if (more > 0) session.print(fmt::format("and {} more; --json has them all\n", grouped(more)));
}

// Names and addresses; empty if the run is not known to have used the network.
std::string network_text(const store::RunRecord& run) {
  constexpr std::size_t kListed = 5;
  std::vector<std::string> listed;
  std::size_t all = 0;
  for (const store::PathFact& fact : run.facts) {
    if (fact.kind != store::PathFact::Kind::kNetwork) continue;
    if (++all > kListed) continue;
    const auto bytes = store::traffic_of(fact);
    listed.push_back(bytes ? fmt::format("{} ({} in, {} out)", fact.path,
                                         base::to_text(base::Bytes(bytes->received)),
                                         base::to_text(base::Bytes(bytes->sent)))
                           : fact.path);
  }
  if (all == 0) return {};
  return fmt::format("{}{}; the data it received was not recorded", fmt::join(listed, ", "),
                     all > kListed ? fmt::format(" and {} more", all - kListed) : "");
}

void print_facts(const Session& session, const store::RunRecord& run) {
  Table table({fmt::format("run {}", run.id), ""});
  table.align(1, base::Align::kLeft);
  table.row({"command", printable(lineage::command_text(run))});
  table.row({"directory", printable(run.directory)});
  if (!run.name.empty()) table.row({"name", printable(run.name)});
  if (!run.labels.empty()) table.row({"labels", fmt::format("{}", fmt::join(run.labels, ", "))});
  table.row({"outcome", outcome_text(run)});
  if (run.stage != 0) {
    table.row({"stage", fmt::format("{}{}", run.stage, run.superseded ? ", superseded" : "")});
  }
  if (run.build) table.row({"build", "yes"});
  table.row({"started", base::local_text(run.started_unix_ns)});
  if (run.status != store::RunStatus::kRunning) table.row({"took", took_text(run)});
  table.row({"tracer", run.tracer});
  const bool running = run.status == store::RunStatus::kRunning;
  table.row({"complete", running ? "still running" : run.complete ? "yes" : "no, see missed"});
  for (const store::PathFact& fact : run.facts) {
    const auto interpreter = lineage::interpreter_of(fact);
    if (!interpreter) continue;
    table.row({"interpreter",
               printable(fmt::format("{}: {}", interpreter->started, to_text(*interpreter)))});
  }
  if (const std::string network = network_text(run); !network.empty()) {
    table.row({"network", printable(network)});
  }
  if (run.dropped != 0) table.row({"dropped events", grouped(run.dropped)});
  table.row({"uid", run.uid});
  session.print(table);
}

void print_variables(const Session& session, const store::RunRecord& run) {
  Table table({"variable", "value"});
  table.align(1, base::Align::kLeft);
  for (const auto& [name, value] : lineage::result_variables(run.context.environment)) {
    table.row({printable(name), printable(value)});
  }
  if (table.empty()) return;
  session.print("\n");
  session.print(table);
}

void print_usage(const Session& session, const store::RunRecord& run) {
  Table table({"used", ""});
  table.row(
      {"processor time", base::to_text(base::Seconds(run.usage.user_s + run.usage.system_s))});
  table.row({"of it in the kernel", base::to_text(base::Seconds(run.usage.system_s))});
  table.row({"largest process", base::to_text(base::Bytes(run.usage.max_rss_bytes))});
  table.row({"read from devices", base::to_text(base::Bytes(run.usage.read_bytes))});
  table.row({"written to devices", base::to_text(base::Bytes(run.usage.written_bytes))});
  session.print("\n");
  session.print(table);
}

// "copies_to_device" -> "copies to device".
std::string spaced(std::string text) {
  std::replace(text.begin(), text.end(), '_', ' ');
  return text;
}

void print_shares(const Session& session, const std::vector<store::GpuShareUse>& shares) {
  if (shares.empty()) return;
  Table table({"GPU limits", "memory", "share", "priority", "borrow", "busy", "waited"});
  const auto time = [](std::int64_t ns) {
    return ns == 0 ? "—" : base::to_text(base::Seconds(static_cast<double>(ns) / 1e9));
  };
  for (const store::GpuShareUse& share : shares) {
    table.row({share.device.empty() ? "others" : printable(share.device),
               share.memory_bytes ? base::to_text(base::Bytes(*share.memory_bytes)) : "none",
               share.share_thousandths
                   ? share_text(static_cast<std::uint32_t>(*share.share_thousandths))
                   : "none",
               printable(share.priority), share.borrow ? "yes" : "no", time(share.busy_ns),
               time(share.waited_ns)});
  }
  session.print("\n");
  session.print(table);
}

void print_gpu(const Session& session, const store::RunRecord& run) {
  if (run.gpu.empty()) return;
  if (!run.gpu.use.empty()) {
    Table table({"GPU work", "calls", "total"});
    for (const store::GpuUse& use : run.gpu.use) {
      std::string amount;
      if (use.quantity == "graphs") {
        amount = grouped(use.amount) + " nodes";
      } else if (const auto flops = store::flops_of(use)) {
        amount = base::to_text(*flops);
      } else if (use.amount > 0) {
        amount = base::to_text(base::Bytes(use.amount));
      }
      table.row({spaced(printable(use.quantity)), grouped(use.calls), amount});
    }
    session.print("\n");
    session.print(table);
  }
  if (!run.gpu.memory.empty()) {
    Table table({"GPU memory", "peak of one process"});
    for (const store::GpuMemory& memory : run.gpu.memory) {
      table.row({printable(memory.device), base::to_text(base::Bytes(memory.peak_bytes))});
    }
    session.print("\n");
    session.print(table);
  }
  print_shares(session, run.gpu.shares);
  if (!run.gpu.collectives.empty()) {
    Table table({"collectives", "type", "ranks", "calls", "total", "communicator"});
    table.align(1, base::Align::kLeft);
    for (const store::GpuCollectiveUse& row : run.gpu.collectives) {
      table.row({printable(row.operation), printable(row.type), grouped(row.ranks),
                 grouped(row.calls), base::to_text(base::Bytes(row.bytes)),
                 printable(row.communicator)});
    }
    session.print("\n");
    session.print(table);
  }
}

void print_context(const Session& session, const store::RunRecord& run) {
  const store::Context& context = run.context;
  Table table({"context", ""});
  table.align(1, base::Align::kLeft);
  table.row({"user", printable(context.user + "@" + context.host)});
  if (context.git) {
    const store::Git& git = *context.git;
    table.row({"git", printable(git.commit.empty() ? "no commit yet" : git.commit)});
    if (!git.branch.empty()) table.row({"branch", printable(git.branch)});
    if (!git.remote.empty()) table.row({"remote", printable(git.remote)});
    table.row({"uncommitted",
               git.dirty
                   ? fmt::format("a diff of {}", base::to_text(base::Bytes(
                                                     static_cast<std::int64_t>(git.diff.size()))))
                   : "nothing"});
    if (!git.left_out.empty()) {
      table.row({"not in the diff", printable(fmt::format("{}", fmt::join(git.left_out, ", ")))});
    }
  }
  table.row({"environment",
             base::counted(static_cast<std::int64_t>(context.environment.size()), "variable")});
  if (!context.packages.empty()) {
    std::vector<std::string> names;
    constexpr std::size_t kListed = 12;
    // A language's packages decide more than the system's, of which there are many.
    std::vector<store::Package> packages = context.packages;
    std::stable_partition(packages.begin(), packages.end(),
                          [](const store::Package& one) { return one.manager != "dpkg"; });
    for (const store::Package& package : packages) {
      if (names.size() == kListed) break;
      names.push_back(fmt::format("{} {}", package.name, package.version));
    }
    const std::size_t more = context.packages.size() - names.size();
    table.row(
        {"packages", printable(fmt::format("{}{}", fmt::join(names, ", "),
                                           more == 0 ? "" : fmt::format(" and {} more", more)))});
  }
  session.print("\n");
  session.print(table);
}

void print_links(const Session& session, const store::RunRecord& run,
                 const std::filesystem::path& directory) {
  using Kind = store::PathFact::Kind;
  Table table({"symbolic links", "lead to", ""});
  table.align(1, base::Align::kLeft).align(2, base::Align::kLeft);
  for (const store::PathFact& fact : run.facts) {
    if (fact.kind != Kind::kFollowedLink && fact.kind != Kind::kMadeLink) continue;
    table.row({printable(lineage::shown_path(fact.path, directory)), printable(fact.target),
               fact.kind == Kind::kMadeLink ? "made" : "followed"});
  }
  if (table.empty()) return;
  session.print("\n");
  session.print(table);
}

void print_files(const Session& session, const store::RunRecord& run,
                 const std::filesystem::path& directory, std::size_t files) {
  if (!run.inputs.empty()) {
    Table table({fmt::format("inputs ({})", grouped(run.input_count)), "size", "blake3"});
    table.align(2, base::Align::kLeft);
    for (std::size_t i = 0; i < std::min(files, run.inputs.size()); ++i) {
      const store::Input& input = run.inputs[i];
      table.row({printable(lineage::shown_path(input.path, directory)),
                 base::to_text(base::Bytes(input.size)), digest_text(input.blake3)});
    }
    session.print("\n");
    session.print(table);
    print_more(session, run.input_count, std::min(files, run.inputs.size()));
  }
  if (!run.outputs.empty()) {
    Table table(
        {fmt::format("outputs ({})", grouped(run.output_count)), "size", "blake3", "status"});
    table.align(2, base::Align::kLeft);
    for (std::size_t i = 0; i < std::min(files, run.outputs.size()); ++i) {
      const store::Output& output = run.outputs[i];
      std::string status(store::name_of(output.status));
      if (!output.from.empty()) {
        status += " from " + printable(lineage::shown_path(output.from, directory));
      }
      table.row({printable(lineage::shown_path(output.path, directory)),
                 output.blake3 ? base::to_text(base::Bytes(output.size)) : "—",
                 digest_text(output.blake3), status});
    }
    session.print("\n");
    session.print(table);
    print_more(session, run.output_count, std::min(files, run.outputs.size()));
  }
  print_links(session, run, directory);
}

void print_processes(const Session& session, const store::RunRecord& run) {
  constexpr std::size_t kListed = 20;
  if (run.processes.empty()) return;
  Table table({fmt::format("processes ({})", grouped(run.process_count)), "parent", "command"});
  table.align(2, base::Align::kLeft);
  for (std::size_t i = 0; i < std::min(kListed, run.processes.size()); ++i) {
    const store::ProcessRecord& process = run.processes[i];
    store::RunRecord executed;
    executed.command = process.arguments;
    const std::string on = process.host.empty() ? "" : "@" + printable(process.host);
    table.row(
        {fmt::format("{}{}", process.pid, on), fmt::format("{}", process.parent),
         process.arguments.empty() ? "(forked)" : cell_text(lineage::command_text(executed))});
  }
  session.print("\n");
  session.print(table);
  print_more(session, run.process_count, std::min(kListed, run.processes.size()));
}

void print_missed(const Session& session, const store::RunRecord& run) {
  if (run.missed.empty()) return;
  Table table({"missed", ""});
  table.align(1, base::Align::kLeft);
  for (const store::Missed& missed : run.missed) {
    table.row({printable(missed.what), printable(missed.text)});
  }
  session.print("\n");
  session.print(table);
}

}  // namespace

void print_run(const Session& session, const store::RunRecord& run,
               const std::filesystem::path& directory, std::size_t files) {
  print_facts(session, run);
  print_missed(session, run);
  print_files(session, run, directory, files);
  print_processes(session, run);
  print_variables(session, run);
  print_usage(session, run);
  print_gpu(session, run);
  print_context(session, run);
}

void print_rules(const Session& session, const store::RunRecord& run,
                 const std::filesystem::path& directory, std::size_t files) {
  if (run.rules.empty()) {
    session.print("\nwhy files were kept or left out was not recorded\n");
    return;
  }
  for (const store::FileRule& rule : run.rules) {
    session.print(fmt::format("\n{} {} ({}): {}\n", rule.keep ? "kept" : "left out",
                              grouped(rule.files), printable(rule.name), printable(rule.sentence)));
    const std::size_t listed = std::min(files, rule.paths.size());
    for (std::size_t i = 0; i < listed; ++i) {
      session.print(
          fmt::format("  {}\n", printable(lineage::shown_path(rule.paths[i], directory))));
    }
    if (listed > 0 && listed < rule.paths.size()) {
      session.print(fmt::format("  and {} more; --json has them all\n",
                                count_text(rule.paths.size() - listed)));
    }
  }
}

}  // namespace assay::cli
