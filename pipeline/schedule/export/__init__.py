"""Schedules for other schedulers: cron, systemd, Kubernetes, Airflow."""
