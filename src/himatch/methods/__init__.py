"""Methods: one folder each, behind one contract (``base.py``).

=============  ==========================  ===================  =======================================
method         feature Phi                 aggregator           the paper's name
=============  ==========================  ===================  =======================================
``bc``         none                        none                 BC (no-context)
``dt``         reward or any               sum                  DT
``cdt``        any                         histogram            Categorical DT
``moments``    any                         first moments        (Section "Learned Phi", moments)
``goal``       any                         final value          goal-based category of Table him_summary
``gcsl``       any                         a later value        goal-conditioned supervised learning
``udrl``       reward or any               sum of a stretch     upside-down RL
``rcp``        reward or any               sum                  reward-conditioned policies
``multi-task`` any                         none: the label      multi-task BC
``hipi``       any                         likeliest task       HIPI, with BC
``gh``         any                         highest-ranked task  generalized hindsight, with BC
``bdt``        state                       second transformer   Bi-directional DT
``dt-ae``      learned (auto-encoder)      mean of a window     DT-AE
``dt-cpc``     learned (contrastive)       mean of a window     DT-CPC
``dt-e2e``     learned (end to end)        mean of a window     DT-E2E
``meta-bc``    learned (metric)            mean of the episode  Meta-BC (a policy of single steps)
``focal``      learned (metric)            mean of the episode  FOCAL (an actor-critic of single steps)
=============  ==========================  ===================  =======================================
"""

from himatch.methods.base import Agent, Method
from himatch.methods.bdt import BDT
from himatch.methods.dtx import DTAE, DTCPC, DTE2E
from himatch.methods.focal import FOCAL
from himatch.methods.gcsl import GCSL
from himatch.methods.gdt import BC, CDT, DT, GoalDT, MomentsDT, SequenceMethod
from himatch.methods.metabc import MetaBC
from himatch.methods.multitask import GH, HIPI, MultiTask
from himatch.methods.rcp import RCP
from himatch.methods.registry import METHODS, check_method, make_method, method_from_spec, method_spec
from himatch.methods.udrl import UDRL

__all__ = [
    "BC",
    "BDT",
    "CDT",
    "DT",
    "DTAE",
    "DTCPC",
    "DTE2E",
    "FOCAL",
    "GCSL",
    "GH",
    "HIPI",
    "METHODS",
    "RCP",
    "UDRL",
    "Agent",
    "GoalDT",
    "MetaBC",
    "Method",
    "MomentsDT",
    "MultiTask",
    "SequenceMethod",
    "check_method",
    "make_method",
    "method_from_spec",
    "method_spec",
]
