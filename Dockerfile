# The decision service and the mirror: docker build -t decoupled:local .
# docs/deploy.md says how to run it, and CI does.
ARG PYTHON=3.13.7

# The wheel, with machine code for every processor of this platform: this takes some minutes, and needs a C compiler.
FROM python:${PYTHON}-bookworm AS build
WORKDIR /src
COPY requirements/pip.txt requirements/wheel.txt requirements/image.txt requirements/
RUN python -m venv /build \
  && /build/bin/python -m pip install --no-cache-dir --require-hashes -r requirements/pip.txt \
  && /build/bin/python -m pip install --no-cache-dir --require-hashes -r requirements/wheel.txt
RUN python -m venv --without-pip /venv \
  && /build/bin/python -m pip --python /venv/bin/python install --no-cache-dir --no-compile --require-hashes -r requirements/image.txt
COPY core/ core/
COPY serve/ serve/
RUN (cd core && /build/bin/python -m hatchling build -t wheel -d /dist) \
  && (cd serve && /build/bin/python -m hatchling build -t wheel -d /dist) \
  && /build/bin/python -m pip --python /venv/bin/python install --no-cache-dir --no-compile --no-index --no-deps /dist/*.whl
# The root file system is read-only, so Python could not store bytecode later. Files are compared by content, because a
# copy of an image may have other times.
RUN /venv/bin/python -m compileall -q --invalidation-mode unchecked-hash /venv

FROM python:${PYTHON}-slim-bookworm
COPY --from=build /venv /venv
# A folder for the store, which the user of the service may write to. A new volume takes over the owner.
RUN install -d -o 10001 -g 10001 -m 0750 /data
ENV PATH=/venv/bin:$PATH PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1 NUMBA_CACHE_DIR=/tmp/numba DECOUPLED_HOST=0.0.0.0
# The default store is a file in the current folder.
WORKDIR /data
VOLUME /data
USER 10001:10001
EXPOSE 8000
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=15s --timeout=6s --start-period=30s CMD ["decoupled", "health"]
ENTRYPOINT ["decoupled"]
CMD ["serve"]
