"""The front room: pages, API, tasks, pushes and drivers. The only room with doors to the street."""

from console.celery import app as celery_app

__all__ = ["celery_app"]
