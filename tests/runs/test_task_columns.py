"""Columns of a table among the features of a run's task."""

from dataclasses import replace

import himatch as hm
from himatch.runs.task_spec import task_from_spec, task_spec


def test_columns_travel_with_a_registered_task_without_a_word(monkeypatch, recwarn):
    monkeypatch.setattr("himatch.tasks.registry._registry", {})
    task = hm.register_task("rig", horizon=30, features={"speed": 1})
    with_columns = replace(task, features={**task.features, "q1": 0, "left": "act[0]"})
    assert dict(task_from_spec(task_spec(with_columns)).features) == {"speed": 1, "q1": 0, "left": "act[0]"}
    assert not recwarn.list
