# SPDX-License-Identifier: GPL-3.0-or-later

"""Call a function for many items, such as pods or BMCs, in parallel."""

from __future__ import annotations

import concurrent.futures
import typing

from ..._model.base.errors import RdmaError

Item = typing.TypeVar("Item")
Result = typing.TypeVar("Result")
Error = typing.TypeVar("Error", bound=RdmaError)


def iterate_outcomes(
    work: typing.Callable[[Item], Result],
    items: typing.Iterable[Item],
    parallel: int,
    error: type[Error],
    unforeseen: typing.Optional[typing.Callable[[Item, Exception], Error]] = None,
) -> typing.Iterator[tuple[Item, typing.Union[Result, Error]]]:
    """Call ``work`` for each item, several at a time. Yield each item with its result, or with the error that ``work``
    raised, in the order of completion.

    A caller that leaves the iterator early does not wait: no further item is started, and running ones are abandoned.

    :param work: function that gets an item and returns its result
    :param items: items, one for each call
    :param parallel: number of items at once
    :param error: type of the exceptions of ``work`` that are yielded
    :param unforeseen: function that gets an item and any other exception of ``work``, and returns the error to yield,
        so that one item does not affect the others. None: such an exception ends the iterator
    """
    pool = concurrent.futures.ThreadPoolExecutor(max_workers=max(1, parallel))
    try:
        tasks = {pool.submit(work, item): item for item in items}
        for done in concurrent.futures.as_completed(tasks):
            # not kept: a thousand results may be large
            item = tasks.pop(done)
            try:
                outcome: typing.Union[Result, Error] = done.result()
            except error as raised:
                outcome = raised
            except Exception as raised:
                if unforeseen is None:
                    raise
                outcome = unforeseen(item, raised)
            yield item, outcome
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
