"""The commands of this room: ``order``, ``run``, ``score``, ``predict``, ``compare``."""
