"""What does an address of the API that leads nowhere answer? problem+json, as everywhere."""

from django.http import HttpRequest, HttpResponse

from console.errors import problem_response
from console.web.access import OPEN, page


@page(OPEN)
def nothing(request: HttpRequest, anything: str) -> HttpResponse:
    """404 for every address that no other pattern takes."""
    return problem_response(request, "not_found", "There is nothing here that you may see.")
