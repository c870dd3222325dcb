#include <filesystem>
#include <sstream>

#include "app/options.hpp"
#include "base/error.hpp"
#include "base/files/file.hpp"
#include "trace/chrome_trace.hpp"
#include "trace/collect.hpp"

namespace stratagem::app {

namespace fs = std::filesystem;

void declare_export_trace(Options& options) {
  options.add_word({.name = "DIR", .meaning = "a run directory"});
  options.add({.name = "format",
               .value = "FORMAT",
               .choices = {"chrome"},
               .fallback = "chrome",
               .meaning = "for Perfetto and chrome://tracing"});
  options.add({.name = "output",
               .letter = 'o',
               .value = "FILE",
               .meaning = "what to write; else trace.json in DIR"});
  options.add_example("stratagem export-trace runs/digits-lenet-ddp",
                      "write trace.json, for https://ui.perfetto.dev");
}

ExitCode execute_export_trace(Options const& options) {
  fs::path const run = options.words().front();
  if (!fs::is_directory(run))
    throw Error(ExitCode::usage, run.string() + " is not a directory", {}, "name a run directory");

  auto const common = options.common();
  Log log(0, true, common.level, common.color);
  auto const traces = trace::collect_run(run);
  for (auto const& remark : traces.remarks) log.warning(remark);
  fs::path const output =
      options.has("output") ? fs::path(options.text("output")) : run / "trace.json";
  std::ostringstream text;
  write_chrome_trace(traces, text);
  replace_file(output, text.view());
  log.info("wrote " + output.string() + "; open it in https://ui.perfetto.dev");
  return ExitCode::done;
}

}  // namespace stratagem::app
