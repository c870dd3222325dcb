#include "run_files/metrics.hpp"

#include <cmath>

#include "base/text.hpp"

namespace stratagem {
namespace {

std::string cell(double value) {
  return std::isfinite(value) ? shortest(value) : std::string{};
}

}  // namespace

Metrics::Metrics(std::filesystem::path const& path, int attempt) : file_(path), attempt_(attempt) {
  if (std::filesystem::file_size(path) == 0)
    file_.write(
        "attempt,epoch,step,time_s,train_loss,train_accuracy,test_loss,test_accuracy,images_per_s,"
        "lr,comm_bytes\n");
}

void Metrics::add(trace::EpochRecord const& epoch, std::int64_t step, double lr) {
  file_.write(str(attempt_, ",", epoch.epoch, ",", step, ",", cell(epoch.time_s), ",",
                  cell(epoch.train_loss), ",", cell(epoch.train_accuracy), ",",
                  cell(epoch.test_loss), ",", cell(epoch.test_accuracy), ",",
                  cell(epoch.images_per_s), ",", cell(lr), ",", epoch.comm_bytes, "\n"));
}

}  // namespace stratagem
