"""A job that ignores signals: `writer.py HOST PORT` posts the token of its lock repeatedly, until SIGKILL."""

import http.client
import os
import signal
import sys

for name in ("SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT"):
    signal.signal(getattr(signal, name), signal.SIG_IGN)
resource = http.client.HTTPConnection(sys.argv[1], int(sys.argv[2]))
while True:
    resource.request("POST", f"/?token={os.environ['ETCD_LOCK_TOKEN']}")
    resource.getresponse().read()
