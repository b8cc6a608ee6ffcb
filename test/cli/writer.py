"""A job that ignores signals: `writer.py HOST PORT` posts the token of its lock every millisecond, until SIGKILL."""

import http.client
import os
import signal
import sys
import time

for name in ("SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT"):
    signal.signal(getattr(signal, name), signal.SIG_IGN)
resource = http.client.HTTPConnection(sys.argv[1], int(sys.argv[2]))
while True:
    resource.request("POST", f"/?token={os.environ['ETCD_LOCK_TOKEN']}")
    resource.getresponse().read()
    time.sleep(0.001)
