from hypothesis import HealthCheck, settings

pytest_plugins = ["tests.support.kube_fixture", "tests.support.embedded", "tests.support.engines"]

# A loaded machine must not make a property fail; a failure prints what reproduces it.
settings.register_profile("shoal", deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("shoal")
