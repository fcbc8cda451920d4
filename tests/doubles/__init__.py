"""Stand-ins that answer over real sockets as the real servers do."""
