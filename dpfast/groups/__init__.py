"""Releases for many groups of records."""

from dpfast.groups.estimates import interval
from dpfast.groups.keyed import KeyedReleases
from dpfast.groups.releases import by_group

__all__ = [
    "KeyedReleases",
    "by_group",
    "interval",
]
