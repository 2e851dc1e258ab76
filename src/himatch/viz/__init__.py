"""Pictures and film in one style. Everything here draws arrays; only this room imports matplotlib."""
