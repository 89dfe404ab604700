"""The Python client of pamo's HTTP service: `Client`, and `AsyncClient` for asyncio."""

from pamo.client.async_client import AsyncClient
from pamo.client.sync_client import Client
from pamo.contract.answers import FeedbackResult

__all__ = ["AsyncClient", "Client", "FeedbackResult"]
