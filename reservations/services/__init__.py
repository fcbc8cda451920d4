"""Which deeds change the calendar? One file per deed; each is one transaction under the cluster's row lock."""
