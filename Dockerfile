# A bridge from clients of etcd v2 to locks on etcd v3: docs/bridge.md. Connection options are environment variables, or arguments:
#   docker build -t etcd-v2-lock .
#   docker run -p 127.0.0.1:4001:4001 -e ETCD_ENDPOINTS=http://etcd:2379 etcd-v2-lock
FROM node:22-slim AS build
WORKDIR /build
COPY . .
RUN npm ci && npm pack && npm install --global --prefix /out ./etcd-v2-lock-*.tgz

FROM node:22-slim
COPY --from=build /out /usr/local
USER node
EXPOSE 4001
HEALTHCHECK --interval=10s --timeout=5s \
  CMD ["node", "-e", "fetch('http://127.0.0.1:4001/health').then(({ ok }) => process.exit(ok ? 0 : 1), () => process.exit(1))"]
ENTRYPOINT ["etcd-v2-lock"]
CMD ["bridge", "--listen", "0.0.0.0:4001", "--metrics", "--log", "changes"]
