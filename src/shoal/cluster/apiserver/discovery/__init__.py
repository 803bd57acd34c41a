"""What is served, told to clients: discovery, and the shape of every kind as OpenAPI v3."""

from shoal.cluster.apiserver.discovery.discovery import Discovery, version_order
from shoal.cluster.apiserver.discovery.openapi import OpenApi
from shoal.cluster.apiserver.discovery.openapi_v2 import openapi_v2

__all__ = ["Discovery", "OpenApi", "openapi_v2", "version_order"]
