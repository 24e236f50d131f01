#!/usr/bin/env python3
"""A program of plain sockets for split_programs.sh, written without knowledge of gateways.

split_sockets.py serve PORT        serve one client of many connections, print the digest of the data and the clients' addresses
split_sockets.py HOST PORT         be that client: several connections at once, blocking and through a selector, both directions
"""
import hashlib
import selectors
import socket
import sys
import threading

CONNECTIONS, SIZE = 8, 1 << 20


def block(number):
    return hashlib.shake_128(bytes([number])).digest(SIZE)


def read_all(connection):
    parts = []
    while part := connection.recv(1 << 16):
        parts.append(part)
    return b"".join(parts)


def serve(port):
    listener = socket.create_server(("", port))
    digests, peers = [], set()

    def one(connection, peer):
        data = read_all(connection)
        assert connection.getpeername() == peer
        peers.add(peer[0])
        digests.append(hashlib.sha256(data).hexdigest())
        connection.sendall(data[::-1])
        connection.close()

    threads = []
    for _ in range(2 * CONNECTIONS):
        threads.append(threading.Thread(target=one, args=listener.accept()))
        threads[-1].start()
    for thread in threads:
        thread.join()
    print(*sorted(digests), *sorted(peers), sep="\n")


def blocking(host, port, number):
    connection = socket.create_connection((host, port))
    connection.sendall(block(number))
    connection.shutdown(socket.SHUT_WR)
    assert read_all(connection) == block(number)[::-1], number


def selecting(host, port, numbers):
    selector = selectors.DefaultSelector()
    for number in numbers:
        connection = socket.socket()
        connection.setblocking(False)
        connection.connect_ex((host, port))
        selector.register(connection, selectors.EVENT_READ | selectors.EVENT_WRITE, [number, block(number), b""])
    while selector.get_map():
        for key, events in selector.select(60) or sys.exit("nothing happens"):
            connection, state = key.fileobj, key.data
            if events & selectors.EVENT_WRITE and state[1]:
                state[1] = state[1][connection.send(state[1][:65536]):]
                if not state[1]:
                    connection.shutdown(socket.SHUT_WR)
                    selector.modify(connection, selectors.EVENT_READ, state)
            if events & selectors.EVENT_READ:
                part = connection.recv(65536)
                state[2] += part
                if not part:
                    assert state[2] == block(state[0])[::-1], state[0]
                    selector.unregister(connection)
                    connection.close()


def main():
    if sys.argv[1] == "serve":
        return serve(int(sys.argv[2]))
    host, port = socket.gethostbyname(sys.argv[1]), int(sys.argv[2])
    threads = [threading.Thread(target=blocking, args=(host, port, number)) for number in range(CONNECTIONS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    selecting(host, port, range(CONNECTIONS, 2 * CONNECTIONS))
    print("all blocks right")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main()
