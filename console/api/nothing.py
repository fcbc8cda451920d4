"""What does an address of the API that leads nowhere answer? problem+json, whatever the method."""

from django.http import HttpRequest, HttpResponse
from django.views.decorators.csrf import csrf_exempt

from console.errors import problem_response


@csrf_exempt
def nothing(request: HttpRequest, anything: str = "") -> HttpResponse:
    """404 for every address that no other pattern takes; it does nothing, so no token is asked for."""
    return problem_response(request, "not_found", "There is nothing here that you may see.")


nothing.verb = "open"  # type: ignore[attr-defined]  # the house test reads it from every address
