"""The parts of the Kubernetes API double; its door is tests/doubles/kube_api.py."""
