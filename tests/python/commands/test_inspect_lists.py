"""`basin inspect --list NAME --json`: what other programs read of the registries, against --print-config and the lists for people."""

import json
import tomllib

import pytest

from basin_program import needs_program, output, program

pytestmark = needs_program
REGISTRIES = ["models", "optimizers", "datasets", "probes", "hooks", "landscapes"]
TYPES = {"bool": bool, "int": int, "float": float, "string": str, "ints": list, "floats": list, "strings": list}


def members(name: str) -> list[dict]:
    return json.loads(output("inspect", "--list", name, "--json"))["entries"]


@pytest.fixture(scope="module")
def print_config(tmp_path_factory) -> str:
    study = tmp_path_factory.mktemp("study") / "empty.toml"
    study.write_text("")
    return output("train", str(study), "--print-config")


def flat(table: dict, prefix: str = "") -> dict:
    found = {}
    for key, value in table.items():
        found |= flat(value, f"{prefix}{key}.") if isinstance(value, dict) else {prefix + key: value}
    return found


def test_every_option_is_there_with_its_default(print_config):
    options = members("options")
    assert {o["key"]: o["default"] for o in options} == flat(tomllib.loads(print_config))
    for option in options:
        assert type(option["default"]) is TYPES[option["type"]], option
        assert option["role"] in ("identity", "execution", "measurement")
        line = option["help"] + (f" ({option['constraint']})" if option["constraint"] else "")
        assert "  # " + line + "\n" in print_config


@pytest.mark.parametrize("name", REGISTRIES)
def test_members_stand_in_order_with_what_tells_them_apart(name):
    found = members(name)
    assert [m["order"] for m in found] == list(range(len(found)))
    for key in ("name", "label"):
        assert key not in found[0] or len({m[key] for m in found}) == len(found)
    assert name in ("hooks", "landscapes") or found[0]["label"]
    assert all(m["help"] and m["traits"] for m in found)


@pytest.mark.parametrize("name", ["models", "optimizers", "probes"])
def test_members_have_the_options_of_their_table(name, print_config):
    everything = {o["key"]: o for o in members("options")}
    tables = tomllib.loads(print_config)
    for member in members(name):
        assert {o["key"].split(".", 1)[1] for o in member["options"]} == set(tables.get(member["name"], {}))
        for option in member["options"]:
            assert option == everything[option["key"]]


def test_hooks_have_the_options_that_they_bind():
    everything = {o["key"]: o for o in members("options")}
    hooks = members("hooks")
    bound = [option for hook in hooks for option in hook["options"]]
    assert all(option == everything[option["key"]] for option in bound)
    assert len({option["key"] for option in bound}) == len(bound)
    for hook in hooks:
        mine = {option["key"] for option in hook["options"]}
        assert not mine or mine & {setting.split("=")[0] for setting in hook["traits"]["on"]}
        for number in hook["summary"]:
            assert set(number) == {"name", "units", "long_name", "definition"} and all(number.values())


def test_landscapes_have_the_options_of_their_table():
    for kind in members("landscapes"):
        shown = tomllib.loads(output("landscape", "--kind", kind["name"], "--print-config"))
        assert {o["key"]: o["default"] for o in kind["options"]} == flat(shown.get(kind["name"], {}), kind["name"] + ".")
        assert 1 <= kind["traits"]["least_checkpoints"] <= kind["traits"]["most_checkpoints"]


def test_roles_are_those_that_a_sweep_goes_by():
    options = {o["key"]: o for o in members("options")}
    assert options["batch_size"]["sweep"] and not options["batch_size"]["tune"]
    assert options["learning_rate"]["sweep"] and options["learning_rate"]["tune"]
    for key in ("checkpoint_seconds", "data.path", "runtime.threads", "probes.micro_batch"):
        assert options[key]["role"] == "execution" and not options[key]["sweep"]
    assert options["probes.subset"]["role"] == options["top_eigenvalues.count"]["role"] == "measurement"


def test_the_list_for_people_has_the_same():
    for name in REGISTRIES:
        text = output("inspect", "--list", name)
        for member in members(name):
            assert f"{member['name']}\n  {member['help']}\n" in text
            assert all(option["key"] in text and option["help"] in text for option in member["options"])
    text = output("inspect", "--list", "schedules")
    assert [o["key"] for o in members("schedules")] == [line.split()[0] for line in text.splitlines()]


def test_json_is_of_a_list_or_a_file():
    refused = program("inspect", "--json")
    assert refused.returncode != 0 and "--list" in refused.stderr
