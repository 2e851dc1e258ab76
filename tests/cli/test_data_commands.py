"""``himatch data``: exit codes, one line for bad input, and what the commands print and write."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from command_line import assert_refused

import himatch as hm
from himatch.tasks import registry


@pytest.fixture
def log(tmp_path):
    """A Hopper log of twenty episodes."""
    rng = np.random.default_rng(0)
    lengths = np.arange(10, 30)
    steps = int(lengths.sum())
    path = tmp_path / "hopper-medium.npz"
    np.savez(
        path,
        observations=rng.normal(size=(steps, 11)).astype(np.float32),
        actions=rng.uniform(-1, 1, (steps, 3)).astype(np.float32),
        rewards=rng.normal(size=steps).astype(np.float32),
        lengths=lengths,
        labels=["slow", "fast"] * 10,
    )
    return path


def test_version(run):
    assert run("--version") == (0, f"himatch {hm.__version__}\n", "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device of Linux")
@pytest.mark.parametrize("arguments", [["--version"], ["data", "list"]])
def test_output_that_finds_a_full_disk_is_one_line(arguments):
    with Path("/dev/full").open("w") as full:
        command = [sys.executable, "-m", "himatch", *arguments]
        result = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert (result.returncode, result.stderr) == (2, "himatch: the disk is full; the output cannot be written\n")


def test_help(run):
    for arguments in ((), ("--help",), ("data", "--help"), ("data", "inspect", "--help")):
        code, out, _ = run(*arguments)
        assert code == 0
        assert "himatch" in out


@pytest.mark.parametrize(
    "arguments", [("fly",), ("data", "fly"), ("data",), ("data", "inspect"), ("data", "inspect", "a", "--fly")]
)
def test_unknown_commands_and_options_exit_with_2(run, arguments):
    code, _, err = run(*arguments)
    assert code == 2
    assert "Traceback" not in err


# -- inspect --------------------------------------------------------------------------------------------------------


def test_inspect_shows_the_dataset(run, log):
    code, out, err = run("data", "inspect", log)
    assert (code, err) == (0, "")
    for word in ("hopper", "20", "390", "x_velocity", "reward"):
        assert word in out


def test_inspect_as_json(run, log):
    code, out, err = run("data", "inspect", log, "--json")
    assert (code, err) == (0, "")
    report = json.loads(out)
    dataset = hm.load_dataset(log)
    assert dataset.content_hash in json.dumps(report)
    assert report["episodes"] == 20
    assert report["steps"] == 390


def test_inspect_shows_only_the_features_asked_for(run, log):
    _, out, _ = run("data", "inspect", log, "--feature", "x_velocity", "--feature", "obs[3]", "--json")
    assert [feature["name"] for feature in json.loads(out)["features"]] == ["x_velocity", "obs[3]"]


def test_a_picture_of_no_kind_is_refused_before_data_is_read(run, tmp_path):
    assert_refused(run("data", "inspect", tmp_path / "nowhere", "--plot", "log.bmp"), "must end in .png")


def test_inspect_draws_a_picture(run, log, tmp_path):
    code, out, err = run("data", "inspect", log, "--feature", "x_velocity", "--plot", tmp_path / "out" / "log.png")
    assert (code, err) == (0, "")
    assert "log.png" in out.replace("\n", "")
    assert (tmp_path / "out" / "log.png").read_bytes().startswith(b"\x89PNG")


def test_repairs_are_told(run, log, tmp_path):
    with np.load(log) as file:
        columns = {name: file[name] for name in file.files}
    columns["actions"][5, 1] = 4.0
    np.savez(log, **columns)
    assert_refused(
        run("data", "inspect", log), "hopper-medium.npz", "episode 0, step 5, coordinate 1", "--clip-actions"
    )
    code, out, _ = run("data", "inspect", log, "--clip-actions", "--json")
    assert code == 0
    assert "1 action values clipped" in out
    code, _, err = run("data", "convert", log, tmp_path / "clipped", "--clip-actions")
    assert code == 0
    assert err.startswith("himatch: note: ")
    assert "1 action values clipped" in err


# -- convert --------------------------------------------------------------------------------------------------------


def test_convert_keeps_everything(run, log, tmp_path):
    out = tmp_path / "copy-v0"
    code, text, err = run("data", "convert", log, out)
    assert (code, err) == (0, "")
    before, after = hm.load_dataset(log), hm.load_dataset(out)
    assert after.content_hash == before.content_hash
    assert before.content_hash[:16] in text
    assert after.labels == ("slow", "fast") * 10
    assert after.task.name == "hopper"


def test_convert_overwrites_only_when_asked(run, log, tmp_path):
    out = tmp_path / "copy-v0"
    out.mkdir()
    (out / "precious").touch()
    assert_refused(run("data", "convert", log, out), "exists already", "--overwrite")
    assert (out / "precious").exists()
    assert_refused(run("data", "convert", log, out, "--overwrite"), "'precious' in it is no part of a dataset")
    assert (out / "precious").exists()
    (out / "precious").unlink()
    for _ in range(2):  # an empty folder, and then a dataset
        assert run("data", "convert", log, out, "--overwrite")[0] == 0
    assert len(hm.load_dataset(out)) == 20


def test_convert_leaves_the_old_set_alone_when_the_source_is_bad(run, log, tmp_path):
    out = tmp_path / "copy-v0"
    run("data", "convert", log, out)
    log.write_bytes(b"no zip")
    assert_refused(run("data", "convert", log, out, "--overwrite"), "hopper-medium.npz: cannot be read")
    assert len(hm.load_dataset(out)) == 20


def test_convert_joins_and_maps(run, log, tmp_path):
    code, out, _ = run("data", "convert", f"{log}+{log}", tmp_path / "twice-v0", "--mmap", tmp_path / "map")
    assert code == 0
    assert out.startswith("40 episodes, 780 steps")
    assert (tmp_path / "map" / "packed.json").is_file()


# -- how to read the source -----------------------------------------------------------------------------------------


def test_columns_of_a_table_are_named_by_flags(run, tmp_path):
    (tmp_path / "log.csv").write_text("run,q1,q2,u,score\na,1,2,0.5,3\na,4,5,0.5,3\nb,1,2,0.5,3\n")
    flags = ("--columns.episode", "run", "--columns.observations", "q1,q2", "--columns.actions", "u")
    code, out, err = run("data", "inspect", tmp_path / "log.csv", *flags, "--columns.reward", "score", "--json")
    assert (code, err) == (0, "")
    assert json.loads(out)["episodes"] == 2
    assert_refused(run("data", "inspect", tmp_path / "log.csv"), "no column 'episode'", "--columns.episode")


def test_tasks_of_the_users_own_are_imported(run, log, tmp_path, monkeypatch):
    monkeypatch.setattr("himatch.tasks.registry._registry", dict(registry._registry))  # other tests must not see it
    (tmp_path / "my_tasks.py").write_text(
        "import himatch\n"
        "import numpy as np\n"
        "himatch.register_task('robot', horizon=50, observation_width=11, action_width=3,\n"
        "    features={'energy': lambda obs, act, rew: np.square(obs[:, 5]) / 2})\n"
    )
    assert_refused(run("data", "inspect", log, "--task", "robot"), "unknown task 'robot'", "--import")
    arguments = ("data", "inspect", log, "--task", "robot", "--import", tmp_path / "my_tasks.py", "--feature", "energy")
    code, out, err = run(*arguments, "--json")
    assert (code, err) == (0, "")
    (feature,) = json.loads(out)["features"]
    assert feature["name"] == "energy"
    assert feature["minimum"] == pytest.approx(np.square(hm.load_dataset(log).observations[:, 5]).min() / 2)


@pytest.mark.parametrize(
    ("content", "fragments"),
    [
        ("import sys; sys.exit(0)", ("calls sys.exit(0)",)),
        ("1 / 0", ("failed: ZeroDivisionError: division by zero",)),
        ("import himatch; himatch.register_task('x')", ("task x: give a horizon",)),
    ],
)
def test_an_imported_file_that_fails_is_one_line_and_exit_code_2(run, log, content, fragments, tmp_path):
    (tmp_path / "failing_tasks.py").write_text(content)
    assert_refused(run("data", "inspect", log, "--import", tmp_path / "failing_tasks.py"), *fragments)


def test_a_set_of_a_task_that_is_not_registered_says_so(run, log, tmp_path):
    dataset = hm.load_dataset(log, hm.Task("robot", 50))
    code, out, err = run("data", "inspect", hm.write_minari(dataset, tmp_path / "robot-v0"), "--json")
    assert (code, err) == (0, "")
    assert any(
        "belongs to task robot, which is not registered here; --import" in w for w in json.loads(out)["warnings"]
    )


@pytest.mark.parametrize(
    ("arguments", "fragments"),
    [
        (("nowhere.hdf5",), ("nowhere.hdf5: no such file or folder", "minari:ID")),
        (("LOG", "--task", "humanoid"), ("unknown task 'humanoid'; known: halfcheetah",)),
        (("LOG", "--task", "ant"), ("observations have 11 numbers, task ant has 27",)),
        (("LOG", "--feature", "speed"), ("speed",)),
        (("LOG", "--import", "nowhere.py"), ("--import nowhere.py: no such file",)),
        (("LOG", "--import", "no_such_module"), ("--import no_such_module: no such module",)),
        (("LOG", "--mmap", "/dev/null/map"), ("/dev/null/map",)),
        (("LOG+nowhere.npz",), ("nowhere.npz",)),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(run, log, arguments, fragments):
    assert_refused(run("data", "inspect", *(a.replace("LOG", str(log)) for a in arguments)), *fragments)


@pytest.mark.parametrize("content", [b"", b"garbage", b"PK\x03\x04" + b"\0" * 50])
@pytest.mark.parametrize("name", ["log.npz", "log.hdf5", "log.pkl", "log.csv", "log.parquet"])
def test_damaged_files_are_one_line_and_exit_code_2(run, name, content, tmp_path):
    (tmp_path / name).write_bytes(content)
    assert_refused(run("data", "inspect", tmp_path / name), name)


def test_a_pickle_with_code_does_not_run_it(run, tmp_path):
    (tmp_path / "log.pkl").write_bytes(b"cos\nmkdir\n(V" + str(tmp_path / "witness").encode() + b"\ntR.")
    assert_refused(run("data", "inspect", tmp_path / "log.pkl"), "log.pkl: the pickle asks for os.mkdir")
    assert not (tmp_path / "witness").exists()


def test_numbers_of_discrete_actions_in_a_table(run, tmp_path):
    """Who holds a table says how many actions there are; what is none of them is one line."""
    rows = [f"{i // 40},{i % 7},{(i // 3) % 4}" for i in range(200)]
    path = tmp_path / "log.csv"
    path.write_text("\n".join(["episode,obs_x,act", *rows]))
    assert_refused(run("data", "inspect", path), "(act) hold a few whole numbers only", "--columns.discrete N")
    code, out, err = run("data", "inspect", path, "--columns.discrete", "4", "--json")
    assert (code, err) == (0, "")
    assert json.loads(out)["discrete"] == {"count": 4, "start": 0}
    _, counted, _ = run("data", "inspect", path, "--columns.discrete", "auto", "--json")
    assert json.loads(counted)["content_hash"] == json.loads(out)["content_hash"]
    assert_refused(
        run("data", "inspect", path, "--columns.discrete", "3"),
        "action 3 (column act) in episode '0', step 9 (line 11) is none of the actions",
        "which are 3 discrete ones (0 to 2)",
    )
    train = ("train", "bc", "--data", path, "--columns.discrete", "4", "--out", tmp_path / "run", "--split", "none")
    code, _, err = run(*train, "--head", "tanh")
    assert code == 2
    assert err.splitlines()[-1].endswith("for which a tanh head makes no sense; leave --head out")
