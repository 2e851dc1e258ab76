"""A Decision Transformer of Hugging Face's transformers, trained by their code, then imported: returns in both loops.

    python benchmarks/hugging_face.py [--steps 1500] [--episodes 100] [--rollouts 10]

Hopper, medium and expert episodes. Both sides start from the same states and count the return down; contact magnifies
rounding, so rollouts part after some hundred steps and only their statistics compare.
"""

from __future__ import annotations

import argparse
import tempfile
import warnings
from pathlib import Path

import gymnasium
import numpy as np
import torch
import transformers
from harness import their_batch

import himatch as hm
from himatch.simulation import EVALUATION_SEED

CONTEXT, SCALE = 10, 1000.0


def trained(data: hm.TrajectoryDataset, steps: int) -> transformers.DecisionTransformerModel:
    """Their model, conditioned on returns divided by 1000 and states of unit size, as on D4RL."""
    torch.manual_seed(0)
    rng = np.random.default_rng(0)
    config = transformers.DecisionTransformerConfig(
        state_dim=11, act_dim=3, hidden_size=64, max_ep_len=1000, n_layer=2, bos_token_id=0, eos_token_id=0
    )
    model = transformers.DecisionTransformerModel(config)
    mean, std = data.observations.mean(0), data.observations.std(0)
    episodes = [
        ((e.observations - mean) / std, e.actions, np.cumsum(e.rewards[::-1])[::-1, None] / SCALE)  # type: ignore[index]
        for e in data
        if len(e) >= CONTEXT
    ]
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    for step in range(steps):
        (states, actions, to_go), times = their_batch(episodes, 64, CONTEXT, rng)
        found = model(
            states=states,
            actions=actions,
            rewards=to_go,
            returns_to_go=to_go,
            timesteps=times,
            attention_mask=torch.ones(times.shape),
        ).action_preds
        loss = (found - actions).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        if (step + 1) % 500 == 0:
            print(f"  step {step + 1}: loss {loss.item():.4f}", flush=True)
    return model.eval()


@torch.no_grad()
def their_returns(
    model: transformers.DecisionTransformerModel, data: hm.TrajectoryDataset, wanted: float, rollouts: int
) -> list[float]:
    """One environment, one forward pass of the last steps for every action."""
    env = gymnasium.make("Hopper-v5")
    mean, std = (torch.from_numpy(x) for x in (data.observations.mean(0), data.observations.std(0)))
    returns = []
    for number in range(rollouts):
        seen, _ = env.reset(seed=EVALUATION_SEED + number)
        states, actions, to_go, total, ended = [], [], [wanted / SCALE], 0.0, False
        while not ended:
            states.append((torch.tensor(seen, dtype=torch.float32) - mean) / std)
            actions.append(torch.zeros(3))
            n, now = min(len(states), CONTEXT), len(states)
            actions[-1] = model(
                states=torch.stack(states[-n:])[None],
                actions=torch.stack(actions[-n:])[None],
                rewards=None,
                returns_to_go=torch.tensor(to_go[-n:], dtype=torch.float32)[None, :, None],
                timesteps=torch.arange(now - n, now)[None],
                attention_mask=torch.ones(1, n),
            ).action_preds[0, -1]
            seen, reward, terminated, truncated, _ = env.step(actions[-1].numpy())
            total, ended = total + float(reward), terminated or truncated
            to_go.append(to_go[-1] - float(reward) / SCALE)
        returns.append(total)
    return returns


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=1500)
    parser.add_argument("--episodes", type=int, default=100)
    parser.add_argument("--rollouts", type=int, default=10)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    transformers.utils.logging.set_verbosity_error()
    print(f"torch {torch.__version__}, transformers {transformers.__version__}", flush=True)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        data = hm.make_dataset("hopper-medium-expert", folder / "data-v0", episodes=arguments.episodes, quiet=True)
        print(f"{data}, sha256 {data.content_hash[:16]}", flush=True)
        model = trained(data, arguments.steps)
        model.save_pretrained(folder / "theirs")
        policy = hm.import_hugging_face(folder / "theirs", folder / "run", data=data, context=CONTEXT)
        for wanted in (1500.0, 3200.0):
            ours = policy.match(f"return({wanted})", episodes=arguments.rollouts, conditioning="remaining").returns[0]
            theirs = their_returns(model, data, wanted, arguments.rollouts)
            for name, found in (("himatch", ours), ("transformers", theirs)):
                error = np.std(found) / np.sqrt(len(found))
                print(f"conditioned on {wanted:.0f}, {name}: return {np.mean(found):.0f} ± {error:.0f}", flush=True)


if __name__ == "__main__":
    main()
