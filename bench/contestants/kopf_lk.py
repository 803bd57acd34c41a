import os, sys
from lightkube import AsyncClient
from lightkube.config.kubeconfig import KubeConfig
from lightkube.resources.core_v1 import ConfigMap
from bench.contestants.kopf_operator import operate
async def lk():
    c = AsyncClient(config=KubeConfig.from_file(os.environ["KUBECONFIG"]))
    async def create(ns, cm):
        await c.create(ConfigMap.from_dict(cm), namespace=ns)
    async def close(): pass
    return create, close
operate(sys.argv[1:], lk)
