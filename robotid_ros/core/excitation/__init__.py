"""Which motion to run: trajectories, criteria, constraints, design, and the last check."""
