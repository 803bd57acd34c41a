"""The embedded API server beside a real kube-apiserver and etcd: started, pinned to a core, loaded and measured."""
