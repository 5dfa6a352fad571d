"""For the operator: is it alive, is it ready, what has it counted."""
