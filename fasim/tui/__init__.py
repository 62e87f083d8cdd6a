"""The stepper for a terminal: a session with its panes, and the app that shows them."""
