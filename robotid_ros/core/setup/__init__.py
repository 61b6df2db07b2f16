"""From a description alone to all that a session needs: which arm, which limits, which start."""
