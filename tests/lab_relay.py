#!/usr/bin/env python3
"""Passes connections on, and delays what passes by some milliseconds each way, like a long network.

    lab_relay.py LISTEN_HOST PORT TO_HOST PORT MILLISECONDS
"""

import asyncio
import socket
import sys

PIECE = 64 * 1024


async def send(queue, writer):
    loop = asyncio.get_running_loop()
    while True:
        due, piece = await queue.get()
        await asyncio.sleep(max(0, due - loop.time()))
        if not piece:
            break
        writer.write(piece)
        await writer.drain()
    writer.close()


async def one_way(reader, writer, delay):
    """What is on its way does not hold up what comes after it."""
    queue = asyncio.Queue(maxsize=1024)
    sender = asyncio.create_task(send(queue, writer))
    loop = asyncio.get_running_loop()
    try:
        while piece := await reader.read(PIECE):
            await queue.put((loop.time() + delay, piece))
    except ConnectionError:
        pass
    await queue.put((loop.time() + delay, b""))
    try:
        await sender
    except ConnectionError:
        pass


async def main():
    listen, port, to, to_port, ms = sys.argv[1:]
    delay = float(ms) / 1000

    async def connected(reader, writer):
        try:
            to_reader, to_writer = await asyncio.open_connection(to, int(to_port))
        except OSError:
            writer.close()
            return
        for end in (writer, to_writer):
            end.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        await asyncio.gather(one_way(reader, to_writer, delay), one_way(to_reader, writer, delay))

    server = await asyncio.start_server(connected, listen, int(port))
    async with server:
        await server.serve_forever()


asyncio.run(main())
