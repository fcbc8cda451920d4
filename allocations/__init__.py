"""The ledger room: what exists, who may use how much, what was decided."""
