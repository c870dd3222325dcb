#include "app/command.hpp"

namespace stratagem::app {

std::vector<Command> const& commands() {
  using enum Ranks;
  static std::vector<Command> const all{
      {"run", "Train as CONFIG says; start it with mpirun for several ranks.", together,
       declare_run, execute_run},
      {"plan", "Check a run, or all of a study, and show what it would do and hold.", first,
       declare_plan, execute_plan},
      {"demo", "Train a small model on built-in data under every strategy and compare them.",
       refused, declare_demo, execute_demo},
      {"init", "Write a first configuration, with comments, and say what is next.", first,
       declare_init, execute_init},
      {"info", "Show versions, launcher, devices, and what is wrong with them.", together,
       declare_info, execute_info},
      {"list", "Show what a configuration can say.", first, declare_list, execute_list},
      {"model", "Show the blocks of a model, or why its file cannot be trained.", first,
       declare_model, execute_model},
      {"data", "Check your own images or text and show statistics, or how fast images are read.",
       first, declare_data, execute_data},
      {"commbench", "Measure communication between the ranks.", together, declare_commbench,
       execute_commbench},
      {"calibrate", "Measure this machine, so that `plan` can predict run times.", together,
       declare_calibrate, execute_calibrate},
      {"sweep", "List the cells of a study, run one or all of them, or continue a study.", refused,
       declare_sweep, execute_sweep},
      {"status", "Show the state of a study's cells, from files only.", first, declare_status,
       execute_status},
      {"collect", "Join the traces of runs, or of a study's cells, and show a table.", first,
       declare_collect, execute_collect},
      {"replay", "Repeat an asynchronous run in one process and compare the bits.", first,
       declare_replay, execute_replay},
      {"simulate", "Train with simulated workers and servers in one process.", first,
       declare_simulate, execute_simulate},
      {"validate", "Check trace files against their schema.", first, declare_validate,
       execute_validate},
      {"checkpoint", "List the checkpoints of runs and check every byte.", first,
       declare_checkpoint, execute_checkpoint},
      {"export-weights", "Write a checkpoint's weights under torchvision's names.", first,
       declare_export_weights, execute_export_weights},
      {"sample", "Continue a text with a trained model.", first, declare_sample, execute_sample},
      {"export-trace", "Write a run's traces for Perfetto's timeline.", first, declare_export_trace,
       execute_export_trace},
      {"help", "Show the options and examples of a command.", first, declare_help, execute_help},
      {"completion", "Print a script that completes commands, options and keys.", first,
       declare_completion, execute_completion},
  };
  return all;
}

}  // namespace stratagem::app
