"""The HTTP service: decisions and feedback over the network, for applications in any language."""
