"""What watches a motion: robot, recorder, guardian; each ends it, none begins one."""
