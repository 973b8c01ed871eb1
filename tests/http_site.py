#!/usr/bin/env python3
"""A small site for tests/http_load.rs: pages that are fine, and pages that are wrong in one way each.

Prints its port on the first line. Ends when its standard input ends. With a certificate and a key it speaks HTTPS.
"""

import gzip
import json
import socketserver
import ssl
import sys
import threading
import time
from urllib.parse import parse_qs, urlsplit

lock = threading.Lock()
counts = {"connections": 0, "requests": 0}
tokens = set()


def count(name):
    with lock:
        counts[name] = counts.get(name, 0) + 1
        return counts[name]


class Site(socketserver.StreamRequestHandler):
    def setup(self):
        # A handshake that fails ends this connection's thread, and not the site.
        self.request.settimeout(30)
        if context is not None:
            self.request = context.wrap_socket(self.request, server_side=True)
        super().setup()

    def handle(self):
        count("connections")
        served = 0
        while self.one(served):
            served += 1

    def one(self, served):
        line = self.rfile.readline(8192).decode("latin-1").split()
        if len(line) != 3:
            return False
        method, target, _ = line
        headers = {}
        while (header := self.rfile.readline(8192).strip()) != b"":
            name, _, value = header.decode("latin-1").partition(":")
            headers[name.lower()] = value.strip()
        body = self.rfile.read(int(headers.get("content-length", 0))).decode()
        count("requests")
        url = urlsplit(target)
        count(f"{method} {url.path}")
        page = getattr(self, "page_" + url.path.strip("/").replace("/", "_"), None) if url.path != "/" else self.home
        if page is None:
            return self.answer(404, b"no such page", headers)
        return page(method, parse_qs(url.query), headers, body, served)

    def send(self, data):
        self.wfile.write(data)
        self.wfile.flush()

    def answer(self, status, body, headers, more=()):
        closes = headers.get("connection", "").lower() == "close"
        lines = [f"HTTP/1.1 {status} X", f"Content-Length: {len(body)}", *more]
        if closes:
            lines.append("Connection: close")
        self.send("\r\n".join(lines).encode() + b"\r\n\r\n" + body)
        return not closes

    def home(self, method, query, headers, body, served):
        return self.answer(200, b"welcome", headers)

    page_shop_home = home

    def page_stats(self, method, query, headers, body, served):
        with lock:
            return self.answer(200, json.dumps(counts).encode(), headers)

    def page_login(self, method, query, headers, body, served):
        return self.answer(200, b"in", headers, [f"Set-Cookie: sid=u{count('logins')}; Path=/; HttpOnly"])

    def page_account(self, method, query, headers, body, served):
        good = headers.get("cookie", "").startswith("sid=u")
        return self.answer(200 if good else 403, b"account", headers)

    def token(self):
        token = f"t {count('tokens')}&"
        with lock:
            tokens.add(token)
        return f'<p>before</p><input name="token" value="{token}"><p>after</p>'.encode()

    def page_form(self, method, query, headers, body, served):
        page = self.token()
        self.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        for begin in range(0, len(page), 7):
            piece = page[begin:begin + 7]
            self.send(b"%x\r\n%s\r\n" % (len(piece), piece))
        self.send(b"0\r\n\r\n")
        return True

    def page_gzip(self, method, query, headers, body, served):
        packed = gzip.compress(self.token())
        return self.answer(200, packed, headers, ["Content-Encoding: gzip"])

    def page_buy(self, method, query, headers, body, served):
        fields = parse_qs(body)
        token = fields.get("token", [""])[0]
        with lock:
            good = method == "POST" and token in tokens and fields.get("item", [""])[0] != ""
            tokens.discard(token)
        if not good:
            return self.answer(400, b"no such token", headers)
        return self.answer(302, b"", headers, ["Location: /thanks?for=it"])

    def page_thanks(self, method, query, headers, body, served):
        return self.answer(200 if method == "GET" else 405, b"thanks", headers)

    def page_slow(self, method, query, headers, body, served):
        time.sleep(int(query.get("ms", ["100"])[0]) / 1000)
        return self.answer(200, b"slow", headers)

    def page_error(self, method, query, headers, body, served):
        return self.answer(503, b"not now", headers)

    def page_garbage(self, method, query, headers, body, served):
        self.send(b"SSH-2.0-not-http\r\n\x00\xff\r\n")
        return False

    def page_trickle(self, method, query, headers, body, served):
        self.send(b"HTTP/1.1 200 OK\r\n\r\n")
        for _ in range(200):
            self.send(b"x")
            time.sleep(0.05)
        return False

    def page_endless(self, method, query, headers, body, served):
        self.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        piece = b"100000\r\n" + b"x" * (1 << 20) + b"\r\n"
        for _ in range(1000):
            self.send(piece)
        return False

    def page_circle(self, method, query, headers, body, served):
        return self.answer(302, b"", headers, ["Location: /circle"])

    def page_away(self, method, query, headers, body, served):
        return self.answer(302, b"", headers, ["Location: http://elsewhere.invalid/"])

    def page_cut(self, method, query, headers, body, served):
        self.send(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nonly this")
        return False

    def page_old(self, method, query, headers, body, served):
        self.send(b"HTTP/1.0 200 OK\r\n\r\nuntil the end")
        return False

    def page_twice(self, method, query, headers, body, served):
        # A connection is closed instead of a third answer, as by a server that bounds them.
        return self.answer(200, b"ok", headers) if served < 2 else False

    page_shop_slow = page_slow
    page_shop_error = page_error


class Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 128

    def handle_error(self, request, client_address):
        pass


context = None
if len(sys.argv) == 3:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(sys.argv[1], sys.argv[2])
server = Server(("127.0.0.1", 0), Site)
threading.Thread(target=server.serve_forever, daemon=True).start()
print(server.server_address[1], flush=True)
sys.stdin.read()
