"""What an operator needs: metrics, logs, traces, and the check before a start."""
