"""From a plan and a stream to matches or values: the engines, detection, aggregation, adaptation."""
