"""What a provider of models may be able to do."""

from holdfast_worker.models import EmbeddingCapability
