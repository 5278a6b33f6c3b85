# SPDX-License-Identifier: GPL-3.0-or-later

"""Work on many things at once, such as pods or BMCs."""

from __future__ import annotations

import concurrent.futures
import typing

from ..._model.base.errors import RdmaError

Item = typing.TypeVar("Item")
Result = typing.TypeVar("Result")
Error = typing.TypeVar("Error", bound=RdmaError)


def outcomes(
    work: typing.Callable[[Item], Result],
    items: typing.Iterable[Item],
    parallel: int,
    error: type[Error],
    unforeseen: typing.Optional[typing.Callable[[Item, Exception], Error]] = None,
) -> typing.Iterator[tuple[Item, typing.Union[Result, Error]]]:
    """Each item with its result, or with the error that ``work`` raised, in the order in which they end.

    Who leaves the iterator early waits for none of them: it starts no more, and those that run are left.

    :param parallel: items at once
    :param error: that is an outcome
    :param unforeseen: makes an outcome of any other exception, so that the data of one item does not end the others;
        without it, that ends the iterator
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
