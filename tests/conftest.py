import signal

from hypothesis import HealthCheck, settings

pytest_plugins = [f"tests.support.clusters.{name}" for name in ("real", "embedded", "engines", "in_process")]

# A loaded machine must not make a property fail; a failure prints what reproduces it.
settings.register_profile("shoal", deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("shoal")

# Tests press Ctrl-C and close terminals. Programs that they start inherit what nohup or a shell's background ignores.
for ignored in (signal.SIGINT, signal.SIGHUP):
    if signal.getsignal(ignored) is signal.SIG_IGN:
        signal.signal(ignored, signal.SIG_DFL)
