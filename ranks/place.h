// defines: RankPlace, where a process stands among those that share one run; place_of_environment(), require_open_files().
#pragma once

#include <optional>
#include <string>

namespace basin {

/// One of `size` processes. They find one another at `host`:`port`, where rank 0 listens.
struct RankPlace {
  int rank = 0, size = 1;
  int local_rank = 0, local_size = 1;  // among those on this host
  std::string host = "127.0.0.1";
  int port = 0;
  std::optional<int> listening = {};  // rank 0: a socket that listens there already
};

/// What a launcher said, in this order: RANK and WORLD_SIZE (torchrun, and whoever sets them), OMPI_COMM_WORLD_RANK and _SIZE, PMI_RANK
/// and PMI_SIZE (mpirun), SLURM_PROCID and SLURM_NTASKS within a step (srun). MASTER_ADDR and MASTER_PORT name the meeting place, else
/// the first host of SLURM_STEP_NODELIST and a port from the job's and the step's number. Nothing: no launcher, or one process.
/// ConfigError names the variable that makes no sense: a number that is none, a rank beyond the size, a size without a meeting place.
std::optional<RankPlace> place_of_environment();

/// The first host of a list as Slurm writes it: "gpu[003-007,9],x1" -> "gpu003".
std::string first_host(const std::string& list);

/// ConfigError where `who` may not have so many files open at once; a limit that this process may raise is raised. Below it torch and libuv
/// end the process, or call it another fault.
void require_open_files(int files, const std::string& who);

/// For a rank of so many: two have 28.
void require_open_files(int ranks);

}  // namespace basin
