"""The engines of a broker: how they are built, the thread that runs them, and the reasons they give."""
