// Exists so that the precompiled header has a target to be compiled in (cmake/Modules.cmake).
