"""How does Django know this room?"""

from django.apps import AppConfig


class AllocationsConfig(AppConfig):
    name = "allocations"
    verbose_name = "Allocations"
    default_auto_field = "django.db.models.BigAutoField"
