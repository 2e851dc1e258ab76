"""Last-token inference on a CPU: the sequence policy's output at the present step, and nothing besides.

A rollout reads one token's output. So the last layer has one query a window and needs no keys and values of its own,
and nothing after the present state is computed. Products of weights that every token would pass through one after
the other (queries and keys, values and outputs) are taken once. Windows go in blocks that stay in a core's cache, and
blocks to threads of one core each, which wait for one another once a step and not in every operation. The numbers are
those of the whole pass up to rounding.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache

import torch
from torch import Tensor
from torch.nn.functional import layer_norm, relu

from himatch._runtime.shapes import Float, Int, shaped
from himatch.networks.heads import PolicyNetwork
from himatch.networks.stacked import LayerNorm, Linear
from himatch.networks.transformer import Block, SequencePolicy

MOST_TOKENS = 2048  # of a block: few enough for a core's cache
LEAST_TOKENS = 256  # of a block on a thread of its own: enough that Python is no part of the time


class LastToken:
    """Head outputs of K policies, with the weights they have now, at the last step of their windows."""

    def __init__(self, policy: SequencePolicy) -> None:
        self.outputs = policy.predict.weight.shape[2]
        self._models = [_Model(policy, model) for model in range(len(policy.predict.weight))]
        self._cores = torch.get_num_threads()

    @shaped
    def __call__(
        self,
        z: Float[Tensor, "K B #n k"] | None,
        states: Float[Tensor, "K B n obs"],
        actions: Float[Tensor, "K B n act"],
        times: Int[Tensor, " n"],
        rows: Int[Tensor, " chosen"],
    ) -> Float[Tensor, "K B outputs"]:
        """Outputs at the last of n steps, computed for the chosen windows, numbers of ``K * B``.

        The last action is not read. Times are the same for all windows.
        """
        stack, batch, steps = states.shape[:3]
        found = torch.zeros(stack, batch, self.outputs)

        def compute(model: int, chosen: Tensor) -> None:
            with torch.inference_mode():
                codes = None if z is None else z[model, chosen]
                found[model, chosen] = self._models[model](codes, states[model, chosen], actions[model, chosen], times)

        jobs = []
        share = -(-self._cores // stack)
        for model in range(stack):
            own = rows[(rows >= model * batch) & (rows < (model + 1) * batch)] - model * batch
            tokens = len(own) * self._models[model].per_step * steps
            blocks = max(-(-tokens // MOST_TOKENS), min(share, tokens // LEAST_TOKENS))
            jobs += [(model, block) for block in torch.tensor_split(own, max(1, blocks)) if len(block)]
        _on_cores(self._cores, compute, jobs)
        return found


def last_token(policy: PolicyNetwork) -> LastToken | None:
    """The short way for policies that read a window; one that reads a single state has no other."""
    return LastToken(policy) if isinstance(policy, SequencePolicy) else None


class _Model:
    """One policy of the stack."""

    def __init__(self, policy: SequencePolicy, model: int) -> None:
        self.time = policy.embed_time.weight[model].detach()
        self.state, self.predict = _affine(policy.embed_state, model), _affine(policy.predict, model)
        self.action, self.z = (
            None if layer is None else _affine(layer, model) for layer in (policy.embed_action, policy.embed_z)
        )
        self.embed_norm, self.norm = (_affine(n, model) for n in (policy.embed_norm, policy.transformer.norm))
        self.layers = [_Layer(block, model) for block in _blocks(policy)]
        self.adds_z = policy.config.tokens != "triples"
        self.per_step = 1 + (self.action is not None) + (self.z is not None and not self.adds_z)

    @shaped
    def __call__(
        self,
        z: Float[Tensor, " b #n k"] | None,
        states: Float[Tensor, "b n obs"],
        actions: Float[Tensor, "b n act"],
        times: Int[Tensor, " n"],
    ) -> Float[Tensor, "b outputs"]:
        """Outputs for windows at the same times."""
        x = self._tokens(z, states, actions, times)
        for layer in self.layers[:-1]:
            x = layer.whole(x)
        last = _normalized(self.layers[-1].last(x), self.norm)
        return torch.addmm(self.predict[1], last, self.predict[0])

    def _tokens(self, z: Tensor | None, states: Tensor, actions: Tensor, times: Tensor) -> Tensor:
        time = self.time[times.clamp(max=len(self.time) - 1)]
        tokens = [_linear(states, self.state) + time]
        if self.z is not None and z is not None:
            code = _linear(z, self.z)
            if self.adds_z:
                tokens[0] = tokens[0] + code
            else:
                tokens.insert(0, code + time)
        if self.action is None:
            return _normalized(tokens[0], self.embed_norm)
        tokens.append(_linear(actions, self.action) + time)
        x = torch.stack(tokens, dim=2).flatten(1, 2)
        return _normalized(x[:, :-1], self.embed_norm)  # the present action is not known yet


class _Layer:
    """One block, with the products of its attention's weights in place of the weights.

    Scores are ``(n_i W_q + b_q)(n_j W_k + b_k)'``; what of it does not depend on j is lost in the softmax, which leaves
    ``(n_i W_q W_k' + b_q W_k') n_j'``. Shares add up to one, so biases of values and outputs pass through.
    """

    def __init__(self, block: Block, model: int) -> None:
        heads, width = block.heads, block.qkv.weight.shape[1]
        weight, bias = (p.double() for p in _affine(block.qkv, model))
        out, out_bias = (p.double() for p in _affine(block.attention_out, model))
        q, k, v = weight.view(width, 3, heads, -1).permute(1, 2, 0, 3)  # (heads, width, width / heads) each
        q_bias, _, v_bias = bias.view(3, heads, -1)
        scale = (width // heads) ** -0.5
        to_out = out.view(heads, -1, width)
        query = (q @ k.mT * scale).transpose(0, 1).reshape(width, -1)
        query_bias = torch.einsum("hc,hwc->hw", q_bias, k).reshape(-1) * scale
        value = v @ to_out  # (heads, width, width)
        value_bias = torch.einsum("hc,hcw->hw", v_bias, to_out) + out_bias / heads
        self.heads = heads
        self.activation = torch.relu_ if block.activation is relu else block.activation  # in place saves a copy
        self.query = query.float(), query_bias.float()
        self.take = value.reshape(-1, width).float(), value_bias.sum(0).float()
        both = torch.cat([query, value.transpose(0, 1).reshape(width, -1)], dim=1)
        self.query_and_value = both.float(), torch.cat([query_bias, value_bias.reshape(-1)]).float()
        self.attention_norm, self.mlp_norm = _affine(block.attention_norm, model), _affine(block.mlp_norm, model)
        self.mlp_in, self.mlp_out = _affine(block.mlp_in, model), _affine(block.mlp_out, model)

    @shaped
    def whole(self, x: Float[Tensor, "b L width"]) -> Float[Tensor, "b L width"]:
        """Every token's output."""
        batch, length, width = x.shape
        n, heads = _normalized(x, self.attention_norm), self.heads
        both = _linear(n, self.query_and_value)
        query, value = both.chunk(2, dim=2)
        scores = torch.baddbmm(_causal(length, heads), query.reshape(batch, length * heads, width), n.mT)
        shares = scores.softmax(-1).view(batch, length, heads * length)
        values = value.reshape(batch, length, heads, width).transpose(1, 2).reshape(batch, heads * length, width)
        return self._mlp(torch.baddbmm(x, shares, values))

    @shaped
    def last(self, x: Float[Tensor, "b L width"]) -> Float[Tensor, "b width"]:
        """The last token's output."""
        n = _normalized(x, self.attention_norm)
        query = torch.addmm(self.query[1], n[:, -1], self.query[0]).view(len(x), self.heads, -1)
        shares = torch.bmm(query, n.mT).softmax(-1)
        taken = torch.addmm(self.take[1], torch.bmm(shares, n).flatten(1), self.take[0])
        return self._mlp(taken + x[:, -1])

    def _mlp(self, x: Tensor) -> Tensor:
        hidden = self.activation(_linear(_normalized(x, self.mlp_norm), self.mlp_in))
        return x + _linear(hidden, self.mlp_out)


def _blocks(policy: SequencePolicy) -> Iterator[Block]:
    for block in policy.transformer.blocks:
        assert isinstance(block, Block)
        yield block


def _affine(layer: Linear | LayerNorm, model: int) -> tuple[Tensor, Tensor]:
    """Weight and bias of one model."""
    return layer.weight[model].detach(), layer.bias[model].detach()


def _linear(x: Tensor, weights: tuple[Tensor, Tensor]) -> Tensor:
    rows = torch.addmm(weights[1], x.reshape(-1, x.shape[-1]), weights[0])
    return rows.view(*x.shape[:-1], -1)


def _normalized(x: Tensor, weights: tuple[Tensor, Tensor]) -> Tensor:
    return layer_norm(x, x.shape[-1:], *weights)


@cache
def _causal(length: int, heads: int) -> Float[Tensor, "L*heads L"]:
    """What hides later tokens: added to scores."""
    mask = torch.full((length, length), -torch.inf).triu(1)
    return mask.repeat_interleave(heads, dim=0)


def _on_cores(count: int, compute: Callable[[int, Tensor], None], jobs: list[tuple[int, Tensor]]) -> None:
    if min(count, len(jobs)) < 2:
        for job in jobs:
            compute(*job)
        return
    running = [_workers(os.getpid(), count).submit(compute, *job) for job in jobs]
    for result in running:
        result.result()


@cache
def _workers(process: int, count: int) -> ThreadPoolExecutor:
    """Threads whose operations stay on one core; a process of its own for each fork, which inherits no threads."""
    before = torch.get_num_threads()
    pool = ThreadPoolExecutor(count, "himatch-last-token", initializer=_stay_on_one_core)
    everybody = threading.Barrier(count)
    list(pool.map(lambda _: everybody.wait(), range(count)))
    torch.set_num_threads(before)  # the setting of one thread is also the default of later ones
    return pool


def _stay_on_one_core() -> None:
    """For this thread alone. PyTorch gives a thread the default when it is first asked, and would do so later."""
    torch.get_num_threads()
    torch.set_num_threads(1)
