"""Configurations with comments: one for a new robot, and the reference of every key."""
