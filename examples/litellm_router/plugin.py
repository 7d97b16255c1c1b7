"""The plug-in for LiteLLM's proxy: see config.yaml beside it."""

from pathlib import Path

import decoupled as dc
from decoupled_serve.litellm import Plugin

HERE = Path(__file__).parent
ARMS = ["openai/medium", "openai/small", "openai/large"]
# The objective of LiteLLM's adaptive router with its default weights: quality 0.7, cost 0.3, from the cheapest model's
# price to the dearest's, in dollars.
LOSS = {
    "judge": {"weight": 0.7, "python": "judge:is_wrong"},
    "cost": {"weight": 0.3, "low": 0.001, "high": 0.025},
}

plugin = Plugin(
    "chat", ARMS, LOSS, save=HERE / "chat.json", folder=HERE, budget=dc.Budget(share=0.2)
)
