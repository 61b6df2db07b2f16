"""What identified parameters are worth on the robot: in motion and at rest."""
