// Decisions over HTTP with nothing but fetch: node examples/service_from_javascript.mjs http://127.0.0.1:8080
const base = process.argv[2] ?? "http://127.0.0.1:8080";
const headers = { "content-type": "application/json" }; // with tokens: authorization: `Bearer ${token}`

async function post(path, body) {
  const answer = await fetch(base + path, { method: "POST", headers, body: JSON.stringify(body) });
  const found = await answer.json();
  if (!answer.ok) throw new Error(`${found.title}: ${found.detail}`); // problem details, RFC 9457
  return found;
}

// A sequence that is the same in every run, so that the picture is, too.
let state = 7;
const random = () => (state = (state * 48271) % 2147483647) / 2147483647;

await post("/v1/experiments", {
  name: "checkout",
  mode: "guarded",
  settings: { dim: 3, alpha: 0.1, delta: 0.01, reward_bounds: [0, 1], theta_bound: 1.7, feature_bound: 1 },
});
// One-click checkout, with and without an account; "classic" comes first, so it is the baseline.
const actions = [
  { id: "classic", features: [1, 0, 0] },
  { id: "guest", features: [0, 1, 0] },
  { id: "one-click", features: [0, 0, 1] },
];
const rates = { classic: 0.5, guest: 0.4, "one-click": 0.75 }; // what nobody knows

for (let visit = 1; visit <= 400; visit++) {
  const id = `visit-${visit}`;
  const decision = await post("/v1/experiments/checkout/decisions", { decision_id: id, actions });
  const value = Number(random() < rates[decision.action_id]);
  await post(`/v1/experiments/checkout/decisions/${id}/reward`, { value });
  console.log(JSON.stringify({ visit, action: decision.action_id, source: decision.source }));
}
