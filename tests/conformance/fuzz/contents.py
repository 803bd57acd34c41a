"""Contents of objects: valid mostly, of few names and values so that writers meet, in the spellings that matter."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from tests.cluster.apiserver.apply.subjects import BODIES

Strategy = st.SearchStrategy[Any]


def some(**fields: Strategy) -> Strategy:
    return st.fixed_dictionaries({}, optional=fields)


def having(must: dict[str, Strategy], **fields: Strategy) -> Strategy:
    return st.fixed_dictionaries(must, optional=fields)


def one_of_these(*values: Any) -> Strategy:
    return st.sampled_from(values)


words = one_of_these("x", "y", "z")
keys = one_of_these("a", "b", "c")
maps = st.dictionaries(keys, words, max_size=3)
small = st.integers(0, 3)
ports = one_of_these(80, 443, 9)
percents = one_of_these(1, 2, 0, "25%", "50%", "0%", "100%", "2", 101, "110%")
quantities = one_of_these("1", 1, "1000m", "0.5", "500m", "1Gi", "1024Mi", "1e3", "1E", "0", "100k", "1.5Gi", 2.5, "+1")
protocols = one_of_these("TCP", "UDP", "SCTP")
owners = st.lists(
    having(
        {
            "apiVersion": st.just("v1"),
            "kind": st.just("ConfigMap"),
            "name": words,
            "uid": one_of_these("u-1", "u-2"),
        },
        controller=st.booleans(),
        blockOwnerDeletion=st.booleans(),
    ),
    max_size=2,
)
metadata = some(
    labels=st.one_of(maps, maps, st.none(), one_of_these({"app": "x"}, {"app.kubernetes.io/name": ""})),
    annotations=st.one_of(maps, st.dictionaries(one_of_these("n", "o/p"), words, max_size=2)),
    finalizers=st.lists(one_of_these("example.com/one", "example.com/two", "foregroundDeletion", "orphan"), max_size=2),
    ownerReferences=owners,
)
selectors = st.one_of(
    st.just({"matchLabels": {"app": "x"}}),
    st.just({"matchLabels": {"app": "x"}}),
    some(
        matchLabels=maps,
        matchExpressions=st.lists(
            having(
                {"key": keys, "operator": one_of_these("In", "Exists", "DoesNotExist", "NotIn")},
                values=st.lists(words, max_size=2),
            ),
            max_size=2,
        ),
    ),
)
conditions = st.lists(
    having(
        {
            "type": one_of_these("Ready", "Available", "Complete", "Progressing"),
            "status": one_of_these("True", "False"),
        },
        reason=words,
        message=words,
        lastTransitionTime=one_of_these("2020-01-01T00:00:00Z", "2020-01-01T02:00:00+02:00", None),
        observedGeneration=small,
    ),
    max_size=3,
)
requirements = some(
    requests=st.dictionaries(
        one_of_these("cpu", "memory", "example.com/gpu"), one_of_these("1", 1, "500m", "0.5"), max_size=2
    ),
    limits=st.dictionaries(
        one_of_these("cpu", "memory", "example.com/gpu"), one_of_these("2", 2, "2000m", "2e0", "1"), max_size=2
    ),
)
handlers = st.one_of(
    having({"httpGet": having({"port": one_of_these(80, "http", "80")}, path=one_of_these("/x", ""))}),
    having({"tcpSocket": having({"port": one_of_these(80, "http")})}),
    having({"exec": having({"command": st.lists(words, min_size=1, max_size=2)})}),
)
probes = st.builds(
    lambda handler, times: {**handler, **times},
    handlers,
    some(periodSeconds=small, initialDelaySeconds=small, failureThreshold=small),
)
sources = st.one_of(
    st.builds(lambda name, key: {"configMapKeyRef": {"name": name, "key": key}}, words, keys),
    st.builds(
        lambda path: {"fieldRef": {"fieldPath": path}}, one_of_these("metadata.name", "spec.nodeName", "metadata.uid")
    ),
    st.just({"fieldRef": {"fieldPath": "nope"}}),
)
variables = one_of_these("A", "B", "C")
environment = st.lists(
    st.one_of(having({"name": variables}, value=words), having({"name": variables, "valueFrom": sources})),
    max_size=3,
)
containers = st.lists(
    having(
        {"name": keys, "image": one_of_these("x", "x:latest", "x:1", "x@sha256:0")},
        command=st.lists(words, max_size=2),
        args=st.lists(words, max_size=2),
        env=environment,
        ports=st.lists(
            having(
                {"containerPort": ports},
                name=one_of_these("http", "dns"),
                protocol=protocols,
                hostPort=one_of_these(80, 8080),
            ),
            max_size=3,
        ),
        resources=requirements,
        livenessProbe=probes,
        readinessProbe=probes,
        volumeMounts=st.lists(
            having({"name": keys, "mountPath": one_of_these("/a", "/b")}, readOnly=st.booleans(), subPath=words),
            max_size=2,
        ),
        imagePullPolicy=one_of_these("Always", "Never", "IfNotPresent"),
        securityContext=some(
            runAsUser=small,
            privileged=st.booleans(),
            allowPrivilegeEscalation=st.booleans(),
            capabilities=some(add=st.lists(one_of_these("NET_ADMIN", "SYS_TIME"), max_size=2), drop=st.just(["ALL"])),
        ),
        workingDir=words,
        stdin=st.booleans(),
        tty=st.booleans(),
    ),
    min_size=1,
    max_size=3,
    unique_by=lambda row: row["name"],
)
volumes = st.lists(
    st.one_of(
        having({"name": keys, "emptyDir": some(sizeLimit=quantities, medium=one_of_these("", "Memory"))}),
        having(
            {
                "name": keys,
                "configMap": having({"name": words}, defaultMode=one_of_these(420, 256), optional=st.booleans()),
            }
        ),
        having({"name": keys, "secret": having({"secretName": words}, items=st.just([{"key": "a", "path": "b"}]))}),
        having({"name": keys, "hostPath": having({"path": st.just("/x")}, type=one_of_these("", "Directory"))}),
    ),
    max_size=3,
    unique_by=lambda row: row["name"],
)
tolerations = st.lists(
    some(
        key=keys,
        operator=one_of_these("Exists", "Equal", "Exists"),
        effect=one_of_these("NoSchedule", "NoExecute"),
    ),
    max_size=2,
)
node_terms = st.lists(
    st.builds(
        lambda key, operator, values: {"matchExpressions": [{"key": key, "operator": operator, "values": values}]},
        keys,
        one_of_these("In", "NotIn"),
        st.lists(words, min_size=1, max_size=2),
    ),
    min_size=1,
    max_size=2,
)
affinities = some(
    nodeAffinity=some(
        requiredDuringSchedulingIgnoredDuringExecution=st.builds(lambda terms: {"nodeSelectorTerms": terms}, node_terms)
    ),
    podAntiAffinity=st.just(
        {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {"topologyKey": "a", "labelSelector": {"matchLabels": {"a": "x"}}}
            ]
        }
    ),
)


def pod_specs(*policies: str) -> Strategy:
    """Specs in which every mount has its volume."""
    return _free_pod_specs(*policies).map(_with_mounted)


def _with_mounted(spec: dict[str, Any]) -> dict[str, Any]:
    rows = [*spec["containers"], *spec.get("initContainers", ())]
    mounted = {mount["name"] for row in rows for mount in row.get("volumeMounts", ())}
    missing = sorted(mounted - {volume["name"] for volume in spec.get("volumes", ())})
    if not missing:
        return spec
    return {**spec, "volumes": [*spec.get("volumes", ()), *({"name": name, "emptyDir": {}} for name in missing)]}


def _free_pod_specs(*policies: str) -> Strategy:
    return having(
        {"containers": containers, "restartPolicy": one_of_these(*policies)},
        initContainers=containers.map(lambda rows: [{**row, "name": f"init-{row['name']}"} for row in rows]),
        volumes=volumes,
        nodeSelector=maps,
        tolerations=tolerations,
        affinity=affinities,
        terminationGracePeriodSeconds=one_of_these(0, 1, 30),
        activeDeadlineSeconds=one_of_these(1, 5),
        serviceAccountName=one_of_these("default", "default", "default", "nobody"),
        securityContext=some(
            runAsUser=small, fsGroup=small, runAsNonRoot=st.booleans(), supplementalGroups=st.lists(small, max_size=2)
        ),
        imagePullSecrets=st.lists(having({"name": words}), max_size=2),
        schedulingGates=st.lists(having({"name": keys}), max_size=2),
        hostAliases=st.lists(
            having({"ip": one_of_these("127.0.0.1", "10.0.0.1")}, hostnames=st.lists(words, max_size=2)), max_size=2
        ),
        topologySpreadConstraints=st.lists(
            having(
                {
                    "maxSkew": st.integers(0, 2),
                    "topologyKey": keys,
                    "whenUnsatisfiable": one_of_these("DoNotSchedule", "ScheduleAnyway"),
                },
                labelSelector=selectors,
                minDomains=small,
            ),
            max_size=2,
        ),
        readinessGates=st.lists(having({"conditionType": keys}), max_size=2),
        dnsPolicy=one_of_these("Default", "ClusterFirst", "None"),
        dnsConfig=some(nameservers=st.just(["10.0.0.1"]), searches=st.lists(words, max_size=2)),
        enableServiceLinks=st.booleans(),
        nodeName=one_of_these("somewhere"),
    )


def templates(*policies: str) -> Strategy:
    return st.builds(
        lambda spec, labels, annotations: {
            "metadata": {"labels": {"app": "x", **labels}, **({"annotations": annotations} if annotations else {})},
            "spec": spec,
        },
        pod_specs(*policies),
        maps,
        maps,
    )


pod_statuses = some(
    phase=one_of_these("Running", "Failed", "Succeeded", "Nope"),
    conditions=conditions,
    podIP=one_of_these("10.0.0.1", "x"),
    podIPs=st.lists(having({"ip": one_of_these("10.0.0.1", "10.0.0.2", "fd00::1")}), max_size=2),
    reason=words,
    observedGeneration=small,
    qosClass=one_of_these("BestEffort", "Guaranteed"),
    containerStatuses=st.lists(
        having(
            {"name": keys, "image": words, "imageID": words, "ready": st.booleans(), "restartCount": small},
            state=one_of_these({"running": {}}, {"waiting": {"reason": "x"}}, {"terminated": {"exitCode": 1}}),
        ),
        max_size=2,
    ),
    nominatedNodeName=words,
    hostIP=one_of_these("10.0.0.9", "x"),
)
services = having(
    {
        "ports": st.lists(
            having(
                {"port": ports},
                name=keys,
                protocol=protocols,
                targetPort=one_of_these(8080, "http", "8080", 0),
                appProtocol=words,
                nodePort=one_of_these(0, 30999),
            ),
            min_size=1,
            max_size=3,
            unique_by=lambda row: row["port"],
        ).map(
            lambda rows: [{"name": f"p{number}", **row} for number, row in enumerate(rows)] if len(rows) > 1 else rows
        )
    },
    type=one_of_these("ClusterIP", "NodePort", "LoadBalancer", "ExternalName", "ClusterIP"),
    selector=maps,
    clusterIP=one_of_these("None", "", "10.96.0.300"),
    externalName=one_of_these("x.example", "Y", ""),
    sessionAffinity=one_of_these("None", "ClientIP"),
    sessionAffinityConfig=st.just({"clientIP": {"timeoutSeconds": 5}}),
    externalTrafficPolicy=one_of_these("Local", "Cluster"),
    internalTrafficPolicy=one_of_these("Local", "Cluster"),
    externalIPs=st.lists(one_of_these("192.0.2.1", "192.0.2.2"), max_size=2),
    loadBalancerSourceRanges=st.lists(one_of_these("10.0.0.0/8", " 10.0.0.0/8", "x"), max_size=1),
    loadBalancerClass=one_of_these("example.com/lb"),
    allocateLoadBalancerNodePorts=st.booleans(),
    publishNotReadyAddresses=st.booleans(),
    ipFamilies=one_of_these(["IPv4"], ["IPv6"], ["IPv4", "IPv6"]),
    ipFamilyPolicy=one_of_these("SingleStack", "PreferDualStack", "RequireDualStack"),
    healthCheckNodePort=one_of_these(0, 30998),
    trafficDistribution=one_of_these("PreferClose", "Nope"),
)
service_statuses = some(
    loadBalancer=some(
        ingress=st.lists(
            some(
                ip=one_of_these("192.0.2.9", "x"),
                hostname=one_of_these("x.example"),
                ipMode=one_of_these("VIP", "Proxy"),
            ),
            max_size=2,
        )
    ),
    conditions=conditions,
)
deployments = having(
    {"selector": selectors, "template": templates("Always")},
    replicas=st.one_of(small, st.none()),
    paused=st.booleans(),
    minReadySeconds=small,
    revisionHistoryLimit=small,
    progressDeadlineSeconds=one_of_these(600, 2, 1),
    strategy=st.one_of(
        st.just({"type": "Recreate"}),
        having({"type": st.just("RollingUpdate")}, rollingUpdate=some(maxSurge=percents, maxUnavailable=percents)),
        st.just({}),
        st.just({"type": "Recreate", "rollingUpdate": {"maxSurge": 1}}),
    ),
)
deployment_statuses = some(
    replicas=small,
    readyReplicas=small,
    availableReplicas=small,
    updatedReplicas=small,
    unavailableReplicas=small,
    observedGeneration=small,
    collisionCount=small,
    conditions=conditions,
)
claims = st.lists(
    st.builds(
        lambda name, storage, modes: {
            "metadata": {"name": name},
            "spec": {"accessModes": modes, "resources": {"requests": {"storage": storage}}},
        },
        keys,
        one_of_these("1Gi", "1024Mi", 1, "0"),
        one_of_these(["ReadWriteOnce"], ["ReadWriteMany", "ReadOnlyMany"]),
    ),
    max_size=2,
)
stateful_sets = having(
    {"selector": selectors, "template": templates("Always"), "serviceName": one_of_these("x", "", "y")},
    replicas=st.one_of(small, st.none()),
    podManagementPolicy=one_of_these("Parallel", "OrderedReady"),
    updateStrategy=st.one_of(
        st.just({"type": "OnDelete"}),
        having({"type": st.just("RollingUpdate")}, rollingUpdate=some(partition=small, maxUnavailable=percents)),
    ),
    revisionHistoryLimit=small,
    minReadySeconds=small,
    volumeClaimTemplates=claims,
    ordinals=some(start=small),
    persistentVolumeClaimRetentionPolicy=some(
        whenDeleted=one_of_these("Delete", "Retain"), whenScaled=one_of_these("Retain", "Nope")
    ),
)
stateful_set_statuses = some(
    replicas=small,
    readyReplicas=small,
    currentReplicas=small,
    updatedReplicas=small,
    availableReplicas=small,
    observedGeneration=small,
    currentRevision=words,
    conditions=conditions,
)
jobs = having(
    {"template": templates("Never", "OnFailure")},
    parallelism=small,
    completions=small,
    backoffLimit=small,
    completionMode=one_of_these("Indexed", "NonIndexed"),
    suspend=st.booleans(),
    activeDeadlineSeconds=small,
    ttlSecondsAfterFinished=small,
    manualSelector=st.booleans(),
    selector=selectors,
    backoffLimitPerIndex=small,
    maxFailedIndexes=small,
    podReplacementPolicy=one_of_these("Failed", "TerminatingOrFailed"),
    podFailurePolicy=st.builds(
        lambda action, values: {"rules": [{"action": action, "onExitCodes": {"operator": "In", "values": values}}]},
        one_of_these("FailJob", "Ignore", "Count", "FailIndex"),
        st.lists(small, max_size=3),
    ),
    managedBy=one_of_these("example.com/x", "kubernetes.io/job-controller"),
)
job_statuses = some(
    active=small,
    ready=small,
    succeeded=small,
    failed=small,
    terminating=small,
    startTime=one_of_these("2020-01-01T00:00:00Z", "2021-01-01T00:00:00Z", None),
    completionTime=one_of_these("2020-02-01T00:00:00Z", None),
    conditions=st.lists(
        having(
            {
                "type": one_of_these("Complete", "Failed", "Suspended", "SuccessCriteriaMet", "FailureTarget"),
                "status": one_of_these("True", "False"),
            },
            reason=words,
        ),
        max_size=2,
    ),
    completedIndexes=one_of_these("0", "0-1", "1,0", "x"),
    uncountedTerminatedPods=some(succeeded=st.lists(words, max_size=2), failed=st.lists(words, max_size=2)),
)
budgets = some(
    minAvailable=percents,
    maxUnavailable=percents,
    selector=selectors,
    unhealthyPodEvictionPolicy=one_of_these("IfHealthyBudget", "AlwaysAllow", "Nope"),
)
budget_statuses = some(
    disruptionsAllowed=small,
    currentHealthy=small,
    desiredHealthy=small,
    expectedPods=small,
    observedGeneration=small,
    disruptedPods=st.dictionaries(keys, st.just("2020-01-01T00:00:00Z"), max_size=2),
    conditions=st.lists(
        st.builds(
            lambda kind, status, reason: {
                "type": kind,
                "status": status,
                "reason": reason,
                "message": "",
                "lastTransitionTime": "2020-01-01T00:00:00Z",
            },
            one_of_these("DisruptionAllowed", "Other"),
            one_of_these("True", "False", "Maybe"),
            one_of_these("X", "Y", "1"),
        ),
        max_size=2,
    ),
)
hard = st.dictionaries(
    one_of_these(
        "cpu", "limits.cpu", "requests.memory", "configmaps", "count/jobs.batch", "pods", "nope", "example.com/gpu"
    ),
    quantities,
    max_size=3,
)
quotas = some(
    hard=hard,
    scopes=st.lists(one_of_these("BestEffort", "NotBestEffort", "Terminating", "NotTerminating", "Nope"), max_size=2),
    scopeSelector=st.builds(
        lambda scope, operator, values: {
            "matchExpressions": [{"scopeName": scope, "operator": operator, "values": values}]
        },
        one_of_these("PriorityClass", "BestEffort"),
        one_of_these("In", "Exists"),
        st.lists(words, max_size=2),
    ),
)
quota_statuses = some(hard=hard, used=hard)
rules = st.lists(
    having(
        {"verbs": st.lists(one_of_these("get", "list", "*"), max_size=2)},
        apiGroups=one_of_these([""], ["apps", ""], ["*"], []),
        resources=one_of_these(["pods"], ["pods", "pods/log"], ["*"], []),
        resourceNames=st.lists(words, max_size=2),
        nonResourceURLs=one_of_these(["/x"]),
    ),
    max_size=3,
)
targets = st.just({"apiVersion": "apps/v1", "kind": "Deployment", "name": "x"})
autoscalers_v1 = having(
    {"scaleTargetRef": targets, "maxReplicas": st.integers(0, 4)},
    minReplicas=small,
    targetCPUUtilizationPercentage=st.integers(0, 90),
)
metric_targets = one_of_these(
    {"type": "Utilization", "averageUtilization": 50},
    {"type": "AverageValue", "averageValue": "1000m"},
    {"type": "Value", "value": "0.5"},
    {"type": "AverageValue", "averageValue": 2},
)
metrics = st.lists(
    st.one_of(
        st.builds(
            lambda name, target: {"type": "Resource", "resource": {"name": name, "target": target}},
            one_of_these("cpu", "memory"),
            metric_targets,
        ),
        st.builds(lambda target: {"type": "Pods", "pods": {"metric": {"name": "x"}, "target": target}}, metric_targets),
        st.builds(
            lambda target, selector: {
                "type": "External",
                "external": {"metric": {"name": "x", "selector": selector}, "target": target},
            },
            metric_targets,
            selectors,
        ),
        st.builds(
            lambda target: {
                "type": "Object",
                "object": {"describedObject": {"kind": "Pod", "name": "x"}, "metric": {"name": "y"}, "target": target},
            },
            metric_targets,
        ),
        st.builds(
            lambda target: {
                "type": "ContainerResource",
                "containerResource": {"name": "cpu", "container": "a", "target": target},
            },
            metric_targets,
        ),
    ),
    max_size=3,
)
scaling = some(
    stabilizationWindowSeconds=st.integers(0, 5),
    selectPolicy=one_of_these("Max", "Min", "Disabled"),
    policies=st.lists(
        having({"type": one_of_these("Pods", "Percent"), "value": small, "periodSeconds": one_of_these(15, 0, 2000)}),
        max_size=2,
    ),
    tolerance=one_of_these("0.1", "100m"),
)
autoscalers_v2 = having(
    {"scaleTargetRef": targets, "maxReplicas": st.integers(0, 4)},
    minReplicas=small,
    metrics=metrics,
    behavior=some(scaleUp=scaling, scaleDown=scaling),
)
autoscaler_statuses = some(
    currentReplicas=small,
    desiredReplicas=small,
    observedGeneration=small,
    lastScaleTime=st.just("2020-01-01T00:00:00Z"),
)
event_fields = having(
    {"involvedObject": st.builds(lambda name: {"kind": "Pod", "name": name, "namespace": "{namespace}"}, words)},
    reason=words,
    message=words,
    type=one_of_these("Normal", "Warning", "Nope"),
    count=small,
    firstTimestamp=one_of_these("2020-01-01T00:00:00Z", None),
    lastTimestamp=st.just("2020-01-02T00:00:00+01:00"),
    source=some(component=words, host=words),
    reportingComponent=words,
    eventTime=one_of_these("2020-01-01T00:00:00.000001Z", "2020-01-01T00:00:00Z", None),
    action=words,
    related=st.just({"kind": "Pod", "name": "z"}),
    series=some(count=small, lastObservedTime=st.just("2020-01-01T00:00:00.500000Z")),
)
event_fields_v1 = having(
    {
        "eventTime": one_of_these("2020-01-01T00:00:00.000001Z", "2020-01-01T00:00:00.5Z"),
        "reportingController": one_of_these("example.com/x", "x"),
        "reportingInstance": words,
        "action": words,
        "reason": words,
        "type": one_of_these("Normal", "Warning", "Nope"),
        "regarding": st.builds(lambda name: {"kind": "Pod", "name": name, "namespace": "{namespace}"}, words),
    },
    note=words,
    related=st.just({"kind": "Pod", "name": "z"}),
    series=some(count=st.integers(1, 3), lastObservedTime=st.just("2020-01-01T00:00:00.500000Z")),
    deprecatedCount=small,
)
nodes = some(
    podCIDR=one_of_these("10.1.0.0/24", "10.2.0.0/24", "x"),
    podCIDRs=one_of_these(["10.1.0.0/24"], ["10.1.0.0/24", "fd00::/64"]),
    providerID=words,
    unschedulable=st.booleans(),
    taints=st.lists(
        having(
            {"key": keys, "effect": one_of_these("NoSchedule", "NoExecute", "Nope")},
            value=words,
            timeAdded=st.just("2020-01-01T00:00:00Z"),
        ),
        max_size=3,
    ),
)
node_statuses = some(
    capacity=st.dictionaries(one_of_these("cpu", "memory", "pods", "example.com/gpu"), quantities, max_size=3),
    allocatable=st.dictionaries(one_of_these("cpu", "memory", "pods"), quantities, max_size=3),
    conditions=conditions,
    addresses=st.lists(
        having(
            {
                "type": one_of_these("InternalIP", "Hostname", "ExternalIP"),
                "address": one_of_these("10.0.0.1", "x", "10.0.0.2"),
            }
        ),
        max_size=3,
    ),
    nodeInfo=some(kubeletVersion=words),
    images=st.lists(some(names=st.lists(words, max_size=2), sizeBytes=small), max_size=2),
    phase=one_of_these("Running"),
)
config_maps = some(
    data=st.one_of(maps, st.none(), st.dictionaries(one_of_these("a", "UPPER_1.x", "no/slash"), words, max_size=2)),
    binaryData=st.dictionaries(one_of_these("d", "e", "a"), one_of_these("AA==", "AAA=", "!"), max_size=2),
    immutable=st.booleans(),
)
secrets = some(
    data=st.dictionaries(
        one_of_these("a", "b", "tls.crt", "tls.key", ".dockerconfigjson"),
        one_of_these("AA==", "e30=", None),
        max_size=2,
    ),
    stringData=st.one_of(maps, st.none()),
    immutable=st.booleans(),
    type=one_of_these(
        "Opaque", "kubernetes.io/tls", "kubernetes.io/basic-auth", "kubernetes.io/dockerconfigjson", "x", ""
    ),
)
shapes = BODIES["Shape"].map(lambda body: body.get("spec", {}))
