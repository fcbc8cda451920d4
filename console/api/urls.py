"""Which address of the API answers what?"""

from django.urls import path

from console.api import (
    clusters,
    decisions,
    flavors,
    me,
    nodes,
    nothing,
    own_tokens,
    previews,
    racks,
    reservations,
)

urlpatterns = [
    path("me", me.Me.as_view(), name="api-me"),
    path("tokens", own_tokens.Tokens.as_view(), name="api-tokens"),
    path("tokens/<str:prefix>", own_tokens.OneToken.as_view(), name="api-token"),
    path("clusters", clusters.Clusters.as_view(), name="api-clusters"),
    path("clusters/<str:cluster>", clusters.OneCluster.as_view(), name="api-cluster"),
    path("flavors", flavors.Flavors.as_view(), name="api-flavors"),
    path("flavors/<str:cluster>/<str:flavor>", flavors.OneFlavor.as_view(), name="api-flavor"),
    path("racks", racks.Racks.as_view(), name="api-racks"),
    path("racks/<str:cluster>/<path:rack>", racks.OneRack.as_view(), name="api-rack"),
    path("nodes", nodes.Nodes.as_view(), name="api-nodes"),
    path("nodes/<str:cluster>/<str:node>", nodes.OneNode.as_view(), name="api-node"),
    path("reservations", reservations.Reservations.as_view(), name="api-reservations"),
    path("reservations/preview", previews.Previews.as_view(), name="api-preview"),
    path("reservations/<str:public_id>", reservations.OneReservation.as_view(), name="api-reservation"),
    path("reservations/<str:public_id>/nodes", reservations.ReservationNodes.as_view(), name="api-reservation-nodes"),
    path("reservations/<str:public_id>/withdraw", reservations.Withdraw.as_view(), name="api-withdraw"),
    path("reservations/<str:public_id>/cancel", reservations.Cancel.as_view(), name="api-cancel"),
    path("decisions", decisions.Decisions.as_view(), name="api-decisions"),
    path("decisions/<str:public_id>", decisions.OneDecision.as_view(), name="api-decision"),
    path("", nothing.nothing, name="api-root"),
    path("<path:anything>", nothing.nothing, name="api-nothing"),
]
