"""The calendar room: who holds which nodes, when."""
