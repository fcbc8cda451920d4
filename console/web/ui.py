"""What does each component look like in each state? The page /ui/."""

from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from console.web import ui_examples
from console.web.access import page
from console.web.request import PersonRequest


@page("account.use")
@require_safe
def ui(request: PersonRequest) -> HttpResponse:
    """Every component in every state, inside the frame of every page."""
    return render(request, "ui.html", {**ui_examples.context(), "banner": ""})
