"""Which address of the API answers what?"""

from django.urls import path

from console.api import me, nothing

urlpatterns = [
    path("me", me.Me.as_view(), name="api-me"),
    path("<path:anything>", nothing.nothing, name="api-nothing"),
]
