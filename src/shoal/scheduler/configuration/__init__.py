"""What a scheduler is told: KAI's configuration file, KAI's flags, and the shard that KAI's operator makes both of.

``file`` reads the file, ``options`` the flags, ``shards`` writes a shard down as the two, ``engine`` turns them into
the settings of the engine. All of it is pure; what is merely odd is a remark, to be told once.
"""

from shoal.scheduler.configuration.engine import EngineSetup, engine_setup
from shoal.scheduler.configuration.file import Configuration, PluginChoice, configuration_of, read_configuration
from shoal.scheduler.configuration.options import FLAGS, Flag, SchedulerOptions, options_of, parse_arguments
from shoal.scheduler.configuration.problems import ConfigurationError
from shoal.scheduler.configuration.shards import configuration_text, shard_configuration, shard_options

__all__ = [
    "FLAGS",
    "Configuration",
    "ConfigurationError",
    "EngineSetup",
    "Flag",
    "PluginChoice",
    "SchedulerOptions",
    "configuration_of",
    "configuration_text",
    "engine_setup",
    "options_of",
    "parse_arguments",
    "read_configuration",
    "shard_configuration",
    "shard_options",
]
