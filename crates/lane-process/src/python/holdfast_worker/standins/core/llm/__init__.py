"""Models, and what they can do besides answering."""

from holdfast_worker.models import Model, ModelRouter

from .capabilities import EmbeddingCapability

ModelRouterProtocol = ModelRouter
