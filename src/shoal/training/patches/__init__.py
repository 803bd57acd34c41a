"""A TrainJob's patches over the JobSet that its runtime describes: Kubernetes' strategic merge, and its order in lists.

All of it is pure. Runtimes and patches are plain JSON values, and neither is changed.
"""

from shoal.training.patches.strategic import strategic_merge
from shoal.training.patches.templates import patched_template

__all__ = ["patched_template", "strategic_merge"]
