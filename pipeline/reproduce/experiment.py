"""The schema of an experiment file: which pipelines make a table, and what the paper has there."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from peg_core.errors import nearest_hint
from pipeline.config.field_types import Count, Section, Text

# Names are parts of the names of cells, those of graphs also folders.
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._+-]*$")]
Settings = dict[str, Any]
Figures = dict[str, dict[Name, float]]
Measure = Literal["edge_weights", "eigenvalues"]


def require_known(where: str, names: Collection[Any], known: Collection[Any]) -> None:
    """Refuse names that nothing has, in the list at the key ``where``."""
    for name in names:
        if name not in known:
            raise ValueError(
                f"`{where}` names {name!r}; known: {', '.join(map(str, known))}"
                f"{nearest_hint(str(name), [str(item) for item in known])}"
            )


class GraphEntry(Section):
    """A graph, or a pair of them: one to learn from and one to test on."""

    title: Text | None = Field(None, description="What tables call it; none: its name.")
    settings: Settings = Field({}, description="Settings of its pipelines, `graph` above all.")


class MethodEntry(Section):
    """A row of the table."""

    title: Text | None = Field(None, description="What tables call it; none: its name.")
    baseline: bool = Field(False, description="Whether it is what others are compared with.")
    paper: Text | None = Field(
        None,
        description="Row of `paper` that it is compared with, with its features or without; none: "
        "the one of its name.",
    )
    features: list[Name] | None = Field(
        None, min_length=1, description="Names of `features`; none: all."
    )
    graphs: list[Name] | None = Field(
        None, min_length=1, description="Names of `graphs`; none: all."
    )
    settings: Settings = Field({}, description="Settings of its pipelines.")
    on_graph: dict[Name, Settings] = Field({}, description="More of them, for single graphs.")


class Variation(Section):
    """A setting that every method is run with several values of; its curve is a figure."""

    title: Text = Field(description="What the axis of the figure is called.")
    key: Text = Field(description="Path of the setting, such as encodings.0.dimensions.")
    values: list[int | float] = Field(min_length=1, description="Its values.")


class PaperFigures(Section):
    """What the paper prints, in percent: by `method/features`, then by graph."""

    methods: Figures = Field({}, description="Of its own methods.")
    baselines: Figures = Field({}, description="Of what it compares them with.")

    @property
    def rows(self) -> Figures:
        """All of them."""
        return {**self.baselines, **self.methods}


class QuickEntry(Section):
    """What makes the grid small enough to be run wherever the program is tested."""

    graphs: list[Name] | None = Field(None, min_length=1, description="None: all.")
    methods: list[Name] | None = Field(None, min_length=1, description="None: all.")
    features: list[Name] | None = Field(None, min_length=1, description="None: all.")
    values: list[int | float] | None = Field(None, min_length=1, description="None: all.")
    splits: Count = Field(1, description="Number of splits.")
    settings: Settings = Field({}, description="Settings of all pipelines, after all others.")


class Catalogue(Section):
    """What several experiments share; each takes what it names."""

    graphs: dict[Name, GraphEntry] = Field({}, description="Columns of their tables.")
    features: dict[Name, Settings] = Field({}, description="Sections `features` by name.")
    methods: dict[Name, MethodEntry] = Field({}, description="Rows of their tables.")

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        for name, method in self.methods.items():
            require_known(f"methods.{name}.on_graph", method.on_graph, self.graphs)
        return self


class Experiment(Section):
    """A grid of graphs, methods, features and splits; every cell of it is one pipeline."""

    experiment: Text = Field(description="Title of its section on the page.")
    about: str = Field("", description="What it shows, and how to read it.")
    catalogue: Text | None = Field(
        None,
        description="File beside this one with graphs, features and methods, which may then be "
        "lists of names.",
    )
    pipeline: Text | None = Field(
        None, description="Pipeline file beside this one, whose settings all cells start from."
    )
    metric: Text = Field("auc", description="What the table shows, and what `paper` has.")
    protocol: Text = Field("random", description="Which protocol of the evaluation it is of.")
    splits: Count = Field(5, description="Number of splits: the next seed of split and training.")
    same_split: bool = Field(
        False, description="Whether the split is given, and only the training has other seeds."
    )
    settings: Settings = Field({}, description="Settings of all pipelines.")
    graphs: dict[Name, GraphEntry] = Field(min_length=1, description="Columns of the table.")
    features: dict[Name, Settings] = Field(
        {"N": {}}, min_length=1, description="By name, the section `features` of a pipeline."
    )
    methods: dict[Name, MethodEntry] = Field(min_length=1, description="Rows of the table.")
    vary: Variation | None = Field(None, description="A setting that takes several values.")
    measures: list[Measure] = Field([], description="What else is looked at, each with a figure.")
    paper: PaperFigures = PaperFigures()
    quick: QuickEntry = QuickEntry()

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        for where, names, known in self._named():
            require_known(where, names, known)
        if self.quick.values and self.vary is None:
            raise ValueError("`quick.values` needs `vary`; leave it out")
        return self

    def _named(self) -> Iterator[tuple[str, Collection[Any], Collection[Any]]]:
        """Every list of names: the key that holds it, the names, and those there are."""
        for name, method in self.methods.items():
            yield f"methods.{name}.features", method.features or (), self.features
            yield f"methods.{name}.graphs", method.graphs or (), self.graphs
            if self.catalogue is None:  # its methods may know graphs that are not wanted here
                yield f"methods.{name}.on_graph", method.on_graph, self.graphs
        quick = self.quick
        yield "quick.graphs", quick.graphs or (), self.graphs
        yield "quick.methods", quick.methods or (), self.methods
        yield "quick.features", quick.features or (), self.features
        if self.vary is not None:
            yield "quick.values", quick.values or (), self.vary.values
        for kind, figures in (("methods", self.paper.methods), ("baselines", self.paper.baselines)):
            for row, by_graph in figures.items():
                yield f"paper.{kind}.{row}", by_graph, self.graphs

    def graph_title(self, graph: str) -> str:
        return self.graphs[graph].title or graph

    def method_title(self, method: str) -> str:
        return self.methods[method].title or method

    def paper_row(self, method: str, features: str) -> str:
        """Where the paper's figures of a method stand, if they do."""
        name = self.methods[method].paper or method
        return name if name in self.paper.rows else f"{name}/{features}"

    def paper_figure(self, method: str, features: str, graph: str) -> float | None:
        """What the paper has in a cell, as a share."""
        row: Mapping[str, float] = self.paper.rows.get(self.paper_row(method, features), {})
        return row[graph] / 100 if graph in row else None
