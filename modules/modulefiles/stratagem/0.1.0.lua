-- stratagem for Lmod. It finds the program relative to this file: in a build folder of a checkout, that for GPUs first, or in an
-- installation (<prefix>/share/stratagem/modules/modulefiles/stratagem).
help([[
stratagem trains one model under different data-parallel strategies and measures what each costs.

  stratagem demo                      compares the strategies on built-in data
  stratagem --help                    commands and exit codes
  $STRATAGEM_HOME/slurm/README.md     from ssh to the report, on a cluster
]])

whatis("Name: stratagem")
whatis("Version: " .. myModuleVersion())
whatis("Category: application, machine learning")
whatis("Keywords: MPI, DDP, FSDP, parameter server, LibTorch, HDF5")
whatis("Description: which data-parallel strategy for this model on this cluster?")

family("stratagem")

local function above(path, levels)
  for _ = 1, levels do
    path = path:match("^(.*)/[^/]*$") or ""
  end
  return path
end

local home = above(myFileName(), 4)
local installed = above(home, 2) .. "/bin"
if isFile(installed .. "/stratagem") then
  prepend_path("PATH", installed)
elseif isFile(pathJoin(home, "build-cuda-release", "stratagem")) then
  prepend_path("PATH", pathJoin(home, "build-cuda-release"))
else
  prepend_path("PATH", pathJoin(home, "build"))
end
setenv("STRATAGEM_HOME", home)
