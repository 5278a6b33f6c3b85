# SPDX-License-Identifier: GPL-3.0-or-later

"""Installs operators through OLM: creates the required objects, approves only the requested InstallPlans, and waits on
watches of the API server.
"""

from __future__ import annotations

import contextlib
import dataclasses
import typing

from ..._analysis.controllers.olm.progress import judge
from ..._analysis.controllers.olm.state import Next, OlmState, Place, list_uncounted, subscription_of
from ..._model.base.errors import RdmaError
from ..._model.base.phrases import describe_unread_remedy
from ..._model.base.text import cut_plain
from ..._model.kubernetes.apply import AppliedObject
from ..._model.operators.drivers import UpgradeEffect
from ..._model.operators.olm import GROUP, DesiredOperator, OlmFacts, OperatorStatus
from ..._observe.kubernetes.apply import apply_all
from ..._observe.kubernetes.client import Cluster
from ..._observe.kubernetes.errors import ApiError
from ..._observe.kubernetes.outcome import Outcome
from ..._observe.kubernetes.patience import LONGEST, may_retry
from ..._observe.kubernetes.shell import Clock
from ..._observe.operators import olm as observe
from ..._observe.operators.operator_namespaces import find_absent, refuse_package, try_to_refuse
from ..._plan.olm import Arranged, list_upgrades, plan_operator_objects
from ..cluster.state_lines import StateLines
from ..cluster.watch import WatchFeed, take_settled
from .read_olm import KINDS, SELECTORS, list_subscription_namespaces, read_olm, take
from .upgrade_effect import AskUpgrade, UpgradeGate

_RIGHTS = "Give the user of the kubeconfig the rights of docs/rbac/operators-olm.yml"
#: seconds for which news is gathered before it is judged
SETTLE_SECONDS = 0.1
#: how old what is not watched may get while it explains something: pods, addresses of webhooks
LOOK_SECONDS = 5.0
#: between two times that OLM is asked to look at a Subscription again
AGAIN_SECONDS = 10.0
#: of our Subscriptions: OLM looks at one that changes
AGAIN = "linerate.rdma/look-again"

Say = typing.Callable[[str], None]
Answer = tuple[OlmFacts, tuple[Outcome, ...]]


def refuse_without_olm(cluster: Cluster) -> None:
    """Verify that the API server serves the kinds of OLM.

    :raises RdmaError: the cluster has no OLM
    """
    if not cluster.serves(GROUP):
        remedy = "Install OLM (operator-sdk olm install), or install the operators by Helm"
        raise RdmaError(f"the API server does not serve {GROUP}: the cluster has no OLM", remedy)


class Installer:
    """A client that installs operators through OLM, or predicts the installation in check mode.

    :param cluster: client of the API server
    :param clock: function that returns the time of a monotonic clock, in seconds
    :param pause: function that sleeps for a number of seconds
    :param say: function that shows a line of progress to the user. It is called whenever the state of an operator
        changes
    :param stamp: function that returns a different text on each call. The text is written to a failed Subscription so
        that OLM retries it
    :param haste: divisor of all waiting times
    :param trusted: names of namespaces that are used without an examination of the rights in them
    :param ask: function that reads on which nodes an upgrade restarts a driver, and what is against it. It is called
        before the first write, and again right before the InstallPlan is approved
    """

    def __init__(
        self,
        cluster: Cluster,
        clock: Clock,
        pause: typing.Callable[[float], None],
        say: Say,
        stamp: typing.Callable[[], str],
        haste: float = 1.0,
        trusted: typing.Container[str] = (),
        ask: AskUpgrade = lambda _upgrade: UpgradeEffect(),
    ) -> None:
        self._cluster, self._clock, self._pause = cluster, clock, pause
        self._say, self._stamp, self._haste = say, stamp, haste
        self._trusted, self._gate = trusted, UpgradeGate(ask)
        #: InstallPlans that must not be approved now, each with the reason and the remedy
        self._held: dict[Place, tuple[str, str]] = {}
        self._outcomes: list[Outcome] = []
        #: of each package: the kind of its trouble, and since when
        self._since: dict[str, tuple[str, float]] = {}
        #: what was read, or asked for, and when
        self._read: dict[tuple[str, str, str], float] = {}
        #: InstallPlans that were approved; an error where that was refused
        self._approved: dict[Place, str] = {}
        #: InstallPlans whose approval is sent again: the temporary error, and the time of the next attempt
        self._delayed: dict[Place, tuple[str, float]] = {}
        self._lines = StateLines(say)

    def run(self, wishes: typing.Sequence[DesiredOperator], check_mode: bool, limit: float) -> Answer:
        """Install the operators, or predict the installation in check mode. Return the state of each operator in the
        order of ``wishes``, and the changes of objects.

        :param wishes: requested operators
        :param check_mode: whether nothing is changed
        :param limit: longest wait in seconds
        :raises RdmaError: the cluster has no OLM, or its state cannot be read
        """
        refuse_without_olm(self._cluster)
        seen = read_olm(self._cluster, wishes)
        for wish in wishes:
            for place in list_uncounted(wish, seen):
                self._say(
                    f"0 s  {wish.package}: Subscription {place} is ignored because it has installed nothing and is not"
                    f" in namespace {wish.namespace}"
                )
        absent = find_absent(self._cluster, [wish.namespace for wish in wishes])
        untrusted = dict(self._find_untrusted_namespaces(wishes, seen))
        arranged = plan_operator_objects(wishes, seen, untrusted, self._gate.read(list_upgrades(wishes, seen)))
        self._outcomes = list(apply_all(self._cluster, arranged.objects, check_mode, self._clock, self._pause, absent))
        refused = {stand.package: stand for stand in (*arranged.refused, *self._not_made(arranged))}
        rest = [wish for wish in arranged.waited_for if wish.package not in refused]
        for stand in refused.values():
            self._report_status_change(stand, 0.0)
        stands = (
            self._predict_operator_states(rest, seen) if check_mode else self._wait_for_operators(rest, seen, limit)
        )
        found = {**refused, **{stand.package: stand for stand in stands}}
        return OlmFacts(tuple(found[wish.package] for wish in wishes)), tuple(self._outcomes)

    def _find_untrusted_namespaces(
        self, wishes: typing.Sequence[DesiredOperator], seen: OlmState
    ) -> typing.Iterator[tuple[str, str]]:
        """Examine each namespace in which objects would be created. Yield the name of each namespace in which other
        users could misuse these objects, with the reason.

        :param wishes: requested operators
        :param seen: objects of OLM in the cluster, as last read
        :raises ApiError: the API server cannot be reached
        """
        for wish in wishes:
            there = subscription_of(wish, seen)
            if wish.namespace not in self._trusted and (there is None or there.ours):
                packages = [other.package for other in wishes if other.namespace == wish.namespace]
                beside = [
                    item
                    for item in seen.subscriptions.values()
                    if item.namespace == wish.namespace and item.package in packages
                ]
                installed = any((item.namespace, item.installed) in seen.versions for item in beside)
                why = try_to_refuse(refuse_package, self._cluster, wish.namespace, packages, installed)
                if why:
                    yield wish.namespace, cut_plain(why)

    def _not_made(self, arranged: Arranged) -> typing.Iterator[OperatorStatus]:
        """Yield a status ``failed`` for each operator for which the API server refused an object.

        :param arranged: plan of the installation
        """
        for wish in arranged.waited_for:
            for outcome in self._outcomes:
                applied = outcome.applied
                shared = applied.kind != "Subscription" and wish.namespace in (applied.namespace, applied.name)
                if applied.action == "refused" and (shared or applied.fabric == wish.package):
                    why = f"the API server rejected {applied.kind} {applied.name}: {applied.refusal}"
                    remedy = (
                        "Correct the error in this message, or give the user of the kubeconfig the rights of"
                        " docs/rbac/operators-olm.yml, then run stage operators again"
                    )
                    yield OperatorStatus(wish.package, wish.namespace, "failed", why, remedy)
                    break

    def _predict_operator_states(
        self, wishes: typing.Sequence[DesiredOperator], seen: OlmState
    ) -> typing.Iterator[OperatorStatus]:
        """Yield the state that each operator would have right after its objects were applied, in the order of
        ``wishes``. No change is awaited. An InstallPlan that would be approved is added to the changes.

        :param wishes: requested operators
        :param seen: objects of OLM in the cluster, as last read
        """
        changed = {outcome.applied.fabric for outcome in self._outcomes if outcome.changed}
        nexts = judge(wishes, seen)
        for step, (wish, explained) in zip(
            nexts, zip(wishes, judge(wishes, self._read_due_details(nexts, seen, self._clock())))
        ):
            stand = explained.stand
            if step.approve:
                self._outcomes.append(self._build_approval_outcome(step))
                detail = f"InstallPlan {stand.namespace}/{step.approve} would be approved"
                yield dataclasses.replace(stand, phase="planned", detail=detail + self._gate.describe(wish.package))
            elif wish.package in changed:
                detail = "its objects would be created or changed; the result of OLM cannot be predicted"
                yield dataclasses.replace(stand, phase="planned", detail=detail + self._gate.describe(wish.package))
            else:
                yield stand

    def _wait_for_operators(
        self, wishes: typing.Sequence[DesiredOperator], seen: OlmState, limit: float
    ) -> tuple[OperatorStatus, ...]:
        """Wait until each operator is ready or has failed, at most ``limit`` seconds. Return the status of each
        operator.

        :param wishes: requested operators
        :param seen: state of OLM, from which the packages of the catalogs are used
        :param limit: longest wait in seconds
        """
        if not wishes:
            return ()
        only = {"Subscription": observe.of_namespaces(list_subscription_namespaces(wishes, seen))}
        feed = WatchFeed(self._cluster, {}, tuple(KINDS), selectors=SELECTORS, only=only)
        feed.start()
        with contextlib.ExitStack() as stack:
            stack.callback(feed.stop)
            return self._follow_operators(feed, wishes, OlmState(packages=seen.packages), limit)

    def _follow_operators(
        self, feed: WatchFeed, wishes: typing.Sequence[DesiredOperator], seen: OlmState, limit: float
    ) -> tuple[OperatorStatus, ...]:
        start, unread = self._clock(), dict.fromkeys(KINDS, "no response yet")
        while True:
            now = self._clock()
            nexts = judge(wishes, seen) if not unread else ()
            stands = tuple(self._judge_operator(step, now) for step in nexts)
            for stand in stands:
                self._report_status_change(stand, now - start)
            if nexts and all(stand.phase != "waiting" for stand in stands):
                return stands
            if now - start >= limit:
                return stands or tuple(_build_unread_status(wish, unread) for wish in wishes)
            for step in nexts:
                self._act_on_operator(step, now)
            explained = self._read_due_details(nexts, seen, now)
            if explained != seen:
                seen = explained
                continue
            first = feed.get(min(self._compute_wake_delay(nexts, now), start + limit - now))
            for change in take_settled(feed, first, SETTLE_SECONDS, self._clock):
                if change.action != "error":
                    seen = take(seen, change)
                    unread.pop(change.kind, None)
                elif change.kind in unread:
                    unread[change.kind] = change.error

    def _judge_operator(self, step: Next, now: float) -> OperatorStatus:
        """Return the state of an operator. If its InstallPlan cannot be approved, or a problem has lasted longer than
        its limit, the state is ``failed``.

        :param step: judgement of the operator: its state, its problem and what to do next
        :param now: monotonic time in seconds
        """
        stand, trouble, place = step.stand, step.trouble, (step.stand.namespace, step.approve)
        refusal = self._approved.get(place, "")
        if refusal:
            remedy = f"{describe_unread_remedy((refusal,), _RIGHTS)}. Then run stage operators again"
            return dataclasses.replace(
                stand, phase="failed", detail=f"InstallPlan {step.approve} cannot be approved: {refusal}", remedy=remedy
            )
        if place in self._held:
            why, remedy = self._held[place]
            return dataclasses.replace(stand, phase="failed", detail=why, remedy=remedy)
        if place in self._delayed:
            why = f"InstallPlan {step.approve} could not be approved yet: {self._delayed[place][0]}"
            stand = dataclasses.replace(stand, detail=f"{stand.detail}; {why}")
        if trouble is None:
            self._since.pop(stand.package, None)
            return stand
        kind, since = self._since.get(stand.package, ("", now))
        if kind != trouble.kind:
            since = now
        self._since[stand.package] = (trouble.kind, since)
        lasted = trouble.patience is not None and now - since >= trouble.patience / self._haste
        return dataclasses.replace(stand, phase="failed") if lasted else stand

    def _compute_wake_delay(self, nexts: typing.Iterable[Next], now: float) -> float:
        """Return the seconds until the caller must judge again: until the next read of details is due, or until a
        problem of an operator has lasted so long that it counts as a failure.

        :param nexts: judgement of each operator
        :param now: monotonic time in seconds
        """
        due = [LOOK_SECONDS / self._haste]
        for step in nexts:
            if step.trouble is not None and step.trouble.patience is not None:
                due.append(self._since[step.stand.package][1] + step.trouble.patience / self._haste - now)
        # one that has failed already waits for the others
        return max(0.01, min(item for item in due if item > 0))

    def _act_on_operator(self, step: Next, now: float) -> None:
        """Approve the requested InstallPlan of an operator. If OLM would not retry a failed Subscription by itself,
        also make it retry. A refusal is recorded and shown by the next judgement.

        :param step: judgement of the operator: its state, its problem and what to do next
        :param now: monotonic time in seconds
        """
        stand, place = step.stand, (step.stand.namespace, step.approve)
        is_due = now >= self._delayed.get(place, ("", now))[1]
        if step.approve and is_due and place not in self._approved and place not in self._held:
            try:
                refusal = self._gate.ask_again(stand.namespace)
                if refusal is not None:
                    self._held[place] = refusal
                    return
                self._cluster.patch("InstallPlan", *place, {"spec": {"approved": True}})
                self._approved[place] = ""
                self._delayed.pop(place, None)
                self._outcomes.append(self._build_approval_outcome(step))
            except ApiError as error:
                if error.status == 0:
                    return
                if error.reason == "Conflict" or may_retry(error, "patch", ""):
                    pause = max(LOOK_SECONDS, min(error.retry_after, LONGEST)) / self._haste
                    self._delayed[place] = (error.no_answer, now + pause)
                    return
                self._approved[place] = error.no_answer
        if step.again and self._is_due("again", *_split_namespaced_name(stand.subscription), AGAIN_SECONDS, now):
            with contextlib.suppress(ApiError):
                self._cluster.patch(
                    "Subscription",
                    *_split_namespaced_name(stand.subscription),
                    {"metadata": {"annotations": {AGAIN: self._stamp()}}},
                )

    @staticmethod
    def _build_approval_outcome(step: Next) -> Outcome:
        def plan(approved: bool) -> dict[str, typing.Any]:
            return {
                "kind": "InstallPlan",
                "metadata": {"name": step.approve, "namespace": step.stand.namespace},
                "spec": {"approved": approved},
            }

        applied = AppliedObject("InstallPlan", step.approve, step.stand.namespace, step.stand.package, "changed")
        return Outcome(applied, plan(False), plan(True))

    def _is_due(self, what: str, namespace: str, name: str, seconds: float, now: float) -> bool:
        last = self._read.get((what, namespace, name))
        if last is not None and now - last < seconds / self._haste:
            return False
        self._read[(what, namespace, name)] = now
        return True

    def _read_due_details(self, nexts: typing.Iterable[Next], seen: OlmState, now: float) -> OlmState:
        """Return the state of OLM, completed with those pods and webhook services whose reading is due. These details
        explain why an operator is not ready.

        :param nexts: judgement of each operator
        :param seen: objects of OLM in the cluster, as last read
        :param now: monotonic time in seconds
        """
        pods, served = dict(seen.pods), dict(seen.served)
        for step in nexts:
            for namespace in step.pods:
                if self._is_due("pods", namespace, "", LOOK_SECONDS, now):
                    pods[namespace] = observe.read_pods(self._cluster, namespace)
            for place in step.services:
                if not served.get(place) and self._is_due("service", *place, LOOK_SECONDS, now):
                    with ignore_unreachable():
                        served[place] = observe.is_served(self._cluster, *place)
        return dataclasses.replace(seen, pods=pods, served=served)

    def _report_status_change(self, stand: OperatorStatus, seconds: float) -> None:
        self._lines.tell(stand.package, f"{stand.package} {stand.phase}: {stand.detail}", seconds)


@contextlib.contextmanager
def ignore_unreachable() -> typing.Iterator[None]:
    """Return a context manager that ignores the error that the API server cannot be reached. The body then ends early,
    and the caller keeps the last known state.

    :raises ApiError: the API server answered and refused a request
    """
    try:
        yield
    except ApiError as error:
        if error.status != 0:
            raise


def _split_namespaced_name(place: str) -> Place:
    namespace, _slash, name = place.partition("/")
    return namespace, name


def _build_unread_status(wish: DesiredOperator, unread: typing.Mapping[str, str]) -> OperatorStatus:
    why = (
        f"the OLM objects could not be read: {'; '.join(f'{kind}: {error}' for kind, error in sorted(unread.items()))}"
    )
    return OperatorStatus(
        wish.package,
        wish.namespace,
        "waiting",
        why,
        f"{describe_unread_remedy(unread.values(), f'Check the kubeconfig. {_RIGHTS}')}. Then run stage operators"
        " again",
    )
