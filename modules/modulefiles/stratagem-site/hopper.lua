-- What stratagem needs on Hopper (Office of Research Computing, George Mason University), as the site's users
-- had it in August 2026. Hash-suffixed names change: check with `module spider`.
help([[The compiler, MPI and CUDA that stratagem is built and run with on Hopper.]])
whatis("Name: stratagem-site")
whatis("Version: hopper")
whatis("Description: what stratagem needs on Hopper")

family("stratagem_site")

-- Loaded a second time, hosts/hopper would put the default compiler back and take away what depends on ours.
for _, name in ipairs({ "hosts/hopper", "gnu/12.3.0", "openmpi", "cuda/12.6.3", "python/3.12.1-33" }) do
  if not isloaded(name) then
    load(name)
  end
end
