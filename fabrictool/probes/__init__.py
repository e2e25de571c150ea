"""Traffic makers, and the pure judging of what they saw."""
