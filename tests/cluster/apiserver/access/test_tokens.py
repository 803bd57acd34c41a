from __future__ import annotations

import base64
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import jwt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.cluster.apiserver.access.account_tokens import BadToken
from shoal.cluster.apiserver.access.authentication import ADMIN, Authenticator
from shoal.cluster.apiserver.access.credentials import Credentials
from shoal.cluster.apiserver.access.tokens import ISSUER, LEGACY_ISSUER
from shoal.cluster.apiserver.kinds.kind import Object
from shoal.cluster.apiserver.refusals import Refused
from tests.cluster.apiserver.access.memory import Memory, an_object

NOW = datetime(2026, 5, 1, 12, 0, 0, 300_000, tzinfo=UTC)
YEAR = 365 * 24 * 3600


@pytest.fixture(scope="module")
def credentials(tmp_path_factory: pytest.TempPathFactory) -> Credentials:
    return Credentials.at(tmp_path_factory.mktemp("pki"), names=["localhost"], now=NOW)


class Cluster:
    """An account with a pod on a node and a secret, a clock, and the server's eyes on them."""

    def __init__(self, credentials: Credentials) -> None:
        self.now = NOW
        self.account = an_object("ServiceAccount", "bot", "build")
        self.pod = an_object("Pod", "p", "build", spec={"serviceAccountName": "bot", "nodeName": "n"})
        self.secret = an_object("Secret", "s", "build")
        self.node = an_object("Node", "n")
        other = an_object("Pod", "other", "build", spec={"serviceAccountName": "else"})
        nodeless = an_object("Pod", "nodeless", "build", spec={"serviceAccountName": "bot", "nodeName": "gone"})
        self.state = Memory(self.account, self.pod, self.secret, self.node, other, nodeless)
        self.signer = credentials.signer
        self.authenticator = Authenticator(credentials, self.state, clock=lambda: self.now)

    def issue(self, metadata: Object | None = None, name: str = "bot", **spec: Any) -> Object:
        request: Object = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
        if metadata:
            request["metadata"] = metadata
        return self.signer.issue(
            request, namespace="build", name=name, state=self.state, now=self.now, new_id=lambda: "id-1"
        )

    def token(self, kind: str = "", name: str = "", **spec: Any) -> str:
        if kind:
            spec["boundObjectRef"] = {"apiVersion": "v1", "kind": kind, "name": name}
        token: str = self.issue(**spec)["status"]["token"]
        return token

    def fault(self, token: str) -> str:
        """Why a token is not taken, or nothing."""
        try:
            self.authenticator.review(token)
        except BadToken as error:
            return str(error).removeprefix("[invalid bearer token, ").removesuffix("]")
        return ""


@pytest.fixture
def cluster(credentials: Credentials) -> Cluster:
    return Cluster(credentials)


def claims(token: str) -> list[Any]:
    return [json.loads(base64.urlsafe_b64decode(part + "==")) for part in token.split(".")[:2]]


def test_a_token_says_what_kubernetes_says(cluster: Cluster) -> None:
    answer = cluster.issue()
    since = int(NOW.timestamp())
    assert answer["metadata"] == {
        "name": "bot",
        "namespace": "build",
        "uid": "serviceaccount-bot",
        "creationTimestamp": "2026-05-01T12:00:00Z",
    }
    assert answer["spec"] == {"audiences": [ISSUER], "expirationSeconds": 3600, "boundObjectRef": None}
    assert answer["status"]["expirationTimestamp"] == "2026-05-01T13:00:00Z"
    header, said = claims(answer["status"]["token"])
    assert header == {"alg": "ES256", "kid": cluster.signer.keys()["keys"][0]["kid"]}
    assert said == {
        "aud": [ISSUER],
        "exp": since + 3600,
        "iat": since,
        "iss": ISSUER,
        "jti": "id-1",
        "kubernetes.io": {"namespace": "build", "serviceaccount": {"name": "bot", "uid": "serviceaccount-bot"}},
        "nbf": since,
        "sub": "system:serviceaccount:build:bot",
    }


@pytest.mark.parametrize(
    ("kind", "name", "bound"),
    [
        ("Pod", "p", {"pod": {"name": "p", "uid": "pod-p"}, "node": {"name": "n", "uid": "node-n"}}),
        ("Pod", "nodeless", {"pod": {"name": "nodeless", "uid": "pod-nodeless"}, "node": {"name": "gone"}}),
        ("Secret", "s", {"secret": {"name": "s", "uid": "secret-s"}}),
        ("Node", "n", {"node": {"name": "n", "uid": "node-n"}}),
    ],
)
def test_a_bound_token_names_its_object(cluster: Cluster, kind: str, name: str, bound: Object) -> None:
    about = claims(cluster.token(kind, name))[1]["kubernetes.io"]
    del about["namespace"], about["serviceaccount"]
    assert about == bound


def test_a_pod_that_asks_as_old_clients_do_gets_longer_than_it_is_told(cluster: Cluster) -> None:
    ref = {"apiVersion": "v1", "kind": "Pod", "name": "p"}
    answer = cluster.issue(expirationSeconds=3607, boundObjectRef=ref)
    said = claims(answer["status"]["token"])[1]
    assert said["exp"] - said["iat"] == YEAR
    assert said["kubernetes.io"]["warnafter"] - said["iat"] == 3607
    assert answer["status"]["expirationTimestamp"] == "2026-05-01T13:00:07Z"
    assert "warnafter" not in claims(cluster.token("Pod", "p", expirationSeconds=3607, audiences=["x"]))[1]


REQUESTS: list[tuple[str, dict[str, Any], int, str]] = [
    (
        "too short",
        {"expirationSeconds": 599},
        422,
        'TokenRequest.authentication.k8s.io "" is invalid: spec.expirationSeconds: Invalid value: 599: '
        "may not specify a duration less than 10 minutes",
    ),
    (
        "too long",
        {"expirationSeconds": 2**32 + 1},
        422,
        'TokenRequest.authentication.k8s.io "" is invalid: spec.expirationSeconds: Invalid value: 4294967297: '
        "may not specify a duration larger than 2^32 seconds",
    ),
    (
        "another name",
        {"metadata": {"name": "zz"}},
        422,
        'TokenRequest.authentication.k8s.io "bot" is invalid: metadata.name: Invalid value: "zz": '
        "must match the service account name if specified",
    ),
    (
        "another uid",
        {"metadata": {"uid": "zz"}},
        409,
        'Operation cannot be fulfilled on TokenRequest.authentication.k8s.io "bot": the UID in the token request (zz) '
        "does not match the UID of the service account (serviceaccount-bot)",
    ),
    ("no such account", {"name": "none"}, 404, 'serviceaccounts "none" not found'),
    ("no such pod", {"boundObjectRef": {"kind": "Pod", "name": "x"}}, 404, 'pods "x" not found'),
    ("no such secret", {"boundObjectRef": {"kind": "Secret", "name": "x"}}, 404, 'secrets "x" not found'),
    ("no such node", {"boundObjectRef": {"kind": "Node", "name": "x"}}, 404, 'nodes "x" not found'),
    (
        "another account's pod",
        {"boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": "other"}},
        400,
        'cannot bind token for serviceaccount "bot" to pod running with different serviceaccount name.',
    ),
    (
        "another kind",
        {"boundObjectRef": {"kind": "Deployment", "apiVersion": "apps/v1", "name": "x"}},
        400,
        "cannot bind token to object of type apps/v1, Kind=Deployment",
    ),
    ("no kind", {"boundObjectRef": {"name": "x"}}, 400, "cannot bind token to object of type /, Kind="),
    (
        "another object of the name",
        {"boundObjectRef": {"kind": "Secret", "apiVersion": "v1", "name": "s", "uid": "q"}},
        409,
        'Operation cannot be fulfilled on Secret "s": the UID in the bound object reference (q) does not match the UID '
        "in record. The object might have been deleted and then recreated",
    ),
]


@pytest.mark.parametrize(
    ("asked", "code", "message"), [case[1:] for case in REQUESTS], ids=[case[0] for case in REQUESTS]
)
def test_a_request_that_makes_no_sense_is_refused(
    cluster: Cluster, asked: dict[str, Any], code: int, message: str
) -> None:
    with pytest.raises(Refused) as refused:
        cluster.issue(**asked)
    assert (refused.value.status.code, refused.value.status.message) == (code, message)


def test_an_account_is_known_by_its_token(cluster: Cluster) -> None:
    found = cluster.authenticator.authenticate(authorization=f"Bearer {cluster.token('Pod', 'p')}")
    assert found is not None
    assert (found.name, found.uid) == ("system:serviceaccount:build:bot", "serviceaccount-bot")
    assert found.groups == ("system:serviceaccounts", "system:serviceaccounts:build", "system:authenticated")
    prefix = "authentication.kubernetes.io"
    assert found.extra == {
        f"{prefix}/credential-id": ("JTI=id-1",),
        f"{prefix}/node-name": ("n",),
        f"{prefix}/node-uid": ("node-n",),
        f"{prefix}/pod-name": ("p",),
        f"{prefix}/pod-uid": ("pod-p",),
    }


@pytest.mark.parametrize(
    ("later", "fault"),
    [
        (timedelta(minutes=60), ""),
        (timedelta(minutes=60, seconds=59), ""),
        (timedelta(minutes=61, seconds=1), "service account token has expired"),
        (timedelta(seconds=-59), ""),
        (timedelta(seconds=-62), "service account token is not valid yet"),
    ],
    ids=str,
)
def test_a_token_is_good_for_its_time(cluster: Cluster, later: timedelta, fault: str) -> None:
    token = cluster.token()
    assert cluster.fault(token) == ""
    cluster.now += later
    assert cluster.fault(token) == fault


@pytest.mark.parametrize("kind", ["account", "pod", "secret", "node"])
def test_a_token_ends_with_what_it_lives_by(cluster: Cluster, kind: str) -> None:
    name = {"pod": "p", "secret": "s", "node": "n"}.get(kind, "")
    token = cluster.token(kind.capitalize(), name) if name else cluster.token()
    assert cluster.fault(token) == ""
    lived_by: Object = getattr(cluster, kind)

    deleted = {**lived_by["metadata"], "deletionTimestamp": "2026-05-01T12:00:00Z"}
    cluster.state.put({**lived_by, "metadata": deleted})
    assert cluster.fault(token) == "", "clocks may differ"
    cluster.now += timedelta(seconds=61)
    gone = "service account token has been invalidated"
    assert cluster.fault(token) == (gone if name else "service account build/bot has been deleted")

    cluster.state.put({**lived_by, "metadata": {**lived_by["metadata"], "uid": "new"}})
    what = f"does not match service account {kind} ref claim" if name else "does not match claim"
    shown = kind if name else "service account"
    assert cluster.fault(token) == f"{shown} UID (new) {what} ({lived_by['metadata']['uid']})"

    cluster.state.remove(lived_by)
    assert cluster.fault(token) == (gone if name else 'serviceaccounts "bot" not found')
    cluster.state.put(lived_by)
    assert cluster.fault(token) == "", "nothing is remembered against it"


def test_the_token_of_a_pod_outlives_its_node(cluster: Cluster) -> None:
    token = cluster.token("Pod", "p")
    cluster.state.remove(cluster.node)
    assert cluster.fault(token) == ""


def test_a_token_is_for_its_audiences_alone(cluster: Cluster) -> None:
    token = cluster.token(audiences=["vault", "other"])
    meant = f'token audiences ["vault" "other"] is invalid for the target audiences ["{ISSUER}"]'
    assert cluster.fault(token) == meant
    assert cluster.authenticator.review(token, ["x", "vault"]).audiences == ("vault",)
    with pytest.raises(Refused) as refused:
        cluster.authenticator.authenticate(authorization=f"Bearer {token}")
    assert refused.value.status.code == 401


def test_a_forged_token_is_refused(cluster: Cluster) -> None:
    token = cluster.token()
    head, body, _ = token.split(".")
    unsigned = base64.urlsafe_b64encode(b'{"alg":"none"}').decode().rstrip("=")
    by_us_with_a_shared_key = jwt.encode(claims(token)[1], "k" * 64, "HS256")
    for forged in (f"{head}.{body}.{'A' * 86}", f"{unsigned}.{body}.", by_us_with_a_shared_key, f"{head}.{body}", "x"):
        assert cluster.fault(forged)
        assert cluster.fault(forged), "also when it comes again"


def encoded(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).decode().rstrip("=")


OURS = json.dumps({"iss": ISSUER}).encode()
NESTED = b"[" * 100_000


@given(
    head=st.binary() | st.sampled_from([NESTED, b"{}", b"[]", b'{"alg":["ES256"]}', b'{"alg":"ES256","kid":7}']),
    body=st.binary() | st.sampled_from([OURS, NESTED, b"[]", b'{"iss":[]}']),
    signature=st.binary(),
)
def test_nothing_that_looks_like_a_token_breaks_the_server(
    credentials: Credentials, head: bytes, body: bytes, signature: bytes
) -> None:
    assert Cluster(credentials).fault(".".join(map(encoded, (head, body, signature))))


def test_a_secret_holds_a_token_of_the_older_sort(cluster: Cluster) -> None:
    data = cluster.signer.secret_data(cluster.account, cluster.secret, b"CERT")
    content = {key: base64.b64decode(value) for key, value in data.items()}
    assert content["ca.crt"] == b"CERT"
    assert content["namespace"] == b"build"
    token = content["token"].decode()
    assert claims(token)[1]["iss"] == LEGACY_ISSUER
    assert cluster.fault(token) == "Token does not match server's copy"
    filled = {**cluster.secret, "data": data}
    cluster.state.put(filled)
    assert cluster.authenticator.review(token).user.name == "system:serviceaccount:build:bot"
    assert cluster.authenticator.review(token).user.extra == {}
    cluster.now += timedelta(days=9999)
    assert cluster.fault(token) == "", "it does not expire"

    labels = {"kubernetes.io/legacy-token-invalid-since": "2026-01-01"}
    cluster.state.put({**filled, "metadata": {**filled["metadata"], "labels": labels}})
    assert cluster.fault(token).startswith("the token in secret build/s for service account build/bot has been marked")
    cluster.state.put({**filled, "metadata": {**filled["metadata"], "deletionTimestamp": "2026-05-01T12:00:00Z"}})
    assert cluster.fault(token) == "Token has been invalidated"
    cluster.state.put(filled)
    cluster.state.put({**cluster.account, "metadata": {**cluster.account["metadata"], "uid": "new"}})
    assert cluster.fault(token) == "ServiceAccount UID (new) does not match claim (serviceaccount-bot)"
    cluster.state.remove(cluster.account)
    assert cluster.fault(token) == 'serviceaccounts "bot" not found'


def test_anyone_can_verify_a_token_with_the_published_keys(cluster: Cluster) -> None:
    said = cluster.signer.configuration("https://10.0.0.1:7443")
    assert said == {
        "issuer": ISSUER,
        "jwks_uri": "https://10.0.0.1:7443/openid/v1/jwks",
        "response_types_supported": ["id_token"],
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": ["ES256"],
    }
    keys = jwt.PyJWKSet.from_dict(cluster.signer.keys())
    token = cluster.token(expirationSeconds=MOST)
    read = jwt.decode(token, keys[claims(token)[0]["kid"]], ["ES256"], audience=ISSUER, options={"verify_iat": False})
    assert read["sub"] == "system:serviceaccount:build:bot"


MOST = 1 << 32


@pytest.mark.parametrize("shown", [None, "", "Basic abc", "Bearer", "Bearer ", "Bearer  x", "Token x"])
def test_who_shows_nothing_is_nobody(cluster: Cluster, shown: str | None) -> None:
    assert cluster.authenticator.authenticate(authorization=shown) is None


@pytest.mark.parametrize(
    "shown", ["Bearer x", "bearer x", "Bearer a.b.c", "Bearer \u00e9", "Bearer \udce9", "Bearer " + "." * 9]
)
def test_who_shows_a_token_that_is_not_ours_is_refused(cluster: Cluster, shown: str) -> None:
    with pytest.raises(Refused) as refused:
        cluster.authenticator.authenticate(authorization=shown, trusted_socket=True)
    assert (refused.value.status.code, refused.value.status.message) == (401, "Unauthorized")


def test_the_owners_socket_is_the_administrators_unless_it_says_otherwise(cluster: Cluster) -> None:
    authenticate = cluster.authenticator.authenticate
    assert authenticate(authorization=None, trusted_socket=True) is ADMIN
    found = authenticate(authorization=f"Bearer {cluster.token()}", trusted_socket=True)
    assert found is not None
    assert found.name == "system:serviceaccount:build:bot"


def test_a_token_of_the_clusters_own_names_any_user(cluster: Cluster, credentials: Credentials) -> None:
    token = credentials.user_tokens.token("ann", ["devs"])
    found = cluster.authenticator.authenticate(authorization=f"Bearer {token}")
    assert found is not None
    assert (found.name, found.groups) == ("ann", ("devs", "system:authenticated"))


def described(subject: tuple[tuple[tuple[str, str], ...], ...]) -> dict[str, Any]:
    return {"subject": subject, "notBefore": "Apr 30 12:00:00 2026 GMT", "notAfter": "May  2 12:00:00 2026 GMT"}


def test_a_certificate_as_ssl_describes_it_names_its_user(cluster: Cluster) -> None:
    subject = ((("organizationName", "devs"),), (("organizationName", "ops"),), (("commonName", "ann"),))
    authenticate = cluster.authenticator.authenticate
    found = authenticate(authorization=None, peer_certificate=described(subject))
    assert found is not None
    assert (found.name, found.groups) == ("ann", ("devs", "ops", "system:authenticated"))
    assert authenticate(authorization=None, peer_certificate=described(())) is None
    cluster.now += timedelta(days=2)
    with pytest.raises(Refused):
        authenticate(authorization=None, peer_certificate=described(subject))


def test_a_certificate_is_looked_at_before_a_token(cluster: Cluster, credentials: Credentials, tmp_path: Path) -> None:
    pair = credentials.client("ann", now=NOW)
    encoded = base64.b64decode("".join(pair.certificate.decode().splitlines()[1:-1]))
    found = cluster.authenticator.authenticate(authorization="Bearer wrong", peer_certificate=encoded)
    assert found is not None
    assert found.name == "ann"
    (identity,) = found.extra["authentication.kubernetes.io/credential-id"]
    assert identity.startswith("X509SHA256=")
    cluster.now += timedelta(days=5000)
    with pytest.raises(Refused):
        cluster.authenticator.authenticate(authorization=None, peer_certificate=encoded)
    found = cluster.authenticator.authenticate(
        authorization=f"Bearer {credentials.admin_token}", peer_certificate=encoded
    )
    assert found is ADMIN
