"""The quiet study: pure computing over frozen values. No Django, no clock, no network, no dice."""
