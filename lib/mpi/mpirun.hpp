#pragma once

#include <optional>
#include <string>

namespace stratagem::mpi {

/// Which `mpirun` stands on PATH.
struct Mpirun {
  std::string path;
  std::string library;  ///< "Open MPI", "MPICH"; else what it says of itself
  std::string version;  ///< "5.0.7"; empty: not told
  std::string runtime;  ///< "ORTE" up to Open MPI 4, "PRRTE" from 5 on, "Hydra"; empty: unknown

  /// "Open MPI 5.0.7, PRRTE".
  std::string name() const;

  /// From what `mpirun --version` prints.
  static Mpirun parse(std::string const& path, std::string const& told);
};

/// Nothing where there is none. Starts `mpirun --version`: call it before MPI is initialised.
std::optional<Mpirun> mpirun_on_path();

/// An mpirun of another library, or of another generation of it, than `library_version` ("Open MPI
/// v4.1.4"): its ranks may not find each other. "" when they belong together.
std::string mismatch(Mpirun const& mpirun, std::string const& library_version);

}  // namespace stratagem::mpi
