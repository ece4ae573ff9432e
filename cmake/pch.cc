// Exists so that the precompiled header has a target to be compiled in (cmake/Rooms.cmake).
