"""What renders show, measured, and whether it is what their captions say."""
