#include <filesystem>
#include <sstream>

#include "app/options.hpp"
#include "base/error.hpp"
#include "base/file.hpp"
#include "study/chrome_trace.hpp"
#include "trace/collect.hpp"

namespace stratagem::app {

namespace fs = std::filesystem;

ExitCode execute_export_trace(Command const& command, std::vector<std::string> const& arguments) {
  Options options(command);
  options.add_positional("directory", 1);
  options.add()("format", text_value("chrome"), "chrome: for Perfetto and chrome://tracing")(
      "output,o", text_value(), "file; else trace.json in DIR");
  if (!options.parse(arguments)) return ExitCode::done;
  auto const given = options.texts("directory");
  if (given.empty()) throw Error(ExitCode::usage, "export what?", {}, "name a run directory");
  if (options.text("format") != "chrome")
    throw Error(ExitCode::usage, "--format " + options.text("format"), "there is only chrome");
  fs::path const run = given.front();
  if (!fs::is_directory(run))
    throw Error(ExitCode::usage, run.string() + " is no directory", {}, "name a run directory");

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
