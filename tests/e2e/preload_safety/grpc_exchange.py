#!/usr/bin/python3
"""Large calls both ways over gRPC, several at a time."""
import hashlib
from concurrent import futures

import grpc

LIMITS = [("grpc.max_send_message_length", -1), ("grpc.max_receive_message_length", -1)]
SIZES = [10, 3000, 40000, 1 << 20, 5 << 20]


class Reverse(grpc.GenericRpcHandler):
    """One method: the request, backwards."""

    def service(self, handler_call_details):
        return grpc.unary_unary_rpc_method_handler(lambda request, _: request[::-1])


def main():
    server = grpc.server(futures.ThreadPoolExecutor(4), options=LIMITS)
    server.add_generic_rpc_handlers((Reverse(),))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    with grpc.insecure_channel(f"127.0.0.1:{port}", options=LIMITS) as channel:
        reverse = channel.unary_unary("/exchange/reverse")
        calls = [(reverse.future(bytes([n]) * size + b"end"), n, size) for n in range(4) for size in SIZES]
        digest = hashlib.sha256()
        for call, n, size in calls:
            answer = call.result(timeout=40)
            assert answer == b"dne" + bytes([n]) * size
            digest.update(answer)
    server.stop(None)
    print(digest.hexdigest())


if __name__ == "__main__":
    main()
