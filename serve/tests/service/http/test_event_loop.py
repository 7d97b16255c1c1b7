"""The event loop: uvloop where it is installed, and otherwise that of Python, as on Windows."""

import asyncio
import os
import signal
import threading

import uvloop

from decoupled_serve.mirror import server as mirror_server
from decoupled_serve.mirror.server import server_settings
from decoupled_serve.service.http.server import Serving, configuration
from support.plain_python import ran

WITHOUT_UVLOOP = """
import sys
sys.modules["uvloop"] = None
import decoupled_serve.cli.service, decoupled_serve.cli.mirror, decoupled_serve.mirror.server
from decoupled_serve.service.http.server import Serving, configuration
print(configuration(None, Serving(store="")).get_loop_factory()().__module__)
"""


def test_it_is_uvloop_where_it_is_installed_and_nothing_needs_it() -> None:
    for settings in (configuration(None, Serving(store="")), server_settings(None, drain=30, seconds=60.0)):
        factory = settings.get_loop_factory()
        assert factory is not None
        loop = factory()
        loop.close()
        assert type(loop) is uvloop.Loop
    # What runs on the loop of Python is tested by every test of a connection.
    assert ran("-c", WITHOUT_UVLOOP).startswith("asyncio")


def test_a_mirror_ends_on_a_signal_without_handlers_of_the_loop() -> None:
    class LikeOnWindows(asyncio.SelectorEventLoop):
        def add_signal_handler(self, *_: object) -> None:
            raise NotImplementedError

    async def until_signal() -> None:
        ending = asyncio.Event()
        mirror_server._on_signals(ending)
        os.kill(os.getpid(), signal.SIGTERM)
        await asyncio.wait_for(ending.wait(), 30)

    assert threading.current_thread() is threading.main_thread()
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        with asyncio.Runner(loop_factory=LikeOnWindows) as runner:
            runner.run(until_signal())
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
