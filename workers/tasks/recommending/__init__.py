"""What a task that recommends is told: who is asked for, and what may be recommended."""
