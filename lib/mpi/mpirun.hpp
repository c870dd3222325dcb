#pragma once

#include <optional>
#include <string>

namespace stratagem::mpi {

/// The `mpirun` on PATH.
struct Mpirun {
  std::string path;
  std::string library;  ///< "Open MPI", "MPICH", or what it calls itself
  std::string version;  ///< "5.0.7"; empty: unknown
  std::string runtime;  ///< "ORTE" up to Open MPI 4, "PRRTE" from 5 on, "Hydra"; empty: unknown

  /// "Open MPI 5.0.7, PRRTE".
  std::string name() const;

  /// Parses the output of `mpirun --version`.
  static Mpirun parse(std::string const& path, std::string const& told);
};

/// Empty if there is none. Starts `mpirun --version`: call it before MPI is initialised.
std::optional<Mpirun> mpirun_on_path();

/// Describes an mpirun that is of another library, or another generation of it, than
/// `library_version` ("Open MPI v4.1.4"): its ranks may not find each other. "" if they fit
/// together.
std::string mismatch(Mpirun const& mpirun, std::string const& library_version);

}  // namespace stratagem::mpi
