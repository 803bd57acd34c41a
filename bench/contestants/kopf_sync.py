import os, sys, logging, kopf, uvloop, kubernetes
from bench.contestants.starting import ready
@kopf.on.startup()
def configure(settings, **_):
    settings.posting.enabled = False
    settings.scanning.disabled = True
    settings.watching.initial_streaming = True
@kopf.on.login()
def sign_in(**given): return kopf.login_with_kubeconfig(**given)
@kopf.on.resume("example.shoal.dev", "v1", "greetings")
@kopf.on.create("example.shoal.dev", "v1", "greetings")
def greet(name, namespace, spec, patch, **_):
    child = f"{name}-words"
    cm = {"apiVersion": "v1","kind": "ConfigMap","metadata": {"name": child, "namespace": namespace},"data": {"words": f"Hello, {spec['name']}!"}}
    kopf.adopt(cm)
    kubernetes.client.CoreV1Api().create_namespaced_config_map(namespace, cm)
    patch.status["configMap"] = child
logging.getLogger("kopf").setLevel(logging.WARNING)
kc, ns = ready(sys.argv[1:])
os.environ["KUBECONFIG"]=str(kc)
kubernetes.config.load_kube_config(str(kc))
uvloop.run(kopf.operator(standalone=True, namespaces=[ns]))
