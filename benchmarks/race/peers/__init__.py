"""One file a peer: its policies behind `field.Player`, and its own simulator. Each runs in the peer's environment."""
