"""The names of ``cep.spark``, as those of :mod:`cepbench`."""

from cepbench.spark.aggregation import aggregate as aggregate
from cepbench.spark.detection import detect as detect
from cepbench.spark.detection import slices as slices
from cepbench.spark.jobs import watched as watched
from cepbench.spark.live import detect_stream as detect_stream
from cepbench.spark.planning import measure_statistics as measure_statistics
from cepbench.spark.planning import plan as plan
from cepbench.spark.scale_out import scaling as scaling
from cepbench.spark.session import spark_session as spark_session
