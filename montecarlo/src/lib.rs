//! Counter-based random numbers and the Monte Carlo kernels made of them.
