"""My tokens: make one in the browser, see its secret once, end one. (a part of the account page)"""

from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.debug import sensitive_variables
from django.views.decorators.http import require_POST

from allocations.models import User
from console import tokens
from console.models import ApiToken
from console.web.access import page
from console.web.request import PersonRequest

# What each scope lets a token do, of those that an endpoint asks for.
SCOPES = (
    ("read", "Read what I may read"),
    ("request", "Ask for reservations, withdraw and cancel them"),
    ("approve", "Decide what I may decide"),
)


class TokenForm(forms.Form):
    """A name to know it by, what it may do, and for how many days."""

    name = forms.CharField(max_length=100, label="Name", help_text="Where it will be used, to know it again.")
    scopes = forms.MultipleChoiceField(
        label="May", choices=SCOPES, initial=["read"], widget=forms.CheckboxSelectMultiple
    )
    days = forms.IntegerField(label="Days", min_value=1, max_value=365, initial=90, help_text="1 to 365.")


def section(user: User, form: TokenForm | None = None) -> dict[str, Any]:
    """What account_tokens.html needs: the person's tokens that still work, newest first, and a form for another."""
    now = timezone.now()
    living = ApiToken.objects.filter(owner=user, revoked_at=None, expires_at__gt=now).order_by("-pk")
    return {"token_form": form or TokenForm(auto_id="token_%s"), "tokens": living}


@page("account.use")
@require_POST
@sensitive_variables("secret")
def create(request: PersonRequest) -> HttpResponse:
    """Make a token; its secret is on this one answer and never again. A wrong form keeps what was typed."""
    form = TokenForm(request.POST, auto_id="token_%s")
    if not form.is_valid():
        return render(request, "account_token.html", section(request.user, form), status=400)
    made, secret = tokens.create(
        owner=request.user,
        name=form.cleaned_data["name"],
        scopes=form.cleaned_data["scopes"],
        days=form.cleaned_data["days"],
        at=timezone.now(),
    )
    response = render(request, "account_token.html", {"made": made, "secret": secret})
    response["Cache-Control"] = "no-store"
    return response


@page("account.use")
@require_POST
def revoke(request: PersonRequest, prefix: str) -> HttpResponse:
    """End one of my tokens at once."""
    tokens.revoke(owner=request.user, prefix=prefix, at=timezone.now())
    messages.success(request, f"The token {prefix} is over.")
    return redirect("account")
