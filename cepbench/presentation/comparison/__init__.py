"""`cep.compare`: every plan generator, aggregation method or planner side by side on one stream."""
