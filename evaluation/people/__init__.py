"""What people get on the questions that models are asked (BiVLC, section 3.2 and Table 2)."""
