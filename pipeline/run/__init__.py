"""From a configuration to a run: stages, plan, runner, log and history."""
