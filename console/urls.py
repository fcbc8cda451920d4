"""Which address shows what? Pages here, the REST API below /api/v1/."""

from django.urls import include, path

from console.web import (
    account,
    audit,
    board,
    clusters,
    fleet,
    health,
    home,
    inbox,
    reservations,
    reserve,
    sign_in,
    teams,
    tokens,
    ui,
)
from console.web import help as helping

urlpatterns = [
    path("", home.home, name="home"),
    path("board", board.board, name="board"),
    path("inbox", inbox.inbox, name="inbox"),
    path("reservations", reservations.reservations, name="reservations"),
    path("reservations/new", reserve.reserve, name="reserve"),
    path("reservations/new/answer", reserve.answer, name="reserve-answer"),
    path("reservations/<str:public_id>", reservations.reservation, name="reservation"),
    path("reservations/<str:public_id>/state", reservations.state, name="reservation-state"),
    path("reservations/<str:public_id>/decide", inbox.decide, name="reservation-decide"),
    path("reservations/<str:public_id>/withdraw", reservations.withdraw, name="reservation-withdraw"),
    path("reservations/<str:public_id>/cancel", reservations.cancel, name="reservation-cancel"),
    path("teams", teams.teams, name="teams"),
    path("teams/<str:public_id>", teams.team, name="team"),
    path("fleet", fleet.fleet, name="fleet"),
    path("fleet/<str:cluster>", fleet.cluster, name="fleet-cluster"),
    path("fleet/<str:cluster>/<path:rack>", fleet.rack, name="fleet-rack"),
    path("clusters", clusters.clusters, name="clusters"),
    path("clusters/<str:name>", clusters.cluster, name="cluster"),
    path("clusters/<str:name>/mode", clusters.mode, name="cluster-mode"),
    path("clusters/<str:name>/freeze", clusters.freeze, name="cluster-freeze"),
    path("clusters/<str:name>/push", clusters.push, name="cluster-push"),
    path("plans/<str:public_id>", clusters.plan, name="plan"),
    path("plans/<str:public_id>/apply", clusters.apply, name="plan-apply"),
    path("plans/<str:public_id>/discard", clusters.discard, name="plan-discard"),
    path("audit", audit.audit, name="audit"),
    path("find", helping.find, name="find"),
    path("help", helping.help_page, name="help"),
    path("help/errors/<str:code>", helping.error, name="help-error"),
    path("sign-in", sign_in.sign_in, name="sign-in"),
    path("sign-out", sign_in.sign_out, name="sign-out"),
    path("join/<str:token>", sign_in.join, name="join"),
    path("account", account.account, name="account"),
    path("account/zone", account.zone, name="account-zone"),
    path("account/sessions/<str:reference>/end", account.end_session, name="account-session-end"),
    path("account/tokens", tokens.create, name="account-tokens"),
    path("account/tokens/<str:prefix>/revoke", tokens.revoke, name="account-token-revoke"),
    path("ui/", ui.ui, name="ui"),
    path("healthz/live", health.live, name="healthz-live"),
    path("healthz/ready", health.ready, name="healthz-ready"),
    path("api/v1/", include("console.api.urls")),
]
handler400 = "console.web.help.unreadable"
handler404 = "console.web.help.not_found"
handler500 = "console.web.help.broken"
