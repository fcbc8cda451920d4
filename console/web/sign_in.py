"""Signing in and out, and the one-time links that make a person."""

from collections.abc import Mapping

from django import forms
from django.contrib.auth import login, logout
from django.contrib.auth.forms import AuthenticationForm
from django.contrib.auth.views import LoginView
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_POST

from allocations.errors import Invalid
from allocations.services import invitations, sessions
from console.web.access import OPEN, page
from console.web.request import PersonRequest


class SignInForm(AuthenticationForm):
    """E-mail and password; pasting is welcome."""

    username = forms.EmailField(
        label="E-mail", max_length=254, widget=forms.EmailInput(attrs={"autocomplete": "username", "autofocus": True})
    )
    error_messages = {  # Django's own shape
        "invalid_login": "That e-mail and password do not belong together.",
        "inactive": "This account is switched off.",
    }


def counted_name(request: HttpRequest | None, credentials: Mapping[str, str] | None = None) -> str:
    """Under which name a try to sign in is counted: one for all ways to write an address that find the same person."""
    given = credentials.get("username", "") if credentials else request.POST.get("username", "") if request else ""
    return given.strip().casefold()[:254]


class _SignIn(LoginView):
    template_name = "sign_in.html"
    authentication_form = SignInForm
    redirect_authenticated_user = True

    def get_success_url(self) -> str:
        """Where to go from here; never to this page again."""
        wanted: str = super().get_success_url()
        return self.get_default_redirect_url() if wanted.partition("?")[0] == self.request.path else wanted

    def form_valid(self, form: AuthenticationForm) -> HttpResponse:
        sessions.note_sign_in(user=form.get_user(), at=timezone.now())
        return super().form_valid(form)

    def form_invalid(self, form: AuthenticationForm) -> HttpResponse:
        sessions.note_failed_sign_in(email=str(form.data.get("username", ""))[:254], at=timezone.now())
        return super().form_invalid(form)


@page(OPEN)
@require_http_methods(["GET", "HEAD", "POST"])
def sign_in(request: HttpRequest) -> HttpResponse:
    """The sign-in page; a wrong pair keeps the e-mail that was typed."""
    return _SignIn.as_view()(request)  # type: ignore[return-value]


@page("account.use")
@require_POST
def sign_out(request: PersonRequest) -> HttpResponse:
    """End the session and clear what the browser keeps of it."""
    sessions.note_sign_out(user=request.user, at=timezone.now())
    logout(request)
    response = HttpResponseRedirect("/sign-in")
    response["Clear-Site-Data"] = '"cache", "storage"'
    return response


class NewPersonForm(forms.Form):
    """A name and a password for the person behind a one-time link."""

    name = forms.CharField(max_length=200, label="Your name")
    password = forms.CharField(
        label="Password", min_length=12, widget=forms.PasswordInput(attrs={"autocomplete": "new-password"})
    )


@page(OPEN)
@require_http_methods(["GET", "HEAD", "POST"])
def join(request: HttpRequest, token: str) -> HttpResponse:
    """A one-time link: choose a name and a password, then be signed in."""
    invitation = invitations.open_invitation(token=token, at=timezone.now())
    form = NewPersonForm(request.POST or None)
    status = 200
    if request.method == "POST" and form.is_valid():
        given = {key: form.cleaned_data[key] for key in ("name", "password")}
        try:
            person = invitations.accept_invitation(token=token, **given, at=timezone.now())
        except Invalid as wrong:
            key = wrong.faults[0].pointer.strip("/") if wrong.faults else ""
            form.add_error(key if key in form.fields else None, wrong.sentence)
            status = 400
        else:
            login(request, person, backend="django.contrib.auth.backends.ModelBackend")
            return redirect("home")
    return render(request, "join.html", {"form": form, "invitation": invitation}, status=status)
