# SPDX-License-Identifier: Apache-2.0
"""Formats that say states: the same nodes in every one, mutations, and piped into the commands."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nidmap.placement.dumps.assemble import assemble
from nidmap.placement.errors import ParseError
from nidmap.placement.load import load_machine
from nidmap.placement.readers import read_text, recognise
from nidmap.placement.readers.node_states import node_state, slurm_state
from nidmap.placement.records import BOOTING_STATES, FREE_STATES
from nidmap.placement.scheduler.availability import read_availability

BASES = ("IDLE", "ALLOCATED", "MIXED", "DOWN", "UNKNOWN", "FUTURE", "ERROR")
#: Flags of Slurm's manual page, and whether a node with one can be had at once.
FLAGS = {
    "DRAIN": False,
    "FAIL": False,
    "MAINTENANCE": False,
    "RESERVED": False,
    "PLANNED": False,
    "BLOCKED": False,
    "COMPLETING": False,
    "NOT_RESPONDING": False,
    "REBOOT_REQUESTED": False,
    "INVALID_REG": False,
    "PERFCTRS": False,
    "POWERED_DOWN": True,
    "POWERING_UP": True,
    "CLOUD": True,
    "DYNAMIC_NORM": True,
}
states = st.tuples(st.sampled_from(BASES), st.lists(st.sampled_from(sorted(FLAGS)), unique=True))
clusters = st.dictionaries(
    st.integers(1, 40).map(lambda i: f"nid{i:05d}"), states, min_size=1, max_size=12
)


def is_free(base, flags):
    return base == "IDLE" and all(FLAGS[flag] for flag in flags)


def paragraphs(nodes, join="\n   "):
    """Write what ``scontrol show node`` prints; oneliner with a blank for `join`."""
    out = []
    for name, (base, flags) in nodes.items():
        words = [
            f"NodeName={name} Arch=x86_64 CoresPerSocket=16 ",
            "CPUAlloc=0 CPUEfctv=64 CPUTot=64 CPULoad=0.01",
            "ActiveFeatures=gpu,a100",
            "Gres=gpu:a100:4(S:0-1)",
            "OS=Linux 6.1 #1 SMP State of the art ",
            "RealMemory=1000 AllocMem=0 FreeMem=900 Sockets=2 Boards=1",
            f"State={'+'.join([base, *flags])} ThreadsPerCore=2 TmpDisk=0 Weight=7 Owner=N/A",
            "Partitions=debug,gpu ",
            "Reason=State=IDLE they say [root@2026-01-01T00:00:00]",
        ]
        out.append(join.join(words) + "\n")
    return ("" if join == " " else "\n").join(out)


def json_22(nodes):
    rows = [
        {"name": n, "state": base.lower(), "state_flags": flags, "partitions": ["debug"]}
        for n, (base, flags) in nodes.items()
    ]
    return json.dumps({"meta": {"Slurm": {"release": "22.05.8"}}, "errors": [], "nodes": rows})


def json_24(nodes):
    rows = [
        {
            "node": {"state": [base, *flags]},
            "nodes": {"total": 1, "nodes": [n]},
            "partition": {"name": "debug"},
            "sockets": {"minimum": 2, "maximum": 2},
            "weight": {"minimum": 7, "maximum": 7},
        }
        for n, (base, flags) in nodes.items()
    ]
    return json.dumps({"sinfo": rows, "meta": {}, "errors": [], "warnings": []}, indent=1)


def says_states(text):
    try:
        return read_availability(None, text, "-").named
    except ParseError:
        return False


@given(clusters)
def test_every_format_of_slurm_says_the_same_nodes_are_free(nodes):
    expected = sorted(n for n, (base, flags) in nodes.items() if is_free(base, flags))
    texts = [paragraphs(nodes), paragraphs(nodes, " "), json_22(nodes), json_24(nodes)]
    for text in texts:
        dump = read_text(text, "-")
        found = read_availability(None, text, "-")
        assert sorted(found.nodes()) == expected
        assert sorted(found.machine.names.tolist()) == sorted(nodes)
        assert dump.counts.total == len(text.split("\n")) - text.endswith("\n")


def test_what_is_in_a_node_is_read():
    machine = assemble([read_text(paragraphs({"n1": ("IDLE", [])}), "-")])
    assert (machine.sockets[0], machine.cores[0], machine.gpus[0]) == (2, 32, 4)
    assert (machine.memory_mb[0], machine.weight[0], machine.features[0]) == (1000, 7, "gpu,a100")
    assert machine.scheduler == "slurm"


@pytest.mark.parametrize(
    ("words", "state"),
    [
        ("IDLE+DRAIN", "drained"),
        ("MIXED+DRAIN", "draining"),
        ("ALLOCATED+COMPLETING", "completing"),
        ("DOWN*+DRAIN", "down"),
        ("IDLE*", "not_responding"),
        ("IDLE+CLOUD+POWERED_DOWN", "powered_down"),
        ("IDLE+RESERVED", "reserved"),
        ("idle~", "powered_down"),
        ("RESERVED", "reserved"),
    ],
)
def test_words_and_signs_of_a_state(words, state):
    assert node_state(words) == (state, False)


#: Every base state and flag of a node in the JSON of Slurm 22.05 to 25.11, and whether a node
#: that is idle besides may be had: at once, after a boot, or not.
JSON_WORDS = {
    "INVALID": "no", "UNKNOWN": "no", "DOWN": "no", "IDLE": "at once", "ALLOCATED": "no",
    "ERROR": "no", "MIXED": "no", "FUTURE": "no", "RESERVED": "no", "UNDRAIN": "at once",
    "CLOUD": "at once", "RESUME": "at once", "DRAIN": "no", "COMPLETING": "no",
    "NOT_RESPONDING": "no", "POWERED_DOWN": "boot", "FAIL": "no", "POWERING_UP": "boot",
    "MAINTENANCE": "no", "REBOOT_REQUESTED": "no", "REBOOT_CANCELED": "at once",
    "POWERING_DOWN": "no", "DYNAMIC_FUTURE": "at once", "REBOOT_ISSUED": "no", "INVALID_REG": "no",
    "POWER_DOWN": "no", "POWER_UP": "boot", "POWER_DRAIN": "no", "DYNAMIC_NORM": "at once",
    "BLOCKED": "no", "EXTERNAL": "at once", "PERFCTRS": "no",
}  # fmt: skip


@pytest.mark.parametrize("word", JSON_WORDS)
@pytest.mark.parametrize("form", ['["IDLE", "{}"]', '"{}", "state_flags": ["IDLE"]'])
def test_every_flag_of_the_json(word, form):
    text = form.format(word) if word != "IDLE" else '["IDLE"]'
    entry = '{{"name": "n1", "state": {}, "partitions": ["p"]}}'
    nodes = read_text(f'{{"nodes": [{entry.format(text)}]}}', "-").nodes
    state = str(nodes.state[0])
    assert (state in FREE_STATES) == (JSON_WORDS[word] != "no")
    assert (state in BOOTING_STATES) == (JSON_WORDS[word] == "boot")


#: The signs behind an idle node's state (sinfo(1)): who may have it.
SIGNED = {
    "": "at once", "*": "no", "~": "boot", "#": "boot", "!": "no", "%": "no", "$": "no", "@": "no",
    "^": "no", "-": "planned",
}  # fmt: skip


@pytest.mark.parametrize("sign", SIGNED)
@pytest.mark.parametrize("word", ["idle", "IDLE"])
def test_every_sign_behind_idle(word, sign):
    state, planned = node_state(word + sign)
    assert planned == (SIGNED[sign] == "planned")
    assert (state in FREE_STATES) == (SIGNED[sign] != "no")
    assert (state in BOOTING_STATES) == (SIGNED[sign] == "boot")
    for busy in ("alloc", "mix", "down", "drain", "drng", "comp", "fail", "maint", "resv"):
        assert node_state(busy + sign)[0] not in FREE_STATES


#: What sinfo prints alone in a column of five to ten letters (slurm_protocol_defs.c,
#: ``node_state_string_compact``): the word for it.
COMPACT = {
    "POW_DN": "power_down", "POWRING_DN": "powering_down", "POWERED_DN": "powered_down",
    "POW_UP": "powering_up", "DRNG%": "draining", "DRAIN~": "drained", "BOOT^": "reboot",
    "MAINT*": "maint", "FAILG*": "failing", "INVAL": "inval", "BLOCK": "blocked",
    "RESV": "reserved", "PLND": "planned", "FUTR~": "future", "COMP~": "completing",
    "UNK*": "unknown",
}  # fmt: skip


@pytest.mark.parametrize("word", COMPACT)
def test_the_words_that_stand_alone_in_a_column(word):
    assert node_state(word)[0] == COMPACT[word]


def test_a_planned_node_is_promised():
    assert node_state("IDLE+PLANNED") == ("planned", True)
    assert node_state("MIXED+PLANNED") == ("mixed", True)


# --- PBS and Flux ------------------------------------------------------------

PBS = {
    "free": True,
    "job-busy": False,
    "job-exclusive": False,
    "busy": False,
    "offline": False,
    "down": False,
    "resv-exclusive": False,
    "state-unknown": False,
    "free,offline": False,
    "down,offline": False,
    "some-new-word": False,
}
hosts = st.dictionaries(
    st.integers(1, 40).map(lambda i: f"x3001c0s{i}b0n0"),
    st.tuples(st.sampled_from(sorted(PBS)), st.booleans()),
    min_size=1,
    max_size=12,
)


@given(hosts)
def test_pbsnodes_as_text_and_as_json(nodes):
    lines, entries = [], {}
    for name, (state, busy) in nodes.items():
        lines += [name, f"     Mom = {name}.hsn.local", "     ntype = PBS", f"     state = {state}"]
        lines += ["     jobs = 12.server/0, 12.server/1"] if busy else []
        lines += [f"     resources_assigned.ncpus = {8 if busy else 0}", "     comment = ", ""]
        entries[name] = {"state": state, "resources_assigned": {"ncpus": 8 if busy else 0}}
        entries[name] |= {"jobs": ["12.server", "13.server"]} if busy else {}
    whole = {"timestamp": 1, "pbs_version": "2022.1", "pbs_server": "s", "nodes": entries}
    expected = sorted(n for n, (state, busy) in nodes.items() if PBS[state] and not busy)
    for text in ("\n".join(lines), json.dumps(whole, indent=4)):
        found = read_availability(None, text, "-")
        assert sorted(found.nodes()) == expected
        assert len(found.machine) == len(nodes)


def test_virtual_nodes_are_one_host_and_torque_is_read():
    text = "n1[0]\n  state = free\n\nn1[1]\n  state = job-busy\n\nn2\n  state = free\n  np = 8\n"
    found = read_availability(None, text, "-")
    assert dict(zip(found.machine.names.tolist(), found.machine.state.tolist(), strict=True)) == {
        "n1": "allocated",
        "n2": "idle",
    }


def test_flux_lists_partly_taken_nodes_twice():
    text = (
        "     STATE QUEUE PROPERTIES NNODES   NCORES    NGPUS NODELIST\n"
        "      free batch gpu,big         2        6        0 n[1-2]\n"
        "      free                       1        4        0 n3\n"
        " allocated batch                 1        2        0 n2\n"
        "      down                       0        0        0 \n"
    )
    found = read_availability(None, text, "-")
    assert list(found.nodes()) == ["n1", "n3"]


def test_flux_r_is_a_list_of_nodes():
    text = '{"version":1,"execution":{"R_lite":[{"rank":"0-2"}],"nodelist":["a[7-8]","b1"]}}'
    from nidmap.placement.nodelist import NodeList

    assert NodeList.parse(text, "R") == NodeList(["a7", "a8", "b1"])
    graph = ',"scheduling":{"graph":{"nodes":[{"id":"0"}],"edges":[]}}}'
    assert not says_states(text)
    assert not says_states(text[:-1] + graph)
    assert NodeList.parse(text[:-1] + graph, "R") == NodeList(["a7", "a8", "b1"])
    with pytest.raises(ParseError, match=r"no execution\.nodelist; is it"):
        NodeList.parse('{"version":1,"execution":{"R_lite":[{"rank":"0-2"}]}}', "R")


# --- jobs --------------------------------------------------------------------

SQUEUE = """\
             JOBID PARTITION     NAME     USER ST       TIME  NODES NODELIST(REASON)
                 3     debug     pend     root PD       0:00      9 (Resources)
                 1     debug  R PD CD     root  R       0:02      2 nid[00000,00002]
                 4     debug     gone     root CD       0:02      1 nid00005
                 5     debug      end     root CG       0:02      1 nid00007
"""


def test_jobs_take_their_nodes_from_a_machine():
    machine = load_machine("torus:12")
    busy = {0, 2, 7}
    jobs = [
        {"job_state": ["RUNNING"], "nodes": "nid[00000,00002]"},
        {"job_state": "COMPLETING", "nodes": "nid00007"},
        {"job_state": "COMPLETED", "nodes": "nid00005"},
        {"job_state": ["PENDING"], "nodes": ""},
    ]
    records = (
        "JobId=1 JobName=a\n   JobState=RUNNING Reason=None\n   NodeList=nid[00000,00002,00007]\n"
        "\nJobId=4 JobName=b\n   JobState=COMPLETED Reason=None\n   NodeList=nid00005\n"
    )
    for text in (SQUEUE, records, json.dumps({"jobs": jobs})):
        found = read_availability(machine, text, "-")
        assert not found.named
        free = set(range(12)) - busy
        assert set(found.machine.free.nonzero()[0].tolist()) == free, text
    assert not read_text("JOBID ST NODELIST(REASON)\n", "-").nodes


def test_jobs_alone_are_no_machine():
    with pytest.raises(ParseError, match="lists the nodes with jobs"):
        assemble([read_text(SQUEUE, "squeue.txt")])


@pytest.mark.parametrize(
    "text",
    ["n[1-4]", "NODELIST\nn[1-4]\n", "n1\nn2\n", "a 4\nb 4\n", "ReservationName=r Nodes=n[1-2]\n"],
)
def test_a_plain_list_says_nothing_of_states(text):
    assert not says_states(text)


# --- broken ------------------------------------------------------------------

WHOLE = [
    paragraphs({"n1": ("IDLE", ["DRAIN"]), "n2": ("MIXED", [])}),
    json_24({"n1": ("IDLE", []), "n2": ("DOWN", [])}),
    "n1\n     Mom = n1\n     state = free\n\nn2\n     state = down\n     jobs = 1.s\n",
    "STATE NNODES NCORES NGPUS NODELIST\nfree 1 4 0 n1\ndown 1 4 0 n[2-3]\n",
    SQUEUE,
]


@given(st.sampled_from(WHOLE), st.data())
def test_damage_is_one_error_or_none(text, data):
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(text)))
        end = min(len(text), at + data.draw(st.integers(0, 12)))
        text = (
            text[:at] + data.draw(st.text(alphabet=' \n\t{}[],:="aN0*+', max_size=4)) + text[end:]
        )
    message = ""
    try:
        read_availability(None, text, "damaged")
    except ParseError as error:
        message = str(error)
    assert "\n" not in message


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("NodeName=n1 Arch=x CoresPerSocket=1\n   Sockets=1\n", "x:1: node n1 has no State="),
        ("NodeName=n1 Arch=x CoresPerSocket=1\n   State=7 Sockets=1\n", "'7' is not a node state"),
        ('{"nodes": [{"state": "idle"}]}', "an entry of nodes does not look like Slurm's"),
        ('{"nodes": [{"name": 7, "state": "idle"}]}', "7 is not a word"),
        ("n1\n  state = free\nwhat is this\n", "x:3: 'what is this' is not a node or"),
        ('{"pbs_version": "1", "nodes": {"n1": {}}}', "node n1 has no state"),
        ("STATE NNODES NODELIST\nfree x n1\n", "x:2: 'free x n1' is not a row of flux"),
    ],
)
def test_what_cannot_be_read_is_refused_at_its_line(text, match):
    with pytest.raises(ParseError, match=match):
        read_availability(None, text, "x")


def test_formats_are_told_apart():
    names = ["scontrol-nodes", "slurm-json", "pbsnodes", "flux-resources", "job-list"]
    assert [recognise(text, "x") for text in WHOLE] == names


def test_some_words_of_each_record_are_states_too():
    text = "NodeName=n1 State=IDLE\n\nNodeName=n2 State=ALLOCATED\n\nNodeName=n3 State=IDLE+DRAIN\n"
    dump = read_text(text, "-")
    assert dump.nodes.name.tolist() == ["n1", "n2", "n3"]
    assert dump.nodes.state.tolist() == ["idle", "allocated", "drained"]


# --- the summary of pbsnodes, R of Flux, reasons of sinfo -----------------------


def test_the_summary_of_pbsnodes():
    cells = {"a": ("free", 0, "20/20"), "b": ("free", 1, "10/20"), "c": ("offline", 0, "20/20")}
    rows = [
        f'"{n}": {{"State": "{word}", "Total Jobs": {jobs}, "ncpus f/t": "{cores}"'
        + (f', "jobs": ["{jobs}.s"]}}' if jobs else "}")
        for n, (word, jobs, cores) in cells.items()
    ]
    document = f'{{"timestamp": 1, "pbs_version": "18", "nodes": {{{", ".join(rows)}}}}}'
    head = "vnode  state  njobs run susp f/t f/t f/t f/t jobs\n----- ----- ---\n"
    table = head + "".join(
        f"{n} {word} {jobs} {jobs} 0 3gb/6gb {cores} 0/0 0/4 {f'{jobs}.s' if jobs else '--'}\n"
        for n, (word, jobs, cores) in cells.items()
    )
    for text in (document, table):
        nodes = read_text(text, "-").nodes
        assert nodes.state.tolist() == ["idle", "mixed", "drained"]
        assert nodes.cores.tolist() == [20, 20, 20]


def test_r_of_flux_gives_hosts_to_ranks_in_ascending_order():
    """Ranks out of order, in several entries; the k-th host is the k-th rank's (RFC 20)."""
    lite = [("7,3-4", "0-2", "0"), ("10", "5", ""), ("9", "[0-1,7]", "")]
    entries = ", ".join(
        f'{{"rank": "{ranks}", "children": {{"core": "{cores}"'
        + (f', "gpu": "{gpus}"' if gpus else "")
        + "}}"
        for ranks, cores, gpus in lite
    )
    text = (
        f'{{"version": 1, "execution": {{"R_lite": [{entries}],'
        ' "nodelist": ["n[3-4]", "m1", "k[9,8]"], "properties": {"big": "7-9"}}}'
    )
    nodes = read_text(text, "-").nodes
    assert nodes.name.tolist() == ["n3", "n4", "m1", "k9", "k8"]
    assert nodes.cores.tolist() == [3, 3, 3, 3, 1]
    assert nodes.gpus.tolist() == [1, 1, 1, 0, 0]
    assert nodes.features.tolist() == ["", "", "big", "big", ""]
    with pytest.raises(ParseError, match="4 hosts for 5 ranks"):
        read_text(text.replace("k[9,8]", "k9"), "-")
    with pytest.raises(ParseError, match="R has no nodelist"):
        read_text(text.replace("nodelist", "hosts"), "-")


def test_reasons_of_sinfo_are_no_list_of_jobs():
    text = "REASON      USER  TIMESTAMP           NODELIST\nbad  root  2026-09-21T15:02:11 n1\n"
    with pytest.raises(ParseError, match="sinfo output without column %T"):
        read_text(text, "-")


def test_slurm_state():
    assert slurm_state("IDLE+DRAIN", "-") == ("drained", False)
    assert slurm_state("MIXED+PLANNED", "-") == ("mixed", True)


def test_a_node_that_reboots_is_the_same_in_every_form():
    """As slurmctld 22.05.8, 24.11.5 and 26.05.5 print it after ``scontrol reboot [asap]``."""
    printed = {
        "sinfo -N": "NODELIST NODES PARTITION STATE\nn1 1 debug* boot^\nn2 1 debug* boot^\n",
        "sinfo -N -l": "NODELIST STATE\nn1 reboot^\nn2 reboot^\n",
        "scontrol": "NodeName=n1 State=DOWN+REBOOT_ISSUED\n\nNodeName=n2 "
        "State=DOWN+DRAIN+REBOOT_ISSUED\n",
        "json": json.dumps({"nodes": [
            {"name": "n1", "state": ["DOWN", "REBOOT_ISSUED"]},
            {"name": "n2", "state": ["DOWN", "DRAIN", "REBOOT_ISSUED"]},
        ]}),
    }  # fmt: skip
    for form, text in printed.items():
        nodes = read_text(text, form).nodes
        assert nodes.state.tolist() == ["reboot", "reboot"], form
    assert node_state("DOWN+REBOOT_REQUESTED") == ("down", False)  # it is down@ for sinfo
