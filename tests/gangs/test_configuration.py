"""Grove's configuration file is read as it is; what is wrong with one is told by its field."""

from __future__ import annotations

import pytest

from shoal.gangs.backends import Backends
from shoal.gangs.backends.koordinator import Koordinator
from shoal.gangs.configuration import ConfigurationError, read_configuration
from shoal.gangs.settings import GangSettings
from tests.support.schemas.corpus import CORPUS, needs_corpus

HEAD = "apiVersion: operator.config.grove.io/v1alpha1\nkind: OperatorConfiguration\n"


@needs_corpus
def test_a_file_of_upstream_is_read_as_it_is() -> None:
    found = read_configuration((CORPUS / "grove/samples/operatorconfig__valid-config-mnnvl-enabled.yaml").read_bytes())

    settings = found.settings()
    assert settings.has_mnnvl
    assert not settings.has_topologies
    assert (settings.workers.sets, settings.workers.cliques, settings.workers.groups) == (3, 3, 2)
    assert found.leader_election.enabled
    assert found.server.webhooks.port == 9443


def test_a_file_that_says_nothing_means_the_defaults() -> None:
    found = read_configuration(HEAD)
    assert found.settings() == GangSettings()
    assert (found.server.webhooks.port, found.server.health_probes.port, found.server.metrics.port) == (
        2750,
        2751,
        2752,
    )


def test_the_default_scheduler_is_that_of_the_default_profile() -> None:
    text = HEAD + "scheduler: {profiles: [{name: kai-scheduler}], defaultProfileName: kai-scheduler}"
    assert read_configuration(text).settings().default_scheduler == "kai-scheduler"


def test_the_config_of_a_profile_reaches_its_backend() -> None:
    text = HEAD + "scheduler: {profiles: [{name: koord-scheduler, config: {gangMode: NonStrict, defaultQoSClass: LS}}]}"
    backends = {
        backend.name: backend for backend in Backends.load(profiles=read_configuration(text).settings().profiles)
    }
    found = backends["koordinator"]
    assert isinstance(found, Koordinator)
    assert (found.gang_mode, found.qos_class) == ("NonStrict", "LS")


def test_topologies_are_switched_on_by_either_name() -> None:
    for name in ("topologyAwareScheduling", "clusterTopology"):
        assert read_configuration(HEAD + f"{name}: {{enabled: true}}").settings().has_topologies


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (
            HEAD + "scheduler: {profiles: [{name: koord-scheduler, config: {gangMode: Loose}}]}",
            "scheduler.profiles[0].config.gangMode: Invalid enum value 'Loose'",
        ),
        ("kind: Pod\napiVersion: v1", "it is v1 Pod: write operator.config.grove.io/v1alpha1 OperatorConfiguration"),
        (HEAD + "colour: red", "Object contains unknown field `colour`"),
        (HEAD + "server: {webhooks: {prot: 1}}", "server.webhooks: Object contains unknown field `prot`"),
        (HEAD + "logLevel: loud", "logLevel: Invalid enum value 'loud'"),
        (HEAD + "logFormat: xml", "logFormat: Invalid enum value 'xml'"),
        (
            HEAD + "runtimeClientConnection: {burst: -1}",
            "runtimeClientConnection.burst is -1: write 0 or more",
        ),
        (
            HEAD + "leaderElection: {leaseDuration: 10s, renewDeadline: 10s}",
            "leaderElection.leaseDuration (10s) must be longer than renewDeadline (10s)",
        ),
        (
            HEAD + "leaderElection: {renewDeadline: 2s}",
            "leaderElection.renewDeadline (2s) must be longer than retryPeriod (2s)",
        ),
        (
            HEAD + "leaderElection: {retryPeriod: soon}",
            "leaderElection.retryPeriod is soon: write a time such as 15s",
        ),
        (
            HEAD + "controllers: {podGang: {concurrentSyncs: 0}}",
            "controllers.podGang.concurrentSyncs is 0: write 1 or more",
        ),
        (
            HEAD + "scheduler: {profiles: [{name: volcano}, {name: volcano}]}",
            "scheduler.profiles names volcano twice: leave one out",
        ),
        (
            HEAD + "scheduler: {profiles: [{name: volcano}], defaultProfileName: mine}",
            "scheduler.defaultProfileName is mine, which is no profile: add it, or write one of volcano, "
            "default-scheduler",
        ),
    ],
)  # fmt: skip
def test_a_mistake_is_told_by_its_field(text: str, problem: str) -> None:
    with pytest.raises(ConfigurationError) as told:
        read_configuration(text)
    assert str(told.value) == problem
