import pickle

import pytest

from peg_core.errors import GraphTooSmall, InputError, LeakFound, PegError, nearest_hint

EXAMPLES = [
    InputError.missing_column("edges.parquet", "srx", ["src", "dst"]),
    InputError.null_value("edges.parquet", "src", row_group=1, row=7, count=3),
    GraphTooSmall.for_encoding(needed=10, found=3),
    LeakFound.of(part="test", found_in="the training graph", count=2),
]


@pytest.mark.parametrize("error", EXAMPLES, ids=lambda error: type(error).__name__)
def test_errors_survive_pickling_with_their_message(error):
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert str(again) == str(error)
    assert isinstance(again, PegError)


def test_a_missing_column_names_the_file_the_columns_and_the_nearest():
    assert str(EXAMPLES[0]) == (
        "edges.parquet has no column 'srx'; it has 'src', 'dst'; did you mean 'src'?"
    )


def test_nothing_near_gives_no_hint():
    assert nearest_hint("zebra", ["src", "dst"]) == ""
