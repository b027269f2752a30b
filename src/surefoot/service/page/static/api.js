// The API as the page uses it: a token from this tab, problems as errors, and an experiment followed live.

const KEY = "surefoot.token";
const FIRST_WORD_MS = 6000; // a stream that says nothing for so long is held up on its way: ask instead
const SILENCE_MS = 40000; // the server says something every 15 seconds
const PAUSE_MS = 2000;

export const token = {
  get: () => sessionStorage.getItem(KEY),
  set: (text) => sessionStorage.setItem(KEY, text),
  forget: () => sessionStorage.removeItem(KEY),
};

export class Problem extends Error {
  constructor(status, found) {
    super(found.detail || found.title || `The server answered ${status}.`);
    this.status = status;
  }
}

export const isNoToken = (error) => error instanceof Problem && error.status === 401;
const isRefused = (error) => error instanceof Problem && [401, 403, 404].includes(error.status);

async function call(path, { method = "GET", body, signal } = {}) {
  const headers = {};
  if (token.get()) headers.Authorization = `Bearer ${token.get()}`;
  if (body) headers["Content-Type"] = "application/json";
  const answer = await fetch(path, { method, headers, signal, cache: "no-store", body: body && JSON.stringify(body) });
  if (!answer.ok) throw new Problem(answer.status, await answer.json().catch(() => ({})));
  return answer;
}

export const ask = async (path, options) => (await call(path, options)).json();
export const of = (name, part = "") => `/v1/experiments/${encodeURIComponent(name)}${part}`;

// Tell every change of an experiment until `signal` aborts: by the stream, or by asking where it does not get through.
export async function follow(name, { signal, tell, onState }) {
  while (!signal.aborted) {
    try {
      await stream(name, { signal, tell, onState });
    } catch (error) {
      if (signal.aborted) return;
      if (isRefused(error)) throw error;
    }
    try {
      tell(await all(name, signal), true);
      onState("asking");
    } catch (error) {
      if (signal.aborted) return;
      if (isRefused(error)) throw error;
      onState("lost");
    }
    await new Promise((done) => setTimeout(done, PAUSE_MS));
  }
}

// EventSource cannot send a token, so the stream is read by hand.
async function stream(name, { signal, tell, onState }) {
  const own = new AbortController();
  const stop = () => own.abort();
  signal.addEventListener("abort", stop);
  let timer = setTimeout(stop, FIRST_WORD_MS);
  try {
    const answer = await call(of(name, "/live"), { signal: own.signal });
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    let isFirst = true;
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      clearTimeout(timer);
      timer = setTimeout(stop, SILENCE_MS);
      const blocks = (rest + value).split("\n\n");
      rest = blocks.pop();
      for (const block of blocks) {
        const data = block.split("\n").filter((line) => line.startsWith("data: "));
        if (!data.length) continue;
        tell(JSON.parse(data.map((line) => line.slice(6)).join("\n")), isFirst);
        isFirst = false;
      }
      onState("live");
    }
  } finally {
    clearTimeout(timer);
    signal.removeEventListener("abort", stop);
    own.abort();
  }
}

async function all(name, signal) {
  const parts = ["", "/history", "/decisions?limit=20", "/beliefs", "/alarms"];
  const [status, history, recent, beliefs, alarms] = await Promise.all(
    parts.map((part) => ask(of(name, part), { signal })),
  );
  return { status, ...history, decisions: recent.decisions, beliefs, alarms: alarms.alarms };
}
