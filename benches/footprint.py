"""Size of the program, its memory while idle, its time from start to healthy, and the size of a model request.

footprint.py BINARY [TIMES]: every measurement is taken that many times (3) and all figures are printed. The program is
configured for Twilio, a model, Sonarr and Radarr that nobody calls.
"""

import http.client
import http.server
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

IDLE_S = 5
TEXT = "ping"


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def environment(folder, **more):
    """Nothing of the caller's settings, so that every run is alike."""
    return {
        "PATH": os.environ["PATH"],
        "HOST": "127.0.0.1",
        "PUBLIC_URL": "https://sms.example.org",
        "DATABASE_URL": str(Path(folder) / "footprint.db"),
        "TZ": "UTC",
        "TWILIO_ACCOUNT_SID": "AC" + "0" * 32,
        "TWILIO_AUTH_TOKEN": "0" * 32,
        "TWILIO_PHONE_NUMBER": "+15550100000",
        "LLM_BASE_URL": "http://127.0.0.1:9/v1",
        "LLM_MODEL": "any",
        "SONARR_URL": "http://127.0.0.1:9",
        "SONARR_API_KEY": "0" * 32,
        "RADARR_URL": "http://127.0.0.1:9",
        "RADARR_API_KEY": "0" * 32,
        "ADMIN_PHONE": "+15550100001",
        **more,
    }


def serve(binary, folder):
    """Starts the program; the seconds until /health first answered 200, and the process."""
    port = free_port()
    start = time.perf_counter()
    process = subprocess.Popen(
        [binary, "serve"], cwd=folder, env=environment(folder, PORT=str(port)), stderr=subprocess.PIPE
    )
    while process.poll() is None and time.perf_counter() - start < 30:
        try:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=1)
            connection.request("GET", "/health")
            if connection.getresponse().status == 200:
                return time.perf_counter() - start, process
        except OSError:
            time.sleep(0.0005)
    process.kill()
    sys.exit(f"the program did not start: {process.stderr.read().decode()}")


def stop(process):
    process.terminate()
    process.communicate(timeout=20)


def resident_kib(process):
    status = Path(f"/proc/{process.pid}/status").read_text()
    return {
        key: int(next(line.split()[1] for line in status.splitlines() if line.startswith(key + ":")))
        for key in ("VmRSS", "RssAnon", "VmHWM")
    }


class Model(http.server.BaseHTTPRequestHandler):
    bodies = []

    def do_POST(self):
        self.bodies.append(self.rfile.read(int(self.headers["Content-Length"])))
        chunk = {"id": "r1", "choices": [{"index": 0, "delta": {"content": "pong"}, "finish_reason": "stop"}]}
        answer = f"data: {json.dumps(chunk)}\n\ndata: [DONE]\n\n".encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_):
        pass


def request_sizes(binary):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Model)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory() as folder:
        url = f"http://127.0.0.1:{server.server_port}/v1"
        env = environment(folder, LLM_BASE_URL=url)
        chat = subprocess.run(
            [binary, "chat"], cwd=folder, env=env, input=TEXT.encode(), capture_output=True, timeout=60
        )
    server.shutdown()
    if b"pong" not in chat.stdout:
        sys.exit(f"no answer to {TEXT!r}: {chat.stdout.decode()}{chat.stderr.decode()}")
    return [len(body) for body in Model.bodies]


def main(binary, times):
    binary = str(Path(binary).resolve())
    print(f"program: {Path(binary).stat().st_size / 2**20:.1f} MiB")
    print(f"model request for {TEXT!r}: {request_sizes(binary)} bytes")
    for _ in range(times):
        with tempfile.TemporaryDirectory() as folder:
            fresh, process = serve(binary, folder)
            stop(process)
            existing, process = serve(binary, folder)
            time.sleep(IDLE_S)
            memory = {key: f"{kib / 1024:.1f} MiB" for key, kib in resident_kib(process).items()}
            stop(process)
        print(f"healthy after: {fresh * 1e3:.0f} ms on no database, {existing * 1e3:.0f} ms on an existing one")
        print(f"idle for {IDLE_S} s: {memory}")


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) == 3 else 3)
