"""Nodes of Kubernetes, Kueue's levels and topograph's JSON: labels in, places and states out."""

import contextlib
import json
from itertools import combinations, product

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from placement.dumps.assemble import assemble
from placement.errors import ParseError
from placement.readers import read_text, recognise
from tests.placement.machine_shapes import kubernetes_node

TOPOGRAPH = "network.topology.nvidia.com/"
ZONE = "topology.kubernetes.io/zone"


def listed(nodes, **more):
    return {"apiVersion": "v1", "items": nodes, "kind": "List", "metadata": {}, **more}


def machine_of(nodes, *others):
    dumps = [read_text(json.dumps(listed(nodes)), "nodes.json")]
    return assemble([*dumps, *(read_text(text, "more.yaml") for text in others)])


def kueue(*labels):
    levels = [{"nodeLabel": label} for label in labels]
    document = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Topology"}
    return yaml.safe_dump({**document, "metadata": {"name": "t"}, "spec": {"levels": levels}})


def state_of(**changes):
    node = kubernetes_node("n1", gpus=4)
    node["spec"] |= changes.pop("spec", {})
    node["metadata"]["labels"] |= changes.pop("labels", {})
    node["status"] |= changes
    return machine_of([node])


def test_json_yaml_and_one_line_are_the_same():
    nodes = [kubernetes_node(f"n{k}", {TOPOGRAPH + "leaf": f"l{k % 2}"}, gpus=8) for k in range(4)]
    texts = [
        json.dumps(listed(nodes), indent=4),
        json.dumps(listed(nodes)),
        yaml.safe_dump(listed(nodes)),
        yaml.safe_dump_all(nodes),
    ]
    assert {recognise(text, "x") for text in texts} == {"kubernetes"}
    first, *others = [assemble([read_text(text, "x")]) for text in texts]
    assert all(other == first for other in others)
    assert first.topology.levels == ("leaf", "node")
    assert first.gpus.tolist() == [8] * 4
    assert first.scheduler == "kubernetes"


@pytest.mark.parametrize(
    ("changes", "state"),
    [
        ({}, "idle"),
        ({"conditions": []}, "idle"),
        ({"conditions": [{"type": "Ready", "status": "False"}]}, "down"),
        ({"conditions": [{"type": "Ready", "status": "Unknown"}]}, "down"),
        ({"conditions": [{"type": "DiskPressure", "status": "True"}]}, "down"),
        ({"spec": {"unschedulable": True}}, "drained"),
        ({"spec": {"unschedulable": "true"}}, "drained"),
        ({"spec": {"taints": [{"key": "team", "value": "a", "effect": "NoSchedule"}]}}, "reserved"),
        ({"spec": {"taints": [{"key": "team", "effect": "PreferNoSchedule"}]}}, "idle"),
        ({"spec": {"taints": [{"key": "nvidia.com/gpu", "effect": "NoSchedule"}]}}, "idle"),
        (
            {
                "spec": {
                    "taints": [{"key": "node.kubernetes.io/unreachable", "effect": "NoExecute"}]
                }
            },
            "down",
        ),
    ],
)
def test_the_state_of_a_node(changes, state):
    assert state_of(**changes).state.tolist() == [state]


def test_a_foreign_taint_is_said_and_a_node_of_the_control_plane_serves():
    taint = {"key": "team", "value": "a", "effect": "NoSchedule"}
    assert "taint team=a:NoSchedule" in " ".join(state_of(spec={"taints": [taint]}).notes)
    control = "node-role.kubernetes.io/control-plane"
    tainted = {"taints": [{"key": control, "effect": "NoSchedule"}]}
    assert state_of(spec=tainted, labels={control: ""}).role.tolist() == ["service"]


def agree(one, other):
    """Return how many of the first entries are alike."""
    return next((k for k, (a, b) in enumerate(zip(one, other, strict=True)) if a != b), len(one))


@given(st.lists(st.integers(1, 3), min_size=1, max_size=3), st.randoms(use_true_random=False))
def test_topograph_kubernetes_and_kueue_give_one_tree(extents, random):
    places = list(product(*map(range, extents), range(2)))
    random.shuffle(places)
    names = {f"n{k:03d}": at for k, at in enumerate(places)}
    depth = range(len(extents))
    switches = {n: ["-".join(map(str, at[: d + 1])) for d in depth] for n, at in names.items()}
    tiers = [f"fabric.topograph.run/tier-{d}" for d in reversed(depth)]
    custom = [f"example.com/{word}" for word in ("hall", "row", "rack")][: len(extents)]
    by_tier, by_name = (
        [kubernetes_node(n, zip(keys, found, strict=True)) for n, found in switches.items()]
        for keys in (tiers, custom)
    )
    instances = [{"id": n, "network_layers": found[::-1]} for n, found in switches.items()]
    told = [d for d in depth if extents[d] > 1]
    for machine in (
        machine_of(by_tier),
        machine_of(by_name, kueue(*custom, "kubernetes.io/hostname")),
        assemble([read_text(json.dumps({"instances": instances}), "x.json")]),
    ):
        at = dict(zip(machine.names.tolist(), machine.coords.tolist(), strict=True))
        for one, other in combinations(names, 2):
            expected = agree([names[one][d] for d in told], [names[other][d] for d in told])
            assert agree(at[one][: len(told)], at[other][: len(told)]) == expected


MODEL = """\
# a comment
switches:
  core:
    labels:
      topology.kubernetes.io/region: us-east
    switches: [spine-1]
  spine-1:
    switches:
    - leaf-1
    - leaf-2
blocks:
- switch: leaf-1
  nodes:
  - node[1101-1104]
  annotations:
    accelerator.topology.test/domain: nvl-1
- switch: leaf-2
  nodes: ["node[1201-1203]", node1204]
"""


def test_a_model_of_topograph():
    machine = assemble([read_text(MODEL, "model.yaml")])
    assert machine.names.tolist() == [f"node1{leaf}0{k}" for leaf in (1, 2) for k in range(1, 5)]
    assert machine.topology.levels == ("tier-0", "domain", "node")  # alone without a domain
    assert machine.coords[:, 0].tolist() == [0] * 4 + [1] * 4


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("node1204", "node1203", "x:18: node node1203 stands twice"),
        ("[spine-1]", "spine-1", "x:6: switches is not a list"),
        ("    - leaf-1\n", "    - leaf-1\n    - core\n", "x:13: switch "),
        ("- switch: leaf-1", "- switch: [leaf-1]", "x:12: switch is not one value"),
        (
            "  core:\n    labels:",
            "  core: 7\n  other:\n    labels:",
            "x:3: switch core is not a dict",
        ),
        ("node[1101-1104]", "node[1101-", "x:14: nodes: "),
    ],
)
def test_a_wrong_model_is_refused_at_its_line(old, new, says):
    with pytest.raises(ParseError) as caught:
        read_text(MODEL.replace(old, new), "x")
    assert str(caught.value).startswith(says)


def test_domains_of_accelerators_are_innermost_and_have_links_of_their_own():
    keys = (ZONE, TOPOGRAPH + "spine", TOPOGRAPH + "leaf", TOPOGRAPH + "accelerator")
    nodes = [
        kubernetes_node(
            f"n{k:02d}",
            zip(keys, ("z", f"s{k // 8}", f"l{k // 4}", f"a{k // 2}"), strict=True),
            gpus=8,
        )
        for k in range(16)
    ]
    machine = machine_of(nodes)
    assert machine.topology.levels == ("spine", "leaf", "domain", "node")
    assert machine.topology.bandwidth["up0"] == 8 * 900
    assert "8 GPUs of 900" in " ".join(machine.notes)


def test_levels_that_cut_across_domains_are_left_out_and_named():
    keys = (TOPOGRAPH + "spine", TOPOGRAPH + "leaf", TOPOGRAPH + "accelerator")
    nodes = [
        kubernetes_node(f"n{k}", zip(keys, (f"s{k // 4}", f"l{k % 2}", f"a{k // 2}"), strict=True))
        for k in range(8)
    ]
    machine = machine_of(nodes)
    assert machine.topology.levels == ("spine", "domain", "node")
    assert "leaf left out: they cut across" in " ".join(machine.notes)


def test_a_domain_for_each_leaf_is_the_leaf():
    keys = (TOPOGRAPH + "leaf", TOPOGRAPH + "accelerator")
    nodes = [
        kubernetes_node(f"n{k}", zip(keys, (f"l{k // 2}", f"a{k // 2}"), strict=True), gpus=4)
        for k in range(8)
    ]
    machine = machine_of(nodes)
    assert machine.topology.levels == ("domain", "node")
    assert machine.topology.bandwidth["up0"] == 4 * 900


def test_a_node_without_a_level_is_not_planned_on_and_one_without_domain_is():
    keys = (TOPOGRAPH + "leaf", TOPOGRAPH + "accelerator")
    labels = [("l0", "a0"), ("l0", "a0"), ("l1", "a1"), ("l1", "a1"), ("l1",), ()]
    nodes = [
        kubernetes_node(f"n{k}", zip(keys, values, strict=False)) for k, values in enumerate(labels)
    ]
    machine = machine_of(nodes)
    assert machine.state.tolist() == ["idle"] * 5 + ["unlabelled"]
    assert "no plan takes n5" in " ".join(machine.notes)


def test_nothing_to_tell_nodes_apart_is_said():
    machine = machine_of([kubernetes_node("n1", {ZONE: "a"}), kubernetes_node("n2", {ZONE: "a"})])
    assert "nothing says where the nodes are" in " ".join(machine.notes)


WRONG = [
    (lambda one: one["metadata"].pop("name"), "item 2: '' is not the name of a node"),
    (lambda one: one["metadata"].update(name="a b"), "item 2: 'a b' is not the name of a node"),
    (lambda one: one["metadata"].update(name="n1"), "node n1 stands twice"),
    (lambda one: one["metadata"].update(labels=["a"]), "metadata.labels is not an object"),
    (lambda one: one["metadata"]["labels"].update(rack=7), "label rack of n2 is not text"),
    (lambda one: one.update(spec=7), "spec is not an object"),
    (lambda one: one["spec"].update(taints=["x"]), "a condition or a taint is not an object"),
    (lambda one: one["status"]["allocatable"].update({"x/gpu": "1.5"}), "'1.5' is not a count"),
    (lambda one: one.update(kind=3), "item 2: kind is not text"),
]


@pytest.mark.parametrize(("change", "says"), WRONG)
def test_what_no_api_server_prints_is_refused_by_its_item(change, says):
    nodes = [kubernetes_node("n1"), kubernetes_node("n2")]
    change(nodes[1])
    with pytest.raises(ParseError) as caught:
        read_text(json.dumps(listed(nodes)), "x")
    assert says in str(caught.value)
    assert str(caught.value).startswith("x: ")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (kueue(), "x:1: item 1: spec.levels is not a list of {nodeLabel: LABEL}"),
        (kueue("rack", "rack"), "x:1: item 1: a level of the Topology stands twice"),
        (f"{kueue('a')}---\n{kueue('b')}", "item 2: a second Topology"),
        ('{"kind": "NodeList", "items": 7}', "x: items is not a list"),
        ('{"kind": "NodeList", "items": [7]}', "x: item 1 is not an object"),
        ('{"kind": "NodeList", "items": []}', "x: no Node and no Topology in it"),
        ("kind: Node\nmetadata: {name: [}\n", "x:2: "),
        ('{"instances": 7}', "x: instances is not a list"),
        ('{"instances": [{}]}', "x: instance 1 has no id"),
        ('{"instances": [{"id": "a"}, {"id": "a"}]}', "x: instance 2: a stands twice"),
        ('{"instances": [{"id": "a", "network_layers": [1]}]}', "network_layers is not a list"),
        ('{"instances": [{"id": "a", "labels": {"b": 1}}]}', "x: instance 1 (a): b is not text"),
    ],
)
def test_what_is_of_another_form_is_refused_in_one_line(text, says):
    with pytest.raises(ParseError) as caught:
        read_text(text, "x")
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_level_that_no_node_has_is_refused():
    with pytest.raises(ParseError, match=r"more\.yaml: no node has the label rack"):
        machine_of([kubernetes_node("n1")], kueue("rack"))


values = st.sampled_from([None, 7, -1, "", "x", [], {}, [None], {"a": []}, True, 1e300])


@given(st.data(), values)
def test_any_value_in_any_place_is_read_or_refused(data, value):
    node = kubernetes_node("n2", {TOPOGRAPH + "leaf": "l1"}, gpus=1)
    document = listed([kubernetes_node("n1"), node])
    at, key = document, data.draw(st.sampled_from(sorted(document)))
    while isinstance(at[key], dict | list) and at[key] and data.draw(st.booleans()):
        at = at[key]
        inside = range(len(at)) if isinstance(at, list) else sorted(at)
        key = data.draw(st.sampled_from(list(inside)))
    at[key] = value
    for text in (json.dumps(document), yaml.safe_dump(document)):
        with contextlib.suppress(ParseError):
            assemble([read_text(text, "x")])
