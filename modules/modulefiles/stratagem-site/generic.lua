-- Loads the modules listed in the variable STRATAGEM_MODULES, in this order.
help([[Loads what STRATAGEM_MODULES names, such as "gcc/13 openmpi/5 hdf5": what stratagem was built with.]])
whatis("Name: stratagem-site")
whatis("Version: generic")
whatis("Description: what stratagem needs here, as STRATAGEM_MODULES says")

family("stratagem_site")

for name in (os.getenv("STRATAGEM_MODULES") or ""):gmatch("%S+") do
  if not isloaded(name) then
    load(name)
  end
end
