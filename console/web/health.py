"""The two health addresses: is the process there, and is everything it needs."""

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from console import health
from console.web.access import OPEN, page


@page(OPEN)
@never_cache
@require_safe
def live(request: HttpRequest) -> HttpResponse:
    """Process only."""
    return JsonResponse({"status": "ok"})


@page(OPEN)
@never_cache
@require_safe
def ready(request: HttpRequest) -> HttpResponse:
    """Database, broker, worker, beat; 503 only without a database."""
    status, body = health.ready()
    return JsonResponse(body, status=status)
