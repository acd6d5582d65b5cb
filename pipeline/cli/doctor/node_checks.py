"""What the reports of a cluster's nodes mean for a run: decisions alone, nothing is asked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from peg_core.object_url import is_url
from pipeline.cli.doctor.check import FEW_BYTES, Check, State, by_problem, few, space_state
from workers.cluster_settings import ClusterSettings
from workers.ray_nodes.node_report import NOT_INSTALLED, NodeAnswer, NodeReport

# Others may differ: what they write is read the same way.
MUST_AGREE = ("Python", "ray", "peg-pipeline")
PACKAGE = "peg-pipeline"
SOME_SECONDS, MANY_SECONDS = 2.0, 30.0


def check_answers(answers: Sequence[NodeAnswer]) -> Check:
    """Whether the package runs on every node."""
    silent = {node.name: node.problem for node in answers if node.report is None}
    if silent:
        advice = (
            "install the same peg-pipeline on every node (docs/operations.md, A cluster), and "
            "look at Ray's logs there"
        )
        return Check("nodes", "fail", by_problem(silent), advice)
    cpus, gpus = sum(node.cpus for node in answers), sum(node.gpus for node in answers)
    found = f"{len(answers):,} alive, with {cpus:g} CPUs and {gpus:g} GPUs for tasks"
    return Check("nodes", "ok", found)


def check_versions(answers: Sequence[NodeAnswer], here: Mapping[str, str]) -> Check:
    """Every node against the process that started the look, which is as a driver is."""
    reports = _reports(answers)
    differing: dict[str, str] = {}
    state: State = "ok"
    for node, report in reports.items():
        wrong = {name: found for name, found in report["versions"].items() if found != here[name]}
        if not wrong:
            continue
        shown = ", ".join(f"{name} {found}, here {here[name]}" for name, found in wrong.items())
        differing[node] = shown
        state = "fail" if state == "fail" or _breaks(wrong) else "warn"
    if not differing:
        return Check("versions", "ok", f"alike on {len(reports):,} nodes and here")
    advice = "install the same versions on every node and here: build one image"
    return Check("versions", state, by_problem(differing), advice)


def _breaks(wrong: Mapping[str, str]) -> bool:
    """Whether a run would fail with these versions, or mean something else."""
    # nodes without the package get it with `peg submit --with-package`
    return any(
        name in MUST_AGREE and not (name == PACKAGE and found == NOT_INSTALLED)
        for name, found in wrong.items()
    ) or any(found == NOT_INSTALLED and name != PACKAGE for name, found in wrong.items())


def check_caches(answers: Sequence[NodeAnswer], store: str | None) -> Check:
    """Every node has a folder of its own for the artifacts of an object store."""
    needed = store is not None and is_url(store)
    problems: dict[str, str] = {}
    state: State = "ok"
    for node, report in _reports(answers).items():
        free, problem = report["cache_free_bytes"], report["cache_problem"]
        if problem or space_state(free) != "ok":
            problems[node] = problem or f"{free / 1e9:.1f} GB free at {report['cache']}"
            is_bad = bool(problem) or free < FEW_BYTES
            state = "fail" if needed and (is_bad or state == "fail") else "warn"
    if not problems:
        return Check("cache", "ok", "writable on every node")
    advice = "set PEG_CACHE_DIR there to a folder of the node's own disk, and start Ray again"
    unused = "" if needed else " (a store in a folder does without)"
    return Check("cache", state, by_problem(problems) + unused, advice)


def check_store_seen(answers: Sequence[NodeAnswer], store: str) -> Check:
    """Whether every node reads and writes the same store."""
    reports = _reports(answers)
    problems = {node: r["store_problem"] for node, r in reports.items() if r["store_problem"]}
    name = "store on nodes"
    if not problems:
        return Check(name, "ok", f"{len(reports):,} nodes read it and write to it")
    advice = "use a store in s3://, or a file system that all nodes share"
    if is_url(store):
        advice = "these nodes need the network, and credentials in the environment of `ray start`"
    return Check(name, "fail", by_problem(problems), advice)


def check_inputs_seen(answers: Sequence[NodeAnswer], inputs: Sequence[str]) -> Check:
    """Whether every node has the files that tasks read."""
    missing = {
        node: f"no {few(report['missing_inputs'])}"
        for node, report in _reports(answers).items()
        if report["missing_inputs"]
    }
    if missing:
        advice = "give URLs, or paths on a file system that all nodes share"
        return Check("inputs on nodes", "fail", by_problem(missing), advice)
    return Check("inputs on nodes", "ok", f"{len(inputs):,} local paths, seen by every node")


def check_clocks(answers: Sequence[NodeAnswer]) -> Check:
    """Leases and the times in logs need clocks that agree."""
    skewed = {
        node.name: f"{abs(node.skew_seconds):.1f} s "
        f"{'ahead' if node.skew_seconds > 0 else 'behind'}"
        for node in answers
        if abs(node.skew_seconds) > SOME_SECONDS
    }
    if not skewed:
        return Check("clocks", "ok", f"within {SOME_SECONDS:g} s of this machine's")
    worst = max(abs(node.skew_seconds) for node in answers)
    advice = "run an NTP service (chrony, systemd-timesyncd) on every node"
    return Check("clocks", "fail" if worst > MANY_SECONDS else "warn", by_problem(skewed), advice)


def check_room(answers: Sequence[NodeAnswer], settings: ClusterSettings) -> Check:
    """How many tasks of the configured size run side by side."""
    name = "room for tasks"
    largest = max(node.memory_bytes for node in answers)
    # a task asks for no more than the largest node has
    memory = max(min(settings.task_memory_bytes, largest), 1)
    rooms = [_tasks_at_once(node, settings, memory) for node in answers]
    if not sum(rooms):
        found = f"no node has {settings.cpus_per_worker} CPUs: a run would wait for ever"
        return Check(name, "fail", found, "lower `cluster.cpus_per_worker`, or add larger nodes")
    if settings.gpus_per_worker > max(node.gpus for node in answers):
        found = f"no node has {settings.gpus_per_worker:g} GPUs: training would wait for ever"
        advice = "lower `cluster.gpus_per_worker`, or start Ray there with --num-gpus"
        return Check(name, "fail", found, advice)
    if settings.task_memory_bytes > largest:
        found = (
            f"`cluster.task_memory` is {settings.task_memory_bytes / 1e9:.1f} GB, the largest node "
            f"has {largest / 1e9:.1f} GB for tasks"
        )
        return Check(name, "warn", found, "tasks get less memory; lower it, or add larger nodes")
    if sum(rooms) < settings.workers:
        found = f"{sum(rooms):,} tasks at once, `cluster.workers` is {settings.workers:,}"
        return Check(name, "warn", found, "the rest waits; lower `workers`, or add nodes")
    return Check(name, "ok", f"{sum(rooms):,} tasks at once, {settings.workers:,} are asked for")


def _tasks_at_once(node: NodeAnswer, settings: ClusterSettings, memory_bytes: float) -> int:
    return min(int(node.cpus // settings.cpus_per_worker), int(node.memory_bytes // memory_bytes))


def node_rows(answers: Sequence[NodeAnswer]) -> Iterator[Check]:
    """A line for every node, for scripts."""
    for node in answers:
        size = f"{node.cpus:g} CPUs, {node.gpus:g} GPUs"
        if node.report is None:
            yield Check(f"node {node.name}", "fail", f"{size}; {node.problem}")
            continue
        report = node.report
        packages = ", ".join(f"{name} {found}" for name, found in report["versions"].items())
        yield Check(
            f"node {node.name}",
            "ok",
            f"{size}, {report['memory_bytes'] / 1e9:.1f} GB memory; cache {report['cache']}, "
            f"{report['cache_free_bytes'] / 1e9:.1f} GB free; {packages}",
        )


def _reports(answers: Sequence[NodeAnswer]) -> dict[str, NodeReport]:
    return {node.name: node.report for node in answers if node.report is not None}
