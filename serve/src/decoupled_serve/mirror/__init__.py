"""`decoupled mirror`: a proxy that serves each request from one upstream and learns from a copy to another."""

from .exchange import Answer, Request

__all__ = ["Answer", "Request"]
