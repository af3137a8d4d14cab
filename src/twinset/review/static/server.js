// Requests to the review server, and what can go wrong with them.

const meta = (name) => document.querySelector(`meta[name="${name}"]`).content;
const TIMEOUT = 20_000; // ms

export const UNSENT = meta("unsent"); // how keys of answers that wait in this browser begin: of one dataset and person

// kind: again (repeat the request, after `pause` seconds if given), closed (the link is no longer valid), or refused
// (this request will never succeed, as the server itself says: a proxy or tunnel before it knows nothing of it).
export class Trouble extends Error {
  constructor(kind, words, pause) {
    super(words);
    Object.assign(this, { kind, pause });
  }
}

// GET without a body, else POST; the JSON of the reply.
export async function ask(path, body) {
  const headers = { "Content-Type": "application/json", "X-CSRF-Token": meta("csrf") };
  let reply, data;
  try {
    const options = body === undefined ? {} : { method: "POST", body: JSON.stringify(body) };
    reply = await fetch(path, { ...options, headers, cache: "no-store", signal: AbortSignal.timeout(TIMEOUT) });
    data = await reply.json();
  } catch {
    if (!reply || reply.ok) throw new Trouble("again", "The server cannot be reached.");
    data = {};
  }
  if (reply.ok) return data;
  const detailed = typeof data?.detail === "string"; // as every refusal of the server
  const words = detailed ? data.detail : `status ${reply.status}`;
  if (reply.status === 401 || reply.status === 403) throw new Trouble("closed", "Your link is no longer valid: open it again.");
  if (!detailed || reply.status === 408 || reply.status === 429 || reply.status >= 500)
    throw new Trouble("again", `The server asks to wait: ${words}.`, Number(reply.headers.get("Retry-After")) || undefined);
  throw new Trouble("refused", words);
}
