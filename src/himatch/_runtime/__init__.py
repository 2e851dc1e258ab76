"""How things run: devices, threads, CUDA graphs, flat parameters, atomic files, progress."""
