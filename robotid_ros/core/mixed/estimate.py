"""Scratch."""
