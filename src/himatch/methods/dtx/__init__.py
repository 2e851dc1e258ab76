"""DT-X: an encoder of single states, averaged over a window of the target (DT-AE, DT-CPC, DT-E2E)."""

from himatch.methods.dtx.method import DTAE, DTCPC, DTE2E, EncoderMethod

__all__ = ["DTAE", "DTCPC", "DTE2E", "EncoderMethod"]
