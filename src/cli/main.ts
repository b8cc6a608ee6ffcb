#!/usr/bin/env node
process.stderr.write('etcd-v2-lock: this release is a library; it has no commands yet. Read its README.\n');
process.exitCode = 64;
