"""
How small a singular value may be, over the largest, where it still counts as one.

Columns have length one before. What such a value is compared with depends on what it decides, so
that there is one tolerance a purpose; rounding of double precision is at 1e-16.
"""

# A column is a combination of others, a direction of parameters is open: far above the rounding of
# W, and of base parameters, which are combinations known to 1e-7, far below what the geometry of
# robots gives.
DEPENDENT = 1e-6
# Directions that are taken out of rows before others are fitted: what is left of them must be
# rounding, also where it is squared.
PROJECTED = 1e-9
# A system of equations is refused: what is solved with less has no correct digit left.
SINGULAR = 1e-12
# Rows predict others only along what they determine well: a thousand times their noise is no
# prediction.
PREDICTED = 1e-3
