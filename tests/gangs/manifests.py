"""Sets as people write them who try gangs for the first time."""

from __future__ import annotations

TEST_KAI = """\
apiVersion: grove.io/v1alpha1
kind: PodCliqueSet
metadata:
  name: test-kai
spec:
  replicas: 1
  template:
    cliques:
    - name: workers
      spec:
        replicas: 2
        minAvailable: 2
        podSpec:
          schedulerName: "kai-scheduler"
          containers:
          - name: worker
            image: busybox
            command: ["sleep", "3600"]
"""

TEST_DEFAULT = """\
apiVersion: grove.io/v1alpha1
kind: PodCliqueSet
metadata:
  name: test-default
spec:
  replicas: 1
  template:
    cliques:
    - name: workers
      spec:
        replicas: 2
        podSpec:
          schedulerName: ""
          containers:
          - name: worker
            image: busybox
            command: ["sleep", "3600"]
"""
