import numpy as np
import pytest

from peg_core.training.link_schedule import LinkSchedule, Share

ROUNDS = 3


def non_links(step):
    """Rounds of non-links, [rounds, num_links, 2]."""
    pairs = np.stack([step.source, step.target], axis=1)[step.num_links :]
    return pairs.reshape(-1, step.num_links, 2)


@pytest.mark.parametrize("kind", ["uniform", "degree", "hard"])
def test_every_link_has_its_number_of_non_links_none_of_them_an_edge(split, kind):
    schedule = LinkSchedule(
        split, folds=4, seed=0, batch_size=20, negatives=kind, negatives_per_link=ROUNDS
    )
    for step in schedule.epoch(0):
        found = non_links(step)
        assert found.shape == (ROUNDS, step.num_links, 2)
        assert not split.train_graph().contains(*found.reshape(-1, 2).T).any()
        assert len({found[number].tobytes() for number in range(ROUNDS)}) == ROUNDS


def test_one_non_link_a_link_is_the_first_of_several(split):
    few, many = (
        LinkSchedule(split, folds=4, seed=0, batch_size=20, negatives_per_link=count)
        for count in (1, ROUNDS)
    )
    for first, second in zip(few.epoch(1), many.epoch(1), strict=True):
        np.testing.assert_array_equal(non_links(first)[0], non_links(second)[0])


def test_shares_of_a_step_are_its_links_and_non_links(split):
    def steps(share):
        schedule = LinkSchedule(
            split, folds=4, seed=0, share=share, batch_size=20, negatives_per_link=ROUNDS
        )
        return list(schedule.epoch(0))

    whole = steps(Share())
    parts = [steps(Share(rank, 2)) for rank in (0, 1)]
    for number, step in enumerate(whole):
        for rank in (0, 1):
            np.testing.assert_array_equal(
                non_links(parts[rank][number]), non_links(step)[:, rank::2]
            )
