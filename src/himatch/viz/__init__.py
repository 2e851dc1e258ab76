"""Pictures and film, in one style; draws arrays."""
