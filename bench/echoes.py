"""Plain servers to hold the service against, as programs: each takes a port and where its journal is.

ROUTE is a route of the framework that parses and echoes a question. ECHO is the service itself where its handler does
no more than that: the same path in and out. DURABLE is the same, and keeps every question before it answers, as plainly
as it can be done: what waits together is appended to a file and flushed, or inserted into a table by one statement.
"""

ROUTE = """
import sys, uvicorn
from litestar import Litestar, post
from surefoot.service.requests import Decide
@post("/echo")
async def echo(data: Decide) -> Decide:
    return data
uvicorn.run(Litestar([echo], openapi_config=None), port=int(sys.argv[1]), http="httptools", access_log=False,
            log_level="warning")
"""
_SERVICE = """
import asyncio, os, sys
from typing import ClassVar
from surefoot.service.app import Service
from surefoot.service.requests import Decide, decoder, read_body
from surefoot.service.server import Server, calm_collector, config_of
from surefoot.service.settings import Settings
settings = Settings(database=sys.argv[2], port=int(sys.argv[1]))
service = Service(settings)
class Question(Decide):
    is_repeat: ClassVar[bool] = False
read = decoder(Question)
"""
_RUN = """
service.handlers.decide = echo
calm_collector()
Server(config_of(settings, service), service).run()
"""
ECHO = f"""{_SERVICE}
async def echo(name, body, visit):
    return read_body(read, body)
{_RUN}"""
DURABLE = f"""{_SERVICE}
if sys.argv[2].startswith("postgresql:"):
    import psycopg
    database = psycopg.connect(sys.argv[2], autocommit=True)
    database.execute("CREATE TABLE IF NOT EXISTS questions (body BYTEA NOT NULL)")
    def keep(bodies):
        database.execute("INSERT INTO questions SELECT unnest(%s::bytea[])", [bodies], prepare=True)
else:
    file = os.open(sys.argv[2] + ".questions", os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    def keep(bodies):
        os.write(file, b"\\n".join(bodies) + b"\\n")
        os.fdatasync(file)
waiting, task = [], None
async def work():
    global waiting, task
    while waiting:
        group, waiting = waiting, []
        await asyncio.get_running_loop().run_in_executor(None, keep, [body for body, _ in group])
        for _, done in group:
            done.set_result(None)
    task = None
async def echo(name, body, visit):
    global task
    asked, done = read_body(read, body), asyncio.get_running_loop().create_future()
    waiting.append((body, done))
    if task is None:
        task = asyncio.create_task(work())
    await done
    return asked
{_RUN}"""
