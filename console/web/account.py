"""The account page: my time zone, my password, in which browsers I am signed in, my tokens."""

from functools import cache
from typing import Any
from zoneinfo import available_timezones

from django import forms
from django.contrib import messages
from django.contrib.auth import update_session_auth_hash
from django.contrib.auth.forms import PasswordChangeForm
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_POST
from ua_parser import parse_os, parse_user_agent

from allocations.services import people
from allocations.services import sessions as passwords
from console import sessions
from console.web import tokens
from console.web.access import page
from console.web.request import PersonRequest


@cache
def _zones() -> list[tuple[str, str]]:
    """Every zone of this machine, UTC first, as choices."""
    names = available_timezones() - {"UTC", "Factory", "localtime"}
    return [(name, name) for name in ("UTC", *sorted(names))]


class ZoneForm(forms.Form):
    """One zone of those that are known here."""

    zone = forms.ChoiceField(label="Time zone", choices=_zones)


def _device(agent: str) -> str:
    """Which program on which system a user agent names, "Chrome on Linux"; itself where it names none."""
    program, system = parse_user_agent(agent), parse_os(agent)
    if program is None:
        return agent or "a browser without a name"
    return program.family if system is None else f"{program.family} on {system.family}"


def _shown(request: PersonRequest, status: int = 200, **forms_with_faults: forms.BaseForm) -> HttpResponse:
    """The page; a form that was refused is given and keeps what was typed."""
    user = request.user
    living = sessions.living(user=user, this_key=request.session.session_key, at=timezone.now())
    context: dict[str, Any] = {
        "form": PasswordChangeForm(user),
        "zone_form": ZoneForm(initial={"zone": user.zone}),
        "sessions": [(each, _device(each.browser)) for each in living],
        **tokens.section(user),
        **forms_with_faults,
    }
    return render(request, "account.html", context, status=status)


@page("account.use")
@require_http_methods(["GET", "HEAD", "POST"])
def account(request: PersonRequest) -> HttpResponse:
    """What is mine to choose here; sent, a new password, which ends every other session."""
    if request.method != "POST":
        return _shown(request)
    form = PasswordChangeForm(request.user, request.POST)
    if not form.is_valid():
        return _shown(request, form=form)
    passwords.change_password(user=request.user, password=form.cleaned_data["new_password1"], at=timezone.now())
    update_session_auth_hash(request, request.user)
    messages.success(request, "Your password is changed. Every other session of yours is over.")
    return redirect("account")


@page("account.use")
@require_POST
def zone(request: PersonRequest) -> HttpResponse:
    """Choose the zone in which I see moments."""
    form = ZoneForm(request.POST)
    if not form.is_valid():
        return _shown(request, status=400, zone_form=form)
    chosen = people.set_zone(
        user=request.user, zone=form.cleaned_data["zone"], actor=request.user, at=timezone.now()
    ).zone
    messages.success(request, f"Times are shown in {chosen}.")
    return redirect("account")


@page("account.use")
@require_POST
def end_session(request: PersonRequest, reference: str) -> HttpResponse:
    """Sign me out of one browser; of this one, the next page asks to sign in."""
    sessions.end(user=request.user, reference=reference, at=timezone.now())
    messages.success(request, "That session is over.")
    return redirect("account")
