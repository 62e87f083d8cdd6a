"""Stepping through a CTA: `fasim.trace.stepper.Stepper` moves forward and back, and shows its state and what each instruction did."""
