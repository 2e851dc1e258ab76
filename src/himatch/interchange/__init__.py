"""Interchange: runs as files that other programs read, runs on the Hub, and other programs' weights as runs."""

from himatch.interchange.hugging_face import import_hugging_face
from himatch.interchange.onnx import export_onnx
from himatch.interchange.parity import Parity
from himatch.interchange.publisher import push

__all__ = ["Parity", "export_onnx", "import_hugging_face", "push"]
