"""Where the alerts of the demo arrive: prints what Alertmanager sends."""

import json
from http.server import BaseHTTPRequestHandler, HTTPServer


class OnCall(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        for alert in message["alerts"]:
            print(alert["status"], alert["annotations"]["summary"], flush=True)
        self.send_response(204)
        self.end_headers()


if __name__ == "__main__":
    HTTPServer(("", 8080), OnCall).serve_forever()
