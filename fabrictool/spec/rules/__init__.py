"""What a valid spec can still get wrong. One file for each part of the spec; `fabrictool.spec.lint` runs them all."""
