"""Drift: parameters that wear, temperature and load change, followed from any motion."""
