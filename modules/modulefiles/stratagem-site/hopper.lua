-- The modules that stratagem needs on Hopper (Office of Research Computing, George Mason University), as used there in
-- August 2026. Names with a hash change: check with `module spider`.
help([[The compiler and MPI that stratagem is built and run with on Hopper.]])
whatis("Name: stratagem-site")
whatis("Version: hopper")
whatis("Description: what stratagem needs on Hopper")

family("stratagem_site")

-- No CUDA: there it is 12, and LibTorch's is 13, which `modules/bootstrap.sh build --gpu` provides; the program finds it.
-- hosts/hopper must not be loaded twice: it would load the default compiler again and unload what depends on ours.
for _, name in ipairs({ "hosts/hopper", "gnu/12.3.0", "openmpi", "python/3.12.1-33" }) do
  if not isloaded(name) then
    load(name)
  end
end
