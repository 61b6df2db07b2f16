"""What a verification on the robot leaves: values, and their files."""
