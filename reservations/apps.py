"""How does Django know this room?"""

from django.apps import AppConfig


class ReservationsConfig(AppConfig):
    name = "reservations"
    verbose_name = "Reservations"
    default_auto_field = "django.db.models.BigAutoField"
