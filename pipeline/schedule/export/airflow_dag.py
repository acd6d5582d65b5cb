"""A schedule as a DAG of Airflow 3."""

from __future__ import annotations

from pipeline.schedule.schedule import Schedule, command_words

TEMPLATE = '''\
# cp {file} "$AIRFLOW_HOME/dags/"
# Needs Airflow 3 and peg-pipeline in the environment of the workers. A cluster's token comes
# from RAY_AUTH_TOKEN_PATH there, a file of mode 0600.
{title!r}

from datetime import timedelta

import pendulum
from airflow.sdk import DAG, task

COMMAND = {command!r}
SUBMITS = {submits}
FOLDER = {folder!r}

with DAG(
    dag_id={dag_id!r},
    schedule={cron!r},
    start_date=pendulum.datetime({year}, {month}, {day}, tz={timezone!r}),
    catchup={catchup},
    max_active_runs=1,
    default_args={{
        "retries": {retries},
        "retry_delay": timedelta(seconds={retry_delay:g}),
        "retry_exponential_backoff": True,
    }},
    tags=["peg"],
) as dag:

    @task(task_id="run")
    def run(ts_nodash=None, ti=None):
        """The time of the tick is in the job's id: the cluster takes it once."""
        import subprocess

        attempt = f"{{ts_nodash}}-try{{ti.try_number}}"
        command = [*COMMAND, "--id", attempt] if SUBMITS else COMMAND
        subprocess.run(command, cwd=FOLDER, check=True)

    run()
'''


def airflow_dag(schedule: Schedule, cron: str, *, file: str) -> str:
    """The text of a DAG file, one run at a time."""
    return TEMPLATE.format(
        file=file,
        title=f"{schedule.when}: {schedule.config}",
        command=command_words(schedule),
        submits=schedule.address is not None,
        folder=schedule.folder,
        dag_id=f"peg-{schedule.name}",
        cron=cron,
        year=schedule.created.year,
        month=schedule.created.month,
        day=schedule.created.day,
        timezone=schedule.timezone,
        catchup=schedule.catch_up == "all",
        retries=schedule.retries,
        retry_delay=schedule.retry_delay_seconds,
    )
