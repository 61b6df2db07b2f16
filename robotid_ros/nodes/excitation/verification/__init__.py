"""Verification of an identification on the robot: in motion, with proposed gains, at rest."""
