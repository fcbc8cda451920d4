"""How does Berth speak to a cluster? (one door: open_driver)"""

from console.drivers.base import Applied, Driver, DriverError, Endpoint, Ping
from console.drivers.credentials import Credentials
from console.drivers.open import open_driver

__all__ = ["Applied", "Credentials", "Driver", "DriverError", "Endpoint", "Ping", "open_driver"]
