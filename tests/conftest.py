from hypothesis import HealthCheck, settings

pytest_plugins = [f"tests.support.clusters.{name}" for name in ("real", "embedded", "engines", "in_process")]

# A loaded machine must not make a property fail; a failure prints what reproduces it.
settings.register_profile("shoal", deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("shoal")
