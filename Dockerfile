# The workbench with packages, compiled kernels and Java, from Debian and PyPI alone; `make env` installs nothing
# from PyPI whose hash is not in requirements.txt:
#   docker build -t cepbench . && docker run --rm -it -p 8888:8888 cepbench
FROM debian:12-slim
RUN apt-get update \
    && apt-get install --yes --no-install-recommends make python3 python3-venv \
    && rm -rf /var/lib/apt/lists/*
RUN useradd --create-home reviewer && install --directory --owner reviewer /cepbench
USER reviewer
WORKDIR /cepbench
COPY --chown=reviewer . .
RUN make env
ENV PATH=/cepbench/.venv/bin:$PATH
EXPOSE 8888
CMD ["jupyter", "lab", "--ip=0.0.0.0", "--no-browser"]
