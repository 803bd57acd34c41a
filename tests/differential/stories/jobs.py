"""Jobs: every way to go on and to end. All pods live by the hand of the story."""

from __future__ import annotations

from typing import Any

from tests.differential.mirror import Object
from tests.differential.objects import a_bare_pod, a_job, a_quota
from tests.differential.story import BY_HAND, Story, Teller

DISRUPTED = [
    {"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI", "lastTransitionTime": None}
]


def _active(c: Teller, count: int) -> list[Object]:
    """The pods that are neither finished nor deleted, once there are so many of them."""
    c.until(lambda: len(_alive(c)) == count, f"{count} pods are active")
    return _alive(c)


def _alive(c: Teller) -> list[Object]:
    return [
        pod
        for pod in c.pods()
        if pod["status"].get("phase") not in ("Succeeded", "Failed") and "deletionTimestamp" not in pod["metadata"]
    ]


def _of_index(c: Teller, index: int) -> Object:
    """The newest pod of an index that is alive."""

    def found() -> list[Object]:
        key = "batch.kubernetes.io/job-completion-index"
        return [pod for pod in _alive(c) if pod["metadata"]["labels"].get(key) == str(index)]

    c.until(found, f"there is a pod of index {index}")
    return found()[0]


def _plain(c: Teller) -> None:
    c.create(a_job())
    (pod,) = _active(c, 1)
    c.until_status("Job", "work", active=1, ready=0)
    c.snapshot("pending")
    c.run(pod)
    c.until_status("Job", "work", active=1, ready=1)
    c.snapshot("running")
    c.finish(pod)
    c.until_condition("Job", "work", "Complete")
    c.snapshot("complete")


def _completions(c: Teller) -> None:
    c.create(a_job(parallelism=2, completions=3))
    c.finish(_active(c, 2)[0])
    c.until_status("Job", "work", succeeded=1, active=2)
    c.snapshot("one of three")
    c.finish(*_active(c, 2))
    c.until_condition("Job", "work", "Complete")
    c.snapshot("complete")


def _work_queue(c: Teller) -> None:
    c.create(a_job(parallelism=3))
    pods = _active(c, 3)
    c.finish(pods[0])
    c.until_status("Job", "work", succeeded=1, active=2)
    c.snapshot("once one has succeeded there are no new ones")
    c.finish(pods[1], exit_code=1)
    c.until_status("Job", "work", failed=1, active=1)
    c.snapshot("not even for one that failed")
    c.finish(pods[2])
    c.until_condition("Job", "work", "Complete")
    c.snapshot("complete")


def _indexed(c: Teller) -> None:
    c.create(a_job(parallelism=2, completions=4, completionMode="Indexed"))
    c.finish(_of_index(c, 1))
    c.until_status("Job", "work", succeeded=1, active=2)
    c.snapshot("index 1 is done, 2 has begun")
    c.finish(_of_index(c, 2))
    c.finish(_of_index(c, 3))
    c.until_status("Job", "work", succeeded=3, active=1)
    c.snapshot("only 0 is left")
    c.finish(_of_index(c, 0))
    c.until_condition("Job", "work", "Complete")
    c.snapshot("complete")


def _backoff_limit(c: Teller) -> None:
    c.create(a_job(parallelism=2, completions=2, backoffLimit=0))
    pods = _active(c, 2)
    c.finish(pods[0], exit_code=3)
    c.until_condition("Job", "work", "Failed")
    c.snapshot("one failure was too many, and the other pod is ended")


def _retry(c: Teller) -> None:
    c.create(a_job(backoffLimit=1))
    c.finish(*_active(c, 1), exit_code=1)
    c.until_status("Job", "work", failed=1)
    c.finish(*_active(c, 1), exit_code=1)
    c.until_condition("Job", "work", "Failed")
    c.snapshot("failed again")


def _index_limit(c: Teller) -> None:
    c.create(a_job(parallelism=3, completions=3, completionMode="Indexed", backoffLimitPerIndex=0))
    c.finish(_of_index(c, 1), exit_code=1)
    c.until_status("Job", "work", failed=1, active=2)
    c.snapshot("index 1 has failed, the others go on")
    c.finish(_of_index(c, 0))
    c.finish(_of_index(c, 2))
    c.until_condition("Job", "work", "Failed")
    c.snapshot("failed in the end")


def _max_failed(c: Teller) -> None:
    spec: Object = {"parallelism": 4, "completions": 4, "completionMode": "Indexed", "backoffLimitPerIndex": 0}
    c.create(a_job(**spec, maxFailedIndexes=1))
    c.finish(_of_index(c, 0), exit_code=1)
    c.until_status("Job", "work", failed=1, active=3)
    c.finish(_of_index(c, 3), exit_code=1)
    c.until_condition("Job", "work", "Failed")
    c.snapshot("two failed indexes are one too many")


def _rules(*rules: Object, **spec: Any) -> Object:
    return a_job(podFailurePolicy={"rules": list(rules)}, **spec)


def _on_exit(action: str, *codes: int) -> Object:
    return {"action": action, "onExitCodes": {"operator": "In", "values": list(codes)}}


def _fail_job(c: Teller) -> None:
    c.create(_rules(_on_exit("FailJob", 42), parallelism=2, completions=2))
    c.finish(_active(c, 2)[0], exit_code=42)
    c.until_condition("Job", "work", "Failed")
    c.snapshot("failed at once")


def _ignore(c: Teller) -> None:
    rule = {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}
    c.create(_rules(rule, backoffLimit=0))
    (pod,) = _active(c, 1)
    c.finish(pod, exit_code=137, conditions=DISRUPTED)
    c.until(lambda: pod["metadata"]["name"] not in [one["metadata"]["name"] for one in _alive(c)] and _alive(c))
    c.snapshot("the disruption does not count")
    c.finish(*_active(c, 1))
    c.until_condition("Job", "work", "Complete")
    c.snapshot("complete")


def _count(c: Teller) -> None:
    c.create(_rules(_on_exit("Count", 1), _on_exit("FailJob", 1, 2), backoffLimit=0))
    c.finish(*_active(c, 1), exit_code=1)
    c.until_condition("Job", "work", "Failed")
    c.snapshot("the first rule that fits counts")


def _fail_index(c: Teller) -> None:
    spec: Object = {"parallelism": 2, "completions": 2, "completionMode": "Indexed", "backoffLimitPerIndex": 5}
    c.create(_rules(_on_exit("FailIndex", 9), **spec))
    c.finish(_of_index(c, 1), exit_code=9)
    c.until_status("Job", "work", failed=1, active=1)
    c.snapshot("the index is not tried again")
    c.finish(_of_index(c, 0))
    c.until_condition("Job", "work", "Failed")
    c.snapshot("failed")


def _not_in(c: Teller) -> None:
    rule = {"action": "FailJob", "onExitCodes": {"containerName": "main", "operator": "NotIn", "values": [1, 2]}}
    c.create(_rules(rule, backoffLimit=3))
    c.finish(*_active(c, 1), exit_code=7)
    c.until_condition("Job", "work", "Failed")
    c.snapshot("failed by a code that is not in the list, of the container that is named")


def _success(*rules: Object) -> Object:
    spec: Object = {"parallelism": 3, "completions": 3, "completionMode": "Indexed"}
    return a_job(**spec, successPolicy={"rules": list(rules)})


def _success_count(c: Teller) -> None:
    c.create(_success({"succeededCount": 2}))
    c.finish(_of_index(c, 0))
    c.until_status("Job", "work", succeeded=1, active=2)
    c.finish(_of_index(c, 2))
    c.until_condition("Job", "work", "Complete")
    c.snapshot("two of three suffice")


def _success_indexes(c: Teller) -> None:
    c.create(_success({"succeededIndexes": "1-2", "succeededCount": 2}, {"succeededIndexes": "0"}))
    c.finish(_of_index(c, 0))
    c.until_condition("Job", "work", "Complete")
    c.snapshot("the leader suffices")


def _suspended(c: Teller) -> None:
    c.create(a_job(suspend=True, parallelism=2))
    c.until_condition("Job", "work", "Suspended")
    c.snapshot("suspended")
    c.patch("Job", "work", {"spec": {"suspend": False}})
    c.run(*_active(c, 2))
    c.until_status("Job", "work", active=2, ready=2)
    c.snapshot("resumed")
    c.patch("Job", "work", {"spec": {"suspend": True}})
    c.until_pods(0)
    c.until_condition("Job", "work", "Suspended")
    c.snapshot("suspended again")


def _deadline(c: Teller) -> None:
    c.create(a_job(activeDeadlineSeconds=2, parallelism=2))
    c.run(_active(c, 2)[0])
    c.until_condition("Job", "work", "Failed")
    c.snapshot("out of time")


def _ttl(c: Teller) -> None:
    c.create(a_job(ttlSecondsAfterFinished=1))
    c.finish(*_active(c, 1))
    c.until_gone("Job", "work")
    c.until_pods(0)
    c.snapshot("gone a second after it ended")


def _parallelism(c: Teller) -> None:
    c.create(a_job(parallelism=3, completions=6))
    c.run(_active(c, 3)[0])
    c.until_status("Job", "work", active=3, ready=1)
    c.patch("Job", "work", {"spec": {"parallelism": 1}})
    _active(c, 1)
    c.until_status("Job", "work", active=1)
    c.snapshot("fewer: pods that do not run go first")
    c.patch("Job", "work", {"spec": {"parallelism": 4}})
    _active(c, 4)
    c.until_status("Job", "work", active=4)
    c.snapshot("more")
    c.patch("Job", "work", {"spec": {"parallelism": 0}})
    _active(c, 0)
    c.until_status("Job", "work", active=None)
    c.snapshot("none")


def _elastic(c: Teller) -> None:
    c.create(a_job(parallelism=3, completions=3, completionMode="Indexed"))
    c.finish(_of_index(c, 0))
    c.until_status("Job", "work", succeeded=1)
    c.patch("Job", "work", {"spec": {"parallelism": 2, "completions": 2}})
    c.until_status("Job", "work", succeeded=1, active=1)
    c.snapshot("index 2 is wanted no more")
    c.patch("Job", "work", {"spec": {"parallelism": 4, "completions": 4}})
    c.until_status("Job", "work", succeeded=1, active=3)
    c.snapshot("2 and 3 are")


def _managed_by(c: Teller) -> None:
    c.create(a_job(managedBy="example.com/other"), a_job("own"))
    c.until_status("Job", "own", active=1)
    c.snapshot("another controller's job is left alone")


def _no_completions(c: Teller) -> None:
    c.create(a_job(completions=0))
    c.until_condition("Job", "work", "Complete")
    c.snapshot("nothing to do")


def _deleted_pod(c: Teller) -> None:
    c.create(a_job(backoffLimit=2))
    (pod,) = _active(c, 1)
    c.run(pod)
    c.until_status("Job", "work", ready=1)
    c.delete("Pod", pod["metadata"]["name"], grace=0)
    c.until_gone("Pod", pod["metadata"]["name"])
    c.until_status("Job", "work", failed=1)
    c.until(lambda: len(_alive(c)) == 1)
    c.snapshot("a deleted pod is a failure, and replaced")


def _replacement(policy: str) -> Story:
    def tell(c: Teller) -> None:
        c.create(a_job(podReplacementPolicy=policy, pod=c.a_silent_node(), backoffLimit=5))
        (pod,) = _active(c, 1)
        c.run(pod)
        c.until_status("Job", "work", ready=1)
        c.delete("Pod", pod["metadata"]["name"])
        c.until_status("Job", "work", terminating=1)
        if policy == "TerminatingOrFailed":
            c.until(lambda: len(c.pods()) == 2)
        c.snapshot("one is terminating")
        c.finish(pod, exit_code=143)
        c.until_status("Job", "work", failed=1, terminating=0)
        c.until(lambda: len(_alive(c)) == 1)
        c.until_status("Job", "work", active=1)
        c.snapshot("it has ended")

    return Story(f"job replaces pods when {policy}", tell)


def _quota(c: Teller) -> None:
    c.create(a_quota(pods="1"))
    c.until_status("ResourceQuota", "quota", hard={"pods": "1"})
    c.create(a_job(parallelism=2, completions=2))
    _active(c, 1)
    c.until_event("FailedCreate")
    c.until_status("Job", "work", active=1)
    c.snapshot("only one pod is allowed")


def _deleted(policy: str) -> Story:
    def tell(c: Teller) -> None:
        c.create(a_job(parallelism=2, completions=3))
        c.finish(_active(c, 2)[0])
        c.until_status("Job", "work", succeeded=1, active=2)
        c.delete("Job", "work", policy=policy)
        c.until_gone("Job", "work")
        if policy != "Orphan":
            c.until_pods(0)
        c.until(lambda: all(not pod["metadata"].get("finalizers") for pod in c.pods()))
        c.snapshot("deleted")

    return Story(f"job deleted {policy}", tell)


def _manual_selector(c: Teller) -> None:
    job = a_job(manualSelector=True, selector={"matchLabels": {"app": "work"}})
    c.create(job)
    c.until_status("Job", "work", active=1)
    c.finish(*_active(c, 1))
    c.until_condition("Job", "work", "Complete")
    c.snapshot("a selector of its own")


def _retry_index(c: Teller) -> None:
    c.create(a_job(parallelism=2, completions=2, completionMode="Indexed", backoffLimitPerIndex=1))
    c.finish(_of_index(c, 1), exit_code=1)
    c.until_status("Job", "work", failed=1)
    c.finish(_of_index(c, 1), exit_code=1)
    c.until_status("Job", "work", failed=2)
    c.until(lambda: c.get("Job", "work")["status"].get("failedIndexes") == "1")
    c.snapshot("index 1 has failed twice")


def _restarts(c: Teller) -> None:
    c.create(a_job(backoffLimit=1, pod={"restartPolicy": "OnFailure"}))
    (pod,) = _active(c, 1)
    c.run(pod)
    c.until_status("Job", "work", ready=1)
    containers = c.get("Pod", pod["metadata"]["name"])["status"]["containerStatuses"]
    restarted = [{**one, "restartCount": 2} for one in containers]
    c.replace_status("Pod", pod["metadata"]["name"], {"containerStatuses": restarted})
    c.until_condition("Job", "work", "Failed")
    c.snapshot("restarts in place count")


def _fail_on_condition(c: Teller) -> None:
    rule = {"action": "FailJob", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}
    c.create(_rules(rule, parallelism=2, completions=2))
    c.finish(_active(c, 2)[0], exit_code=137, conditions=DISRUPTED)
    c.until_condition("Job", "work", "Failed")
    c.snapshot("a disruption fails the job")


def _deadline_while_suspended(c: Teller) -> None:
    c.create(a_job(activeDeadlineSeconds=3600))
    c.until_status("Job", "work", active=1)
    c.patch("Job", "work", {"spec": {"suspend": True}})
    c.until_condition("Job", "work", "Suspended")
    c.until_pods(0)
    c.snapshot("the clock does not run")
    c.patch("Job", "work", {"spec": {"suspend": False, "activeDeadlineSeconds": 1}})
    c.until_condition("Job", "work", "Failed")
    c.snapshot("and then it does")


def _stranger(c: Teller) -> None:
    c.create(a_bare_pod("early", {"labels": {"app": "work"}}, **BY_HAND, restartPolicy="Never"))
    c.create(a_job(manualSelector=True, selector={"matchLabels": {"app": "work"}}))
    c.until(lambda: c.get("Pod", "early")["metadata"].get("ownerReferences"))
    c.until_status("Job", "work", active=1)
    c.snapshot("a pod that fits is adopted")
    c.patch("Pod", "early", {"metadata": {"labels": {"app": "mine"}}})
    c.until(lambda: not c.get("Pod", "early")["metadata"].get("ownerReferences"))
    c.until_pods(2)
    c.until_status("Job", "work", active=1)
    c.snapshot("and let go when it fits no more")


def _one_of_many(c: Teller) -> None:
    c.create(a_job(parallelism=2, completions=2, completionMode="Indexed", backoffLimit=0))
    c.finish(_of_index(c, 0))
    c.until_status("Job", "work", succeeded=1)
    c.finish(_of_index(c, 1), exit_code=1)
    c.until_condition("Job", "work", "Failed")
    c.snapshot("half of it succeeded")


STORIES = [
    Story("job plain", _plain),
    Story("job with completions", _completions),
    Story("job that works off a queue", _work_queue),
    Story("job indexed", _indexed),
    Story("job at its backoff limit", _backoff_limit),
    Story("job that is tried again", _retry),
    Story("job backoff limit per index", _index_limit),
    Story("job tries an index again", _retry_index),
    Story("job max failed indexes", _max_failed),
    Story("job failure policy FailJob", _fail_job),
    Story("job failure policy Ignore", _ignore),
    Story("job failure policy Count", _count),
    Story("job failure policy FailIndex", _fail_index),
    Story("job failure policy NotIn", _not_in),
    Story("job success policy by count", _success_count),
    Story("job success policy by indexes", _success_indexes),
    Story("job suspended and resumed", _suspended),
    Story("job active deadline", _deadline),
    Story("job is gone after its time to live", _ttl),
    Story("job parallelism is changed", _parallelism),
    Story("job elastic indexes", _elastic),
    Story("job managed by another", _managed_by),
    Story("job without completions", _no_completions),
    Story("job loses a pod", _deleted_pod),
    *(_replacement(policy) for policy in ("TerminatingOrFailed", "Failed")),
    Story("job beyond a quota", _quota),
    *(_deleted(policy) for policy in ("Background", "Foreground", "Orphan")),
    Story("job with a selector of its own", _manual_selector),
    Story("job with restarts in place", _restarts),
    Story("job failure policy on a condition", _fail_on_condition),
    Story("job deadline while suspended", _deadline_while_suspended),
    Story("job adopts and releases", _stranger),
    Story("job indexed fails", _one_of_many),
]
