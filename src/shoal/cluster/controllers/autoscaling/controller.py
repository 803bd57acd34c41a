"""The reconcile of a HorizontalPodAutoscaler: reads metrics, decides on a size, and sets it."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta

import msgspec

from shoal.api.autoscaling import (
    ABLE_TO_SCALE,
    HORIZONTAL_POD_AUTOSCALERS,
    SCALING_ACTIVE,
    SCALING_LIMITED,
    HorizontalPodAutoscaler,
    MetricStatus,
)
from shoal.api.meta import (
    Condition,
    ConditionStatus,
    InvalidSelector,
    Selector,
    find_condition,
    now,
    parse_quantity,
    set_condition,
)
from shoal.cluster.controllers.autoscaling.limits import History, normalized
from shoal.cluster.controllers.autoscaling.metrics import Metrics
from shoal.cluster.controllers.autoscaling.proposals import MetricFailed, Target, Wish, wish_of
from shoal.cluster.controllers.autoscaling.replicas import Readiness, Tolerance
from shoal.cluster.controllers.scales import Scale, Scales, Sized, UnknownKind
from shoal.cluster.controllers.selections import Selections
from shoal.cluster.indexes import all_pods
from shoal.kube import About, ApiError, ConnectionFault, Key, Manager, Requeue


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What autoscalers have in common."""

    sync_period: float
    tolerance: float
    downscale_stabilization: timedelta
    cpu_initialization_period: timedelta
    initial_readiness_delay: timedelta


@dataclass
class Round:
    """One look at an autoscaler: what it is found to be, and what there is to tell."""

    autoscaler: HorizontalPodAutoscaler
    now: datetime
    conditions: list[Condition]
    current: int = 0
    metrics: list[MetricStatus] | None = None
    warnings: list[tuple[str, str]] = field(default_factory=list)

    def set(self, type: str, status: ConditionStatus, reason: str, message: str) -> None:  # noqa: A002
        """Sets a condition."""
        new = Condition(type=type, status=status, reason=reason, message=message)
        self.conditions = set_condition(self.conditions, new, self.now)

    def says_the_same(self, type: str) -> bool:  # noqa: A002 - the wire's own word
        """Whether a condition gives the reason that the object gave before this look."""
        before = find_condition(self.autoscaler.status.conditions, type)
        after = find_condition(self.conditions, type)
        return before is not None and after is not None and before.reason == after.reason


class StopHere(Exception):
    """Nothing can be decided this time; what is to be said has been noted."""


class Autoscaling:
    """Keeps targets at the sizes that their metrics ask for."""

    def __init__(self, manager: Manager, settings: Settings) -> None:
        self._settings = settings
        self._autoscalers = manager.cache.informer(HORIZONTAL_POD_AUTOSCALERS)
        self._writer = manager.writer("horizontal-pod-autoscaler")
        self._events = manager.events
        self._selections = Selections(all_pods(manager))
        self._scales = Scales(manager.client)
        self._metrics = Metrics(manager.client, self._scales)
        self._histories: dict[Key, History] = {}

    async def reconcile(self, key: Key) -> Requeue | None:
        """Looks at one autoscaler, and again after the period."""
        autoscaler = self._autoscalers.store.get(key)
        if autoscaler is None:
            self._histories.pop(key, None)
            self._selections.drop(key)
            return None
        this = Round(autoscaler, now(), autoscaler.status.conditions, autoscaler.status.current_replicas)
        this.metrics = autoscaler.status.current_metrics
        try:
            sized, scale = await self._scale(this)
            await self._size(this, sized, scale)
        except StopHere:
            await self._write(this, desired=autoscaler.status.desired_replicas, is_rescaled=False)
        return Requeue(after=self._settings.sync_period)

    async def _scale(self, this: Round) -> tuple[Sized, Scale]:
        """The size of the target as it is."""
        spec = this.autoscaler.spec.scale_target_ref
        try:
            sized = await self._scales.kind(spec.api_version or "v1", spec.kind)
            scale = await self._scales.read(sized, spec.name, this.autoscaler.metadata.namespace)
        except (UnknownKind, ApiError, ConnectionFault) as error:
            words = _words(error)
            this.set(
                ABLE_TO_SCALE,
                "False",
                "FailedGetScale",
                f"the HPA controller was unable to get the target's current scale: {words}",
            )
            if not this.says_the_same(ABLE_TO_SCALE):
                this.warnings.append(("FailedGetScale", words))
            raise StopHere from error
        this.set(
            ABLE_TO_SCALE,
            "True",
            "SucceededGetScale",
            "the HPA controller was able to get the target's current scale",
        )
        return sized, scale

    async def _size(self, this: Round, sized: Sized, scale: Scale) -> None:
        """Decides on a size and sets it."""
        spec = this.autoscaler.spec
        key = Key(this.autoscaler.metadata.namespace, this.autoscaler.metadata.name)
        current = this.current = scale.spec.replicas
        history = self._histories.setdefault(key, History())
        history.begin(current, this.now)
        minimum = 1 if spec.min_replicas is None else spec.min_replicas
        this.metrics = None
        desired, reason = current, ""
        if current == 0:
            this.set(
                SCALING_ACTIVE,
                "False",
                "ScalingDisabled",
                "scaling is disabled since the replica count of the target is zero",
            )
        elif current > spec.max_replicas:
            desired, reason = spec.max_replicas, "Current number of replicas above Spec.MaxReplicas"
        elif current < minimum:
            desired, reason = minimum, "Current number of replicas below Spec.MinReplicas"
        else:
            wish = await self._wish(this, scale, key)
            reason = _reason(wish, current)
            result = normalized(
                wish.replicas,
                current=current,
                minimum=minimum,
                maximum=spec.max_replicas,
                behavior=spec.behavior,
                history=history,
                downscale_window=self._settings.downscale_stabilization,
                now=this.now,
            )
            desired = result.replicas
            this.set(ABLE_TO_SCALE, "True", result.able.reason, result.able.message)
            limited: ConditionStatus = "True" if result.is_limited else "False"
            this.set(SCALING_LIMITED, limited, result.limit.reason, result.limit.message)
        is_rescaled = desired != current
        if is_rescaled:
            await self._rescale(this, sized, desired, reason)
            history.changed(current, desired, this.now)
        await self._write(this, desired=desired, is_rescaled=is_rescaled)

    async def _wish(self, this: Round, scale: Scale, key: Key) -> Wish:
        """The largest size that one of the metrics asks for."""
        target = self._target(this, scale, key)
        specs = this.autoscaler.spec.metrics
        found = this.metrics = [MetricStatus() for _ in specs]
        failures: list[MetricFailed] = []
        best: Wish | None = None
        for number, spec in enumerate(specs):
            try:
                wish = await wish_of(spec, target, self._metrics)
            except MetricFailed as failure:
                failures.append(failure)
                continue
            found[number] = wish.status
            if best is None or wish.replicas > best.replicas:
                best = wish
        told = [(failure.reason, failure.problem) for failure in failures]
        # With a part of the metrics missing nothing is made smaller: what is missing may ask for more.
        if best is None or (failures and best.replicas < target.spec_replicas):
            whole = "no metrics are given"
            if failures:
                first = failures[0]
                whole = f"invalid metrics ({len(failures)} invalid out of {len(specs)}), first error is: {first}"
                problem = f"the HPA was unable to compute the replica count: {first.problem}"
                this.set(SCALING_ACTIVE, "False", first.reason, problem)
            if not this.says_the_same(SCALING_ACTIVE):
                this.warnings += [*told, ("FailedComputeMetricsReplicas", whole)]
            raise StopHere
        this.set(
            SCALING_ACTIVE,
            "True",
            "ValidMetricFound",
            f"the HPA was able to successfully calculate a replica count from {best.metric}",
        )
        if not this.says_the_same(SCALING_ACTIVE):
            this.warnings += told
        return best

    def _target(self, this: Round, scale: Scale, key: Key) -> Target:
        text = scale.status.selector
        if not text:
            this.set(SCALING_ACTIVE, "False", "InvalidSelector", "the HPA target's scale is missing a selector")
            raise self._without_selector(this, "SelectorRequired", "selector is required")
        try:
            selector = Selector.parse(text)
        except InvalidSelector as error:
            problem = f"couldn't convert selector into a corresponding internal selector object: {error}"
            this.set(SCALING_ACTIVE, "False", "InvalidSelector", problem)
            raise self._without_selector(this, "InvalidSelector", problem) from error
        self._selections.put(key, selector)
        pods = self._selections.pods_of(key)
        others = {owner for pod in pods for owner in self._selections.owners_of(pod)}
        if len(others) > 1:
            names = " ".join(f"{{{owner.name} {owner.namespace}}}" for owner in sorted(others))
            problem = f"pods by selector {text} are controlled by multiple HPAs: [{names}]"
            this.set(SCALING_ACTIVE, "False", "AmbiguousSelector", problem)
            raise self._without_selector(this, "AmbiguousSelector", problem)
        return Target(
            namespace=key.namespace,
            selector=selector,
            pods=pods,
            spec_replicas=scale.spec.replicas,
            status_replicas=scale.status.replicas,
            tolerance=tolerance_of(this.autoscaler, self._settings.tolerance),
            readiness=Readiness(self._settings.cpu_initialization_period, self._settings.initial_readiness_delay),
            now=this.now,
        )

    def _without_selector(self, this: Round, reason: str, problem: str) -> StopHere:
        this.metrics = None
        if not this.says_the_same(SCALING_ACTIVE):
            this.warnings += [(reason, problem), ("FailedComputeMetricsReplicas", problem)]
        return StopHere()

    async def _rescale(self, this: Round, sized: Sized, desired: int, reason: str) -> None:
        spec, namespace = this.autoscaler.spec, this.autoscaler.metadata.namespace
        try:
            await self._scales.write(sized, spec.scale_target_ref.name, namespace, desired)
        except (ApiError, ConnectionFault) as error:
            words = _words(error)
            this.set(
                ABLE_TO_SCALE,
                "False",
                "FailedUpdateScale",
                f"the HPA controller was unable to update the target scale: {words}",
            )
            this.warnings.append(("FailedRescale", f"New size: {desired}; reason: {reason}; error: {words}"))
            raise StopHere from error
        this.set(
            ABLE_TO_SCALE,
            "True",
            "SucceededRescale",
            f"the HPA controller was able to update the target scale to {desired}",
        )
        about = About.of(HORIZONTAL_POD_AUTOSCALERS, this.autoscaler)
        self._events.normal(about, "SuccessfulRescale", f"New size: {desired}; reason: {reason}")

    async def _write(self, this: Round, *, desired: int, is_rescaled: bool) -> None:
        for reason, words in this.warnings:
            self._events.warning(About.of(HORIZONTAL_POD_AUTOSCALERS, this.autoscaler), reason, words)
        before = this.autoscaler.status
        after = msgspec.structs.replace(
            before,
            current_replicas=this.current,
            desired_replicas=desired,
            current_metrics=this.metrics,
            conditions=this.conditions,
            last_scale_time=this.now if is_rescaled else before.last_scale_time,
        )
        await self._writer.patch_status(HORIZONTAL_POD_AUTOSCALERS, this.autoscaler, before=before, after=after)


def tolerance_of(autoscaler: HorizontalPodAutoscaler, otherwise: float) -> Tolerance:
    """How far off an autoscaler lets its metrics be, in each direction."""
    behavior = autoscaler.spec.behavior
    rules = (behavior.scale_down, behavior.scale_up) if behavior is not None else (None, None)
    down, up = (
        otherwise if rule is None or rule.tolerance is None else float(parse_quantity(rule.tolerance)) for rule in rules
    )
    return Tolerance(down=down, up=up)


def _reason(wish: Wish, current: int) -> str:
    if wish.replicas > current:
        return f"{wish.metric} above target"
    return "All metrics below target" if wish.replicas < current else ""


def _words(error: Exception) -> str:
    if isinstance(error, UnknownKind):
        return f'no matches for kind "{error.kind}" in group "{error.group}"'
    return error.message if isinstance(error, ApiError) and error.message else str(error)
