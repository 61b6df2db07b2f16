"""What an identified model shows of a robot at work."""
