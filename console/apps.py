"""How does Django know this room, and what does it hang up at start?"""

from django.apps import AppConfig


class ConsoleConfig(AppConfig):
    name = "console"
    verbose_name = "Console"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from allocations import wake
        from console.tasks import poke

        wake.register(poke)
